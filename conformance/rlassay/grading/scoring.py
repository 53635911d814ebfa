"""Marks: what the outcomes of the checks earn, in exact fractions, and what being late costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from rlassay.describe import many
from rlassay.grading.assignment import Assignment, Deadline, Part
from rlassay.grading.points import percent_text
from rlassay.record import CheckResult

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Penalty:
    """The share of the points that being late costs, why, as the student may read it, and what staff should look at."""

    share: Fraction = Fraction()
    sentence: str = ""
    alert: str = ""


@dataclass(frozen=True)
class PartMarks:
    """What a part earned. Excused checks do not count; `provided` is whether any of its operations was handed in."""

    part: Part
    earned: Fraction
    passed: int
    failed: int
    excused: int
    provided: bool


@dataclass(frozen=True)
class Marks:
    """The marks of a submission: `points` is the sum of what the parts earned, less the penalty."""

    parts: tuple[PartMarks, ...]
    penalty: Penalty
    alerts: tuple[str, ...]

    @property
    def earned(self) -> Fraction:
        """What the parts earned together."""
        return sum((part.earned for part in self.parts), Fraction())

    @property
    def points(self) -> Fraction:
        """What is left of that after the penalty."""
        return self.earned * (1 - self.penalty.share)


def marks(assignment: Assignment, results: Sequence[CheckResult], late: Penalty) -> Marks:
    """The marks that the results of an assignment's checks amount to.

    Only a pass earns. A check in which rlassay failed is excused, which is an alert, and so is one that asks about what
    the convention leaves open. A part of which nothing is left to count earns its points, which is an alert too.

    Raises:
        ValueError: a check that a part needs has no result, or two: marks from that would be wrong.
    """
    found = {result.id: result for result in results}
    if len(found) < len(results):
        raise ValueError("a check has two results; marks need exactly one of each")
    alerts: list[str] = []
    parts = tuple(_part_marks(part, _results(assignment, part, found), alerts) for part in assignment.parts)
    broken = [check.id for check in assignment.checks() if found[check.id].outcome == "harness-error"]
    if broken:
        alerts.insert(0, f"rlassay itself failed in {', '.join(broken)}, which cost nothing; grade again, or by hand")
    if late.alert:
        alerts.append(late.alert)
    return Marks(parts, late, tuple(alerts))


def _results(assignment: Assignment, part: Part, found: Mapping[str, CheckResult]) -> list[CheckResult]:
    missing = [check.id for check in assignment.part_checks(part) if check.id not in found]
    if missing:
        raise ValueError(f"{', '.join(missing)} has no result; marks need exactly one of each check")
    return [found[check.id] for check in assignment.part_checks(part)]


def _part_marks(part: Part, results: Sequence[CheckResult], alerts: list[str]) -> PartMarks:
    counted = [result for result in results if result.outcome not in ("harness-error", "not-declared")]
    passed = sum(result.outcome == "pass" for result in counted)
    if not counted:
        alerts.append(
            f"{part.name}: none of its {many(len(results), 'check')} could be judged, so its points are given"
        )
        share = Fraction(1)
    elif part.partial == "share":
        share = Fraction(passed, len(counted))
    else:
        share = Fraction(passed == len(counted))
    return PartMarks(
        part=part,
        earned=part.points * share,
        passed=passed,
        failed=len(counted) - passed,
        excused=len(results) - len(counted),
        provided=not counted or any(result.outcome != "not-provided" for result in counted),
    )


def late_penalty(deadline: Deadline | None, submitted: datetime | None, marked_late: bool | None) -> Penalty:
    """What it costs to have handed in then; `marked_late` is what the platform says, if it says anything.

    A known time decides alone. Days are counted from the end of the grace, begun ones in full.

    Raises:
        ValueError: the time of submission has no offset from UTC.
    """
    if deadline is None:
        return Penalty()
    if submitted is None:
        return _without_time(deadline, marked_late)
    if submitted.tzinfo is None:
        raise ValueError(f"submitted is {submitted.isoformat()}, but should have an offset from UTC")
    after = submitted - deadline.due
    days = max(0, -((deadline.grace - after) // DAY))
    if not days:
        early = "the platform marks it late, but its time is before the deadline; no points are taken off"
        return Penalty(alert=early if marked_late and after <= timedelta() else "")
    alert = "its time is after the deadline, but the platform does not mark it late: is there an extension?"
    sentence = f"Handed in {_duration(after)} after the deadline ({due_text(deadline)})"
    return _late(deadline, days, sentence, alert if marked_late is False else "")


def _without_time(deadline: Deadline, marked_late: bool | None) -> Penalty:
    if not marked_late:
        return Penalty(
            sentence="When it was handed in is not known, and it is not marked late: no points are taken off."
        )
    alert = "the platform marks it late, but not by how much; "
    alert += "it counts as refused" if deadline.per_day is None else "it counts as one day late"
    return _late(deadline, 1, "Marked late where it was handed in", alert)


def _late(deadline: Deadline, days: int, sentence: str, alert: str) -> Penalty:
    if deadline.per_day is None:
        return Penalty(Fraction(1), f"{sentence}: late submissions earn no points.", alert)
    if days > deadline.days:
        until = f"after {many(deadline.days, 'day')} a submission earns no points"
        return Penalty(Fraction(1), f"{sentence}: {until}.", alert)
    share = min(Fraction(1), days * deadline.per_day)
    return Penalty(
        share,
        f"{sentence}: {many(days, 'begun day')} cost{'s' if days == 1 else ''} {percent_text(share)} of the points.",
        alert,
    )


def due_text(deadline: Deadline) -> str:
    """When to hand in, to the minute, with the offset from UTC."""
    return deadline.due.isoformat(sep=" ", timespec="minutes")


def _duration(length: timedelta) -> str:
    minutes = -(-length // timedelta(minutes=1))
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    return " ".join(f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (rest, "min")) if n)
