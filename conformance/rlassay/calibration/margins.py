"""Margins: how far correct code stays below the bounds, and how far known faults lie above them.

    margin of a check on correct code = bound ÷ largest error of the reference and the variants
    margin of a check on faults       = smallest effect ÷ bound, over the faults that have to be killed by it

An effect is the largest error that a fault shows in a run of the check.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
    def narrow(self) -> bool:
        """Whether a side has less than enough."""
        return min(self.correct, self.faulty) < ENOUGH


def margins(
    correct: Iterable[Measured], faulty: Iterable[Measured], killers: Mapping[str, Sequence[str]]
) -> list[Margin]:
    """The margins of every check that compares numbers, the narrowest first.

    `killers` says by which laws each fault has to be killed.
    """
    below: dict[str, tuple[float, str]] = {}
    for measured in correct:
        for check, load in measured.loads.items():
            below[check] = max(below.get(check, (0.0, "")), (load, measured.subject))
    above: dict[str, tuple[float, str]] = {}
    for measured in faulty:
        laws = killers.get(measured.subject, ())
        for check, load in measured.loads.items():
            if load > 1 and check.partition("/")[2] in laws:
                above[check] = min(above.get(check, (math.inf, "")), (load, measured.subject))
    found = []
    for check in {**below, **above}:
        load, subject = below.get(check, (0.0, ""))
        effect, fault = above.get(check, (math.inf, ""))
        found.append(Margin(check, 1 / load if load else math.inf, subject, effect, fault))
    return sorted(found, key=lambda margin: (min(margin.correct, margin.faulty), margin.check))
