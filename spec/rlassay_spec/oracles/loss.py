"""Oracles of the losses: one contribution per masked-in token, weighted as the convention says."""

import math
from typing import Final

import numpy.typing as npt

from rlassay_spec.convention import ALLOWED, LECTURE, Convention
from rlassay_spec.oracles.advantage import grpo_advantages
from rlassay_spec.oracles.expected import Expected, FloatArray
from rlassay_spec.oracles.inputs import float_rewards, floats, group_rewards, mask_of
from rlassay_spec.oracles.kl import k3_token
from rlassay_spec.oracles.numeric import exp
from rlassay_spec.oracles.tokens import Token, aggregation_weights, averaged, shares

SECOND_ORDER: Final = 1e-7
"""Where v = R, only the square of the clipped value's rounding is left: in float32 eps² ≈ 1e-7 · eps."""

SIGNLESS: Final = 1e-6
"""Share of its scale up to which an advantage may have the wrong sign: eight roundings in float32."""


def aggregate(
    values: npt.ArrayLike,
    mask: npt.ArrayLike,
    mode: str,
    constant: float | None = None,
    *,
    convention: Convention = LECTURE,
) -> Expected:
    """The mean that `mode` names; the convention says which rows count."""
    x = floats("values", values, "BT")
    m = mask_of(mask, x.shape)
    if mode not in ALLOWED["aggregation"]:
        raise ValueError(f"mode: is {mode!r}, expected one of {', '.join(map(repr, ALLOWED['aggregation']))}")
    if mode == "constant":
        _check_constant(constant)
    weights = aggregation_weights(m, convention, mode, constant)
    return averaged(m, weights, lambda b, t: Token(x[b, t], abs(x[b, t]), 1.0, 1.0))


def sft_loss(log_probs: npt.ArrayLike, mask: npt.ArrayLike, *, convention: Convention = LECTURE) -> Expected:
    """−log π."""
    x = floats("log_probs", log_probs, "BT")
    m = mask_of(mask, x.shape)
    return averaged(m, aggregation_weights(m, convention), lambda b, t: _weighted(x[b, t], 1.0))


def rest_loss(
    log_probs: npt.ArrayLike, mask: npt.ArrayLike, rewards: npt.ArrayLike, *, convention: Convention = LECTURE
) -> Expected:
    """−1[R = 1] log π."""
    x = floats("log_probs", log_probs, "BT")
    m = mask_of(mask, x.shape)
    r = float_rewards("rewards", rewards, "B", x.shape[:1])
    return averaged(m, aggregation_weights(m, convention), lambda b, t: _weighted(x[b, t], float(r[b] == 1)))


def reinforce_loss(
    log_probs: npt.ArrayLike,
    mask: npt.ArrayLike,
    rewards: npt.ArrayLike,
    baselines: npt.ArrayLike,
    *,
    convention: Convention = LECTURE,
) -> Expected:
    """−(R − b) log π."""
    x = floats("log_probs", log_probs, "BT")
    m = mask_of(mask, x.shape)
    r = float_rewards("rewards", rewards, "B", x.shape[:1])
    base = floats("baselines", baselines, "B", x.shape[:1])
    return averaged(
        m,
        aggregation_weights(m, convention),
        lambda b, t: _weighted(x[b, t], r[b] - base[b], abs(r[b]) + abs(base[b])),
    )


def policy_gradient_loss(
    log_probs: npt.ArrayLike, mask: npt.ArrayLike, weights: npt.ArrayLike, *, convention: Convention = LECTURE
) -> Expected:
    """−w log π."""
    x = floats("log_probs", log_probs, "BT")
    m = mask_of(mask, x.shape)
    w = floats("weights", weights, "BT", x.shape)
    return averaged(m, aggregation_weights(m, convention), lambda b, t: _weighted(x[b, t], w[b, t]))


