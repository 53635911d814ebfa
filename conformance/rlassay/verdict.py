"""What the outcomes of a run amount to: whether the subject conforms, whether it is robust, and the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rlassay.describe import KNOWN_OPERATIONS
from rlassay.record import CheckResult, Footer, Record

FAILURES = frozenset({"fail", "error", "timeout", "crash"})
"""Outcomes that say something against the subject."""

CONFORMS, DOES_NOT_CONFORM, NOTHING_TO_CHECK, HARNESS_FAILED = range(4)
"""Exit codes of a run."""


def ran(result: CheckResult) -> bool:
    """Whether the check came to a judgement of the subject, for or against it."""
    return result.outcome == "pass" or result.outcome in FAILURES


def failed(result: CheckResult) -> bool:
    """Whether the check speaks against the subject and is not listed as a known deviation."""
    return result.outcome in FAILURES and not result.known


def counts(result: CheckResult, strict: bool) -> bool:
    """Whether the check decides the exit code: every conformance check does, the others only in a strict run."""
    return strict or result.kind == "conformance"


def footer(checks: Sequence[CheckResult], stale: Sequence[str], strict: bool) -> Footer:
    """The end of a run, from its checks and the ids of the known deviations that did not come as listed."""
    return Footer(
        outcomes=dict(sorted(Counter(result.outcome for result in checks).items())),
        conforms=_holds(result for result in checks if result.kind == "conformance"),
        robust=_holds(result for result in checks if result.kind == "robustness"),
        exit_code=_exit_code(checks, stale, strict),
        stale=list(stale),
    )


def _holds(checks: Iterable[CheckResult]) -> bool:
    judged = [result for result in checks if ran(result) or result.outcome == "harness-error"]
    return bool(judged) and not any(failed(result) or result.outcome == "harness-error" for result in judged)


def _exit_code(checks: Sequence[CheckResult], stale: Sequence[str], strict: bool) -> int:
    if any(result.outcome == "harness-error" for result in checks):
        return HARNESS_FAILED
    counted = [result for result in checks if counts(result, strict) and ran(result)]
    if not counted:
        return NOTHING_TO_CHECK
    return DOES_NOT_CONFORM if stale or any(map(failed, counted)) else CONFORMS


@dataclass
class Tally:
    """The checks of one operation that came to a judgement, by what they say."""

    operation: str
    ran: int = 0
    passed: int = 0
    failures: list[CheckResult] = field(default_factory=list)
    findings: list[CheckResult] = field(default_factory=list)
    known: list[CheckResult] = field(default_factory=list)


def tallies(record: Record) -> list[Tally]:
    """One tally for each operation that was judged, in the order of the table of operations.

    `ran`, `passed` and `failures` are about the checks that count, `findings` are the failed ones that do not.
    """
    found: dict[str, Tally] = {}
    for result in record.checks:
        if not ran(result):
            continue
        tally = found.setdefault(result.operations[0], Tally(result.operations[0]))
        counted = counts(result, record.header.strict)
        tally.ran += counted
        tally.passed += counted and result.outcome == "pass"
        if result.known:
            tally.known.append(result)
        elif failed(result):
            (tally.failures if counted else tally.findings).append(result)
    order = {name: place for place, name in enumerate(KNOWN_OPERATIONS)}
    return sorted(found.values(), key=lambda tally: order.get(tally.operation, len(order)))
