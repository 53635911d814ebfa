"""Many jobs on an executor: a bounded number at a time, each with its own outcome, none lost when a worker dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

TRIES = 3
"""So often a job may be begun on workers that die before it is given up."""


@dataclass(frozen=True)
class Done(Generic[Job, Result]):
    """A job and what came of it: a result, or the exception that stands for one."""

    job: Job
    result: Result | None = None
    error: BaseException | None = None


def run(
    jobs: Iterable[Job], work: Callable[[Job], Result], start: Callable[[], Executor], workers: int
) -> Generator[Done[Job, Result], None, None]:
    """The jobs' outcomes as they come, on an executor that `start` gives, and gives again when its workers die.

    A dying worker takes jobs with it that were not at fault. All of them are tried again, first of all and one at a
    time, so that only a job that kills its worker each time is given up.

    Raises:
        CancelledError: the executor has given up what it was at.
    """
    fresh = ((job, 0) for job in jobs)
    again: deque[tuple[Job, int]] = deque()
    running: dict[Future[Result], tuple[Job, int]] = {}
    executor = start()
    try:
        while True:
            alone = bool(again) or any(tries > 1 for _, tries in running.values())
            broken = False
            while len(running) < (1 if alone else 2 * workers) and not broken:
                entry = again.popleft() if again else next(fresh, None)
                if entry is None:
                    break
                job, tries = entry
                try:
                    running[executor.submit(work, job)] = (job, tries + 1)
                except BrokenExecutor:
                    again.appendleft(entry)
                    broken = True
            if not running and not broken:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            if broken or any(isinstance(future.exception(), BrokenExecutor) for future in finished):
                broken = True
                finished, _ = wait(running)
            for future in finished:
                job, tries = running.pop(future)
                error = future.exception()
                if isinstance(error, BrokenExecutor) and tries < TRIES:
                    again.append((job, tries))
                else:
                    yield Done(job, None if error else future.result(), error)
            if broken:
                end(executor)
                executor = start()
    finally:
        for future in running:
            future.cancel()
        end(executor)


class Local(ProcessPoolExecutor):
    """Processes on this machine, which end with the one that made them; what they leave in their /tmp is removed then.

    Ctrl-C is for the process that made them.
    """

    def __init__(self, workers: int) -> None:
        self.scratch = tempfile.TemporaryDirectory(prefix="rlassay-", ignore_cleanup_errors=True)
        os.chmod(self.scratch.name, 0o711)
        context = multiprocessing.get_context("spawn")
        super().__init__(workers, mp_context=context, initializer=_begin, initargs=(self.scratch.name,))

    def end(self) -> None:
        """End them at once, whatever they are at."""
        processes = dict(self._processes or {})
        self.shutdown(wait=False, cancel_futures=True)
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.join()
        self.scratch.cleanup()


def local(workers: int) -> Executor:
    """So many processes on this machine."""
    return Local(workers)


def _begin(scratch: str) -> None:
    """What a process does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    tempfile.tempdir = scratch


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def end(executor: Executor) -> None:
    """End an executor without waiting for what it is at."""
    if isinstance(executor, Local):
        executor.end()
    else:
        executor.shutdown(wait=False)
