"""What the tests of the command line share: the command as a process, records made by hand, a scripted worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlassay.record import SCHEMA, CheckResult, Failure, Header, Record, gather
from rlassay.verdict import footer

SUBJECTS = Path(__file__).parent / "subjects"
COMMAND = [sys.executable, "-W", "error", "-m", "rlassay"]


def rlassay(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command; its output is decoded."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not yet fetched by its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Wait until something is so that takes a moment on an idle machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds:g} s: {what}"
        time.sleep(0.02)


def scripted(monkeypatch: pytest.MonkeyPatch, **behaviour: str) -> str:
    """Replace the worker by `subjects/fake_worker.py`; returns the target that carries its script.

    A key is an operation or, with `__` for the slash, a check: `kl_k1="pass"`, `kl_k1__value="fail"`. Operations
    without a key are not provided. `start` is what the worker does before it answers at all.
    """
    monkeypatch.setattr("rlassay.process.COMMAND", (sys.executable, str(SUBJECTS / "fake_worker.py")))
    return json.dumps({key.replace("__", "/"): value for key, value in behaviour.items()})


def header(**changes: object) -> Header:
    """A header of a run of three checks."""
    fields: dict[str, object] = {
        "schema": SCHEMA,
        "rlassay": "0.1.0",
        "python": "3.11.0",
        "libraries": {"torch": "2.13.0"},
        "target": "solution.py",
        "sha256": "0" * 64,
        "interface": "own",
        "convention": {"name": "lecture"},
        "seed": 0,
        "profile": "quick",
        "operations": ["kl_k1", "kl_k3"],
        "selected": ["kl_k1", "kl_k3"],
        "checks": 3,
        "available": 400,
    }
    return Header(**(fields | changes))  # type: ignore[arg-type]


def result(identity: str, outcome: str = "pass", message: str = "", **fields: object) -> CheckResult:
    """The line of a check; what fails has a message."""
    failure = {
        key: fields.pop(key) for key in ("call", "inputs", "got", "expected", "snippet", "traceback") if key in fields
    }
    texts = {"message": message or f"{identity} is wrong", **failure}
    known: dict[str, object] = {
        "id": identity,
        "title": f"what {identity} asserts",
        "operations": [identity.partition("/")[0]],
        "claims": [],
        "kind": "conformance",
        "outcome": outcome,
        "failure": None if outcome == "pass" else Failure(**texts),  # type: ignore[arg-type]
    }
    return CheckResult(**(known | fields))  # type: ignore[arg-type]


def record(*results: CheckResult, stale: tuple[str, ...] = (), strict: bool = False, **changes: object) -> Record:
    """A complete record of the given checks."""
    first = header(checks=len(results), strict=strict, **changes)
    return gather([first, *results, footer(results, stale, strict)])
