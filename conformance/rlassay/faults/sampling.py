"""Known faults of log-probs under the distribution that a sampler draws from."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlassay.faults import Faults
from rlassay.faults.log_prob import after_itself, shifted_back, unshifted
from rlassay.faults.parts import of_first_row
from rlassay.faults.parts.sampling import (
    Kept,
    by_rank,
    one_after_the_other,
    top_k_of,
    top_p_of,
    truncated_log_probs,
)

FAULTS = Faults()


def _fault(identity: str, title: str, source: str, raises: bool = False, **parts: Any) -> None:
    FAULTS.add(identity, "truncated_log_probs", title, source, partial(truncated_log_probs, **parts), raises=raises)


def _cut(identity: str, title: str, source: str = "textbook", **steps: Any) -> None:
    _fault(identity, title, source, choose=partial(one_after_the_other, **steps))


def crossing_left_out(z: Tensor, top_p: float) -> Kept:
    """The likeliest as long as they stay below p, and at least one."""
    p = z.softmax(dim=-1).sort(dim=-1, descending=True).values
    stays = p.cumsum(dim=-1) < top_p
    stays[..., 0] = True
    return by_rank(z, stays)


def one_too_many(z: Tensor, top_p: float) -> Kept:
    """One token more than reach p."""
    p = z.softmax(dim=-1).sort(dim=-1, descending=True).values
    return by_rank(z, p.cumsum(dim=-1) - p - p.roll(1, dims=-1).index_fill(-1, torch.tensor([0]), 1.0) < top_p)


def least_likely(z: Tensor, top_p: float) -> Kept:
    """The smallest set of the least likely that reaches p."""
    p = z.softmax(dim=-1).sort(dim=-1).values
    order = z.argsort(dim=-1)
    stays = p.cumsum(dim=-1) - p < top_p
    return torch.zeros_like(stays).scatter(-1, order, stays)


def still_sorted(z: Tensor, top_p: float) -> Kept:
    """What stays in sorted order, taken for the order of the vocabulary."""
    p = z.softmax(dim=-1).sort(dim=-1, descending=True).values
    return p.cumsum(dim=-1) - p < top_p


def unsorted(z: Tensor, top_p: float) -> Kept:
    """Running sums in the order of the vocabulary."""
    p = z.softmax(dim=-1)
    return p.cumsum(dim=-1) - p < top_p


def over_positions(z: Tensor, top_k: int) -> Kept:
    """The k largest of each token's logits over the positions."""
    return top_k_of(z.transpose(1, 2), top_k).transpose(1, 2)


def of_first_place(z: Tensor, top_k: int) -> Kept:
    """The tokens that are the k largest at the first position, at all positions of a row."""
    return top_k_of(z[:, :1], top_k).expand(z.shape)


def smallest(z: Tensor, top_k: int) -> Kept:
    """The k smallest."""
    return top_k_of(-z, top_k)


def unbounded(z: Tensor, top_k: int) -> Kept:
    """torch.topk with whatever k is asked for."""
    return z >= z.topk(top_k, dim=-1).values[..., -1:]


def both_of_all(z: Tensor, top_k: int | None, top_p: float | None) -> Kept:
    """Top-k and top-p of the whole distribution, and what is in both."""
    kept = torch.ones_like(z, dtype=torch.bool)
    kept = kept if top_k is None else kept & top_k_of(z, top_k)
    return kept if top_p is None else kept & top_p_of(z, top_p)


def either(z: Tensor, top_k: int | None, top_p: float | None) -> Kept:
    """What is in one of both."""
    if top_k is None or top_p is None:
        return one_after_the_other(z, top_k, top_p)
    return top_k_of(z, top_k) | top_p_of(z, top_p)


def with_sampled(kept: Kept, ids: Tensor) -> Kept:
    """The token itself put back into the set."""
    return kept.scatter(-1, ids[..., None], True)


def large_and_negative(z: Tensor, kept: Kept) -> Tensor:
    """−10⁴ in place of −∞."""
    return z.masked_fill(~kept, -1e4)


def added(z: Tensor, kept: Kept) -> Tensor:
    """0 in place of −∞: e⁰ is left."""
    return z.masked_fill(~kept, 0.0)


def of_the_whole(z: Tensor, left: Tensor) -> Tensor:
    """Log-probs of the whole distribution, −∞ where something was cut."""
    return torch.where(left.isneginf(), left, torch.log_softmax(z, dim=-1))


def normaliser_without_gradient(z: Tensor, left: Tensor) -> Tensor:
    """Right in value; only the token's own logit gets a gradient."""
    return left - left.logsumexp(dim=-1, keepdim=True).detach()


def gradient_of_the_whole(z: Tensor, left: Tensor) -> Tensor:
    """Right in value; the gradient is that of the whole distribution, cut tokens too."""
    whole = torch.log_softmax(z, dim=-1)
    return torch.log_softmax(left.detach(), dim=-1) + whole - whole.detach()


