"""Right ways to write reward-to-go and generalised advantages."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlassay.variants import MULTIPLIED, NUMPY, Variants

VARIANTS = Variants()


@VARIANTS.variant("reward_to_go", "a triangular matrix of discounts")
def triangular(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    steps = rewards.shape[1]
    lag = (torch.arange(steps)[:, None] - torch.arange(steps)[None, :]).to(rewards.dtype)
    discounts = torch.where(lag >= 0, gamma ** lag.clamp(min=0), 0.0)
    return (
        (rewards.float() if rewards.dtype == torch.bfloat16 else rewards)
        .matmul(discounts.to(torch.promote_types(rewards.dtype, torch.float32)))
        .to(rewards.dtype)
    )


@VARIANTS.variant("reward_to_go", "a recurrence over the columns in numpy, like a recursive filter's")
def filtered(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    returns = rewards.double().numpy().copy()
    for t in range(returns.shape[1] - 2, -1, -1):
        returns[:, t] += gamma * returns[:, t + 1]
    return torch.from_numpy(returns).to(rewards.dtype)


@VARIANTS.variant("reward_to_go", "returns inserted at the front of a list", seen="CV-58")
def prepended(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    rows = []
    for episode in rewards.tolist():
        returns: list[float] = []
        discounted = 0.0
        for reward in reversed(episode):
            discounted = reward + gamma * discounted
            returns.insert(0, discounted)
        rows.append(returns)
    return torch.tensor(rows, dtype=rewards.dtype)


@VARIANTS.variant("reward_to_go", "flip and cumsum where nothing is discounted")
def flipped(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    if gamma == 1.0:
        return rewards.flip([1]).cumsum(1).flip([1])
    return filtered(rewards, gamma)


@VARIANTS.variant("reward_to_go", "total minus what came before, where nothing is discounted")
def total_minus_earlier(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    if gamma != 1.0:
        return prepended(rewards, gamma)
    earlier = rewards.cumsum(dim=1) - rewards
    return rewards.sum(dim=1, keepdim=True) - earlier


@VARIANTS.variant("gae", "numpy over the compressed steps of each row", lapses=(NUMPY,))
def compressed(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    out = np.zeros(rewards.shape)
    r, v, m = rewards.double().numpy(), values.double().numpy(), mask.numpy().astype(bool)
    for b in range(len(r)):
        rb, vb = r[b][m[b]], np.append(v[b][m[b]], 0.0)
        delta = rb + gamma * vb[1:] - vb[:-1]
        advantages = np.zeros_like(delta)
        running = 0.0
        for t in range(len(delta) - 1, -1, -1):
            running = delta[t] + gamma * lam * running
            advantages[t] = running
        out[b][m[b]] = advantages
    return torch.from_numpy(out).to(rewards.dtype)


@VARIANTS.variant("gae", "running sums in torch with torch.where")
def carried(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    shown = mask.bool()
    advantages = torch.zeros_like(rewards)
    last = torch.zeros_like(rewards[:, 0])
    next_value = torch.zeros_like(rewards[:, 0])
    for t in range(rewards.shape[1] - 1, -1, -1):
        here = rewards[:, t] + gamma * next_value - values[:, t] + gamma * lam * last
        last = torch.where(shown[:, t], here, last)
        next_value = torch.where(shown[:, t], values[:, t], next_value)
        advantages[:, t] = last * shown[:, t]
    return advantages


@VARIANTS.variant(
    "gae", "reward-to-go minus value at γ = λ = 1, the recursion elsewhere", seen="CV-45", lapses=(MULTIPLIED, NUMPY)
)
def monte_carlo(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    if gamma == 1.0 and lam == 1.0:
        m = mask.to(rewards.dtype)
        return ((rewards * m).flip(1).cumsum(1).flip(1) - values) * m
    return compressed(rewards, values, mask, gamma, lam)
