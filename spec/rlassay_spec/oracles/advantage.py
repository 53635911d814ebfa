"""Oracles of the group advantages: the statistics are rational numbers until the last division."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.oracles.expected import Expected, FloatArray, exactly
from rlassay_spec.oracles.inputs import group_rewards
from rlassay_spec.oracles.numeric import divisor


def centered_advantages(rewards: npt.ArrayLike, *, convention: Convention = LECTURE) -> Expected:
    """R − mean."""

    def centered(group: list[Fraction]) -> list[tuple[float, float]]:
        mean, mean_size = _mean(group), _mean([abs(reward) for reward in group])
        return [(float(reward - mean), float(abs(reward) + mean_size)) for reward in group]

    return _per_group(rewards, convention, centered)


def grpo_advantages(rewards: npt.ArrayLike, *, convention: Convention = LECTURE) -> Expected:
    """(R − mean) / s; rounding of the mean is divided by s too, and reaches s itself through σ."""

    def normalised(group: list[Fraction]) -> list[tuple[float, float]]:
        mean, largest = _mean(group), float(max(map(abs, group)))
        squares = sum(((reward - mean) * (reward - mean) for reward in group), Fraction(0))
        by = divisor(squares / (len(group) - convention.std_ddof), convention)
        values = [float(reward - mean) / by for reward in group]
        return [(value, max(largest / by * (1 + abs(value)), abs(value))) for value in values]

    return _per_group(rewards, convention, normalised)


def rloo_advantages(rewards: npt.ArrayLike, *, convention: Convention = LECTURE) -> Expected:
    """R − mean of the others."""

    def left_out(group: list[Fraction]) -> list[tuple[float, float]]:
        others, factor = len(group) - 1, Fraction(len(group), len(group) - 1)
        everything, mean_size = sum(group), _mean([abs(reward) for reward in group])
        return [
            (float(reward - (everything - reward) / others), float(factor * (abs(reward) + mean_size)))
            for reward in group
        ]

    return _per_group(rewards, convention, left_out)


def max_advantages(rewards: npt.ArrayLike) -> Expected:
    """The reward where it is the group's largest, 0 elsewhere."""
    r = group_rewards(rewards)
    value = np.where(r == r.max(axis=1, keepdims=True), r, 0.0)
    scale = np.abs(value)
    value[np.isnan(r).any(axis=1)], scale[np.isnan(r).any(axis=1)] = math.nan, math.inf
    return Expected(value, scale, r.shape[1])


def keep_groups(rewards: npt.ArrayLike) -> Expected:
    """max > min, compared exactly."""
    r = group_rewards(rewards)
    scale = np.where(np.isnan(r).any(axis=1), math.inf, 0.0)
    return Expected(r.max(axis=1) > r.min(axis=1), scale, r.shape[1])


def _per_group(
    rewards: npt.ArrayLike, convention: Convention, of_group: Callable[[list[Fraction]], list[tuple[float, float]]]
) -> Expected:
    r = group_rewards(rewards)
    size = r.shape[1]
    if size == 1:
        return _singletons(r, convention)
    value, scale = np.zeros(r.shape), np.zeros(r.shape)
    for n, group in enumerate(r.tolist()):
        if not all(map(math.isfinite, group)):
            value[n], scale[n] = math.nan, math.inf
        elif max(group) > min(group):
            for j, (advantage, advantage_scale) in enumerate(of_group([Fraction(reward) for reward in group])):
                value[n, j], scale[n, j] = advantage, advantage_scale
    return Expected(value, scale, size)


def _singletons(r: FloatArray, convention: Convention) -> Expected:
    if convention.singleton_group == "error":
        raise ValueError(f"rewards: has shape {list(r.shape)}, expected [N, G] with G ≥ 2")
    if convention.singleton_group == "reward":
        return Expected(r.copy(), np.abs(r))
    if convention.singleton_group == "free":
        return Expected(np.full(r.shape, math.nan), np.full(r.shape, math.inf))
    return exactly(np.zeros(r.shape))


def _mean(group: list[Fraction]) -> Fraction:
    return sum(group, Fraction(0)) / len(group)