def twice(left: Tensor) -> Tensor:
    """Probabilities handed over as logits, where something is left."""
    return torch.log_softmax(torch.softmax(left, dim=-1).masked_fill(left.isneginf(), -math.inf), dim=-1)


_fault(
    "SA-07",
    "nothing cut: log-probs of the whole distribution",
    "huggingface/trl issue 736",
    cut=lambda z, kept: z,
)
_fault("SMP-01", "what stays is not normalised again", "textbook", normalise=of_the_whole)
_fault("SMP-02", "−10⁴ in place of −∞", "textbook", cut=large_and_negative)
_fault("SMP-03", "a logit of 0 in place of −∞", "textbook", cut=added)
_fault("SMP-04", "0 for a token that is cut", "textbook", finish=lambda log_p: log_p.masked_fill(log_p.isneginf(), 0.0))
_fault("SMP-05", "the token itself put back into the set", "textbook", keep=with_sampled)
_cut("SMP-06", "top-p without the token that crosses it", of_p=crossing_left_out)
_cut("SMP-07", "top-p with one token more", of_p=one_too_many)
_cut("SMP-08", "top-p of the least likely tokens", of_p=least_likely)
_cut("SMP-09", "a sorted order that is not undone", of_p=still_sorted)
_cut("SMP-10", "running sums in the order of the vocabulary", of_p=unsorted)
_cut(
    "SMP-11",
    "tokens whose own probability is at least 1 − p",
    of_p=lambda z, p: (s := z.softmax(-1)) >= min(1 - p, s.amax()),
)
_cut(
    "SMP-12",
    "tokens at least p times as likely as the likeliest",
    of_p=lambda z, p: (s := z.softmax(-1)) >= p * s.amax(-1, keepdim=True),
)
_cut("SMP-13", "top-p ignored", of_p=lambda z, p: z > -math.inf)
_cut("SMP-14", "top-k ignored", of_k=lambda z, k: z > -math.inf)
_cut("SMP-15", "k + 1 tokens", of_k=lambda z, k: top_k_of(z, k + 1))
_cut("SMP-16", "k − 1 tokens, at least one", of_k=lambda z, k: top_k_of(z, max(k - 1, 1)))
_cut("SMP-17", "the k smallest logits", of_k=smallest)
_cut("SMP-18", "the k largest over the positions", of_k=over_positions)
_cut("SMP-19", "the first position's k tokens at all positions", of_k=of_first_place)
_cut("SMP-20", "the first row's k tokens in all rows", of_k=lambda z, k: of_first_row(top_k_of(z, k)))
_fault("SMP-21", "top-p before top-k", "textbook", choose=both_of_all)
_fault("SMP-22", "tokens of the top k or of top-p", "textbook", choose=either)
_fault("RT-04", "no temperature", "huggingface/trl issue 4159", temper=lambda z, t: z, temper_for_cut=lambda z, t: z)
_fault("SMP-23", "the temperature after the cut", "textbook", temper_for_cut=lambda z, t: z)
_fault("SMP-24", "the temperature for the cut alone", "textbook", temper=lambda z, t: z)
_fault("LOG-11", "logits multiplied by the temperature", "textbook", temper=torch.mul, temper_for_cut=torch.mul)
_fault(
    "SA-01",
    "logits divided by the temperature twice",
    "RL-Kernel issue 81",
    temper=lambda z, t: z / t / t,
    temper_for_cut=lambda z, t: z / t / t,
)
_fault("SA-03", "a softmax of the softmax", "RL_course_2019 PR 6", normalise=lambda z, left: twice(left))
_fault("LOG-01", "no shift: the logits at t score the token at t", "claim B6.3", align=unshifted)
_fault("LOG-02", "a shift the wrong way: the logits at t+1 score the token at t", "claim B6.3", align=shifted_back)
_fault(
    "LOG-03",
    "no shift, first column dropped: the logits at t+1 score the token at t+1",
    "claim B6.3",
    align=after_itself,
)
_fault("LOG-05", "the probability, not its logarithm", "textbook", finish=torch.exp)
_fault("LOG-06", "the negative log-probability", "stable-baselines issue 447", finish=torch.neg)
_fault("LOG-09", "a normaliser without gradient", "textbook", normalise=normaliser_without_gradient)
_fault("SMP-25", "the gradient of the whole distribution", "textbook", normalise=gradient_of_the_whole)
_fault("LP-07", "a result cut off from the logits' graph", "gflownet PR 251", finish=torch.detach)


@FAULTS.fault(
    "SA-02", "truncated_log_probs", "a temperature that divides the log-probs", "MoonshotAI/Kimi-Audio PR 161"
)
def _after_log_softmax(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    return truncated_log_probs(
        logits, token_ids, temperature, top_k, top_p, temper=lambda z, t: z, finish=lambda log_p: log_p / temperature
    )


@FAULTS.fault("SMP-26", "truncated_log_probs", "torch.topk, which refuses a top_k above V", "textbook", raises=True)
def _top_k_unbounded(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    choose = partial(one_after_the_other, of_k=unbounded)
    return truncated_log_probs(logits, token_ids, temperature, top_k, top_p, choose=choose)
