"""Oracles of the losses per token."""

import math

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.cs336.means import mask_like
from rlassay_spec.oracles.expected import BoolArray, Expected, FloatArray, Gradient, cotangent_like
from rlassay_spec.oracles.inputs import floats
from rlassay_spec.oracles.numeric import exp
from rlassay_spec.oracles.tokens import Token, elementwise

METHODS = ("none", "noclip", "grpo", "gspo")


def compute_naive_policy_gradient_loss(
    raw_rewards_or_advantages: npt.ArrayLike, policy_log_probs: npt.ArrayLike
) -> Expected:
    """−A log π."""
    return compute_policy_gradient_loss_2026(raw_rewards_or_advantages, policy_log_probs)


def compute_grpo_clip_loss(
    advantages: npt.ArrayLike, policy_log_probs: npt.ArrayLike, old_log_probs: npt.ArrayLike, cliprange: float
) -> Expected:
    """−min(ρ Â, clip(ρ) Â)."""
    return compute_policy_gradient_loss_2026(advantages, policy_log_probs, "grpo", old_log_probs, cliprange)


def compute_policy_gradient_loss(
    policy_log_probs: npt.ArrayLike,
    loss_type: str,
    raw_rewards: npt.ArrayLike | None = None,
    advantages: npt.ArrayLike | None = None,
    old_log_probs: npt.ArrayLike | None = None,
    cliprange: float | None = None,
) -> Expected:
    """One of the two, with the rewards or with the advantages."""
    if loss_type == "no_baseline" and raw_rewards is not None:
        return compute_naive_policy_gradient_loss(raw_rewards, policy_log_probs)
    if loss_type == "reinforce_with_baseline" and advantages is not None:
        return compute_naive_policy_gradient_loss(advantages, policy_log_probs)
    if loss_type == "grpo_clip" and advantages is not None and old_log_probs is not None and cliprange is not None:
        return compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange)
    raise ValueError(f"loss_type: is {loss_type!r}, or what it reads is missing")


def compute_policy_gradient_loss_2026(
    raw_rewards_or_advantages: npt.ArrayLike,
    policy_log_probs: npt.ArrayLike,
    importance_reweighting_method: str = "none",
    old_log_probs: npt.ArrayLike | None = None,
    cliprange: float | None = None,
    response_mask: npt.ArrayLike | None = None,
) -> Expected:
    """−A times log π, a ratio or a clipped ratio; NaN, for free, where the mask is 0."""
    x = floats("policy_log_probs", policy_log_probs, "BT")
    a = np.asarray(raw_rewards_or_advantages, dtype=np.float64)
    if a.shape not in ((len(x),), (len(x), 1)):
        raise ValueError(f"raw_rewards_or_advantages: has shape {list(a.shape)}, expected [B] or [B, 1], B = {len(x)}")
    old = None if old_log_probs is None else floats("old_log_probs", old_log_probs, "BT", x.shape)
    mask = None if response_mask is None else mask_like(response_mask, x.shape)
    return importance_weighted(importance_reweighting_method, a.ravel(), x, old, cliprange, mask)


def importance_weighted(
    method: str,
    advantages: FloatArray,
    log_probs: FloatArray,
    old_log_probs: FloatArray | None,
    cliprange: float | None,
    mask: BoolArray | None,
    advantage_sizes: FloatArray | None = None,
    log_prob_sizes: FloatArray | None = None,
) -> Expected:
    """The loss of every token; sizes are what rounding in advantages and log-probs is proportional to.

    Raises:
        ValueError: the method is unknown, or what it reads is missing.
    """
    sizes = np.abs(advantages) if advantage_sizes is None else advantage_sizes
    reach = np.abs(log_probs) if log_prob_sizes is None else log_prob_sizes
    seen = np.ones(log_probs.shape, dtype=np.bool_) if mask is None else mask
    if method == "none":

        def plain(b: int, t: int) -> Token:
            return _plain(advantages[b], sizes[b], log_probs[b, t], reach[b, t])

        return _where(seen, elementwise(log_probs.shape, plain))
    if method not in METHODS or old_log_probs is None:
        raise ValueError(f"importance_reweighting_method: is {method!r}, or old_log_probs is missing")
    old = old_log_probs
    clip = math.inf if method == "noclip" else cliprange
    if clip is None or (method == "gspo" and mask is None):
        raise ValueError(f"cliprange, response_mask: is None, expected a value for {method}")
    if method == "gspo":
        return _per_sequence(advantages, sizes, log_probs - old, reach + np.abs(old), clip, seen)

    def weighted(b: int, t: int) -> Token:
        log_ratio, size = log_probs[b, t] - old[b, t], reach[b, t] + abs(old[b, t])
        return _surrogate(advantages[b], sizes[b], log_ratio, size, clip)

    return _where(seen, elementwise(log_probs.shape, weighted))


def _plain(advantage: float, size: float, log_prob: float, reach: float) -> Token:
    scale = size * abs(log_prob) + abs(advantage) * reach
    return Token(-advantage * log_prob, scale, -advantage, size)


def _surrogate(advantage: float, size: float, log_ratio: float, reach: float, clip: float) -> Token:
    """−min(ρ A, clip(ρ) A): dead above 1 + clip if A > 0, below 1 − clip if A < 0."""
    floor = math.log1p(-clip) if clip < 1 else -math.inf
    ceiling = math.log1p(clip)
    ratio = exp(log_ratio)
    live = log_ratio <= ceiling if advantage > 0 else log_ratio >= floor
    used = ratio if live else min(max(ratio, 1 - clip), 1 + clip)
    rounding = size * (1 + reach)
    kink = min(abs(log_ratio - floor), abs(log_ratio - ceiling)) if advantage else math.inf
    if not live:
        return Token(-used * advantage, used * rounding, kink=kink)
    return Token(-used * advantage, used * rounding, -used * advantage, used * rounding, kink)


def _per_sequence(
    advantages: FloatArray,
    sizes: FloatArray,
    log_ratios: FloatArray,
    reach: FloatArray,
    clip: float,
    mask: BoolArray,
) -> Expected:
    """One surrogate a row, from the mean log-ratio of its masked-in tokens, at each of them."""
    share = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    rows = [
        _surrogate(advantages[b], sizes[b], float(log_ratios[b] @ share[b]), float(reach[b] @ share[b]), clip)
        for b in range(len(mask))
    ]
    value, scale, slope, slope_scale, kink = (
        np.array([row[field] for row in rows]).reshape(-1, 1) for field in range(len(Token._fields))
    )

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        weight = np.where(mask, cotangent_like(cotangent, mask.shape), 0.0)
        total, size = weight.sum(axis=1, keepdims=True), np.abs(weight).sum(axis=1, keepdims=True)
        return Gradient(total * slope * share, size * slope_scale * share, np.broadcast_to(kink, mask.shape))

    spread = Expected(np.broadcast_to(value, mask.shape), np.broadcast_to(scale, mask.shape), mask.shape[1], pullback)
    return _where(mask, spread)


def _where(mask: BoolArray, loss: Expected) -> Expected:
    """The loss with everything free where the mask is 0, and no cotangent from there."""
    inner = loss.pullback
    assert inner is not None

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        return inner(np.where(mask, cotangent_like(cotangent, mask.shape), 0.0))

    return Expected(np.where(mask, loss.value, math.nan), np.where(mask, loss.scale, math.inf), loss.terms, pullback)
