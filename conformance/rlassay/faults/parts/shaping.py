"""Whitening, rewards with a KL penalty and the penalty for length as they should be, with parts to exchange."""

from __future__ import annotations

import torch
from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import constant, hide, only_last, same
from rlassay_spec.convention import Convention


def batch_mean(x: Tensor, shown: Tensor) -> Tensor:
    """The mean of what is shown."""
    return hide(x, shown).sum() / shown.sum().clamp(min=1)


def batch_variance(x: Tensor, shown: Tensor, ddof: int) -> Tensor:
    """The variance of what is shown, around its own mean."""
    squares = hide(x - batch_mean(x, shown), shown).square()
    return squares.sum() / (shown.sum() - ddof).clamp(min=1)


def with_eps(variance: Tensor, convention: Convention) -> Tensor:
    """What the convention divides by."""
    if convention.std_eps_place == "inside":
        return (variance + convention.std_eps).sqrt()
    if convention.std_eps_place == "floor":
        return variance.sqrt().clamp(min=convention.std_eps)
    return variance.sqrt() + convention.std_eps


def has_contrast(x: Tensor, shown: Tensor) -> Tensor:
    """Whether what is shown differs."""
    lowest, highest = x.masked_fill(~shown, torch.inf).amin(), x.masked_fill(~shown, -torch.inf).amax()
    return highest > lowest


def whiten(
    values: Tensor,
    mask: Tensor,
    *,
    convention: Convention,
    frozen: Function = constant,
    counted: Function = same,
    centre: Function = batch_mean,
    variance: Function = batch_variance,
    divide_by: Function = with_eps,
    contrast: Function = has_contrast,
    flat: Function = torch.zeros_like,
    finish: Function = lambda whitened, x, shown: whitened,
    cover: Function = hide,
) -> Tensor:
    """Right, unless a part is exchanged."""
    shown = mask != 0
    x, seen = frozen(values), counted(shown)
    by = divide_by(variance(x, seen, convention.std_ddof), convention)
    whitened = (x - centre(x, seen)) / torch.where(by != 0, by, 1.0)
    whitened = torch.where(contrast(x, seen), whitened, flat(x))
    return torch.as_tensor(cover(finish(whitened, x, seen), shown)).to(values.dtype)


def k1(new: Tensor, ref: Tensor) -> Tensor:
    """log π − log π_ref."""
    return new - ref


def at_last(reward: Tensor, shown: Tensor) -> Tensor:
    """The reward at the last shown place of each row."""
    return hide(reward[:, None], only_last(shown))


def kl_rewards(
    rewards: Tensor,
    log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    beta: float,
    *,
    frozen: Function = constant,
    visible: Function = same,
    measure: Function = k1,
    penalise: Function = lambda kl, shown, beta: -beta * kl,
    place: Function = at_last,
    combine: Function = lambda penalty, placed, shown: penalty + placed,
    cover: Function = hide,
    show: Function = hide,
) -> Tensor:
    """Right, unless a part is exchanged."""
    shown = mask != 0
    seen = visible(shown)
    kl = cover(measure(frozen(log_probs), frozen(ref_log_probs)), seen)
    penalty, placed = penalise(kl, seen, beta), place(constant(rewards), shown)
    return torch.as_tensor(show(combine(penalty, placed, shown), shown)).to(rewards.dtype)


def overlong_penalty(
    lengths: Tensor,
    max_length: int,
    buffer: int,
    *,
    start: Function = lambda max_length, buffer: max_length - buffer,
    width: Function = lambda max_length, buffer: buffer,
    bound: Function = lambda penalty, lengths, max_length: penalty.clamp(-1.0, 0.0),
) -> Tensor:
    """Right, unless a part is exchanged."""
    excess = (lengths - start(max_length, buffer)).to(torch.float32)
    return torch.as_tensor(bound(-excess / width(max_length, buffer), lengths, max_length)).to(torch.float32)
