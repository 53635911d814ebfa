"""The worker process: loads the target and runs checks one by one as its parent asks.

A check that never returns or kills its process costs the worker, not the run: the parent starts another one and goes
on (`rlassay.runner`). Requests come as JSON lines on standard input, answers leave as JSON lines on what was standard
output; the subject's own prints are discarded. (This guards a run against accidents. Untrusted submissions need the
isolation of grading.)

A worker never outlives its run. A thread waits for the end of the input, which is the end of the parent, and then
kills the worker with all that it started; where the subject keeps that thread from running, a timer ends the worker.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from platform import python_version
from typing import IO, TYPE_CHECKING

import msgspec
import numpy as np

from rlassay.engine import run_check
from rlassay.guest.errors import TargetError
from rlassay.guest.load import require_source
from rlassay.identify.finding import Identification
from rlassay.load import load_target
from rlassay.record import UNEXPLAINED, CheckResult, Explanation, encode

if TYPE_CHECKING:
    from rlassay.torch_subject import TorchSubject

SPARE_SECONDS = 10.0
"""How much longer than its time limit a request may keep a worker whose parent is gone."""


class Setup(msgspec.Struct, tag="setup"):
    """First request: what to load and under which settings."""

    target: str
    interface: str
    convention: str | None
    profile: str
    seed: int
    timeout: float


class Run(msgspec.Struct, tag="run"):
    """Run one check."""

    check: str


class Explain(msgspec.Struct, tag="explain"):
    """Say what a failing operation behaves like."""

    operation: str


class Identify(msgspec.Struct, tag="identify"):
    """Say what convention an operation follows."""

    operation: str


class Ready(msgspec.Struct, tag="ready", tag_field="type"):
    """Answer to a setup that worked."""

    operations: list[str]
    convention: dict[str, str | int | float | None]
    sha256: str
    python: str
    libraries: dict[str, str]
    notes: list[str] = []


class Unusable(msgspec.Struct, tag="unusable", tag_field="type"):
    """Answer to a setup that did not: the message of the TargetError."""

    message: str


Request = Setup | Run | Explain | Identify
Answer = Ready | Unusable | CheckResult | Explanation | Identification


def serve(requests: Iterator[bytes], answers: IO[bytes]) -> None:
    """Answer requests until the input ends.

    Torch is imported before the target, beside which there may be a file called random.py. What can be told without
    running the target is told before that takes its seconds.
    """

    def answer(message: Answer) -> None:
        answers.write(encode(message))
        answers.flush()

    decoder = msgspec.json.Decoder(Request)
    setup = decoder.decode(next(requests))
    assert isinstance(setup, Setup)
    try:
        require_source(setup.target)
        import torch

        from rlassay.guest.torch_call import undo_global_settings
        from rlassay.suite import all_checks
        from rlassay.torch_subject import TorchSubject

        target = load_target(setup.target, setup.interface, setup.convention)
    except TargetError as error:
        answer(Unusable(str(error)))
        return
    undo_global_settings()
    subject = TorchSubject(target.functions, target.name, target.convention, target.code)
    checks = all_checks(setup.interface)
    libraries = {"torch": str(torch.__version__), "numpy": np.__version__}
    answer(
        Ready(
            sorted(subject.operations),
            asdict(subject.convention),
            target.sha256,
            python_version(),
            libraries,
            target.notes,
        )
    )
    for line in requests:
        request = decoder.decode(line)
        _reopen_output()
        faulthandler.dump_traceback_later(setup.timeout + SPARE_SECONDS, exit=True)
        if isinstance(request, Run):
            answer(run_check(checks[request.check], subject, setup.profile, setup.seed))
        elif isinstance(request, Explain):
            answer(_explained(request.operation, subject))
        elif isinstance(request, Identify):
            answer(_identified(request.operation, subject))
        faulthandler.cancel_dump_traceback_later()


def _explained(operation: str, subject: TorchSubject) -> Explanation:
    """The explanation; one that our search for it breaks on is lost without taking the verdict with it."""
    from rlassay.explain import explain

    try:
        return explain(operation, subject)
    except Exception as error:  # noqa: BLE001 - a verdict without an explanation is still a verdict
        return Explanation(operation=operation, text=f"{UNEXPLAINED}: the search for one failed: {error!r}")


def _identified(operation: str, subject: TorchSubject) -> Identification:
    from rlassay.identify import identify

    return identify(operation, subject)


def _reopen_output() -> None:
    """One operation that closes standard output must not make the prints of another one fail."""
    if getattr(sys.stdout, "closed", sys.stdout is None):
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream, read by a thread that ends this process when the stream ends."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        _end_with_children()

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield lines.get()


def _end_with_children() -> None:
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _leave_no_core_files() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def main() -> None:
    """Serve on the inherited standard streams, with the subject's own output silenced.

    Standard error stays open for the last words of a crash; the parent keeps the end of it.
    """
    answers = os.fdopen(os.dup(1), "wb")
    requests = os.fdopen(os.dup(0), "rb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    _leave_no_core_files()
    faulthandler.enable(all_threads=False)
    serve(_lines(requests), answers)


if __name__ == "__main__":
    main()
