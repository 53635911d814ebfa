"""Many jobs on processes: each has one outcome, whatever happens to the process that works on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from rlassay.grading.batch import TRIES, Done, Local, local, run
from tests.conformance.cli_support import alive, wait_for


def double(job: int) -> int:
    return 2 * job


def refuse_odd(job: int) -> int:
    if job % 2:
        raise ValueError(f"{job} is odd")
    return job


def exit_at(killers: tuple[int, ...], folder: Path, job: int) -> int:
    """End the process where the job is a killer; note each beginning."""
    with (folder / str(job)).open("a") as stream:
        stream.write(".")
    if job in killers:
        os._exit(3)
    return job


def exit_once(folder: Path, job: int) -> int:
    """End the process the first time that any job is begun."""
    try:
        (folder / "first").touch(exist_ok=False)
    except FileExistsError:
        return job
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def system_exit(job: int) -> int:
    raise SystemExit(job)


def write_pid_and_sleep(folder: Path, job: int) -> int:
    (folder / str(os.getpid())).touch()
    time.sleep(600)
    return job


def leave_a_file(job: int) -> str:
    handle, name = tempfile.mkstemp()
    os.close(handle)
    return name


def by_job(jobs: Iterable[int], work: Callable[[int], int], workers: int = 2) -> dict[int, Done[int, int]]:
    done = list(run(jobs, work, partial(local, workers), workers))
    assert len({one.job for one in done}) == len(done), "a job has two outcomes"
    return {one.job: one for one in done}


class Thread(ThreadPoolExecutor):
    """One thread that can be told to break, and notes how many jobs it was given."""

    def __init__(self, broken: int = 0) -> None:
        super().__init__(1)
        self.broken = broken
        self.given = 0

    def submit(self, *arguments: object, **keywords: object) -> Future[object]:  # type: ignore[override]
        self.given += 1
        if self.given == self.broken:
            raise BrokenExecutor("it is broken already")
        return super().submit(*arguments, **keywords)  # type: ignore[arg-type]


def test_every_job_has_its_result_whatever_the_order() -> None:
    assert {job: done.result for job, done in by_job(range(20), double).items()} == {n: 2 * n for n in range(20)}
    assert by_job(reversed(range(20)), double) == by_job(range(20), double)


def test_no_jobs_give_nothing() -> None:
    assert by_job([], double) == {}


def test_an_exception_is_the_outcome_of_its_job_alone() -> None:
    done = by_job(range(6), refuse_odd)
    assert [done[n].result for n in (0, 2, 4)] == [0, 2, 4]
    assert [str(done[n].error) for n in (1, 3, 5)] == ["1 is odd", "3 is odd", "5 is odd"]


def test_an_exit_of_python_is_the_outcome_of_its_job() -> None:
    assert isinstance(by_job([7], system_exit)[7].error, SystemExit)


def test_jobs_that_kill_their_process_each_time_lose_only_themselves(tmp_path: Path) -> None:
    killers = (2, 3)
    done = by_job(range(8), partial(exit_at, killers, tmp_path))
    assert {job: one.result for job, one in done.items() if job not in killers} == {
        n: n for n in range(8) if n not in killers
    }
    assert all(isinstance(done[job].error, BrokenExecutor) for job in killers)
    begun = {int(path.name): len(path.read_text()) for path in tmp_path.iterdir()}
    assert all(begun[job] <= TRIES for job in killers)


def test_a_process_that_is_killed_once_costs_no_job(tmp_path: Path) -> None:
    done = by_job(range(6), partial(exit_once, tmp_path))
    assert {job: one.result for job, one in done.items()} == {n: n for n in range(6)}


def test_an_executor_that_breaks_between_two_jobs_is_replaced() -> None:
    made: list[Thread] = []

    def start() -> Executor:
        made.append(Thread(broken=3 if not made else 0))
        return made[-1]

    done = list(run(range(10), double, start, 2))
    assert sorted(one.job for one in done if one.error is None) == list(range(10))
    assert len(made) == 2


def test_only_a_few_jobs_are_begun_before_their_turn() -> None:
    taken = 0

    def jobs() -> Iterator[int]:
        nonlocal taken
        for job in range(1000):
            taken += 1
            yield job

    with closing(run(jobs(), double, Thread, 3)) as done:
        for count, _ in enumerate(done, start=1):
            assert taken - count <= 2 * 3


def test_results_are_not_kept() -> None:
    def large(job: int) -> bytes:
        return bytes(2**20)

    tracemalloc.start()
    try:
        for done in run(range(200), large, Thread, 2):
            assert done.result is not None
        assert tracemalloc.get_traced_memory()[1] < 30 * 2**20
    finally:
        tracemalloc.stop()


def test_what_an_executor_gives_up_is_told() -> None:
    class GivesUp(Thread):
        def submit(self, *arguments: object, **keywords: object) -> Future[object]:  # type: ignore[override]
            future: Future[object] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(CancelledError):
        list(run(range(3), double, GivesUp, 1))


def test_leaving_early_ends_the_processes() -> None:
    made: list[Local] = []

    def start() -> Executor:
        made.append(Local(2))
        return made[-1]

    with closing(run([0.0, *[600.0] * 9], time.sleep, start, 2)) as done:
        assert next(done).job == 0.0
        processes = list((made[0]._processes or {}).values())
    assert processes and not any(process.is_alive() for process in processes)
    assert not Path(made[0].scratch.name).exists()


def test_files_that_jobs_leave_go_with_the_processes() -> None:
    names = [one.result for one in run(range(3), leave_a_file, partial(local, 1), 1)]
    assert all(name is not None and Path(name).parent.name.startswith("rlassay-") for name in names)
    assert not any(Path(str(name)).parent.exists() for name in names)


PROGRAM = """
import sys
from functools import partial
from pathlib import Path
from rlassay.grading.batch import local, run
from tests.conformance.grading.test_batch import write_pid_and_sleep

if __name__ == "__main__":
    list(run(range(10), partial(write_pid_and_sleep, Path(sys.argv[1])), partial(local, 2), 2))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("whole_group", [True, False])
def test_a_run_that_is_ended_leaves_no_process(tmp_path: Path, number: signal.Signals, whole_group: bool) -> None:
    program, pids = tmp_path / "program.py", tmp_path / "pids"
    program.write_text(PROGRAM)
    pids.mkdir()
    process = subprocess.Popen(
        [sys.executable, program, pids],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: len(list(pids.iterdir())) == 2, "both processes work")
    (os.killpg if whole_group else os.kill)(process.pid, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert errors.count("Traceback") <= (number == signal.SIGINT)
    wait_for(lambda: not any(alive(int(path.name)) for path in pids.iterdir()), "the processes have ended")
