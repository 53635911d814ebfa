"""Robustness findings in short: one line for each, and one line for all the bad inputs that an operation takes."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import shorten

from rlassay.describe import law_of, message
from rlassay.record import CheckResult
from rlassay.verdict import Tally

MOST = 150
"""A finding is cut to so many characters: two lines of a terminal."""

REFUSES = "refuses-"


def finding_lines(operations: Iterable[Tally]) -> list[str]:
    """What is wrong with numbers first, then what should have been refused."""
    tallies = list(operations)
    numeric = [shorten(f"{one.id}: {message(one)}", MOST, placeholder=" …") for t in tallies for one in _others(t)]
    return numeric + [_accepted(tally.operation, refused) for tally in tallies if (refused := _refusals(tally))]


def _others(tally: Tally) -> list[CheckResult]:
    return [result for result in tally.findings if not law_of(result).startswith(REFUSES)]


def _refusals(tally: Tally) -> list[str]:
    """What should be refused, in words."""
    laws = [law_of(result) for result in tally.findings]
    return [law.removeprefix(REFUSES).replace("-", " ") for law in laws if law.startswith(REFUSES)]


def _accepted(operation: str, refused: list[str]) -> str:
    what = "1 bad input is" if len(refused) == 1 else f"{len(refused)} bad inputs are"
    return f"{operation}: {what} not refused with a ValueError that names the argument: {', '.join(refused)}"
