"""What an action is credited with: the rewards after it, or generalised advantage estimates."""

import torch
from torch import Tensor

from rlassay_impl.contract import check_floats, check_mask, frozen, keep


def reward_to_go(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    """Discounted sum of the rewards that follow each action.

        out[b, t] = Σ_{k ≥ t} γ^{k−t} · rewards[b, k]

    Source: RL Basics §8.3 (B8.12). With a reward at the end only and γ = 1, every entry is the return R(τ).
    Shapes: rewards [B, T] → [B, T], constant; rewards[b, t] is received after action t, the lecture's r_{t+1}.
    Raises: ValueError for another shape or integer rewards.
    """
    check_floats("rewards", rewards, B=None, T=None)

    received = frozen(rewards)
    out = torch.zeros_like(received)
    following = received.new_zeros(received.shape[0])
    for t in reversed(range(received.shape[1])):
        following = received[:, t] + gamma * following
        out[:, t] = following
    return out.to(rewards.dtype)


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    """Generalised advantage estimates over the masked-in steps of a row, as if the others were not there.

        δ_t = r_t + γ·V_{t+1} − V_t,   Â_t = δ_t + γλ·Â_{t+1},   V = Â = 0 after the last step

    Source: Schulman et al., High-Dimensional Continuous Control Using Generalized Advantage Estimation (2016), §3.
    λ = 1 is reward-to-go minus value, λ = 0 the one-step error δ.
    Shapes: rewards, values, mask [B, T] → [B, T], constant, 0 where the mask is 0.
    Raises: ValueError for other shapes, integer rewards or values, a mask that is not 0/1.
    """
    check_floats("rewards", rewards, B=None, T=None)
    n_sequences, length = rewards.shape
    check_floats("values", values, B=n_sequences, T=length)
    chosen = check_mask(mask, B=n_sequences, T=length)

    received, predicted = frozen(rewards), frozen(values)
    out = torch.zeros_like(received)
    next_value = next_advantage = received.new_zeros(n_sequences)
    for t in reversed(range(length)):
        error = received[:, t] + gamma * next_value - predicted[:, t]
        advantage = error + gamma * lam * next_advantage
        out[:, t] = keep(advantage, chosen[:, t])
        next_value = torch.where(chosen[:, t], predicted[:, t], next_value)
        next_advantage = torch.where(chosen[:, t], advantage, next_advantage)
    return out.to(rewards.dtype)
