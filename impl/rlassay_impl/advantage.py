"""How much better a rollout did than the others of its instance: statistics of one group, never of the batch."""

import torch
from torch import Tensor

from rlassay_impl.contract import check_floats, frozen, require


def centered_advantages(rewards: Tensor) -> Tensor:
    """Reward minus the group's mean.

        Â_j = R_j − (1/G) Σ_i R_i

    Source: RL Basics §10 (B10.1), Dr. GRPO. The mean contains R_j itself, so that the expected gradient is (1 − 1/G)
    of the true one (B9.6); `rloo_advantages` is the unbiased form. A group without contrast gives exactly 0.
    Shapes: rewards [N, G] → [N, G], constant.
    Raises: ValueError for another shape, G = 0 or integer rewards.
    """
    _check_groups(rewards)

    surplus = _above_lowest(rewards)
    return (surplus - surplus.mean(dim=1, keepdim=True)).to(rewards.dtype)


def grpo_advantages(rewards: Tensor) -> Tensor:
    """Reward minus the group's mean, in units of the group's standard deviation.

        Â_j = (R_j − R̄) / σ,   σ² = (1/G) Σ_i (R_i − R̄)²

    Source: RL Basics §9 (B9.1–B9.4); Shao et al., DeepSeekMath (2024), §4.1.2. σ is the population value, not torch's
    default ÷(G−1), and has no ε: a group without contrast gives exactly 0. (1, 1, 0, 0) gives (1, 1, −1, −1).
    Shapes: rewards [N, G] → [N, G], constant.
    Raises: ValueError for another shape, G = 0 or integer rewards.
    """
    _check_groups(rewards)

    surplus = _above_lowest(rewards)
    spread = surplus.amax(dim=1, keepdim=True)
    contrast = spread > 0
    unit = surplus / torch.where(contrast, spread, 1.0)  # in 0..1, where squares neither overflow nor vanish
    centered = unit - unit.mean(dim=1, keepdim=True)
    deviation = centered.square().mean(dim=1, keepdim=True).sqrt()
    return (centered / torch.where(contrast, deviation, 1.0)).to(rewards.dtype)


def rloo_advantages(rewards: Tensor) -> Tensor:
    """Reward minus the mean of the group's other rewards (leave one out).

        Â_j = R_j − (1/(G−1)) Σ_{i≠j} R_i = G/(G−1) · (R_j − R̄)

    Source: Kool et al., Buy 4 REINFORCE Samples, Get a Baseline for Free (2019); RL Basics §9 (B9.6).
    A group of one, or without contrast, gives exactly 0.
    Shapes: rewards [N, G] → [N, G], constant.
    Raises: ValueError for another shape, G = 0 or integer rewards.
    """
    _check_groups(rewards)

    surplus = _above_lowest(rewards)
    others = surplus.sum(dim=1, keepdim=True) - surplus
    return (surplus - others / max(surplus.shape[1] - 1, 1)).to(rewards.dtype)


def max_advantages(rewards: Tensor) -> Tensor:
    """The reward itself for all that tie for the group's best, 0 for the others.

        Â_j = R_j · 1[R_j = max_i R_i]

    Source: RL in Practice §4 (P4.1). Groups without contrast keep every reward, and a negative best stays negative.
    Shapes: rewards [N, G] → [N, G], constant.
    Raises: ValueError for another shape, G = 0 or integer rewards.
    """
    _check_groups(rewards)

    return torch.where(rewards == rewards.amax(dim=1, keepdim=True), rewards.detach(), 0.0)


def keep_groups(rewards: Tensor) -> Tensor:
    """Which groups have contrast, that is, can teach anything.

        out[n] = max_j R_nj ≠ min_j R_nj

    Source: RL Basics §10.1 (B10.6).
    Shapes: rewards [N, G] → [N] bool.
    Raises: ValueError for another shape, G = 0 or integer rewards.
    """
    _check_groups(rewards)

    return rewards.amax(dim=1) != rewards.amin(dim=1)


def _check_groups(rewards: Tensor) -> None:
    check_floats("rewards", rewards, N=None, G=None)
    require(rewards.shape[1] >= 1, "rewards.shape", list(rewards.shape), "[N, G] with G >= 1")


def _above_lowest(rewards: Tensor) -> Tensor:
    """Rewards counted from the group's lowest: equal ones become exactly 0, and a common offset cannot cost digits."""
    rewards = frozen(rewards)
    return rewards - rewards.amin(dim=1, keepdim=True)
