"""Oracles of rewards and group advantages."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.oracles.expected import Expected, FloatArray
from rlassay_spec.oracles.inputs import floats

RewardFunction = Callable[[str, str], Mapping[str, float]]


def compute_rollout_rewards(
    reward_fn: RewardFunction, rollout_responses: Sequence[str], repeated_ground_truths: Sequence[str]
) -> dict[str, Expected]:
    """The total reward of each response."""
    pairs = zip(rollout_responses, repeated_ground_truths, strict=True)
    rewards = np.array([reward_fn(response, truth)["reward"] for response, truth in pairs], dtype=np.float64)
    return {"raw_rewards": Expected(rewards, np.abs(rewards))}


def compute_group_normalized_rewards(
    reward_fn: RewardFunction,
    rollout_responses: Sequence[str],
    repeated_ground_truths: Sequence[str],
    group_size: int,
    advantage_eps: float,
    normalize_by_std: bool,
    *,
    convention: Convention = LECTURE,
) -> dict[str, Expected]:
    """Rewards, and (R − mean) / (σ + ε) or R − mean."""
    rewards = compute_rollout_rewards(reward_fn, rollout_responses, repeated_ground_truths)
    raw, normalizer = rewards["raw_rewards"].value, "std" if normalize_by_std else "none"
    return {"advantages": _advantages(raw, group_size, "mean", advantage_eps, normalizer, convention), **rewards}


def compute_group_normalized_rewards_2026(
    raw_rewards: npt.ArrayLike,
    group_size: int,
    baseline: str = "mean",
    advantage_eps: float = 1e-6,
    advantage_normalizer: str = "std",
    *,
    convention: Convention = LECTURE,
) -> dict[str, Expected]:
    """(R − b) / d."""
    raw = floats("raw_rewards", raw_rewards, "B")
    return {"advantages": _advantages(raw, group_size, baseline, advantage_eps, advantage_normalizer, convention)}


def _advantages(
    raw: FloatArray, group_size: int, baseline: str, eps: float, normalizer: str, convention: Convention
) -> Expected:
    """NaN, for free, where there is no σ, where R is divided by nothing but ε, and where by a negative mean."""
    if len(raw) % group_size:
        raise ValueError(f"group_size: is {group_size}, expected a divisor of the number of rewards, {len(raw)}")
    value, scale = np.full(raw.shape, np.nan), np.full(raw.shape, np.inf)
    for start in range(0, len(raw), group_size):
        group, place = raw[start : start + group_size], slice(start, start + group_size)
        contrast = group.max() > group.min()
        if baseline == "mean" and group_size > 1 and not contrast:
            value[place], scale[place] = 0.0, 0.0
            continue
        divisor = 1.0
        if normalizer == "std":
            divisor = group.std(ddof=convention.std_ddof) + eps if contrast else np.nan
        if normalizer == "mean":
            divisor = group.mean() + eps if group.min() >= 0 else np.nan
        value[place] = (group - (group.mean() if baseline == "mean" else 0.0)) / divisor
        scale[place] = np.abs(group).max() / divisor * (1 + np.abs(value[place]))
    return Expected(value, np.where(np.isnan(value), np.inf, scale), group_size)
