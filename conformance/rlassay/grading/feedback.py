"""What a student may see of a run: the one place that redacts.

Visible checks are shown in full. Of hidden ones there is, for each part of the assignment, how many passed and failed,
and nothing else. Every report for students is made from what `for_student` returns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from rlassay.describe import names_something, plain
from rlassay.grading.assignment import Assignment, Part
from rlassay.record import CheckResult, Explanation, Failure, Header, Outcome, Record
from rlassay.verdict import FAILURES, footer

OURS = "rlassay itself failed here; this costs you nothing and staff has been told"
"""What a student reads where the outcome is a harness-error."""

MOST = 10_000
"""A text that is longer is cut."""

FRAME = re.compile(r'  File "(?P<path>.*?)", line \d+')
FOREIGN = re.compile(r"[\\/]rlassay(_guest)?[\\/]|[\\/](site|dist)-packages[\\/]|[\\/]lib[\\/]python3|^<frozen ")
"""Files that are no submission's."""

RAISES = re.compile(r"raises .* on inputs that the contract allows", re.DOTALL)
"""Where an explanation quotes an exception, whose text may hold the inputs of a hidden check."""


@dataclass(frozen=True)
class Hidden:
    """How many hidden checks of a part passed, failed, and could not be judged; `absent` of the failed ones are about
    operations that are not provided."""

    passed: int = 0
    failed: int = 0
    excused: int = 0
    absent: int = 0

    def __bool__(self) -> bool:
        return bool(self.passed or self.failed or self.excused)

    @property
    def outcome(self) -> Outcome:
        """What they amount to, as the outcome of one check."""
        if self.failed:
            return "not-provided" if self.absent == self.failed and not self.passed else "fail"
        return "pass" if self.passed else "harness-error"

    @property
    def text(self) -> str:
        """The counts in words."""
        counted = self.passed + self.failed
        parts = [f"{self.passed} of {counted} hidden check{'s' * (counted != 1)} passed"] if counted else []
        if self.outcome == "not-provided":
            parts.append("not provided")
        if self.excused:
            parts.append(f"{self.excused} hidden check{'s' * (self.excused != 1)} not judged: {OURS}")
        return "; ".join(parts)


@dataclass(frozen=True)
class PartFeedback:
    """One part of the assignment: its visible checks in full, the counts of the others, and, where hints are on, what
    its failing operations behave like."""

    name: str
    visible: tuple[CheckResult, ...]
    hidden: Hidden
    explanations: tuple[Explanation, ...]


@dataclass(frozen=True)
class Feedback:
    """All that a student may see.

    Reports follow the parts of the assignment, which a record does not know, so `parts` has them. `record` is the same
    as a record, for reports that are made from one: its checks are the visible ones and, for each part, one that stands
    for all the hidden ones. It has neither the seed nor any times.
    """

    parts: tuple[PartFeedback, ...]
    record: Record


def for_student(record: Record, assignment: Assignment) -> Feedback:
    """The run as its student may see it."""
    results = {result.id: result for result in record.checks}
    explanations = _explanations(record.explanations) if assignment.hints else {}
    parts: list[PartFeedback] = []
    checks: dict[str, CheckResult] = {}
    for number, part in enumerate(assignment.parts, start=1):
        own = [results[check.id] for check in assignment.part_checks(part) if check.id in results]
        seen = [_visible(result) for result in own if assignment.is_visible(result.id)]
        hidden = _counts(result for result in own if not assignment.is_visible(result.id))
        failing = dict.fromkeys(result.operations[0] for result in own if result.outcome in FAILURES)
        told = tuple(explanations[name] for name in failing if name in explanations)
        parts.append(PartFeedback(shown(part.name), tuple(seen), hidden, told))
        checks |= {result.id: result for result in seen}
        if hidden:
            summary = _summary(f"part {number}/hidden checks", part, hidden, own)
            checks[summary.id] = summary
    operations = dict.fromkeys(explanation.operation for part in parts for explanation in part.explanations)
    kept = list(checks.values())
    redacted = Record(
        header=_header(record.header, assignment, kept),
        checks=kept,
        explanations=[explanations[name] for name in operations],
        footer=footer(kept, [], strict=False) if record.complete else None,
    )
    return Feedback(tuple(parts), redacted)


def shown(text: str) -> str:
    """Text without control characters and of bounded length."""
    return plain(text) if len(text) <= MOST else f"{plain(text[:MOST])} … ({len(text)} characters)"


def _visible(result: CheckResult) -> CheckResult:
    if result.outcome == "harness-error":
        failure: Failure | None = Failure(message=OURS)
    else:
        failure = _failure(result) if result.failure is not None else None
    return msgspec.structs.replace(result, failure=failure, seconds=0.0)


def _failure(result: CheckResult) -> Failure:
    """A failure with all texts cleaned. The last words of a process that is gone may be about any call, so they are
    left out, as is whatever a traceback says about other code."""
    failure = result.failure
    assert failure is not None
    texts = ("message", "call", "got", "expected", "snippet")
    return Failure(
        **{name: shown(getattr(failure, name)) for name in texts},
        case={name: shown(text) for name, text in failure.case.items()},
        inputs={name: shown(text) for name, text in failure.inputs.items()},
        traceback=shown(own_frames(failure.traceback)) if result.outcome == "error" else "",
    )


def own_frames(traceback: str) -> str:
    """A traceback without the frames of files that are no submission's."""
    kept: list[str] = []
    foreign = False
    for line in traceback.split("\n"):
        frame = FRAME.match(line)
        if frame is not None:
            foreign = FOREIGN.search(frame["path"]) is not None
        elif not line.startswith("    "):
            foreign = False
        if not foreign:
            kept.append(line)
    return "\n".join(kept)


def _explanations(explanations: Iterable[Explanation]) -> dict[str, Explanation]:
    return {
        explanation.operation: msgspec.structs.replace(
            explanation,
            text=shown(RAISES.sub("raises an exception on inputs that the contract allows", explanation.text)),
        )
        for explanation in explanations
        if names_something(explanation)
    }


def _counts(results: Iterable[CheckResult]) -> Hidden:
    outcomes = Counter(result.outcome for result in results)
    excused, absent = outcomes.pop("harness-error", 0), outcomes["not-provided"]
    passed = outcomes.pop("pass", 0)
    outcomes.pop("not-declared", 0)
    return Hidden(passed, outcomes.total(), excused, absent)


def _summary(identity: str, part: Part, hidden: Hidden, own: Sequence[CheckResult]) -> CheckResult:
    return CheckResult(
        id=identity,
        title=f"{shown(part.name)}: {hidden.text}",
        operations=list(_operations(own))[:1],
        claims=[],
        kind="conformance",
        outcome=hidden.outcome,
        failure=None if hidden.outcome == "pass" else Failure(message=hidden.text),
    )


def _operations(results: Iterable[CheckResult]) -> Iterator[str]:
    yield from dict.fromkeys(result.operations[0] for result in results)


def _header(header: Header, assignment: Assignment, checks: Sequence[CheckResult]) -> Header:
    """The header without seed, paths and what hangs on hidden checks."""
    return msgspec.structs.replace(
        header,
        target=shown(assignment.title),
        seed=0,
        selected=[name for name in header.selected if any(name in result.operations for result in checks)],
        checks=len(checks),
        available=len(checks),
        expression="",
        notes=[shown(note) for note in header.notes],
    )
