"""What changed between two gradings of the same submissions, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import msgspec

from rlassay.grading.feedback import shown
from rlassay.grading.grade import Grade, PartGrade
from rlassay.grading.points import percent_text, points_text
from rlassay.grading.store import Run, grades, read_run
from rlassay.record import Header, Record, RecordError, read_record

UNSTEADY = (
    "nothing that a grade depends on changed: the submission answers differently from run to run, or the machine was "
    "too slow for it"
)


class Change(msgspec.Struct, kw_only=True):
    """One submission whose grade or whose checks are not what they were: what changed, and why."""

    key: str
    id: str
    name: str
    before: str
    after: str
    what: list[str]
    why: list[str]

    def lines(self) -> Iterator[str]:
        """The change as text."""
        who = f"{self.name} ({self.id})" if self.name else self.id
        yield f"{who}: {self.before} → {self.after}"
        yield from (f"  {what}" for what in self.what)
        yield from (f"  because {why}" for why in self.why)


def changes(old: Path, new: Path) -> list[Change]:
    """The submissions that are not graded as before, by key.

    Raises:
        StoreError: one of the folders holds no results, or a grade that cannot be read.
    """
    before = {grade.key: grade for grade in grades(old)}
    why_all = list(_run_reasons(read_run(old), read_run(new)))
    found: list[Change] = []
    for grade in grades(new):
        was = before.pop(grade.key, None)
        if was is None:
            found.append(_change(grade, "not there", _short(grade), [], ["it is new in the second folder"]))
            continue
        records = _record(old, was), _record(new, grade)
        what = [*_grade_changes(was, grade), *_check_changes(*records)]
        if what:
            why = [*why_all, *_reasons(was, grade, *records)] or [UNSTEADY]
            found.append(_change(grade, _short(was), _short(grade), what, why))
    for was in before.values():
        found.append(_change(was, _short(was), "not there", [], ["it is missing in the second folder"]))
    return sorted(found, key=lambda change: change.key)


def changes_json(found: Sequence[Change]) -> bytes:
    """The changes as JSON."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def _change(grade: Grade, before: str, after: str, what: list[str], why: list[str]) -> Change:
    what, why = ([_line(text) for text in texts] for texts in (what, why))
    return Change(
        key=grade.key, id=_line(grade.id), name=_line(grade.name), before=before, after=after, what=what, why=why
    )


def _line(text: str) -> str:
    return shown(text).replace("\n", " ")


def _short(grade: Grade) -> str:
    if grade.status == "failed":
        return "not graded"
    points = f"{points_text(grade.points)} of {points_text(grade.maximum)}"
    return points if grade.status == "graded" else f"{points}, for review"


def _record(folder: Path, grade: Grade) -> Record | None:
    try:
        return read_record(folder / "submissions" / grade.key / "record.ndjson")
    except RecordError:
        return None


def _run_reasons(old: Run, new: Run) -> Iterator[str]:
    """What changed for the whole class."""
    if old.assignment != new.assignment:
        yield "the assignment changed"
    if old.rlassay != new.rlassay:
        yield f"rlassay {old.rlassay} graded before, {new.rlassay} now"
    if old.level != new.level:
        yield f"the level of isolation was {old.level}, and is {new.level} now"


def _reasons(was: Grade, grade: Grade, old: Record | None, new: Record | None) -> Iterator[str]:
    """What changed for one submission."""
    if was.sha256 != grade.sha256:
        yield f"its code changed (sha256 {was.sha256[:12] or 'unknown'} before, {grade.sha256[:12] or 'unknown'} now)"
    if was.penalty != grade.penalty or was.lateness != grade.lateness:
        costs = [f"{percent_text(one.penalty)} ({one.lateness or 'in time'})" for one in (was, grade)]
        yield f"being late costs {costs[1]} now, {costs[0]} before"
    if was.how != grade.how:
        yield f"its {was.how} were judged before, its {grade.how} now".replace("its nothing were", "nothing was")
    if "failed" in (was.status, grade.status) and was.status != grade.status:
        yield f"rlassay could not grade it {'now' if grade.status == 'failed' else 'before'}"
    if old is not None and new is not None:
        yield from _settings(old.header, new.header)


def _settings(old: Header, new: Header) -> Iterator[str]:
    for name in ("python", "libraries", "interface", "convention", "profile", "seed"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield "the seed changed" if name == "seed" else f"{name}: {_text(before)} before, {_text(after)} now"


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    return str(value)


def _grade_changes(was: Grade, grade: Grade) -> Iterator[str]:
    for name in ("points", "maximum"):
        before, after = getattr(was, name), getattr(grade, name)
        if before != after and "failed" not in (was.status, grade.status):
            yield f"{name}: {points_text(before)} → {points_text(after)}"
    if was.status != grade.status:
        yield f"status: {was.status} → {grade.status}"
    for place, (old, new) in enumerate(zip_longest(was.parts, grade.parts), start=1):
        name = (new or old or PartGrade(name="", points="0", earned="0", passed=0, failed=0)).name
        before, after = _part(old), _part(new)
        if before != after:
            yield f"part {place}, {name}: {before} → {after}"


def _part(part: PartGrade | None) -> str:
    return f"{points_text(part.earned)} of {points_text(part.points)}" if part is not None else "not there"


def _check_changes(old: Record | None, new: Record | None) -> Iterator[str]:
    before = {result.id: result.outcome for result in old.checks} if old is not None else {}
    after = {result.id: result.outcome for result in new.checks} if new is not None else {}
    for identity in dict.fromkeys([*before, *after]):
        was, now = before.get(identity, "not asked"), after.get(identity, "not asked")
        if was != now:
            yield f"check {identity}: {was} → {now}"
