"""The runner: drives a worker process through the checks of a run and survives whatever the subject does to it."""

from __future__ import annotations

import queue
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import msgspec

from rlassay.check import Check
from rlassay.record import CheckResult, Explanation, Failure
from rlassay.subject import TargetError
from rlassay.worker import Answer, Explain, Ready, Request, Run, Setup, Unusable

START_SECONDS = 300.0
"""How long importing torch and the target may take."""

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
    timeout: float = 30.0


class Gone(Exception):
    """The worker does not answer: it died (with an exit status) or ran out of time (without)."""

    def __init__(self, status: int | None, stderr: str = "") -> None:
        super().__init__(f"exit status {status}" if status is not None else "no answer in time")
        self.status = status
        self.stderr = stderr


class Process:
    """One worker process and the thread that reads its answers.

    Raises:
        TargetError: the target cannot be loaded in it.
    """

    def __init__(self, settings: Settings) -> None:
        self.stderr: IO[bytes] = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rlassay.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr
        )
        self.answers: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        setup = Setup(settings.target, settings.interface, settings.convention, settings.profile, settings.seed)
        try:
            answer = self.ask(setup, START_SECONDS)
        except Gone as gone:
            raise TargetError(_start_failure(settings.target, gone)) from gone
        if isinstance(answer, Unusable):
            self.close()
            raise TargetError(answer.message)
        assert isinstance(answer, Ready)
        self.ready = answer

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(b"")

    def ask(self, request: Request, seconds: float) -> Answer:
        """Send a request and wait for its answer.

        Raises:
            Gone: the worker died or did not answer in time.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(msgspec.json.encode(request) + b"\n")
            self.process.stdin.flush()
            line = self.answers.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise Gone(None) from None
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            status = self.process.wait()
            raise Gone(status, self._last_words())
        return msgspec.json.decode(line, type=Answer)  # type: ignore[arg-type]

    def _last_words(self) -> str:
        self.stderr.seek(0)
        return self.stderr.read()[-2000:].decode(errors="replace")

    def close(self) -> None:
        """Kill the worker."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.stderr):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass


class Runner:
    """Runs checks on one target, one at a time, each with its own outcome.

    Raises:
        TargetError: the target cannot be loaded.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.strikes: Counter[str] = Counter()
        self.process: Process | None = Process(settings)
        self.ready = self.process.ready

    def _started(self) -> Process:
        if self.process is None:
            self.process = Process(self.settings)
        return self.process

    def run(self, check: Check) -> CheckResult:
        """The outcome of one check."""
        result = CheckResult(
            id=check.id,
            title=check.title,
            operations=list(check.operations),
            claims=list(check.claims),
            kind=check.kind,
            outcome="timeout",
        )
        if self.strikes[check.operation] >= STRIKES:
            result.failure = Failure(message=f"not run: {check.operation} hung or crashed in {STRIKES} earlier checks")
            return result
        try:
            answer = self._started().ask(Run(check.id), self.settings.timeout)
        except Gone as gone:
            self.process = None
            self.strikes[check.operation] += 1
            if gone.status is None:
                result.failure = Failure(message=f"no answer within {self.settings.timeout:g} s; the call hangs")
            else:
                result.outcome = "crash"
                message = f"the process died with exit status {gone.status}"
                result.failure = Failure(message=message, traceback=gone.stderr)
            return result
        assert isinstance(answer, CheckResult)
        return answer

    def explain(self, operation: str) -> Explanation | None:
        """What a failing operation behaves like, or None where it hangs or crashes."""
        if self.strikes[operation]:
            return None
        try:
            answer = self._started().ask(Explain(operation), self.settings.timeout)
        except Gone:
            self.process = None
            return None
        assert isinstance(answer, Explanation)
        return answer

    def close(self) -> None:
        """End the worker."""
        if self.process is not None:
            self.process.close()
            self.process = None


def _start_failure(target: str, gone: Gone) -> str:
    if gone.status is None:
        return f"{target}: importing it takes longer than {START_SECONDS:g} s"
    last = gone.stderr.strip().splitlines()[-1:] or ["no message"]
    return f"{target}: the process that imports it died with exit status {gone.status}: {last[0]}"


@contextmanager
def running(settings: Settings) -> Iterator[Runner]:
    """A runner that is closed at the end."""
    runner = Runner(settings)
    try:
        yield runner
    finally:
        runner.close()
