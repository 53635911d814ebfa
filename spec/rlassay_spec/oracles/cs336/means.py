"""Oracles of the means and sums over what a mask lets in."""

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.expected import BoolArray, Expected, FloatArray, Gradient, cotangent_like

GUARD: Final = 1e-6 / (8 * 2.0**-23)
"""A denominator of 1 that is larger by 1e-6, against 0/0, in units of eight float32 roundings."""


def masked_mean(tensor: npt.ArrayLike, mask: npt.ArrayLike, dim: int | None = None) -> Expected:
    """Σ m x / Σ m; NaN, for free, where that is 0/0."""
    x = np.asarray(tensor, dtype=np.float64)
    m = mask_like(mask, x.shape)
    count = m.sum(axis=dim, keepdims=True)
    with np.errstate(invalid="ignore"):
        weights = m / count
    return weighted_sum(x, m, weights, dim, GUARD / np.maximum(count, 1))


def masked_normalize(
    tensor: npt.ArrayLike, mask: npt.ArrayLike, dim: int | None = None, normalize_constant: float = 1.0
) -> Expected:
    """Σ m x / constant."""
    x = np.asarray(tensor, dtype=np.float64)
    m = mask_like(mask, x.shape)
    return weighted_sum(x, m, m / normalize_constant, dim)


def aggregate_loss_across_microbatch(
    per_token_policy_gradient_loss: npt.ArrayLike,
    mask: npt.ArrayLike,
    loss_normalization: str,
    normalization_constant: float | None = None,
) -> Expected:
    """Mean over rows of the row's mean, or Σ m x / constant."""
    x = np.asarray(per_token_policy_gradient_loss, dtype=np.float64)
    m = mask_like(mask, x.shape)
    if loss_normalization == "sequence":
        return mean_of_row_means(x, m)
    if loss_normalization == "constant" and normalization_constant is not None:
        return weighted_sum(x, m, m / normalization_constant)
    raise ValueError(
        f"loss_normalization: is {loss_normalization!r} with the constant {normalization_constant}, "
        "expected 'sequence', or 'constant' and a number"
    )


def mean_of_row_means(x: FloatArray, mask: BoolArray) -> Expected:
    """Σ m x / (B n_b); NaN, for free, if a row is empty."""
    counts = mask.sum(axis=1, keepdims=True)
    weights = mask / (counts * len(mask)) if counts.all() else np.full(mask.shape, math.nan)
    return weighted_sum(x, mask, weights, guard=GUARD / np.maximum(counts, 1))


def weighted_sum(
    x: FloatArray, mask: BoolArray, weights: FloatArray, axis: int | None = None, guard: FloatArray | float = 0.0
) -> Expected:
    """Σ weight · x along an axis, or over everything; what the mask hides is never looked at.

    `guard` is what a guard against 0/0 may change, relative to the term.
    """
    seen = np.where(mask, x, 0.0)
    value = np.asarray((weights * seen).sum(axis=axis))
    scale = np.asarray((np.abs(weights * seen) * (1 + guard)).sum(axis=axis))

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        weight = cotangent_like(cotangent, value.shape)
        gradient = weights * (weight if axis is None else np.expand_dims(weight, axis))
        size = np.abs(gradient) * (1 + guard)
        return Gradient(gradient, np.where(np.isnan(gradient), math.inf, size), np.full(x.shape, math.inf))

    terms = mask.size if axis is None else mask.shape[axis]
    return Expected(value, np.where(np.isnan(value), math.inf, scale), max(1, terms), pullback)


def mask_like(mask: npt.ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    """The mask as booleans.

    Raises:
        ValueError: it has another shape, or an entry that is neither 0 nor 1.
    """
    array = np.asarray(mask)
    if array.shape != shape:
        raise ValueError(f"mask: has shape {list(array.shape)}, expected {list(shape)}")
    if ((array != 0) & (array != 1)).any():
        raise ValueError("mask: has entries that are neither 0 nor 1")
    return array.astype(np.bool_)