def grpo_loss(
    log_probs: npt.ArrayLike, mask: npt.ArrayLike, advantages: npt.ArrayLike, *, convention: Convention = LECTURE
) -> Expected:
    """−Â log π."""
    x = floats("log_probs", log_probs, "BT")
    m = mask_of(mask, x.shape)
    a = floats("advantages", advantages, "B", x.shape[:1])
    return averaged(m, aggregation_weights(m, convention), lambda b, t: _weighted(x[b, t], a[b]))


def dr_grpo_loss(
    log_probs: npt.ArrayLike,
    mask: npt.ArrayLike,
    advantages: npt.ArrayLike,
    constant: float,
    *,
    convention: Convention = LECTURE,
) -> Expected:
    """−Â log π, divided by the constant and the number of sequences."""
    x = floats("log_probs", log_probs, "BT")
    m = mask_of(mask, x.shape)
    a = floats("advantages", advantages, "B", x.shape[:1])
    _check_constant(constant)
    weights = aggregation_weights(m, convention, "constant", constant)
    return averaged(m, weights, lambda b, t: _weighted(x[b, t], a[b]))


def clipped_loss(
    log_probs: npt.ArrayLike,
    old_log_probs: npt.ArrayLike,
    mask: npt.ArrayLike,
    advantages: npt.ArrayLike,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    *,
    convention: Convention = LECTURE,
) -> Expected:
    """−min(ρ Â, clip(ρ) Â)."""
    x = floats("log_probs", log_probs, "BT")
    old = floats("old_log_probs", old_log_probs, "BT", x.shape)
    m = mask_of(mask, x.shape)
    a = floats("advantages", advantages, "B", x.shape[:1])

    def token_at(b: int, t: int) -> Token:
        size = log_ratio_size(x[b, t], old[b, t])
        clamp = convention.log_ratio_clamp
        return surrogate_token(x[b, t] - old[b, t], size, a[b], abs(a[b]), clip_low, clip_high, clamp)

    return averaged(m, aggregation_weights(m, convention), token_at)


def grpo_objective(
    log_probs: npt.ArrayLike,
    old_log_probs: npt.ArrayLike,
    ref_log_probs: npt.ArrayLike,
    mask: npt.ArrayLike,
    rewards: npt.ArrayLike,
    beta: float,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    *,
    convention: Convention = LECTURE,
) -> Expected:
    """−min(ρ Â, clip(ρ) Â) + β k3."""
    x = floats("log_probs", log_probs, "BT")
    old = floats("old_log_probs", old_log_probs, "BT", x.shape)
    ref = floats("ref_log_probs", ref_log_probs, "BT", x.shape)
    m = mask_of(mask, x.shape)
    r = group_rewards(rewards)
    if r.size != len(x):
        raise ValueError(f"rewards: has shape {list(r.shape)}, expected [N, G] with N·G = {len(x)}")
    advantages = grpo_advantages(r, convention=convention)
    a: FloatArray = advantages.value.ravel()
    a_scale = advantages.scale.ravel()

    def token_at(b: int, t: int) -> Token:
        kl = k3_token(x[b, t], ref[b, t], convention.k3_clamp).times(beta)
        size = log_ratio_size(x[b, t], old[b, t])
        clamp = convention.log_ratio_clamp
        return surrogate_token(x[b, t] - old[b, t], size, a[b], a_scale[b], clip_low, clip_high, clamp).plus(kl)

    return averaged(m, aggregation_weights(m, convention), token_at)


def microbatch_loss(
    log_probs: npt.ArrayLike,
    mask: npt.ArrayLike,
    advantages: npt.ArrayLike,
    total_sequences: int,
    total_tokens: int,
    *,
    convention: Convention = LECTURE,
) -> Expected:
    """−Â log π, with the denominators of the full batch."""
    x = floats("log_probs", log_probs, "BT")
    m = mask_of(mask, x.shape)
    a = floats("advantages", advantages, "B", x.shape[:1])
    weights = shares(m, convention, total_sequences, total_tokens)
    return averaged(m, weights, lambda b, t: _weighted(x[b, t], a[b]))


