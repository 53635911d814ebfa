"""What an oracle answers: the value, how far rounding may carry a correct answer from it, and the gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Gradient:
    """A gradient with respect to the first argument, and how well it can be known.

    Attributes:
        value: the gradient in float64; NaN where anything may stand.
        scale: sum of the magnitudes whose rounding reaches the entry; 0 means that the entry must be exact.
        kink: distance, in units of the log-ratio or of the value, to the nearest point at which the gradient jumps;
            inf where there is none.
    """

    value: FloatArray
    scale: FloatArray
    kink: FloatArray


Pullback: TypeAlias = Callable[[npt.ArrayLike], Gradient]


@dataclass(frozen=True, eq=False)
class Expected:
    """The answer of an oracle.

    Attributes:
        value: float64, or bool for masks, in the shape of the result; NaN where anything may stand.
        scale: same shape; a correct answer x in a dtype of precision eps has |x − value| ≤ k · eps · scale for a small
            k, whatever the order of evaluation. 0 means that the entry must be exact, inf that nothing is demanded.
        terms: length of the longest reduction.
        pullback: from a cotangent in the shape of value to the gradient with respect to the first argument; None where
            the operation is not differentiated.
    """

    value: npt.NDArray[Any]
    scale: FloatArray
    terms: int = 1
    pullback: Pullback | None = None


def exactly(value: npt.ArrayLike, terms: int = 1) -> Expected:
    """An answer without any rounding: integers, masks, copies."""
    array = np.asarray(value)
    if array.dtype != np.bool_:
        array = array.astype(np.float64)
    return Expected(array, np.zeros(array.shape), terms)


def cotangent_like(cotangent: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """The cotangent as a float64 array of the result's shape.

    Raises:
        ValueError: it has another shape.
    """
    array = np.asarray(cotangent, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"cotangent: has shape {list(array.shape)}, expected {list(shape)}")
    return array


def linear_pullback(shape: tuple[int, ...], slope: FloatArray, slope_scale: FloatArray) -> Pullback:
    """The pullback of an operation whose entry i depends on the rows slope[i, …] of its argument only.

    gradient[i, …] = cotangent[i] · slope[i, …]
    """

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        weight = cotangent_like(cotangent, shape)
        weight = weight.reshape(shape + (1,) * (slope.ndim - len(shape)))
        return Gradient(weight * slope, np.abs(weight) * slope_scale, np.full(slope.shape, np.inf))

    return pullback
