"""From answers to the choices that allow them: a number is known by an interval, a name by what it rules out.

An answer moves one way when the number grows (the probes are made so), hence the numbers that allow it form an
interval, whose ends are found by bisection of the oracle; those of several answers are intersected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

import numpy as np

from rlassay.identify.choices import Option
from rlassay.identify.question import Bounds, Probe, within
from rlassay_spec.convention import Convention

STEPS, PRECISION = 60, 1e-13
"""Halvings of an interval, in the logarithm, and the relative width that is narrow enough."""

SHARPEST = 6
"""So many probes say what the number is inside its interval, beyond what rounding is bound by."""

SMALLEST, LARGEST = 1e-45, 1e20
"""What the logarithm of 0 and of inf is taken of."""


Side = Literal["small", "large", "both", "fits"]


@dataclass(frozen=True, eq=False)
class Fit:
    """One choice, the interval of its number and the simplest number in it; the probes that contradict it."""

    option: Option
    low: float = 0.0
    high: float = math.inf
    value: float = 0.0
    misses: tuple[Probe, ...] = ()

    def at(self, convention: Convention) -> Convention:
        """The convention with this choice."""
        return self.option.at(convention, self.value)

    def ends(self, convention: Convention) -> list[Convention]:
        """The convention with this choice, its number once the likeliest and once at each end of the interval."""
        return [self.option.at(convention, number) for number in dict.fromkeys((self.value, self.low, self.high))]


def fit(option: Option, probes: Sequence[Probe], corners: Sequence[Convention], thorough: bool = False) -> Fit:
    """How a choice explains the probes; `corners` are the conventions between which the other choices lie.

    Unless it is to be thorough, the first probe that contradicts the choice is the only one that is named.
    """
    if not option.number:
        candidates = [option.at(corner, 0.0) for corner in corners]
        misses = (probe for probe in probes if not probe.fits(candidates))
        return Fit(option, misses=tuple(misses if thorough else islice(misses, 1)))
    scales = [_Scale(probe, option, corners) for probe in probes]
    low, high = option.least, option.most
    for scale in scales:
        span = scale.allowed(low, high)
        if span is None:
            value = _between(low, high)
            others = [s.probe for s in scales if s is not scale and s.side(value) != "fits"] if thorough else []
            return Fit(option, low, high, value, (scale.probe, *others))
        low, high = span
    return Fit(option, low, high, _sharpened(scales, low, high))


class _Scale:
    """A probe as a measure of an option's number."""

    def __init__(self, probe: Probe, option: Option, corners: Sequence[Convention]) -> None:
        self.probe, self.option, self.corners = probe, option, corners

    @cached_property
    def direction(self) -> np.ndarray:
        """Which way each entry of the answer moves when the number grows."""
        ends = [self.bounds(number) for number in (self.option.least, self.option.most)]
        assert ends[0] is not None and ends[1] is not None
        return np.asarray(np.sign(np.nan_to_num(ends[1].centre - ends[0].centre)))

    def bounds(self, number: float) -> Bounds | None:
        """What the probe may give with that number."""
        found = [self.probe.question.bounds(self.option.at(corner, number)) for corner in self.corners]
        known = [bounds for bounds in found if bounds is not None]
        if len(known) < len(found):
            return None
        if len(known) == 1:
            return known[0]
        return Bounds(np.min([b.low for b in known], axis=0), np.max([b.high for b in known], axis=0))

    def side(self, number: float) -> Side:
        """Whether a number is too small, too large, both (nothing fits) or fits."""
        bounds, seen = self.bounds(number), self.probe.seen
        if bounds is None or seen is None or seen.shape != bounds.low.shape:
            return "both"
        wrong = ~within(seen, bounds.low, bounds.high)
        if not wrong.any():
            return "fits"
        above, still = seen > bounds.high, (self.direction == 0) | np.isnan(seen)
        small = bool((wrong & (still | (above == (self.direction > 0)))).any())
        large = bool((wrong & (still | (above != (self.direction > 0)))).any())
        return "both" if small and large else "small" if small else "large"

    def allowed(self, low: float, high: float) -> tuple[float, float] | None:
        """The numbers from low to high that allow the answer; None where none does."""
        if self.side(low) == "small" and self.side(high) != "small":
            low = _boundary(lambda number: self.side(number) == "small", low, high)[1]
        if self.side(high) == "large" and self.side(low) != "large":
            high = _boundary(lambda number: self.side(number) != "large", low, high)[0]
        return (low, high) if low <= high and self.side(low) == self.side(high) == "fits" else None

    def sharpness(self, low: float, high: float) -> tuple[float, int]:
        """By how many times what rounding allows an entry moves between two numbers, and which entry moves most."""
        a, b = self.bounds(low), self.bounds(high)
        if a is None or b is None or self.probe.seen is None:
            return 0.0, 0
        with np.errstate(all="ignore"):
            moves = np.nan_to_num(np.abs(b.centre - a.centre) / (a.high - a.low), posinf=0.0)
        entry = int(np.argmax(moves)) if moves.size else 0
        return (float(moves[entry]) if moves.size else 0.0), entry

    def exactly(self, low: float, high: float, entry: int) -> float:
        """The number that gives an entry of the answer exactly."""
        assert self.probe.seen is not None
        sign, seen = self.direction[entry], self.probe.seen[entry]

        def below(number: float) -> bool:
            bounds = self.bounds(number)
            return bounds is not None and bool(sign * (bounds.centre[entry] - seen) < 0)

        return _between(*_boundary(below, low, high))


def _boundary(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """The last number for which something holds and the first for which it does not; it holds at low, not at high."""
    for _ in range(STEPS):
        middle = _between(low, high)
        if not low < middle < high or high - low < PRECISION * low:
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return low, high


def _between(low: float, high: float) -> float:
    """The geometric middle; near enough to it where one end is 0 or inf."""
    if low == 0 and high <= SMALLEST:
        return 0.0
    if math.isinf(high) and low >= LARGEST:
        return high
    first, last = max(low, SMALLEST), min(high, LARGEST)
    return math.sqrt(first) * math.sqrt(last)


def _sharpened(scales: Sequence[_Scale], low: float, high: float) -> float:
    """The simplest number among those that the sharpest probes give exactly, taken in float64 where they can be."""
    if low == 0:
        return 0.0
    if math.isinf(high):
        return high
    wide = (low / 1.01, high * 1.01)
    found = sorted(((*scale.sharpness(*wide), scale) for scale in scales), key=lambda one: -one[0])
    double = [one for one in found if one[0] > 0 and one[2].probe.question.dtype == "float64"]
    exact = [scale.exactly(*wide, entry) for _, entry, scale in (double or found)[:SHARPEST]]
    exact = [number for number in exact if low <= number <= high] or [low, high]
    first, last = min(exact), max(exact)
    slack = 1e-12 if last <= first * (1 + 1e-11) else 1e-6
    return simplest(max(low, first * (1 - slack)), min(high, last * (1 + slack)))


def simplest(low: float, high: float) -> float:
    """The number from low to high with the fewest digits, near their middle."""
    middle = (low + high) / 2
    for digits in range(17):
        number = float(f"{middle:.{digits}e}")
        if low <= number <= high:
            return number
    return middle
