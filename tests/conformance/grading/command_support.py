"""Grading through the real command, in a process group of its own, below a process that waits for all it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from rlassay.grading.grade import Grade
from rlassay.grading.store import grades
from rlassay.guest.confine import best_level

LEVEL, WHY = best_level()

needs_namespaces = pytest.mark.skipif(LEVEL != "namespaces", reason=f"no namespaces here: {WHY}")

REAPER = """
import ctypes, os, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1)
command = subprocess.Popen(sys.argv[2:], process_group=0)
with open(sys.argv[1] + ".part", "w") as stream:
    stream.write(str(command.pid))
os.rename(sys.argv[1] + ".part", sys.argv[1])
code = command.wait()
deadline = time.monotonic() + 60
while True:
    try:
        pid, _ = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        sys.exit(128 - code if code < 0 else code)
    if pid == 0:
        if time.monotonic() > deadline:
            sys.exit("processes are left")
        time.sleep(0.02)
"""
"""Runs a command, writes its pid to a file, takes all orphans of the command for its own, and ends when none is left,
with the command's exit code (128 and the signal, as a shell has it)."""

FILE = """
title = "three small parts"
secret = "the secret of the small parts"
profile = "quick"
examples = 2

[limits]
call = 1.0
load = 20.0
submission = 20.0
cpu = 20
memory = "512 MiB"
tmp = "16 MiB"

[[part]]
operation = "kl_k1"
points = 1
visible = true

[[part]]
operation = "kl_k3"
points = 2
partial = "share"

[[part]]
operation = "keep_groups"
points = 4
"""


@dataclass
class Command:
    """A command that runs; its `group` is what Ctrl-C in a terminal reaches."""

    process: subprocess.Popen[str]
    pid: Path

    @property
    def group(self) -> int | None:
        """Its process group, None until it has begun."""
        return int(self.pid.read_text()) if self.pid.exists() else None

    def kill(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        assert self.group is not None
        os.killpg(self.group, number)

    def wait(self) -> subprocess.CompletedProcess[str]:
        """Wait until it has ended and left nothing."""
        out, errors = self.process.communicate(timeout=300)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, errors)


def start(*arguments: str | Path, cwd: Path) -> Command:
    """Start `rlassay` with arguments."""
    pid = cwd / f"pid-{len(list(cwd.glob('pid-*')))}"
    command = [sys.executable, "-W", "error", "-m", "rlassay", *map(str, arguments)]
    process = subprocess.Popen(
        [sys.executable, "-c", REAPER, str(pid), *command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    return Command(process, pid)


def rlassay(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `rlassay` to its end; nothing that it started is left."""
    return start(*arguments, cwd=cwd).wait()


def stored(results: Path) -> dict[str, Grade]:
    """The grades of a folder of results by key, without what is measured and differs from run to run."""
    return {grade.key: msgspec.structs.replace(grade, seconds=0.0, cpu=0.0) for grade in grades(results)}


def contents(results: Path) -> dict[str, bytes]:
    """The files of a folder of results but those with times in them."""
    timed = {"grade.json", "record.ndjson", "junit.xml"}
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in sorted(results.rglob("*"))
        if path.is_file() and path.name not in timed
    }


def write_all(folder: Path, sources: Mapping[str, str]) -> None:
    """Write files into a new folder."""
    folder.mkdir()
    for name, source in sources.items():
        (folder / name).write_bytes(source.encode(errors="surrogateescape"))
