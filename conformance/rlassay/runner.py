"""The runner: drives a worker process through the checks of a run and survives whatever the subject does to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from rlassay.check import Check
from rlassay.engine import not_provided, result_of
from rlassay.guest.errors import TargetError
from rlassay.identify.finding import Identification
from rlassay.process import Process
from rlassay.record import CheckResult, Explanation, Outcome
from rlassay.subject import SubjectGone
from rlassay.worker import Explain, Identify, Ready, Run, Setup, Unusable

START_SECONDS = 120.0
"""How long loading the target and importing torch may take, at least."""

TIMEOUTS = {"quick": 30.0, "standard": 30.0, "thorough": 300.0}
"""Seconds that one check may take, by profile."""

STRIKES = 2
"""After so many timeouts or crashes of one operation its other checks are not run any more."""


@dataclass(frozen=True)
class Settings:
    """What a run depends on, besides the code."""

    target: str
    interface: str = "own"
    convention: str | None = None
    profile: str = "standard"
    seed: int = 0
    timeout: float = TIMEOUTS["standard"]


class Strikes:
    """Counts the timeouts and crashes of each operation: a few, and no more of its checks are run."""

    def __init__(self) -> None:
        self.outcomes: defaultdict[str, list[Outcome]] = defaultdict(list)

    def count(self, result: CheckResult) -> None:
        """Take note of a result."""
        if result.outcome in ("timeout", "crash"):
            self.outcomes[result.operations[0]].append(result.outcome)

    def any_of(self, operation: str) -> bool:
        """Whether the operation ever hung or crashed."""
        return bool(self.outcomes[operation])

    def out(self, check: Check) -> CheckResult | None:
        """The result of a check that is not run any more; None for one that should be run."""
        outcomes = self.outcomes[check.operation]
        if len(outcomes) < STRIKES:
            return None
        message = f"not run: {check.operation} hung or crashed in {STRIKES} earlier checks"
        return result_of(check, outcomes[-1], message)


class Runner:
    """Runs checks on one target, one at a time, each with its own outcome.

    Raises:
        TargetError: the target cannot be loaded.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.strikes = Strikes()
        self.lost: TargetError | None = None
        self.process: Process | None = None
        self.ready = self._start()

    def _start(self) -> Ready:
        settings = self.settings
        process = Process()
        try:
            answer = process.ask(Setup(**asdict(settings)), max(START_SECONDS, 4 * settings.timeout))
            if isinstance(answer, Unusable):
                raise TargetError(answer.message)
            assert isinstance(answer, Ready)
        except SubjectGone as gone:
            raise TargetError(f"{settings.target}: cannot be loaded: its process {gone}") from gone
        except BaseException:
            process.close()
            raise
        self.process = process
        return answer

    def _worker(self) -> Process:
        """The worker; another one where the last is gone.

        Raises:
            TargetError: the target could be loaded at first, but not again.
        """
        if self.lost is not None:
            raise self.lost
        if self.process is None:
            try:
                self._start()
            except TargetError as error:
                self.lost = error
                raise
        assert self.process is not None
        return self.process

    def run(self, check: Check) -> CheckResult:
        """The outcome of one check."""
        known = not_provided(check, self.ready.operations) or self.strikes.out(check)
        if known is not None:
            return known
        try:
            answer = self._worker().ask(Run(check.id), self.settings.timeout)
        except TargetError as error:
            return result_of(check, "crash", f"not run: the target loaded at first, but not again: {error}")
        except SubjectGone as gone:
            self.process = None
            result = result_of(check, "timeout" if gone.late else "crash", f"the process {gone}")
            self.strikes.count(result)
            assert result.failure is not None
            result.failure.traceback = gone.last_words
            return result
        assert isinstance(answer, CheckResult)
        return answer

    def explain(self, operation: str) -> Explanation | None:
        """What a failing operation behaves like, or None where it hangs or crashes."""
        if self.strikes.any_of(operation):
            return None
        try:
            answer = self._worker().ask(Explain(operation), self.settings.timeout)
        except TargetError:
            return None
        except SubjectGone:
            self.process = None
            return None
        assert isinstance(answer, Explanation)
        return answer

    def identify(self, operation: str) -> Identification:
        """The convention that an operation follows."""
        try:
            answer = self._worker().ask(Identify(operation), self.settings.timeout)
        except TargetError as error:
            return Identification(operation=operation, verdict="no answer", notes=[f"not run: {error}"])
        except SubjectGone as gone:
            self.process = None
            return Identification(operation=operation, verdict="no answer", notes=[f"the process {gone}"])
        assert isinstance(answer, Identification)
        return answer

    def close(self) -> None:
        """End the worker and all that it started."""
        if self.process is not None:
            self.process.close()
            self.process = None


@contextmanager
def running(settings: Settings) -> Iterator[Runner]:
    """A runner that is closed at the end."""
    runner = Runner(settings)
    try:
        yield runner
    finally:
        runner.close()
