"""Known faults of token log-probs, masked log-probs, entropy and action log-probs."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rlassay.check import Kind
from rlassay.faults import Faults, Function
from rlassay.faults.parts import (
    early,
    everything,
    hide,
    late,
    multiply_out,
    of_first_row,
    without_first,
    without_last,
    working,
)
from rlassay.faults.parts.log_prob import action_log_probs, entropy, gather, masked_log_probs, token_log_probs

FAULTS = Faults()


def _token(identity: str, title: str, source: str, kind: Kind = "conformance", **parts: Any) -> None:
    FAULTS.add(identity, "token_log_probs", title, source, partial(token_log_probs, **parts), kind=kind)


def _masked(identity: str, title: str, source: str, kind: Kind = "conformance", **parts: Any) -> None:
    FAULTS.add(identity, "masked_log_probs", title, source, partial(masked_log_probs, **parts), kind=kind)


def _entropy(identity: str, title: str, source: str, **parts: Any) -> None:
    FAULTS.add(identity, "entropy", title, source, partial(entropy, **parts))


def _action(identity: str, title: str, source: str, **parts: Any) -> None:
    FAULTS.add(identity, "action_log_probs", title, source, partial(action_log_probs, **parts))


def unshifted(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The logits at t and the token at t."""
    return logits[:, :-1], ids[:, :-1]


