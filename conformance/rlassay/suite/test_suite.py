"""The suite under pytest, one test per check: `pytest --pyargs rlassay.suite --rlassay TARGET`.

A robustness finding is an expected failure unless the run is strict, a check of an operation that is not provided is
skipped, and a known deviation has to fail as listed. Under xdist every worker judges with a process of its own.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rlassay.check import PROFILES, Check
from rlassay.describe import failure_text, message, plain, stale_text
from rlassay.expected import Deviation, ExpectedError, read_expected
from rlassay.guest.errors import TargetError
from rlassay.guest.interfaces import INTERFACES
from rlassay.judge import as_expected
from rlassay.record import CheckResult, Explanation
from rlassay.runner import TIMEOUTS, Runner, Settings
from rlassay.suite import all_checks
from rlassay.verdict import FAILURES, counts
from rlassay_spec.convention import CONVENTIONS


@dataclass
class Judge:
    """The process that this pytest process judges with, and how outcomes count."""

    runner: Runner
    strict: bool
    expected: Mapping[str, Deviation]
    explanations: dict[str, Explanation | None] = field(default_factory=dict)

    def explain(self, result: CheckResult) -> Explanation | None:
        """What the operation behaves like, looked for once."""
        operation = result.operations[0]
        if operation not in self.explanations:
            self.explanations[operation] = self.runner.explain(operation)
        return self.explanations[operation]


JUDGE = pytest.StashKey[Judge]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check; starts what judges them, so that a target that cannot be judged is one error."""
    options = metafunc.config.option
    _require_one_of("--rlassay-interface", options.rlassay_interface, INTERFACES)
    checks = all_checks(options.rlassay_interface)
    metafunc.parametrize("check", [pytest.param(check, id=identity) for identity, check in checks.items()])
    if not options.collectonly:
        metafunc.config.stash[JUDGE] = judge = _judge(options, checks)
        metafunc.config.add_cleanup(judge.runner.close)


def _judge(options: Namespace, checks: Collection[str]) -> Judge:
    if options.rlassay is None:
        text = "what should be judged? Say it with --rlassay: a .py file, a folder, a module or module:object"
        raise pytest.Collector.CollectError(text)
    _require_one_of("--rlassay-profile", options.rlassay_profile, PROFILES)
    _require_one_of("--rlassay-convention", options.rlassay_convention, [None, *CONVENTIONS])
    settings = Settings(
        target=options.rlassay,
        interface=options.rlassay_interface,
        convention=options.rlassay_convention,
        profile=options.rlassay_profile,
        seed=options.rlassay_seed,
        timeout=options.rlassay_timeout or TIMEOUTS[options.rlassay_profile],
    )
    path = options.rlassay_expected
    try:
        expected = read_expected(Path(path), checks) if path is not None else {}
        return Judge(Runner(settings), options.rlassay_strict, expected)
    except (ExpectedError, TargetError) as error:
        raise pytest.Collector.CollectError(plain(str(error))) from error


def _require_one_of(option: str, value: str | None, allowed: Collection[str | None]) -> None:
    if value not in allowed:
        names = ", ".join(name for name in allowed if name is not None)
        raise pytest.Collector.CollectError(f"{option}: is {value!r}, but should be one of {names}")


def test_check(check: Check, request: pytest.FixtureRequest) -> None:
    """The subject passes one check."""
    judge = request.config.stash[JUDGE]
    result = judge.runner.run(check)
    if not as_expected(result, judge.expected.get(check.id)):
        pytest.fail(stale_text(result), pytrace=False)
    if result.outcome == "pass":
        return
    if result.outcome in ("not-provided", "not-declared"):
        pytest.skip(message(result))
    if result.known:
        pytest.xfail(f"known deviation: {result.known}")
    if result.outcome in FAILURES and not counts(result, judge.strict):
        pytest.xfail(f"robustness finding: {message(result)}")
    # Reached after xfail too where pytest runs with --runxfail, which asks for the failure itself.
    explanation = judge.explain(result) if result.kind == "conformance" else None
    pytest.fail(failure_text(result, explanation), pytrace=False)
