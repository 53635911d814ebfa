"""Truncated log-probs as they should be, with parts to exchange."""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import same, working
from rlassay.faults.parts.log_prob import gather, next_token

Kept: TypeAlias = Tensor
"""Whether each token of the vocabulary stays, in the shape of the logits."""


def by_rank(z: Tensor, stays_sorted: Tensor) -> Kept:
    """What stays, given for the sorted vocabulary."""
    order = z.argsort(dim=-1, descending=True)
    return torch.zeros_like(stays_sorted).scatter(-1, order, stays_sorted)


def top_k_of(z: Tensor, top_k: int) -> Kept:
    """The k largest."""
    return by_rank(z, (torch.arange(z.shape[-1]) < top_k).expand(z.shape))


def top_p_of(z: Tensor, top_p: float) -> Kept:
    """The smallest set of the likeliest that reaches p, the crossing one included."""
    p = z.softmax(dim=-1).sort(dim=-1, descending=True).values
    return by_rank(z, p.cumsum(dim=-1) - p < top_p)


def within(z: Tensor, kept: Kept) -> Tensor:
    """The logits with −∞ in place of what does not stay."""
    return z.masked_fill(~kept, -math.inf)


def one_after_the_other(
    z: Tensor, top_k: int | None, top_p: float | None, of_k: Function = top_k_of, of_p: Function = top_p_of
) -> Kept:
    """Top-k, and top-p of what it left."""
    kept = torch.ones_like(z, dtype=torch.bool) if top_k is None else of_k(z, top_k)
    return kept if top_p is None else kept & of_p(within(z, kept), top_p)


def truncated_log_probs(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    *,
    align: Function = next_token,
    temper: Function = torch.div,
    temper_for_cut: Function = torch.div,
    choose: Function = one_after_the_other,
    keep: Function = lambda kept, ids: kept,
    cut: Function = within,
    normalise: Function = lambda z, left: torch.log_softmax(left, dim=-1),
    finish: Function = same,
) -> Tensor:
    """Right, unless a part is exchanged."""
    rows, ids = align(working(logits), token_ids.long())
    kept = keep(choose(temper_for_cut(rows.detach(), temperature), top_k, top_p), ids)
    z = temper(rows, temperature)
    return torch.as_tensor(finish(gather(normalise(z, cut(z, kept)), ids))).to(logits.dtype)
