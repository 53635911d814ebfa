"""Running the matrix: all subjects, in parallel, and only those that have changed since an earlier run.

The processes start from one that has imported torch and the suite. Rows are written as they come, so a run that is
interrupted goes on where it stopped.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from platform import python_version
from types import FrameType
from typing import IO, TypeVar

import msgspec
import numpy as np
import torch

from rlassay.guest.errors import TargetError
from rlassay.load import Target, load_target
from rlassay.matrix.fingerprint import suite_fingerprint
from rlassay.matrix.rows import Entry, Row, assess, entries, killers
from rlassay.record import write
from rlassay_spec.convention import LECTURE

PLANTED_PROFILE = "quick"
"""Generic faults are run with few examples first: there are hundreds of them, and the first examples see most."""


Task = TypeVar("Task")
Result = TypeVar("Result")


class Start(msgspec.Struct, tag="start", tag_field="type", kw_only=True):
    """What all rows of a matrix depend on; where it differs from an earlier run's, nothing of that is kept."""

    suite: str
    reference: str
    sha256: str
    profile: str
    seed: int
    versions: dict[str, str]


class MatrixError(Exception):
    """The matrix cannot be made, or read back; says why and what to do."""


@dataclass(frozen=True)
class Matrix:
    """The subjects of a matrix and what their rows depend on."""

    start: Start
    entries: dict[str, Entry]

    def row(self, key: str) -> Row:
        """One subject's row, made in this process."""
        entry, start = self.entries[key], self.start
        if entry.form == "generic":
            row = assess(entry, PLANTED_PROFILE, start.seed)
            if killers(row, entry):
                return row
        return assess(entry, start.profile, start.seed)


def plan(reference: str, profile: str, seed: int) -> Matrix:
    """The matrix of a reference: a target that conforms under the lecture convention.

    Raises:
        TargetError: it cannot be loaded, or declares another convention.
    """
    target = load_target(reference)
    if target.convention != LECTURE:
        raise TargetError(f"{reference}: declares another convention; faults are planted under the lectures' alone")
    return Matrix(_start(target, profile, seed), entries(target.functions, target.sha256))


def _start(target: Target, profile: str, seed: int) -> Start:
    versions = {"python": python_version(), "torch": str(torch.__version__), "numpy": np.__version__}
    return Start(
        suite=suite_fingerprint(),
        reference=target.name,
        sha256=target.sha256,
        profile=profile,
        seed=seed,
        versions=versions,
    )


def run(matrix: Matrix, keys: Sequence[str], jobs: int) -> Iterator[Row]:
    """The rows of the named subjects as they are finished.

    Raises:
        MatrixError: a process ended in the middle of a subject.
    """
    return in_parallel(matrix, Matrix.row, keys, jobs)


def in_parallel(
    matrix: Matrix, work: Callable[[Matrix, Task], Result], tasks: Sequence[Task], jobs: int
) -> Iterator[Result]:
    """What a function of the matrix gives for each of the tasks, as they are finished.

    Raises:
        MatrixError: a process ended in the middle of a task.
    """
    if jobs == 1 or len(tasks) == 1:
        _quieten()
        for task in tasks:
            yield _uninterrupted(work, matrix, task)
        return
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([__name__])
    start = matrix.start
    with ProcessPoolExecutor(jobs, context, _prepare, (start.reference, start.profile, start.seed)) as pool:
        waiting = [pool.submit(_do, work, task) for task in tasks]
        try:
            for done in as_completed(waiting):
                yield done.result()
        except BrokenProcessPool as error:
            raise MatrixError("a process ended in the middle of a subject; --jobs 1 shows of which") from error
        finally:
            pool.shutdown(cancel_futures=True)


def _uninterrupted(work: Callable[[Matrix, Task], Result], matrix: Matrix, task: Task) -> Result:
    """What a function gives for a task. Ctrl-C in a subject's call would count as what the subject raised, so that
    nothing is kept of a task that it fell into.

    Raises:
        KeyboardInterrupt: there was one.
    """
    if threading.current_thread() is not threading.main_thread():
        return work(matrix, task)
    interrupted = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        result = work(matrix, task)
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted.is_set():
        raise KeyboardInterrupt
    return result


_MATRIX: Matrix | None = None


def _prepare(reference: str, profile: str, seed: int) -> None:
    global _MATRIX
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _quieten()
    _MATRIX = plan(reference, profile, seed)


def _end_with_parent() -> None:
    """A run that is killed leaves no processes behind."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _quieten() -> None:
    """One thread each, and none of the warnings that careless variants cause."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


def _do(work: Callable[[Matrix, Task], Result], task: Task) -> Result:
    assert _MATRIX is not None
    return work(_MATRIX, task)


def default_jobs() -> int:
    """As many processes as there are processors for this one."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_rows(path: Path, matrix: Matrix) -> dict[str, Row]:
    """The rows of an earlier run that still hold: the same start, and subjects that have not changed.

    Raises:
        MatrixError: the file is not the record of a matrix.
    """
    if not path.exists():
        return {}
    try:
        first, *lines = path.read_bytes().splitlines() or [b""]
        if not first:
            return {}
        if msgspec.json.decode(first, type=Start) != matrix.start:
            return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MatrixError(f"{path}: is not the record of a matrix: {error}; remove it or name another file") from error
    rows = filter(None, map(_row_of, lines))
    return {row.subject: row for row in rows if _holds(row, matrix)}


def _row_of(line: bytes) -> Row | None:
    """The row of a line; None where it is cut off or broken, so that the subject runs again."""
    try:
        return msgspec.json.decode(line, type=Row)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


@contextmanager
def continued(path: Path, matrix: Matrix, kept: Mapping[str, Row]) -> Iterator[IO[bytes]]:
    """The record, opened to go on after the rows that still hold; the old file stays until those are safe."""
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as stream:
        for line in (matrix.start, *kept.values()):
            write(stream, line)
    fresh.replace(path)
    with path.open("ab") as stream:
        yield stream


def _holds(row: Row, matrix: Matrix) -> bool:
    entry = matrix.entries.get(row.subject)
    return entry is not None and entry.fingerprint == row.fingerprint
