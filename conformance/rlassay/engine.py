"""The engine: runs one check on one subject and turns whatever happens into one outcome."""

from __future__ import annotations

import time
import traceback
from collections.abc import Collection, Iterator

import numpy as np

from rlassay.check import Check, NotDeclared, Oracle, Trial, expected
from rlassay.comparison import Mismatch
from rlassay.draw import Draw
from rlassay.guest.errors import SubjectRaised
from rlassay.guest.importing import device_hint
from rlassay.record import CheckResult, Failure, Outcome
from rlassay.shrink import shrink
from rlassay.snippet import call_text, inputs_text, snippet
from rlassay.subject import Reachable, Subject, SubjectGone

MOST_TEXT = 4000
"""So many characters of what a subject says, and of what it returned, are kept."""


def run_check(check: Check, subject: Reachable, profile: str | int = "standard", seed: int = 0) -> CheckResult:
    """Run the examples of one check until one fails; the failing one is shrunk.

    How many, `profile` says, which may also be their number.

    Everything the subject raises is its own outcome; everything else that goes wrong is a harness-error.
    """
    started = time.perf_counter()
    absent = not_provided(check, subject.operations)
    if absent is not None:
        return absent
    result = result_of(check, "pass")
    for draw, raised in examples(check, subject, profile, seed):
        result.examples += 1
        if raised is None:
            continue
        if isinstance(raised, NotDeclared):
            result.outcome = "not-declared"
            result.failure = Failure(message=str(raised))
        elif isinstance(raised, Mismatch | SubjectRaised):
            result.outcome = "fail" if isinstance(raised, Mismatch) else "error"
            result.failure = _smallest_failure(check, subject, draw, raised)
        elif isinstance(raised, SubjectGone):
            result.outcome = "timeout" if raised.late else "crash"
            result.failure = Failure(message=f"the process {raised}", case=draw.labels, traceback=raised.last_words)
        else:
            result.outcome = "harness-error"
            lines = "".join(traceback.format_exception(raised))
            result.failure = Failure(message=f"{type(raised).__name__}: {raised}", case=draw.labels, traceback=lines)
        break
    result.seconds = round(time.perf_counter() - started, 4)
    return result


def examples(
    check: Check, subject: Subject, profile: str | int, seed: int, oracle: Oracle = expected
) -> Iterator[tuple[Draw, Exception | None]]:
    """The examples of a check one by one, each with what it raised.

    `Mismatch` where the subject is wrong, `SubjectRaised` where it raised, `SubjectGone` where it is gone,
    `NotDeclared`, anything else where the harness failed, None where it passed.
    """
    for index in range(check.examples_in(profile)):
        draw = Draw(f"{seed}:{check.id}", index)
        yield draw, _run_example(check, subject, draw, Trial(subject, draw, oracle=oracle))


def result_of(check: Check, outcome: Outcome, message: str = "") -> CheckResult:
    """The record line of a check with an outcome and, if there is one, the message of its failure."""
    return CheckResult(
        id=check.id,
        title=check.title,
        operations=list(check.operations),
        claims=list(check.claims),
        kind=check.kind,
        outcome=outcome,
        failure=Failure(message=message) if message else None,
    )


def not_provided(check: Check, operations: Collection[str]) -> CheckResult | None:
    """The result of a check that lacks one of its operations; None where all of them are provided."""
    missing = [name for name in check.operations if name not in operations]
    return result_of(check, "not-provided", f"not provided: {', '.join(missing)}") if missing else None


def _run_example(check: Check, subject: Subject, draw: Draw, trial: Trial | None = None) -> Exception | None:
    """Run an example. Infinities that a subject returns are its failure, not numpy's warning."""
    try:
        with np.errstate(all="ignore"):
            check.function(trial or Trial(subject, draw))
    except Exception as error:  # noqa: BLE001 - whatever happens becomes this check's outcome
        return error
    return None


def _smallest_failure(check: Check, subject: Reachable, draw: Draw, first: Exception) -> Failure:
    def fails(candidate: Draw) -> bool:
        raised = _run_example(check, subject, candidate)
        return type(raised) is type(first) and getattr(raised, "kind", "") == getattr(first, "kind", "")

    smallest = shrink(draw, fails).again()
    trial = Trial(subject, smallest)
    raised = _run_example(check, subject, smallest, trial)
    if not isinstance(raised, Mismatch | SubjectRaised):
        return Failure(message=f"{first} (not reproduced: the subject answers the same call differently)")
    arguments = trial.arguments or {}
    failure = Failure(
        message=_clipped(str(raised)),
        call=call_text(trial.operation, arguments),
        case=smallest.labels,
        inputs=inputs_text(arguments),
        snippet=snippet(
            trial.operation,
            arguments,
            code=subject.code(trial.operation) if trial.operation in subject.operations else "",
            live=trial.live,
            cotangent=trial.cotangent,
            keywords=trial.keywords,
        ),
    )
    if isinstance(raised, SubjectRaised):
        text = str(raised)
        failure.message = f"{trial.operation} raised {_clipped(text)} in {raised.during}{device_hint(text)}"
        failure.traceback = raised.traceback[-MOST_TEXT:]
    else:
        failure.got = _clipped(raised.got)
        failure.expected = raised.expected
    return failure


def _clipped(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}… ({len(text)} characters)"
