"""Token log-probs, masked log-probs, entropy and action log-probs as they should be, with parts to exchange."""

from __future__ import annotations

import torch
from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import hide, same, working


def next_token(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The logits at t and the token at t+1."""
    return logits[:, :-1], ids[:, 1:]


def log_softmax(logits: Tensor, ids: Tensor) -> Tensor:
    """Log-probabilities of the whole vocabulary."""
    return torch.log_softmax(logits, dim=-1)


def gather(log_p: Tensor, ids: Tensor) -> Tensor:
    """The entry of the token."""
    return log_p.gather(-1, ids[..., None])[..., 0]


def token_log_probs(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    *,
    align: Function = next_token,
    temper: Function = torch.div,
    normalise: Function = log_softmax,
    select: Function = gather,
    finish: Function = same,
) -> Tensor:
    """Right, unless a part is exchanged."""
    rows, ids = align(working(logits), token_ids.long())
    selected = select(normalise(temper(rows, temperature), ids), ids)
    return torch.as_tensor(finish(selected)).to(logits.dtype)


def masked_log_probs(
    logits: Tensor,
    token_ids: Tensor,
    mask: Tensor,
    *,
    align: Function = next_token,
    normalise: Function = log_softmax,
    visible: Function = same,
    cover: Function = hide,
    finish: Function = same,
) -> Tensor:
    """Right, unless a part is exchanged."""
    rows, ids = align(logits, token_ids.long())
    shown = visible(mask != 0)
    ids = torch.where(shown & (ids >= 0) & (ids < logits.shape[-1]), ids, 0)
    log_p = gather(normalise(cover(rows, shown[:, :, None]), ids), ids)
    return torch.as_tensor(finish(cover(log_p, shown))).to(logits.dtype)


def entropy(
    logits: Tensor,
    *,
    dim: int = -1,
    reduce: Function = torch.sum,
    finish: Function = same,
) -> Tensor:
    """Right, unless a part is exchanged."""
    log_p = torch.log_softmax(working(logits), dim=dim)
    finite = log_p.masked_fill(log_p.isneginf(), 0.0)
    return torch.as_tensor(finish(-reduce(log_p.exp() * finite, dim=-1))).to(logits.dtype)


def action_log_probs(
    log_probs: Tensor,
    action_ids: Tensor,
    n_actions: int,
    *,
    number: Function = same,
    belong: Function = same,
    score: Function = same,
    reduce: Function = lambda terms, member: terms.sum(dim=-1),
) -> Tensor:
    """Right, unless a part is exchanged."""
    actions = torch.arange(n_actions)[None, :, None]
    member = belong(number(action_ids)[:, None, :] == actions)
    return torch.as_tensor(reduce(hide(score(log_probs[:, None, :]), member), member)).to(log_probs.dtype)
