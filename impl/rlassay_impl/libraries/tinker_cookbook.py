"""tinker-cookbook's RL data processing (tried with tinker-cookbook 0.6.1); the losses run on Tinker's servers.

Rewards reach it as the Python numbers of trajectory groups, and advantages come back in float32, whatever the rewards
were.
"""

from types import SimpleNamespace
from typing import Any

import torch
from tinker_cookbook.rl.data_processing import compute_advantages
from tinker_cookbook.rl.metrics import discounted_future_sum_vectorized
from tinker_cookbook.rl.train import drop_constant_reward_group
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup
from torch import Tensor

CONVENTION: dict[str, Any] = {"name": "tinker-cookbook"}


def reward_to_go(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    """`discounted_future_sum_vectorized` of each row."""
    return torch.stack([discounted_future_sum_vectorized(row, gamma) for row in rewards])


def centered_advantages(rewards: Tensor) -> Tensor:
    """`compute_advantages`."""
    return torch.stack(compute_advantages(_groups(rewards)))


def keep_groups(rewards: Tensor) -> Tensor:
    """`drop_constant_reward_group` of each group; its older form for whole batches never drops the last one."""
    config = SimpleNamespace(remove_constant_reward_groups=True)
    return torch.tensor([drop_constant_reward_group(group, config, None) is not None for group in _groups(rewards)])


def _groups(rewards: Tensor) -> list[Any]:
    """Groups of trajectories of which only the final reward is known."""
    size = rewards.shape[1]
    trajectories = [Trajectory(transitions=[], final_ob=None) for _ in range(size)]
    return [TrajectoryGroup(trajectories, group, [{} for _ in range(size)]) for group in rewards.tolist()]
