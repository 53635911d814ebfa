"""Operations that treat each token on its own, and the means over the tokens that a mask lets in."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rlassay_spec.convention import Convention
from rlassay_spec.oracles.expected import BoolArray, Expected, FloatArray, Gradient, cotangent_like
from rlassay_spec.oracles.numeric import total


class Token(NamedTuple):
    """What one token contributes.

    Attributes:
        value: the contribution; NaN makes all that it touches free.
        scale: its scale.
        slope: its derivative in the first argument.
        slope_scale: the derivative's scale.
        kink: distance to the nearest jump of the derivative.
    """

    value: float = 0.0
    scale: float = 0.0
    slope: float = 0.0
    slope_scale: float = 0.0
    kink: float = math.inf

    def plus(self, other: "Token") -> "Token":
        """Both contributions together."""
        return Token(
            self.value + other.value,
            self.scale + other.scale,
            self.slope + other.slope,
            self.slope_scale + other.slope_scale,
            min(self.kink, other.kink),
        )

    def times(self, factor: float) -> "Token":
        """The contribution, weighted by a constant; a factor of 0 takes the kink away as well."""
        if factor == 0:
            return Token()
        size = abs(factor)
        return Token(factor * self.value, size * self.scale, factor * self.slope, size * self.slope_scale, self.kink)


TokenAt = Callable[[int, int], Token]


def elementwise(shape: tuple[int, ...], token_at: TokenAt) -> Expected:
    """The result [B, T] whose entries are the tokens' values."""
    value, scale, slope, slope_scale, kink = _fields(np.ones(shape, dtype=np.bool_), token_at)

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        weight = cotangent_like(cotangent, shape)
        return Gradient(weight * slope, np.abs(weight) * slope_scale, kink)

    return Expected(value, scale, 1, pullback)


def averaged(mask: BoolArray, weights: FloatArray, token_at: TokenAt) -> Expected:
    """The scalar Σ weight · value over the masked-in tokens; the others are never looked at.

    A weight of NaN, or a token of NaN, makes the value and its own gradient free.
    """
    value, scale, slope, slope_scale, kink = _fields(mask, token_at)
    mean = total((weights * value).ravel())
    mean_scale = math.inf if math.isnan(mean) else total((weights * scale).ravel())

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        weight = float(cotangent_like(cotangent, ())) * weights
        gradient = weight * slope
        return Gradient(gradient, np.where(np.isnan(gradient), math.inf, np.abs(weight) * slope_scale), kink)

    return Expected(np.asarray(mean), np.asarray(mean_scale), max(1, int(mask.sum())), pullback)


def aggregation_weights(
    mask: BoolArray, convention: Convention, mode: str | None = None, constant: float | None = None
) -> FloatArray:
    """What each token weighs in the mean over the batch; `mode` and `constant` take the place of the convention's.

    (1/B) m (sequence_sum), (1/B) m/n_b (sequence_mean), m/Σm (token_mean), (1/B) m/C (constant), where B leaves out the
    empty rows if they are dropped.
    """
    lengths = mask.sum(axis=1)
    sequences = len(mask) if convention.empty_rows == "counted" else int((lengths > 0).sum())
    return shares(mask, convention, sequences, int(lengths.sum()), mode, constant)


def shares(
    mask: BoolArray,
    convention: Convention,
    sequences: int,
    tokens: int,
    mode: str | None = None,
    constant: float | None = None,
) -> FloatArray:
    """What each token weighs in the mean over a batch of that many sequences and tokens, these rows among them."""
    mode = mode or convention.aggregation
    constant = constant or convention.aggregation_constant
    lengths = mask.sum(axis=1)
    if convention.empty_mean == "free" and _has_empty_mean(lengths, convention, sequences, tokens, mode):
        return np.full(mask.shape, math.nan)
    weights = np.zeros(mask.shape)
    for b in np.flatnonzero(lengths):
        if mode == "token_mean":
            weights[b, mask[b]] = 1 / tokens
        elif mode == "sequence_mean":
            weights[b, mask[b]] = 1 / (sequences * lengths[b])
        elif mode == "constant" and constant is not None:
            weights[b, mask[b]] = 1 / (sequences * constant)
        else:
            weights[b, mask[b]] = 1 / sequences
    return weights


def _has_empty_mean(
    lengths: npt.NDArray[np.int64], convention: Convention, sequences: int, tokens: int, mode: str
) -> bool:
    if mode == "token_mean":
        return tokens == 0
    if mode == "sequence_mean" and convention.empty_rows == "counted":
        return not lengths.all()
    return sequences == 0


def _fields(mask: BoolArray, token_at: TokenAt) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """The fields of `Token` as arrays, those of no contribution where the mask is 0."""
    fields = np.zeros((5, *mask.shape))
    fields[4] = math.inf
    for b, t in np.argwhere(mask).tolist():
        fields[:, b, t] = token_at(b, t)
    return fields[0], fields[1], fields[2], fields[3], fields[4]
