"""What a claim's check reads off the subject: numbers, each with the rounding error that careful code may show.

The errors are carried along through sums, so the tolerance of a mean, a standard deviation or an importance-weighted
gradient follows from the tolerances of the calls it is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rlassay.check import Trial
from rlassay.comparison import Mismatch, require_array, require_close, tolerance
from rlassay.guest.values import Arguments

OWN = 1e-12
"""Relative rounding error of a check's own float64 arithmetic, generously."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Numbers of the subject and how far rounding may have carried each of them."""

    value: np.ndarray
    error: np.ndarray

    def __getitem__(self, key: Any) -> Reading:
        return Reading(self.value[key], self.error[key])

    def reshaped(self, *shape: int) -> Reading:
        """The same numbers in another shape."""
        return Reading(self.value.reshape(shape), self.error.reshape(shape))

    def transposed(self) -> Reading:
        """The same numbers with their axes in reverse order."""
        return Reading(self.value.T, self.error.T)

    def combined(self, weights: npt.ArrayLike) -> Reading:
        """Σ_i w_i·x_i over the first axis; a matrix of weights gives one sum for each of its rows."""
        exact = np.asarray(weights, dtype=np.float64)
        with np.errstate(all="ignore"):
            value = np.tensordot(exact, self.value, axes=1)
            error = np.tensordot(np.abs(exact), self.error + OWN * np.abs(self.value), axes=1)
        return Reading(value, error)

    def times(self, other: Reading) -> Reading:
        """The product, entry by entry."""
        with np.errstate(all="ignore"):
            value = self.value * other.value
            error = (np.abs(self.value) + self.error) * (np.abs(other.value) + other.error) - np.abs(value)
        return Reading(value, error)

    def squared(self) -> Reading:
        """The square, entry by entry."""
        return self.times(self)

    def scaled(self, factor: float) -> Reading:
        """Every number times the factor."""
        with np.errstate(all="ignore"):
            return Reading(factor * self.value, abs(factor) * self.error)

    def exp(self) -> Reading:
        """eˣ, entry by entry."""
        with np.errstate(all="ignore"):
            value = np.exp(self.value)
            return Reading(value, value * np.expm1(self.error))

    def spread(self, probabilities: npt.ArrayLike) -> Reading:
        """√(E‖x − E x‖²) over the first axis: a standard deviation, for vectors the root of the covariance's trace.

        It is a seminorm of x, so an error e moves it by √(E‖e‖²) at most.
        """
        chances = np.asarray(probabilities, dtype=np.float64)
        flat = self.reshaped(len(chances), -1)
        with np.errstate(all="ignore"):
            centred = flat.value - np.tensordot(chances, flat.value, axes=1)
            size = flat.error + OWN * np.abs(flat.value).max()
            value = np.sqrt(np.dot(chances, (centred**2).sum(axis=1)))
            error = np.sqrt(np.dot(chances, (size**2).sum(axis=1)))
        return Reading(np.asarray(value), np.asarray(error))

    def require(self, what: str, want: npt.ArrayLike) -> None:
        """Each number is the wanted one within its error.

        Raises:
            Mismatch: one is not.
        """
        exact = np.broadcast_to(np.asarray(want, dtype=np.float64), self.value.shape)
        allowed = np.where(np.isfinite(self.error), self.error + OWN * np.abs(exact), 0.0)
        require_close(what, self.value, exact, allowed)


def stacked(readings: Sequence[Reading]) -> Reading:
    """Several readings of one shape along a new first axis."""
    return Reading(np.stack([r.value for r in readings]), np.stack([r.error for r in readings]))


def read(trial: Trial, operation: str, arguments: Arguments) -> Reading:
    """The result of a call.

    Raises:
        Mismatch: it is no tensor or number, or has the wrong shape.
    """
    want = trial.expect(operation, arguments)
    observed = trial.call(operation, arguments)
    got = require_array(operation, observed, want.value.shape)
    return Reading(got.astype(np.float64), tolerance(want.scale, want.terms, observed.dtype))


def read_gradient(
    trial: Trial, operation: str, arguments: Arguments, cotangent: np.ndarray | None = None
) -> tuple[Reading, Reading]:
    """The result of a call and the gradient of Σ cotangent·result (ones by default) in the first argument.

    Raises:
        Mismatch: the result is none or has the wrong shape, or no gradient of the right shape arrives.
    """
    first = next(iter(arguments))
    want = trial.expect(operation, arguments)
    weights = np.ones(want.value.shape) if cotangent is None else cotangent
    observed = trial.call(operation, arguments, live=(first,), cotangent=weights)
    got = require_array(operation, observed, want.value.shape)
    gradient = observed.gradients[first]
    assert want.pullback is not None
    exact = want.pullback(weights)
    if gradient is None:
        raise Mismatch(f"no gradient of {operation} reaches {first}: the result is cut off from it")
    if gradient.shape != exact.value.shape:
        raise Mismatch(f"gradient of {operation} in {first} has shape {gradient.shape}, not {exact.value.shape}")
    value = Reading(got.astype(np.float64), tolerance(want.scale, want.terms, observed.dtype))
    return value, Reading(gradient, tolerance(exact.scale, want.terms, arguments[first].dtype))
