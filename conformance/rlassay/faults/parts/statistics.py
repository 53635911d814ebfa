"""Wrong statistics of a group's rewards, to be exchanged for the right ones."""

from __future__ import annotations

import torch
from torch import Tensor

from rlassay.faults.parts import constant
from rlassay.faults.parts.advantage import contrast, deviation, guarded, mean, normalised, others
from rlassay_spec.convention import Convention


def of_batch(r: Tensor) -> Tensor:
    """The mean of the whole batch."""
    return r.mean().expand(len(r), 1)


def of_batch_when_uneven(r: Tensor) -> Tensor:
    """The group's mean where G is even; a reshape that falls back to the whole batch where it is odd."""
    return mean(r) if r.shape[1] % 2 == 0 else of_batch(r)


def over_groups(r: Tensor) -> Tensor:
    """The mean over the groups, for each place in a group."""
    return r.mean(dim=0, keepdim=True)


def of_halves(r: Tensor) -> Tensor:
    """The means of the two halves of a group, as on two shards."""
    half = r.shape[1] // 2
    if half == 0:
        return mean(r)
    return torch.cat([mean(r[:, :half]).expand(-1, half), mean(r[:, half:]).expand(-1, r.shape[1] - half)], dim=1)


def median(r: Tensor) -> Tensor:
    """The lower median of each group."""
    return r.median(dim=1, keepdim=True).values


def best_of(r: Tensor) -> Tensor:
    """The largest reward of each group."""
    return r.amax(dim=1, keepdim=True)


def of_positive(r: Tensor) -> Tensor:
    """The mean with negative rewards counted as 0."""
    return mean(r.clamp(min=0.0))


def groups_of_four_only(r: Tensor) -> Tensor:
    """Right but for groups of four, whose last reward is forgotten."""
    return mean(r[:, :-1]) if r.shape[1] == 4 else mean(r)


def as_it_comes(advantages: Tensor, r: Tensor, convention: Convention) -> Tensor:
    """Whatever the formula gives, in groups of one too."""
    return advantages


def unguarded(advantages: Tensor, r: Tensor, convention: Convention) -> Tensor:
    """Whatever the formula gives for a group without contrast, of more than one."""
    return advantages if r.shape[1] > 1 else guarded(advantages, r, convention)


def raw_without_contrast(advantages: Tensor, r: Tensor, convention: Convention) -> Tensor:
    """The reward itself for a group without contrast."""
    return torch.where(contrast(r), advantages, r)


def batch_deviation(r: Tensor, convention: Convention) -> Tensor:
    """The standard deviation of the whole batch."""
    return deviation(r.reshape(1, -1), convention)


def cancelling(r: Tensor, convention: Convention) -> Tensor:
    """E[R²] − E[R]² in float32."""
    single = r.float()
    return (mean(single.square()) - mean(single).square()).clamp(min=0.0).sqrt().to(r.dtype)


def guarded_by_deviation(advantages: Tensor, r: Tensor, convention: Convention) -> Tensor:
    """0 where that standard deviation is exactly 0."""
    return torch.where(cancelling(r, convention) > 0, advantages, 0.0)


def precedence(rewards: Tensor, *, convention: Convention) -> Tensor:
    """R − mean/σ: a bracket is missing."""
    r = constant(rewards)
    by = deviation(r, convention)
    return guarded(r - mean(r) / torch.where(by != 0, by, 1.0), r, convention).to(rewards.dtype)


def in_batch(rewards: Tensor, *, convention: Convention) -> Tensor:
    """Mean and standard deviation of the whole batch."""
    flat = normalised(rewards.reshape(1, -1), convention=convention).reshape(rewards.shape)
    return guarded(constant(flat), constant(rewards), convention).to(rewards.dtype)


def in_one_batch(rewards: Tensor, *, convention: Convention) -> Tensor:
    """The same, without a look at each group's contrast."""
    return normalised(rewards.reshape(1, -1), convention=convention).reshape(rewards.shape)


def not_guarded(rewards: Tensor, convention: Convention) -> Tensor:
    """Mean and standard deviation, and whatever 0/0 gives."""
    r = constant(rewards)
    return ((r - mean(r)) / deviation(r, convention)).to(rewards.dtype)


def largest_other(r: Tensor) -> Tensor:
    """The largest reward of the others in the group."""
    own = torch.eye(r.shape[1], dtype=torch.bool)
    return r[:, None, :].expand(-1, r.shape[1], -1).masked_fill(own, -torch.inf).amax(dim=2).nan_to_num(neginf=0.0)


def deviation_of_others(r: Tensor) -> Tensor:
    """The standard deviation of the others in the group."""
    size = max(r.shape[1] - 1, 1)
    first, second = others(r), (r.square().sum(1, keepdim=True) - r.square()) / size
    return (second - first.square()).clamp(min=0.0).sqrt()
