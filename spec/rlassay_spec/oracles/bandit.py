"""Oracles of the small expectations."""

import math

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.expected import Expected
from rlassay_spec.oracles.inputs import float_rewards, floats
from rlassay_spec.oracles.numeric import exp, total


def expected_return(probabilities: npt.ArrayLike, returns: npt.ArrayLike) -> Expected:
    """Σ p R."""
    p = floats("probabilities", probabilities, "K")
    r = floats("returns", returns, "K", p.shape)
    return Expected(np.asarray(total(p * r)), np.asarray(total(np.abs(p * r))), max(1, len(p)))


def bandit_gradient(theta: float, action: int, baseline: float) -> Expected:
    """(R − b) ∂log π(action)/∂θ: (1 − b)(1 − p) for action 0, b p for action 1; p = σ(θ)."""
    if action not in (0, 1):
        raise ValueError(f"action: is {action}, expected 0 or 1")
    logit = float(theta)
    p, q = 1 / (1 + exp(-logit)), 1 / (1 + exp(logit))
    if action == 0:
        return Expected(np.asarray((1 - baseline) * q), np.asarray((1 + abs(baseline)) * (1 + q * abs(logit))), 2)
    return Expected(np.asarray(baseline * p), np.asarray(abs(baseline) * p * (1 + abs(logit))), 2)


def optimal_baseline(probabilities: npt.ArrayLike, scores: npt.ArrayLike, rewards: npt.ArrayLike) -> Expected:
    """Σ p ‖s‖² R / Σ p ‖s‖², 0 where the denominator is."""
    p = floats("probabilities", probabilities, "K")
    s = floats("scores", scores, "KD")
    if len(s) != len(p):
        raise ValueError(f"scores: has shape {list(s.shape)}, expected [K, D] with K = {len(p)}")
    r = float_rewards("rewards", rewards, "K", p.shape)
    weights = [p_k * math.hypot(*s_k) ** 2 for p_k, s_k in zip(p.tolist(), s.tolist(), strict=True)]
    if total(weights) == 0:
        return Expected(np.asarray(0.0), np.asarray(0.0), max(1, s.size))
    value = total(weights * r) / total(weights)
    return Expected(np.asarray(value), np.asarray(total(weights * np.abs(r)) / total(weights)), max(1, s.size))
