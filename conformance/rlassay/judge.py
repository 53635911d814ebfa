"""A run from its plan to the lines of its record."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rlassay import __version__
from rlassay.check import Check
from rlassay.describe import KNOWN_OPERATIONS
from rlassay.expected import Deviation
from rlassay.guest.errors import TargetError
from rlassay.record import SCHEMA, CheckResult, Explanation, Header, Line
from rlassay.runner import Settings, running
from rlassay.verdict import failed, footer
from rlassay.worker import Ready


@dataclass(frozen=True)
class Plan:
    """What a run should do: the target and its settings, the checks, and how their outcomes count.

    `available` is how many checks the whole suite has, `expression` what the checks were selected by.
    """

    settings: Settings
    checks: Sequence[Check]
    available: int
    expression: str = ""
    strict: bool = False
    expected: Mapping[str, Deviation] = field(default_factory=dict)


class Judging(Protocol):
    """Something that runs checks on what it has loaded."""

    ready: Ready

    def run(self, check: Check) -> CheckResult:
        """The outcome of one check."""
        ...

    def explain(self, operation: str) -> Explanation | None:
        """What a failing operation behaves like, if that can be asked."""
        ...


def judge(plan: Plan) -> Generator[Line, None, None]:
    """The lines of the record, each as soon as it is known: header, checks, explanations, footer.

    Raises:
        TargetError: the target cannot be loaded, or provides nothing that the selected checks are about.
    """
    with running(plan.settings) as runner:
        _require_something_to_check(plan, runner.ready.operations)
        yield from lines(plan, runner)


def lines(plan: Plan, runner: Judging) -> Generator[Line, None, None]:
    """The lines of the record that come of running a plan's checks on what a runner has loaded."""
    yield _header(plan, runner.ready)
    results: list[CheckResult] = []
    stale: list[str] = []
    for check in plan.checks:
        result = runner.run(check)
        if not as_expected(result, plan.expected.get(check.id)):
            stale.append(check.id)
        results.append(result)
        yield result
    failing = {result.operations[0]: None for result in results if failed(result) and result.kind == "conformance"}
    for operation in failing:
        explanation = runner.explain(operation)
        if explanation is not None:
            yield explanation
    yield footer(results, stale, plan.strict)


def as_expected(result: CheckResult, deviation: Deviation | None) -> bool:
    """Marks a failure that is listed as known; False where the list says something else than what happened."""
    if deviation is None or result.outcome == "harness-error":
        return True
    if result.outcome != deviation.outcome:
        return False
    result.known = deviation.reason
    return True


def _require_something_to_check(plan: Plan, provided: Sequence[str]) -> None:
    possible = [check for check in plan.checks if set(check.operations) <= set(provided)]
    if not possible:
        wanted = ", ".join(_operations(plan))
        raise TargetError(
            f"{plan.settings.target}: nothing to check: the selected checks are about {wanted}; "
            f"it provides {', '.join(provided)}"
        )
    if not plan.strict and all(check.kind == "robustness" for check in possible):
        raise TargetError("nothing to check: only robustness checks are selected, which count with --strict")


def _operations(plan: Plan) -> list[str]:
    selected = {check.operation for check in plan.checks}
    return [name for name in KNOWN_OPERATIONS if name in selected]


def _header(plan: Plan, ready: Ready) -> Header:
    return Header(
        schema=SCHEMA,
        rlassay=__version__,
        python=ready.python,
        libraries=ready.libraries,
        target=plan.settings.target,
        sha256=ready.sha256,
        interface=plan.settings.interface,
        convention=ready.convention,
        seed=plan.settings.seed,
        profile=plan.settings.profile,
        operations=ready.operations,
        selected=_operations(plan),
        checks=len(plan.checks),
        available=plan.available,
        expression=plan.expression,
        strict=plan.strict,
        notes=ready.notes,
    )