def value_loss(
    values: npt.ArrayLike,
    old_values: npt.ArrayLike,
    returns: npt.ArrayLike,
    mask: npt.ArrayLike,
    clip: float | None = None,
    *,
    convention: Convention = LECTURE,
) -> Expected:
    """½ (v − R)², with clip the larger of both errors."""
    v = floats("values", values, "BT")
    old = floats("old_values", old_values, "BT", v.shape)
    target = floats("returns", returns, "BT", v.shape)
    m = mask_of(mask, v.shape)
    return averaged(
        m, aggregation_weights(m, convention), lambda b, t: _squared_error(v[b, t], old[b, t], target[b, t], clip)
    )


def _weighted(log_prob: float, weight: float, size: float | None = None) -> Token:
    size = abs(weight) if size is None else size
    return Token(-weight * log_prob, size * abs(log_prob), -weight, size)


def surrogate_token(
    log_ratio: float,
    size: float,
    advantage: float,
    weight: float,
    low: float,
    high: float,
    clamp: float | None,
    dual: float = math.inf,
) -> Token:
    """The clipped surrogate of one log-ratio, with its slope in that; at most dual·∣Â∣ where Â < 0.

    The gradient lives in an interval of the log-ratio. It is free at every bound whatever the sign: where the branches
    of min tie, formulas share it out differently. A ratio that is clipped still rounds into what is written as
    ρ − relu(ρ − bound). `size` is the scale of what rounds into the log-ratio, `weight` that of the advantage. Where
    the advantage is lost in its rounding, so is its sign, and with it the side that is clipped: the larger of both
    ratios counts, and the gradient may be alive or dead.
    """
    if weight == 0:
        return Token()
    if math.isnan(advantage):
        return Token(math.nan, slope=math.nan)
    bound = math.inf if clamp is None else clamp
    ratio = exp(min(max(log_ratio, -bound), bound))
    floor, ceiling = math.log1p(-low) if low < 1 else -math.inf, math.log1p(high)
    edges = [floor, ceiling, -bound, bound]
    if advantage > 0:
        used, start, end = min(ratio, 1 + high), -bound, min(bound, ceiling)
    else:
        used, start, end = min(max(ratio, 1 - low), dual), max(-bound, floor), min(bound, math.log(dual))
        edges.append(math.log(dual))
    rounding = weight * size
    kink = min(abs(log_ratio - edge) for edge in edges)
    if abs(advantage) <= SIGNLESS * weight:
        return Token(-used * advantage, max(ratio, 1 + high) * rounding, 0.0, ratio * rounding, kink)
    if start <= log_ratio <= end:
        return Token(-used * advantage, used * rounding, -ratio * advantage, ratio * rounding, kink)
    return Token(-used * advantage, max(used * rounding, ratio * weight), kink=kink)


def log_ratio_size(log_prob: float, old: float) -> float:
    """The scale of what rounds into a ratio: 1 for the ratio itself, and both log-probs."""
    return 1 + abs(log_prob) + abs(old)


def _squared_error(value: float, old: float, target: float, clip: float | None) -> Token:
    """With clip the gradient is dead between a bound that R lies beyond and that bound's mirror image about R.

    It is free at both bounds wherever R lies: where the branches of max tie, formulas share it out differently.
    """
    error, size = value - target, abs(value) + abs(target)
    if clip is None:
        return Token(error**2 / 2, abs(error) * size, error, size)
    size += abs(old) + clip
    clipped_error = old + min(max(value - old, -clip), clip) - target
    larger = max(abs(error), abs(clipped_error))
    scale = larger * size + SECOND_ORDER * size**2
    low, high = old - clip, old + clip
    kink = min(abs(value - low), abs(value - high))
    if low <= target <= high:
        return Token(larger**2 / 2, scale, error, size, kink)
    bound = high if target > high else low
    mirror = 2 * target - bound
    kink = min(kink, abs(value - mirror))
    if min(bound, mirror) < value < max(bound, mirror):
        return Token(larger**2 / 2, scale, kink=kink)
    return Token(larger**2 / 2, scale, error, size, kink)


def _check_constant(constant: float | None) -> None:
    if constant is None or not constant > 0:
        raise ValueError(f"constant: is {constant}, expected a number > 0")
