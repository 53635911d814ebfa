"""An assignment: what is asked for, by which rules it is judged, and what each part is worth."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from rlassay.check import Check
from rlassay.suite import all_checks
from rlassay_spec.convention import Convention

LEAST_SECRET = 16
"""So many characters a secret has at least."""


@dataclass(frozen=True)
class Part:
    """One part of an assignment: all conformance checks of an operation or of a claim.

    `partial` says whether all of them must pass for the points, or the share that passes earns its share. `visible` is
    which of them a student sees in full: all, none, or those of some laws.
    """

    name: str
    points: Fraction
    operation: str = ""
    claim: str = ""
    partial: Literal["all", "share"] = "all"
    visible: bool | tuple[str, ...] = False

    def covers(self, check: Check) -> bool:
        """Whether the check counts for this part."""
        if check.kind != "conformance":
            return False
        return check.operation == self.operation if self.operation else self.claim in check.claims

    def shows(self, check: Check) -> bool:
        """Whether this part lets students see the check in full."""
        seen = self.visible if isinstance(self.visible, bool) else check.law in self.visible
        return seen and self.covers(check)


@dataclass(frozen=True)
class Limits:
    """What a submission may use: seconds for one call, for loading, in all, and of CPU time; bytes of memory beyond
    those of the process that it is started from, of its /tmp, and unpacked; files."""

    call: float = 10.0
    load: float = 60.0
    submission: float = 300.0
    cpu: int = 300
    memory: int = 2**30
    tmp: int = 64 * 2**20
    unpacked: int = 200 * 2**20
    files: int = 2000


@dataclass(frozen=True)
class Deadline:
    """When to hand in, and what being late costs: the share `per_day` of the points for each day that has begun, all of
    them after so many `days`, or all at once where `per_day` is None. Lateness begins when `grace` ends."""

    due: datetime
    grace: timedelta = timedelta()
    per_day: Fraction | None = None
    days: int = 0


class Secret:
    """What the seeds are derived from. It never shows its text."""

    __slots__ = ("_key",)

    def __init__(self, text: str) -> None:
        self._key = text.encode()

    def __repr__(self) -> str:
        return "Secret(…)"

    def seed(self, submission_id: str) -> int:
        """The first 8 bytes, big-endian, of HMAC-SHA256(secret, id)."""
        message = submission_id.encode("utf-8", "surrogatepass")
        return int.from_bytes(hmac.digest(self._key, message, hashlib.sha256)[:8], "big")


@dataclass(frozen=True)
class Assignment:
    """An assignment as its file describes it, with every default filled in.

    `sha256` identifies what the file says but for the secret, so that it may be written beside a mark. `examples` is
    how many a check gets. `python` is empty for the grader's own. `files` are the assignment's own, the secret's too.
    """

    path: Path
    title: str
    secret: Secret
    sha256: str
    convention: Convention
    examples: int
    parts: tuple[Part, ...]
    interface: str = "own"
    profile: str = "standard"
    hints: bool = True
    limits: Limits = Limits()
    python: str = ""
    stubs: tuple[str, ...] = ()
    deadline: Deadline | None = None
    files: tuple[Path, ...] = ()

    @property
    def maximum(self) -> Fraction:
        """The points of all parts."""
        return sum((part.points for part in self.parts), Fraction())

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that the parts' checks call, in the suite's order."""
        return tuple(dict.fromkeys(name for check in self.checks() for name in check.operations))

    def checks(self) -> tuple[Check, ...]:
        """The checks that any part needs, each once, in the suite's order."""
        needed = {check.id for part in self.parts for check in self.part_checks(part)}
        return tuple(check for check in suite(self.interface).values() if check.id in needed)

    def part_checks(self, part: Part) -> tuple[Check, ...]:
        """The checks that count for a part, in the suite's order."""
        return _checks(part, self.interface)

    def is_visible(self, check_id: str) -> bool:
        """Whether students see the check in full: a part that it counts for says so."""
        check = suite(self.interface).get(check_id)
        return check is not None and any(part.shows(check) for part in self.parts)


@lru_cache(maxsize=256)
def _checks(part: Part, interface: str) -> tuple[Check, ...]:
    return tuple(check for check in suite(interface).values() if part.covers(check))


@cache
def suite(interface: str) -> Mapping[str, Check]:
    """Every check by id that can be asked under an interface."""
    return all_checks(interface)


def seed_of(assignment: Assignment, submission_id: str, digest: str = "") -> int:
    """The seed of a submission, which whoever does not have the secret cannot foresee: see `Secret.seed`.

    With the hash of what was handed in, it is that of the visible checks, which each version gets anew.
    """
    return assignment.secret.seed(f"{submission_id}/{digest}" if digest else submission_id)
