"""Graders on a cluster: a real scheduler and two real workers on this machine, one of which is killed at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rlassay.grading.assignment_file import read_assignment
from rlassay.grading.cluster import ClusterError, connect
from rlassay.grading.confined import end_warm_process
from rlassay.grading.grader import Job, grade
from rlassay.grading.submissions import find_submissions
from tests.conformance.cli_support import alive, wait_for
from tests.conformance.grading.attacks import ATTACKS, Attack
from tests.conformance.grading.command_support import FILE, needs_namespaces, rlassay, start, stored, write_all

pytest.importorskip("distributed")

SECONDS = 120.0
RIGHT = Attack().source
CLASS = {f"student-{number}.py": RIGHT.replace("- log_ratio", f"- {1 + number % 2} * log_ratio") for number in range(8)}
CLASS |= {"z-exit.py": ATTACKS["os_exit_in_a_call"].source, "z-hang.py": ATTACKS["infinite_loop_in_a_call"].source}


@contextmanager
def dask(*arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Dask; it has ended afterwards."""
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard", "--host", "127.0.0.1"]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    """A scheduler on a port that is free: its address."""
    known = folder / "scheduler.json"
    with dask("scheduler", "--port", "0", "--scheduler-file", str(known), log=folder / "scheduler.log"):
        wait_for(lambda: known.exists() and bool(known.read_text()), "the scheduler listens", SECONDS)
        yield json.loads(known.read_text())["address"]


@contextmanager
def worker(address: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of one thread that the scheduler knows."""
    with dask("worker", address, "--nthreads", "1", "--no-nanny", log=log) as process:
        wait_for(lambda: b"Registered to" in log.read_bytes(), "the worker is registered", SECONDS)
        yield process


def children(pid: int) -> list[int]:
    """The processes that a process has started and that are still its own."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


@needs_namespaces
def test_a_worker_that_is_killed_costs_nothing_and_the_marks_are_those_of_one_machine(tmp_path: Path) -> None:
    (tmp_path / "assignment.toml").write_text(FILE)
    write_all(tmp_path / "submissions", CLASS)
    results = tmp_path / "results" / "submissions"
    with ExitStack() as stack:
        address = stack.enter_context(scheduler(tmp_path))
        workers = [stack.enter_context(worker(address, tmp_path / f"worker-{n}.log")) for n in range(2)]
        options = ("--assignment", "assignment.toml", "--out", "results", "--scheduler", address)
        command = start("grade", "submissions", *options, cwd=tmp_path)
        wait_for(lambda: len(list(results.glob("[!.]*"))) >= 2, "two are graded", SECONDS)
        warm = children(workers[0].pid)
        os.kill(workers[0].pid, signal.SIGKILL)
        done = command.wait()
        assert len(list(results.glob("[!.]*"))) == len(CLASS)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        warm += children(workers[1].pid)
        assert len(warm) == 2
    wait_for(lambda: not any(map(alive, warm)), "the warm processes have ended")
    assert stored(tmp_path / "results") == graded_here(tmp_path)


def graded_here(folder: Path) -> object:
    """What one process on this machine gives, in the same form."""
    end_warm_process()
    assignment = read_assignment(folder / "assignment.toml")
    found = {}
    for submission in find_submissions(folder / "submissions").submissions:
        result = grade(Job(submission, assignment, "namespaces"))
        place = folder / "here" / "submissions" / submission.key
        place.mkdir(parents=True)
        for name, content in result.files.items():
            (place / name).write_bytes(content)
        found[submission.key] = result.grade
    end_warm_process()
    return stored(folder / "here")


def test_a_scheduler_without_workers_is_refused_and_one_that_ends_is_told(tmp_path: Path) -> None:
    with scheduler(tmp_path) as address, pytest.raises(ClusterError) as raised:
        connect(address)
    assert f"the scheduler has no workers; start some with `dask worker --nthreads 1 {address}`" in str(raised.value)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://127.0.0.1:port", "nonsense", ""])
def test_where_no_scheduler_answers_it_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlassay.grading.cluster.CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers there: .*; start one with `dask scheduler`"):
        connect(address)


def test_without_dask_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"--scheduler needs Dask .*: pip install 'rlassay\[cluster\]'"):
        connect("tcp://127.0.0.1:8786")


@needs_namespaces
def test_a_cluster_that_goes_away_ends_the_run_which_can_go_on(tmp_path: Path) -> None:
    (tmp_path / "assignment.toml").write_text(FILE)
    write_all(tmp_path / "submissions", CLASS)
    results = tmp_path / "results" / "submissions"
    options = ("--assignment", "assignment.toml", "--out", "results")
    with scheduler(tmp_path) as address, worker(address, tmp_path / "worker.log"):
        command = start("grade", "submissions", *options, "--scheduler", address, cwd=tmp_path)
        wait_for(lambda: len(list(results.glob("[!.]*"))) >= 1, "one is graded", SECONDS)
    done = command.wait()
    assert done.returncode == 2
    assert "the scheduler is gone; what is graded is stored, and --resume goes on" in " ".join(done.stderr.split())
    done = rlassay("grade", "submissions", *options, "--resume", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert len(stored(tmp_path / "results")) == len(CLASS)
