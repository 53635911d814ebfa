"""Oracles of the other surrogates, of the entropy bonus and of truncated importance weights."""

import math

import numpy as np
import numpy.typing as npt

from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.oracles.expected import Expected, Gradient, cotangent_like
from rlassay_spec.oracles.inputs import floats, mask_of
from rlassay_spec.oracles.log_prob import entropy
from rlassay_spec.oracles.loss import log_ratio_size, surrogate_token
from rlassay_spec.oracles.numeric import exp, total
from rlassay_spec.oracles.tokens import Token, aggregation_weights, averaged


def dual_clip_loss(
    log_probs: npt.ArrayLike,
    old_log_probs: npt.ArrayLike,
    mask: npt.ArrayLike,
    advantages: npt.ArrayLike,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
    *,
    convention: Convention = LECTURE,
) -> Expected:
    """−min(ρ Â, clip(ρ) Â), for Â < 0 at most −dual_clip · Â."""
    x = floats("log_probs", log_probs, "BT")
    old = floats("old_log_probs", old_log_probs, "BT", x.shape)
    m = mask_of(mask, x.shape)
    a = floats("advantages", advantages, "B", x.shape[:1])
    if not dual_clip > 1:
        raise ValueError(f"dual_clip: is {dual_clip}, expected a number > 1")

    def token_at(b: int, t: int) -> Token:
        size = log_ratio_size(x[b, t], old[b, t])
        clamp = convention.log_ratio_clamp
        return surrogate_token(x[b, t] - old[b, t], size, a[b], abs(a[b]), clip_low, clip_high, clamp, dual_clip)

    return averaged(m, aggregation_weights(m, convention), token_at)


def gspo_loss(
    log_probs: npt.ArrayLike,
    old_log_probs: npt.ArrayLike,
    mask: npt.ArrayLike,
    advantages: npt.ArrayLike,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    *,
    convention: Convention = LECTURE,
) -> Expected:
    """−min(s Â, clip(s) Â) per row: each of its n tokens holds the n-th part of that, and of the slope in its mean."""
    x = floats("log_probs", log_probs, "BT")
    old = floats("old_log_probs", old_log_probs, "BT", x.shape)
    m = mask_of(mask, x.shape)
    a = floats("advantages", advantages, "B", x.shape[:1])
    rows = {}
    for b in np.flatnonzero(m.any(axis=1)).tolist():
        new, before = x[b, m[b]], old[b, m[b]]
        log_ratio = total(new - before) / len(new)
        size = 1 + total(abs(new) + abs(before)) / len(new)
        clamp = convention.log_ratio_clamp
        rows[b] = surrogate_token(log_ratio, size, a[b], abs(a[b]), clip_low, clip_high, clamp)
    return averaged(m, aggregation_weights(m, convention, "sequence_mean"), lambda b, t: rows[b])


def entropy_bonus(logits: npt.ArrayLike, mask: npt.ArrayLike, *, convention: Convention = LECTURE) -> Expected:
    """−Σ p log p of the rows that predict the masked-in tokens."""
    x = floats("logits", logits, "BLV")
    batch, length, size = x.shape
    m = mask_of(mask, (batch, max(length - 1, 0)))
    of_rows = entropy(np.where(m[:, :, None], x[:, :-1], 0.0))
    weights = aggregation_weights(m, convention)
    mean = total((weights * of_rows.value).ravel())
    scale = math.inf if math.isnan(mean) else total((weights * of_rows.scale).ravel())

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        assert of_rows.pullback is not None
        part = of_rows.pullback(float(cotangent_like(cotangent, ())) * weights)
        gradient = Gradient(np.zeros(x.shape), np.zeros(x.shape), np.full(x.shape, math.inf))
        gradient.value[:, :-1] = part.value
        gradient.scale[:, :-1] = np.where(np.isnan(part.value), math.inf, part.scale)
        return gradient

    return Expected(np.asarray(mean), np.asarray(scale), size + int(m.sum()), pullback)


def importance_weights(
    log_probs: npt.ArrayLike, sampler_log_probs: npt.ArrayLike, mask: npt.ArrayLike, cap: float = 2.0
) -> Expected:
    """min(π/μ, cap) where the mask is 1."""
    x = floats("log_probs", log_probs, "BT")
    sampler = floats("sampler_log_probs", sampler_log_probs, "BT", x.shape)
    m = mask_of(mask, x.shape)
    if not cap > 0:
        raise ValueError(f"cap: is {cap}, expected a number > 0")
    value, scale = np.zeros(x.shape), np.zeros(x.shape)
    for b, t in np.argwhere(m).tolist():
        value[b, t] = min(exp(x[b, t] - sampler[b, t]), cap)
        scale[b, t] = value[b, t] * (1 + abs(x[b, t]) + abs(sampler[b, t]))
    return Expected(value, scale)
