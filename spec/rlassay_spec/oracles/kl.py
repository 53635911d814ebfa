"""Oracles of the KL estimators, element by element."""

import math

import numpy.typing as npt

from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.oracles.expected import Expected
from rlassay_spec.oracles.inputs import floats
from rlassay_spec.oracles.numeric import exp
from rlassay_spec.oracles.tokens import Token, elementwise


def kl_k1(log_probs: npt.ArrayLike, ref_log_probs: npt.ArrayLike) -> Expected:
    """log π − log π_ref."""
    x = floats("log_probs", log_probs, "BT")
    ref = floats("ref_log_probs", ref_log_probs, "BT", x.shape)

    def token_at(b: int, t: int) -> Token:
        return Token(x[b, t] - ref[b, t], abs(x[b, t]) + abs(ref[b, t]), 1.0, 1.0)

    return elementwise(x.shape, token_at)


def kl_k2(log_probs: npt.ArrayLike, ref_log_probs: npt.ArrayLike) -> Expected:
    """½ (log π − log π_ref)²."""
    x = floats("log_probs", log_probs, "BT")
    ref = floats("ref_log_probs", ref_log_probs, "BT", x.shape)

    def token_at(b: int, t: int) -> Token:
        log_ratio, size = x[b, t] - ref[b, t], abs(x[b, t]) + abs(ref[b, t])
        return Token(log_ratio**2 / 2, abs(log_ratio) * size, log_ratio, size)

    return elementwise(x.shape, token_at)


def kl_k3(log_probs: npt.ArrayLike, ref_log_probs: npt.ArrayLike, *, convention: Convention = LECTURE) -> Expected:
    """r − log r − 1 with r = π_ref/π."""
    x = floats("log_probs", log_probs, "BT")
    ref = floats("ref_log_probs", ref_log_probs, "BT", x.shape)
    return elementwise(x.shape, lambda b, t: k3_token(x[b, t], ref[b, t], convention.k3_clamp))


def k3_token(log_prob: float, ref_log_prob: float, clamp: float | None) -> Token:
    """k3 of one token, held below the clamp.

    r, log r and 1 are rounded before they cancel, so that near r = 1 their size counts, not that of the result.
    """
    log_ratio = float(ref_log_prob - log_prob)
    ratio, size = exp(log_ratio), 1 + abs(log_ratio)
    value = ratio - log_ratio - 1 if size > 2 else math.expm1(log_ratio) - log_ratio
    scale = (1 + ratio) * size
    if clamp is None:
        return Token(value, scale, 1 - ratio, 1 + ratio * size)
    distance = abs(value - clamp)
    if value <= clamp:
        return Token(value, scale, 1 - ratio, 1 + ratio * size, distance)
    return Token(clamp, min(scale, (2 + clamp + size) * size), 0.0, 0.0, distance)
