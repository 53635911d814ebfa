"""Known faults of the entropy bonus and of truncated importance weights."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from rlassay.faults import Faults, Function
from rlassay.faults.parts import constant, hide, working
from rlassay.faults.parts import surrogate as right
from rlassay.faults.parts.surrogate import information, truncated
from rlassay.faults.surrogate import BONUS, WEIGHTS, declare

FAULTS = Faults()
_bonus = partial(declare, FAULTS, BONUS)
_weights = partial(declare, FAULTS, WEIGHTS)


def over_axis(dim: int) -> Function:
    """A softmax over another axis than the vocabulary."""
    return lambda logits: torch.log_softmax(logits, dim=dim)


def unsafe(logits: Tensor) -> Tensor:
    """A softmax without the largest logit taken off first."""
    return logits - logits.exp().sum(dim=-1, keepdim=True).log()


_bonus("LOG-23", "negative entropy", "ElegantRL issue 74", finish=torch.neg)
_bonus("LP-07", "a result cut off from the graph", "gflownet PR 251", finish=torch.detach)
_bonus("LOG-24", "entropy in bits", "textbook", finish=lambda nats: nats / math.log(2))
_bonus("EN-03", "the logits at the token, not those that predict it", "trl PR 5620", align=lambda x: x[:, 1:])
_bonus("SUR-40", "the logits before those that predict the token", "textbook", align=lambda x: x.roll(1, 1)[:, :-1])
_bonus(
    "SUR-41",
    "all L positions: what follows the last token counts",
    "textbook",
    align=lambda x: x,
    visible=lambda m: functional.pad(m, (0, 1), value=True),
)
_bonus("LP-06", "a softmax over the batch", "ray-project/ray PR 16311", normalise=over_axis(0))
_bonus("LOG-04", "a softmax over the positions", "ray-project/ray PR 16311", normalise=over_axis(1))
_bonus(
    "SUR-42",
    "a temperature of ½ that was not asked for",
    "textbook",
    normalise=lambda x: torch.log_softmax(2 * x, dim=-1),
)
_bonus("LOG-16", "a softmax without the largest logit taken off", "textbook", kind="robustness", normalise=unsafe)
_bonus(
    "LOG-25", "a mean over the vocabulary instead of a sum", "textbook", reduce=lambda x: information(x) / x.shape[-1]
)
_bonus("LOG-28", "−log p of the likeliest token", "textbook", reduce=lambda x: -x.amax(dim=-1))
_bonus("LOG-29", "an unweighted sum of −log p", "textbook", reduce=lambda x: -hide(x, x > -math.inf).sum(dim=-1))
_bonus(
    "LOG-30",
    "a share of its largest possible value log V",
    "textbook",
    reduce=lambda x: information(x) / math.log(x.shape[-1]),
)
_bonus(
    "SUR-43",
    "p multiplied in twice: −Σ p² log p",
    "textbook",
    reduce=lambda x: -((2 * x).exp() * hide(x, x > -math.inf)).sum(dim=-1),
)
_bonus("SUR-44", "the perplexity, the exponential of the entropy", "textbook", reduce=lambda x: information(x).exp())
_bonus("SUR-45", "1 − Σ p² in place of the entropy", "textbook", reduce=lambda x: 1 - (2 * x).exp().sum(dim=-1))
_bonus("SUR-46", "the sum of the probabilities: 1 per token", "textbook", reduce=lambda x: x.exp().sum(dim=-1))
_bonus(
    "SUR-47",
    "the variance of log p",
    "textbook",
    reduce=lambda x: (x.exp() * hide(x, x > -math.inf) ** 2).sum(-1) - information(x) ** 2,
)
_bonus("LOG-31", "0·(−inf) = NaN beside a banned token", "pytorch/rl PR 3580", reduce=lambda x: -(x.exp() * x).sum(-1))
_bonus(
    "LOG-32",
    "a NaN gradient beside a banned token",
    "pytorch/rl PR 3580",
    kind="robustness",
    reduce=lambda x: -torch.where(x.isneginf(), 0.0, x.exp() * x).sum(dim=-1),
)

RATIOS: tuple[tuple[str, str, str, Function], ...] = (
    ("LOS-46", "the weight turned over: μ/π", "textbook", lambda new, mu: (mu - new).exp()),
    ("LOS-44", "a weight of 1 at each token", "claim P6.2", lambda new, mu: (new - new).exp()),
    ("LOS-47", "the quotient of the log-probs", "claim P8.6", lambda new, mu: new / mu),
    ("LOS-48", "1 + the log-ratio in place of its exponential", "textbook", lambda new, mu: 1 + (new - mu)),
    ("LOS-49", "the bare log-ratio in place of the ratio", "textbook", lambda new, mu: new - mu),
    ("SUR-50", "the probability under π alone", "textbook", lambda new, mu: new.exp()),
    ("SUR-51", "the root of the ratio", "textbook", lambda new, mu: (0.5 * (new - mu)).exp()),
    (
        "RO-05", "the sampler's log-probs in another order of the rows", "verl issue 2185",
        lambda n, mu: (n - mu.roll(1, 0)).exp()
    ),
    ("LOS-50", "the sampler's log-probs one token late", "textbook", lambda new, mu: (new - mu.roll(1, 1)).exp()),
)  # fmt: skip
for _identity, _title, _source, _ratio in RATIOS:
    _weights(_identity, _title, _source, ratio=_ratio)

TRUNCATIONS: tuple[tuple[str, str, str, Function], ...] = (
    ("SUR-52", "no cap", "textbook", lambda w, cap: w),
    ("SUR-53", "the larger of weight and cap", "textbook", lambda w, cap: w.clamp(min=cap)),
    ("SUR-54", "the cap applied to the log-ratio", "textbook", lambda w, cap: w.clamp(max=math.exp(cap))),
    ("SUR-55", "a lower bound of 1/cap on top", "textbook", lambda w, cap: w.clamp(min(cap, 1 / cap), cap)),
    ("SUR-56", "0 for weights beyond the cap", "textbook", lambda w, cap: torch.where(w > cap, 0.0, w)),
    ("SUR-57", "1 for weights beyond the cap", "textbook", lambda w, cap: torch.where(w > cap, 1.0, w)),
    ("SUR-58", "a cap of 2 whatever is asked", "textbook", lambda w, cap: w.clamp(max=2.0)),
    ("SUR-59", "a cap of 1 whatever is asked", "Espeholt et al.: c̄ for ρ̄", lambda w, cap: w.clamp(max=1.0)),
    ("SUR-60", "1 + cap as the cap", "textbook: the bound of a clipped ratio", lambda w, cap: w.clamp(max=1 + cap)),
    ("SUR-61", "a smooth cap: cap·tanh(w/cap)", "textbook", lambda w, cap: cap * torch.tanh(w / cap)),
    ("SUR-62", "weights bounded to 1 ± cap", "textbook", lambda w, cap: w.clamp(max(0.0, 1 - cap), 1 + cap)),
)  # fmt: skip
for _identity, _title, _source, _truncate in TRUNCATIONS:
    _weights(_identity, _title, _source, truncate=_truncate)


def of_rows(log_weight: Function) -> Function:
    """One weight a row, from the shown places' log-weights."""

    def code(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
        shown = mask != 0
        log_ratios = hide(constant(log_probs) - constant(sampler_log_probs), shown)
        weights = truncated(log_weight(log_ratios, shown).exp(), cap)[:, None]
        return hide(weights.expand(shown.shape), shown).to(log_probs.dtype)

    return code


FAULTS.add(
    "CV-13",
    WEIGHTS,
    "one weight a sequence: the product of its tokens'",
    "trl issue 5814",
    of_rows(lambda x, m: x.sum(1)),
)
FAULTS.add(
    "CV-65",
    WEIGHTS,
    "one weight a sequence: the geometric mean of its tokens'",
    "arXiv 2507.18071",
    of_rows(lambda x, m: x.sum(dim=1) / m.sum(dim=1).clamp(min=1)),
)

_weights("SUR-63", "weights with a live gradient", "textbook", frozen=working)
_weights("SUR-64", "1 at masked places", "textbook", finish=lambda w, shown: torch.where(shown, w, 1.0))
_weights(
    "SUR-65",
    "weights normalised to a mean of 1",
    "textbook: self-normalised importance sampling",
    finish=lambda w, shown: w * shown.sum() / w.sum().clamp(min=1e-9),
)
_weights(
    "SUR-66",
    "the mean weight of the row at each token",
    "textbook",
    finish=lambda w, shown: hide((w.sum(1) / shown.sum(1).clamp(min=1))[:, None].expand(w.shape), shown),
)
_weights(
    "SUR-67",
    "running products: the weight of all tokens so far",
    "textbook: per-decision importance sampling",
    finish=lambda w, shown: hide(torch.where(shown, w, 1.0).cumprod(dim=1), shown),
)


@FAULTS.fault("SUR-68", WEIGHTS, "weights with a live gradient into the sampler alone", "textbook")
def _live_sampler(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    return right.importance_weights(log_probs.detach(), sampler_log_probs, mask, cap, frozen=working)
