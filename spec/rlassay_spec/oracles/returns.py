"""Oracles of reward-to-go and of generalised advantage estimation."""

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.expected import Expected
from rlassay_spec.oracles.inputs import float_rewards, floats, mask_of
from rlassay_spec.oracles.numeric import total


def reward_to_go(rewards: npt.ArrayLike, gamma: float = 1.0) -> Expected:
    """Σ_{k≥t} γ^{k−t} r_k. The scale holds the earlier rewards too: a difference of prefix sums brings them in."""
    r = float_rewards("rewards", rewards, "BT")
    steps = r.shape[1]
    value, scale = np.zeros(r.shape), np.zeros(r.shape)
    for b, t in np.ndindex(r.shape):
        later = [gamma ** (k - t) * float(r[b, k]) for k in range(t, steps)]
        value[b, t] = total(later)
        scale[b, t] = total(map(abs, later)) + np.abs(r[b, :t]).sum()
    return Expected(value, scale, max(1, steps))


def gae(rewards: npt.ArrayLike, values: npt.ArrayLike, mask: npt.ArrayLike, gamma: float, lam: float) -> Expected:
    """Σ_{j≥i} (γλ)^{j−i} δ_j over the masked-in steps, δ_i = r_i + γ v_{i+1} − v_i with v = 0 after the last one."""
    r = float_rewards("rewards", rewards, "BT")
    v = floats("values", values, "BT", r.shape)
    m = mask_of(mask, r.shape)
    value, scale = np.zeros(r.shape), np.zeros(r.shape)
    for b in range(len(r)):
        next_value = advantage = size = 0.0
        for t in reversed(np.flatnonzero(m[b]).tolist()):
            advantage = r[b, t] + gamma * next_value - v[b, t] + gamma * lam * advantage
            size = abs(r[b, t]) + abs(gamma * next_value) + abs(v[b, t]) + abs(gamma * lam) * size
            value[b, t], scale[b, t], next_value = advantage, size, v[b, t]
    return Expected(value, scale, max(1, r.shape[1]))
