"""The group advantages as they should be, with parts that a fault can exchange."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import constant, same
from rlassay_spec.convention import Convention


def mean(r: Tensor) -> Tensor:
    """The mean of each group."""
    return r.mean(dim=1, keepdim=True)


def contrast(r: Tensor) -> Tensor:
    """Whether the rewards of a group differ, [N, 1]."""
    return r.amax(dim=1, keepdim=True) > r.amin(dim=1, keepdim=True)


def deviation(r: Tensor, convention: Convention) -> Tensor:
    """What the convention divides by."""
    spread = r - r.amin(dim=1, keepdim=True)
    centred = spread - spread.mean(dim=1, keepdim=True)
    variance = centred.square().sum(dim=1, keepdim=True) / max(r.shape[1] - convention.std_ddof, 1)
    if convention.std_eps_place == "inside":
        return (variance + convention.std_eps).sqrt()
    if convention.std_eps_place == "floor":
        return variance.sqrt().clamp(min=convention.std_eps)
    return variance.sqrt() + convention.std_eps


def guarded(advantages: Tensor, r: Tensor, convention: Convention) -> Tensor:
    """0 without contrast, and what the convention says of groups of one."""
    if r.shape[1] == 1 and convention.singleton_group == "reward":
        return r.clone()
    return torch.where(contrast(r), advantages, 0.0)


def centred(rewards: Tensor, *, convention: Convention, baseline: Function = mean, guard: Function = guarded) -> Tensor:
    """Right as `centered_advantages`, unless a part is exchanged."""
    r = constant(rewards)
    return torch.as_tensor(guard(r - baseline(r), r, convention)).to(rewards.dtype)


def normalised(
    rewards: Tensor,
    *,
    convention: Convention,
    baseline: Function = mean,
    divisor: Function = deviation,
    guard: Function = guarded,
) -> Tensor:
    """Right as `grpo_advantages`, unless a part is exchanged."""
    r = constant(rewards)
    by = divisor(r, convention)
    advantages = (r - baseline(r)) / torch.where(by != 0, by, 1.0)
    return torch.as_tensor(guard(advantages, r, convention)).to(rewards.dtype)


def others(r: Tensor) -> Tensor:
    """The mean of the other rewards of the group."""
    return (r.sum(dim=1, keepdim=True) - r) / max(r.shape[1] - 1, 1)


def leave_one_out(
    rewards: Tensor, *, convention: Convention, finish: Function = lambda a, r: a, **parts: Any
) -> Tensor:
    """Right as `rloo_advantages`, unless a part is exchanged."""
    advantages = centred(rewards, convention=convention, **{"baseline": others, **parts})
    return torch.as_tensor(finish(advantages, constant(rewards))).to(rewards.dtype)


def best(
    rewards: Tensor, *, largest: Function = lambda r: r.amax(dim=1, keepdim=True), keep: Function = same
) -> Tensor:
    """Right as `max_advantages`, unless a part is exchanged."""
    r = constant(rewards)
    return torch.where(r == largest(r), keep(r), 0.0).to(rewards.dtype)