def shifted_back(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The logits at t+1 and the token at t."""
    return logits[:, 1:], ids[:, :-1]


def after_itself(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The logits at t+1 and the token at t+1."""
    return logits[:, 1:], ids[:, 1:]


def rolled(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs as they stand, without the last column of a row of labels rolled to the right."""
    return logits[:, :-1], ids.roll(1, dims=1)[:, :-1]


def over_axis(dim: int) -> Function:
    """A softmax over another axis than the vocabulary."""
    return lambda logits, ids: torch.log_softmax(logits, dim=dim)


def without_gradient_of_the_sum(logits: Tensor, ids: Tensor) -> Tensor:
    """Right in value; only the logit of the token itself gets a gradient."""
    return logits - logits.logsumexp(dim=-1, keepdim=True).detach()


def unsafe_softmax(logits: Tensor, ids: Tensor) -> Tensor:
    """exp without the largest logit taken off first."""
    powers = logits.exp()
    return (powers / powers.sum(dim=-1, keepdim=True)).log()


def smoothed(log_p: Tensor, ids: Tensor) -> Tensor:
    """Label smoothing of 0.1, as in supervised training."""
    return 0.9 * gather(log_p, ids) + 0.1 * log_p.mean(dim=-1)


def padding_is_0(log_p: Tensor, ids: Tensor) -> Tensor:
    """Cross-entropy with ignore_index = 0."""
    return torch.where(ids == 0, 0.0, gather(log_p, ids))


SHARED: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("LOG-01", "no shift: the logits at t score the token at t", "claim B6.3", {"align": unshifted}),
    ("LOG-02", "a shift the wrong way: the logits at t+1 score the token at t", "claim B6.3", {"align": shifted_back}),
    (
        "LOG-03",
        "no shift, first column dropped: the logits at t+1 score the token at t+1",
        "claim B6.3",
        {"align": after_itself},
    ),
    ("LP-06", "a softmax over the batch", "ray-project/ray PR 16311", {"normalise": over_axis(0)}),
    ("LOG-04", "a softmax over the positions", "ray-project/ray PR 16311", {"normalise": over_axis(1)}),
    ("LP-07", "a result cut off from the logits' graph", "gflownet PR 251", {"finish": torch.detach}),
    ("LOG-05", "the probability, not its logarithm", "textbook", {"finish": torch.exp}),
    ("LOG-06", "the negative log-probability", "stable-baselines issue 447", {"finish": torch.neg}),
    ("LOG-07", "logarithms to base 2", "textbook", {"finish": lambda log_p: log_p / math.log(2)}),
    ("LOG-08", "the bare logit: the normaliser is missing", "textbook", {"normalise": lambda logits, ids: logits}),
    (
        "LOG-09",
        "a normaliser without gradient: only the token's own logit moves",
        "textbook",
        {"normalise": without_gradient_of_the_sum},
    ),
    (
        "SA-03",
        "a softmax of the softmax: probabilities handed over as logits",
        "RL_course_2019 PR 6",
        {"normalise": lambda logits, ids: torch.log_softmax(torch.softmax(logits, dim=-1), dim=-1)},
    ),
)

for _identity, _title, _source, _parts in SHARED:
    _token(_identity, _title, _source, **_parts)
    if _identity != "LOG-05":
        _masked(_identity, _title, _source, **_parts)

_token(
    "LP-03",
    "a log-softmax in bfloat16, whatever the logits come in",
    "minimind PR 814",
    normalise=lambda logits, ids: torch.log_softmax(logits.bfloat16(), dim=-1).to(logits.dtype),
)
_token(
    "LP-04",
    "dropout that is still active",
    "huggingface/trl issue 4",
    temper=lambda logits, temperature: functional.dropout(logits / temperature, 0.1),
)
_token("LP-05", "a padding id of 0, whose log-prob is 0", "pytorch/rl PR 3580", select=padding_is_0)
_token("LOG-10", "a temperature that is ignored", "huggingface/trl issue 4159", temper=lambda z, temperature: z)
_token("LOG-11", "logits multiplied by the temperature", "textbook", temper=torch.mul)
_token("SA-01", "logits divided by the temperature twice", "RL-Kernel issue 81", temper=lambda z, t: z / t / t)


@FAULTS.fault("SA-02", "token_log_probs", "a temperature that divides the log-probs", "MoonshotAI/Kimi-Audio PR 161")
def _after_log_softmax(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    return token_log_probs(logits, token_ids, finish=lambda log_p: log_p / temperature)


_token(
    "LOG-12",
    "the log-prob of the likeliest token, not of the sampled one",
    "textbook",
    select=lambda log_p, ids: log_p.amax(dim=-1),
)
_token("LOG-13", "label smoothing of 0.1", "textbook", select=smoothed)
_token("LOG-43", "one sigmoid a token", "textbook", normalise=lambda logits, ids: functional.logsigmoid(logits))
_token("LOG-14", "log-probs bounded below at −10", "textbook", finish=lambda log_p: log_p.clamp(min=-10.0))
_token(
    "LOG-15",
    "the first row's ids for every row",
    "textbook",
    select=lambda log_p, ids: gather(log_p, of_first_row(ids)),
)
_token(
    "LOG-16",
    "a softmax without the largest logit taken off",
    "textbook",
    kind="robustness",
    normalise=unsafe_softmax,
)

_masked("MK-01", "a mask of ones: every token keeps its log-prob", "huggingface/trl issue 334", visible=everything)
_masked("MK-02", "the mask with its polarity reversed", "mll-lab-nu/RAGEN issue 71", visible=torch.logical_not)
_masked("LOG-17", "a mask that is one token late", "textbook", visible=late)
_masked("LOG-42", "a mask that is one token early", "textbook", visible=early)
_masked("LOG-18", "the first sampled token left out", "textbook", visible=without_first)
_masked("LOG-19", "the last sampled token left out", "textbook", visible=without_last)
_masked("LOG-20", "the first row's mask for every row", "textbook", visible=of_first_row)
_masked("MK-13", "masking by multiplication: 0·NaN is NaN", "OpenRLHF PR 1240", kind="robustness", cover=multiply_out)


@FAULTS.fault("LP-01", "masked_log_probs", "log-probs cut from the front of the row", "PaLM-rlhf-pytorch issue 31")
def _from_the_front(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    shown = mask != 0
    inside = torch.where((token_ids >= 0) & (token_ids < logits.shape[-1]), token_ids, 0)
    all_scored = token_log_probs(logits, inside)
    place = (shown.long().cumsum(dim=1) - 1).clamp(min=0)
    return torch.where(shown, all_scored.gather(1, place), 0.0).to(logits.dtype)


@FAULTS.fault("EN-01", "masked_log_probs", "a filler of 1 at masked places", "huggingface/trl issue 2281")
def _filler(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    return masked_log_probs(logits, token_ids, mask) + (mask == 0).to(logits.dtype)


@FAULTS.fault("LOG-21", "masked_log_probs", "a gradient that reaches masked places", "claim B6.6")
def _masked_in_value_only(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    straight = masked_log_probs(logits, token_ids, torch.ones_like(mask))
    return masked_log_probs(logits, token_ids, mask).detach() + straight - straight.detach()


@FAULTS.fault(
    "LOG-22", "masked_log_probs", "masked ids used as they are: −100 is out of range", "claim B6.6", raises=True
)
def _ids_unguarded(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    return hide(gather(torch.log_softmax(working(logits[:, :-1]), -1), token_ids[:, 1:]), mask != 0).to(logits.dtype)


_entropy("LOG-23", "negative entropy", "ElegantRL issue 74", finish=torch.neg)
_entropy("LOG-24", "entropy in bits", "textbook", finish=lambda nats: nats / math.log(2))
_entropy("LOG-25", "a mean over the vocabulary instead of a sum", "textbook", reduce=torch.mean)
_entropy("LP-06", "a softmax over the batch", "ray-project/ray PR 16311", dim=0)
_entropy("LOG-04", "a softmax over the positions", "ray-project/ray PR 16311", dim=1)
_entropy("LP-07", "a result cut off from the logits' graph", "gflownet PR 251", finish=torch.detach)
_entropy("LOG-27", "the entropy of the batch, the same everywhere", "textbook", finish=lambda h: h.mean().expand_as(h))
_entropy("EN-03", "positions off by one", "huggingface/trl PR 5620", finish=lambda h: h.roll(1, dims=1))
_entropy(
    "EN-05",
    "0 at the last position",
    "THUDM/slime PR 1377",
    finish=lambda h: torch.cat([h[:, :-1], torch.zeros_like(h[:, -1:])], dim=1),
)


@FAULTS.fault("LOG-28", "entropy", "the sampled estimate −log p of the likeliest token", "textbook")
def _of_the_mode(logits: Tensor) -> Tensor:
    return -torch.log_softmax(working(logits), dim=-1).amax(dim=-1).to(logits.dtype)


@FAULTS.fault("LOG-29", "entropy", "an unweighted sum of −log p", "textbook")
def _unweighted(logits: Tensor) -> Tensor:
    return -torch.log_softmax(working(logits), dim=-1).sum(dim=-1).to(logits.dtype)


@FAULTS.fault("LOG-30", "entropy", "a share of its largest possible value log V", "textbook")
def _normalised(logits: Tensor) -> Tensor:
    return entropy(logits) / math.log(logits.shape[-1])


@FAULTS.fault("LOG-31", "entropy", "0·(−inf) = NaN beside a banned token", "pytorch/rl PR 3580")
def _banned_is_nan(logits: Tensor) -> Tensor:
    log_p = torch.log_softmax(working(logits), dim=-1)
    return -(log_p.exp() * log_p).sum(dim=-1).to(logits.dtype)


@FAULTS.fault("LOG-32", "entropy", "a NaN gradient beside a banned token", "pytorch/rl PR 3580", kind="robustness")
def _banned_gradient_is_nan(logits: Tensor) -> Tensor:
    log_p = torch.log_softmax(working(logits), dim=-1)
    return -torch.where(log_p.isneginf(), 0.0, log_p.exp() * log_p).sum(dim=-1).to(logits.dtype)


@FAULTS.fault("LOG-16", "entropy", "a softmax without the largest logit taken off", "textbook", kind="robustness")
def _unsafe(logits: Tensor) -> Tensor:
    powers = working(logits).exp()
    total = powers.sum(dim=-1, keepdim=True)
    terms = torch.where(logits.isneginf(), 0.0, powers / total * torch.where(logits.isneginf(), 0.0, working(logits)))
    return (total.log()[..., 0] - terms.sum(dim=-1)).to(logits.dtype)


_action(
    "LOG-33",
    "the mean log-prob of an action's tokens",
    "claim B6.3",
    reduce=lambda terms, member: terms.sum(dim=-1) / member.sum(dim=-1).clamp(min=1),
)
_action("LOG-34", "the first token of an action alone", "claim B6.3", belong=lambda m: m & (m.cumsum(dim=-1) == 1))
_action("LOG-35", "an action without its first token", "claim B6.3", belong=lambda m: m & (m.cumsum(dim=-1) > 1))
_action("LOG-37", "actions counted from 1", "textbook", number=lambda ids: ids - 1)
_action("LOG-38", "the first row's action ids for every row", "textbook", number=of_first_row)
_action("LOG-05", "the sum of the probabilities", "textbook", score=torch.exp)
_action(
    "LP-07", "a result cut off from the log-probs' graph", "gflownet PR 251", reduce=lambda x, _: x.detach().sum(-1)
)
_action("LOG-39", "running sums over the actions", "textbook", reduce=lambda x, _: x.sum(dim=-1).cumsum(dim=-1))
_action(
    "LOG-40",
    "−inf for an action without tokens",
    "textbook",
    reduce=lambda x, m: torch.where(m.any(-1), x.sum(-1), -math.inf),
)


@FAULTS.fault("LOG-36", "action_log_probs", "tokens of no action added to the last one", "textbook: index −1")
def _minus_one_is_the_last(log_probs: Tensor, action_ids: Tensor, n_actions: int) -> Tensor:
    return action_log_probs(log_probs, torch.where(action_ids < 0, n_actions - 1, action_ids), n_actions)


@FAULTS.fault("LOG-41", "action_log_probs", "only the first run of neighbouring tokens of an action", "claim B6.3")
def _first_run(log_probs: Tensor, action_ids: Tensor, n_actions: int) -> Tensor:
    def first_run(member: Tensor) -> Tensor:
        starts = member & ~functional.pad(member[..., :-1], (1, 0))
        return member & (starts.cumsum(dim=-1) == 1)

    return action_log_probs(log_probs, action_ids, n_actions, belong=first_run)
