"""Margins: how far correct code stays below the bounds, and how far known faults lie above them.

    margin of a check on correct code = bound ÷ largest error of the reference and the variants
    margin of a check on faults       = smallest effect ÷ bound, over the faults that show most in it

An effect is the largest error that a fault shows in a run of a check. A fault counts where it shows most: what else it
touches may be as little as rounding.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rlassay.calibration.measure import Measured

ENOUGH = 10.0
"""A margin below this is looked at."""


@dataclass(frozen=True)
class Margin:
    """A check's margins, inf where nothing limits them, and the subjects that do."""

    check: str
    correct: float = math.inf
    nearest_correct: str = ""
    faulty: float = math.inf
    nearest_fault: str = ""

    @property
    def reason(self) -> str:
        """Why it may be narrow, where that is on record."""
        return _reasons().get(self.check, "")

    @property
    def narrow(self) -> bool:
        """Whether a side has less than enough."""
        return min(self.correct, self.faulty) < ENOUGH


@cache
def _reasons() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("narrow.toml").read_text(encoding="utf-8"))


def margins(correct: Iterable[Measured], faulty: Iterable[Measured]) -> list[Margin]:
    """The margins of every check that compares numbers, the narrowest first."""
    below: dict[str, tuple[float, str]] = {}
    for measured in correct:
        for check, load in measured.loads.items():
            below[check] = max(below.get(check, (0.0, "")), (load, measured.subject))
    above: dict[str, tuple[float, str]] = {}
    for measured in faulty:
        check, load = max(measured.loads.items(), key=lambda entry: entry[1], default=("", 0.0))
        if load > 1:
            above[check] = min(above.get(check, (math.inf, "")), (load, measured.subject))
    found = []
    for check in {**below, **above}:
        load, subject = below.get(check, (0.0, ""))
        effect, fault = above.get(check, (math.inf, ""))
        found.append(Margin(check, 1 / load if load else math.inf, subject, effect, fault))
    return sorted(found, key=lambda margin: (min(margin.correct, margin.faulty), margin.check))
