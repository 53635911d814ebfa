"""Comparison of an observation with what the oracle expects, under a tolerance derived for each entry.

    |computed − exact| ≤ (FACTOR·u + terms·u₃₂)·scale

u is the unit of the result's dtype (float32's at least: the contract asks for float32 accumulation, no more), `scale`
the sum of the absolute terms that round into the entry, `terms` the length of the longest reduction; both come from
the oracle. Scale 0 means exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from rlassay.guest.observation import Observation
from rlassay.guest.values import UNIT, Arguments, Tensor
from rlassay_spec.oracles.expected import Expected, Gradient

FACTOR = 8.0
"""Roundings of the result's dtype that an entry's largest term may pass through."""

Shown = np.ndarray | str
"""What a report shows of a result: an array, or words."""

TINY = 1e-37
"""Where a tolerance is not 0 it is at least this: below lie float32's denormal numbers."""


class Mismatch(AssertionError):
    """The subject does not do what the contract says; got and expected, where there is something to show."""

    def __init__(self, message: str, got: Shown = "", expected: Shown = "") -> None:
        super().__init__(message)
        self.message = message
        self._got, self._expected = got, expected

    @property
    def got(self) -> str:
        """What came, as text."""
        return _text(self._got)

    @property
    def expected(self) -> str:
        """What should have come, as text; entries that are free are written as any."""
        with np.printoptions(nanstr="any"):
            return _text(self._expected)


def _text(shown: Shown) -> str:
    return shown if isinstance(shown, str) else numbers(shown)


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
    require_close(call, got, expected.value, allowed)


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
        message = f"no gradient of {call} reaches {name}: the result is cut off from it"
        raise Mismatch(message, "no gradient", gradient.value)
    if got.shape != gradient.value.shape:
        raise Mismatch(f"gradient of {call} in {name} has shape {got.shape}, but should have {gradient.value.shape}")
    allowed = tolerance(gradient.scale, terms, dtype)
    free = gradient.kink <= kink_margin(dtype)
    require_close(f"gradient of {call} in {name}", got, np.where(free, np.nan, gradient.value), allowed)


def kink_margin(dtype: str) -> float:
    """Distance from a kink within which rounding decides on which side a number falls."""
    return 64 * max(UNIT[dtype], UNIT["float32"])


def require_array(call: str, observed: Observation, shape: tuple[int, ...]) -> np.ndarray:
    """The observed value as an array of the expected shape.

    Raises:
        Mismatch: it is not a tensor or number, not a real one, or has another shape.
    """
    got = observed.value
    if not isinstance(got, np.ndarray):
        raise Mismatch(f"{call} returned {_kind(got)}, but should return a tensor of shape {shape}")
    _require_real(call, got)
    if got.shape != shape:
        raise Mismatch(f"{call} has shape {got.shape}, but should have {shape}")
    return got


def require_fine(call: str, observed: Observation, arguments: Arguments) -> None:
    """An answer is real, and of a dtype no coarser than the coarsest among the arguments.

    What rounding may do is judged by the dtype of the answer, so one that is coarser than all that went in would buy
    itself room for errors.

    Raises:
        Mismatch: it is not so.
    """
    if isinstance(observed.value, np.ndarray):
        _require_real(call, observed.value)
    given = [value.dtype for value in arguments.values() if isinstance(value, Tensor) and value.dtype in UNIT]
    unit = UNIT.get(observed.dtype or "", 0.0)
    if given and unit > max(UNIT["float32"], *(UNIT[dtype] for dtype in given)):
        coarsest = max(given, key=UNIT.__getitem__)
        raise Mismatch(f"{call} has dtype {observed.dtype}, coarser than its arguments, but should have {coarsest}")


def _require_real(call: str, got: np.ndarray) -> None:
    if got.dtype.kind == "c":
        raise Mismatch(f"{call} is {got.dtype}, but should be real")


def _require_flags(call: str, got: np.ndarray, want: np.ndarray) -> None:
    wrong = got.astype(np.float64) != want
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise Mismatch(f"{call}{_at(place)} is {got[place]}, but should be {want[place]}", got, want)


def require_close(call: str, got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> None:
    """Each number is off by no more than is allowed. Entries where `want` is NaN are free.

    Raises:
        Mismatch: one is not; the message shows the one that is off most, as a share of what is allowed.
    """
    used = loads(got.astype(np.float64), want, allowed)
    largest = float(np.max(used, initial=0.0))
    _note(largest)
    if largest <= 1:
        return
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(used)), used.shape))
    bound = "exactly" if allowed[place] == 0 else f"within {allowed[place]:.1e}"
    raise Mismatch(f"{call}{_at(place)} is {got[place]:.9g}, but should be {want[place]:.9g} ({bound})", got, want)


def loads(got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """How much of what is allowed each error takes: 0 where there is none or the entry is free, more than 1 where it is
    too large."""
    with np.errstate(all="ignore"):
        load = np.abs(got - want) / allowed
    load = np.where(np.isnan(load), np.inf, load)
    return np.where((got == want) | np.isnan(want), 0.0, load)


_LOADS: ContextVar[list[float] | None] = ContextVar("loads", default=None)


@contextmanager
def noted_loads() -> Iterator[list[float]]:
    """The largest load of each comparison that is made inside."""
    collected: list[float] = []
    token = _LOADS.set(collected)
    try:
        yield collected
    finally:
        _LOADS.reset(token)


def _note(load: float) -> None:
    collected = _LOADS.get()
    if collected is not None:
        collected.append(load)


def numbers(array: np.ndarray) -> str:
    """An array as a short nested list."""
    return np.array2string(np.asarray(array), precision=6, separator=", ", threshold=64, max_line_width=100)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _at(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]" if place else ""
