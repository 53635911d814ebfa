"""Comparison of an observation with what the oracle expects, under a tolerance derived for each entry.

    |computed − exact| ≤ (FACTOR·u + terms·u₃₂)·scale

u is the unit of the result's dtype (float32's at least: the contract asks for float32 accumulation, no more), `scale`
the sum of the absolute terms that round into the entry, `terms` the length of the longest reduction; both come from
the oracle. Scale 0 means exact.
"""

from __future__ import annotations

import numpy as np

from rlassay.subject import Observation
from rlassay.values import UNIT
from rlassay_spec.oracles.expected import Expected, Gradient

FACTOR = 8.0
"""Roundings of the result's dtype that an entry's largest term may pass through."""

TINY = 1e-37
"""Where a tolerance is not 0 it is at least this: below lie float32's denormal numbers."""


class Mismatch(AssertionError):
    """The subject does not do what the contract says; `details` are the fields of a failure record."""

    def __init__(self, message: str, **details: str) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


def tolerance(scale: np.ndarray, terms: int, dtype: str | None) -> np.ndarray:
    """Largest rounding error that a careful implementation can show, by entry."""
    single = UNIT["float32"]
    unit = max(UNIT.get(dtype or "float64", single), single)
    bound: np.ndarray = (FACTOR * unit + terms * single) * scale
    return np.where(scale > 0, np.maximum(bound, TINY), 0.0)


def require_value(call: str, observed: Observation, expected: Expected, dtypes: tuple[str, ...] | None = None) -> None:
    """The result has the expected type, shape, dtype (one of `dtypes`, if given) and numbers.

    Raises:
        Mismatch: the first of these that is not so, with the worst entry.
    """
    got = require_array(call, observed, expected.value.shape)
    if dtypes is not None and observed.dtype not in dtypes:
        raise Mismatch(f"{call} has dtype {observed.dtype}, but should have {' or '.join(dtypes)}")
    if expected.value.dtype == bool:
        _require_flags(call, got, expected.value)
        return
    allowed = tolerance(expected.scale, expected.terms, observed.dtype)
    _require_close(call, got, expected.value, allowed)


def require_gradient(call: str, name: str, observed: Observation, gradient: Gradient, terms: int, dtype: str) -> None:
    """The gradient that reaches argument `name` is the expected one.

    Entries whose kink lies within rounding are free: the gradient jumps there.

    Raises:
        Mismatch: no gradient arrives although there is one, or the worst entry is off.
    """
    got = observed.gradients.get(name)
    if got is None:
        if not gradient.value.any():
            return
        raise Mismatch(f"no gradient of {call} reaches {name}: the result is cut off from it", gradient="dead")
    if got.shape != gradient.value.shape:
        raise Mismatch(f"gradient of {call} in {name} has shape {got.shape}, but should have {gradient.value.shape}")
    allowed = tolerance(gradient.scale, terms, dtype)
    free = gradient.kink <= kink_margin(dtype)
    _require_close(f"gradient of {call} in {name}", got, np.where(free, np.nan, gradient.value), allowed)


def kink_margin(dtype: str) -> float:
    """Distance from a kink within which rounding decides on which side a number falls."""
    return 64 * max(UNIT[dtype], UNIT["float32"])


def require_array(call: str, observed: Observation, shape: tuple[int, ...]) -> np.ndarray:
    """The observed value as an array of the expected shape.

    Raises:
        Mismatch: it is not a tensor or number, or has another shape.
    """
    got = observed.value
    if not isinstance(got, np.ndarray):
        raise Mismatch(f"{call} returned {_kind(got)}, but should return a tensor of shape {shape}")
    if got.shape != shape:
        raise Mismatch(f"{call} has shape {got.shape}, but should have {shape}")
    return got


def _require_flags(call: str, got: np.ndarray, want: np.ndarray) -> None:
    wrong = got.astype(np.float64) != want
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise Mismatch(f"{call}{_at(place)} is {got[place]}, but should be {want[place]}", **_shown(got, want))


def _require_close(call: str, got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> None:
    """Entries where `want` is NaN are free."""
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype(np.float64) - want)
        error = np.where(got == want, 0.0, error)
    wrong = ~(error <= allowed) & ~np.isnan(want)
    if not wrong.any():
        return
    with np.errstate(over="ignore", invalid="ignore"):
        excess = np.where(wrong, np.nan_to_num(error, nan=np.inf) / np.maximum(allowed, TINY), -1.0)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    bound = "exactly" if allowed[place] == 0 else f"within {allowed[place]:.1e}"
    raise Mismatch(
        f"{call}{_at(place)} is {got[place]:.9g}, but should be {want[place]:.9g} ({bound})", **_shown(got, want)
    )


def _shown(got: np.ndarray, want: np.ndarray) -> dict[str, str]:
    """Both arrays for the report; what is free in the expected one is written as any."""
    with np.printoptions(nanstr="any"):
        expected = numbers(want)
    return {"got": numbers(got), "expected": expected}


def numbers(array: np.ndarray) -> str:
    """An array as a short nested list."""
    return np.array2string(np.asarray(array), precision=6, separator=", ", threshold=64, max_line_width=100)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _at(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]" if place else ""
