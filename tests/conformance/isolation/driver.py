"""Stands for the warm process: reads a job on its standard input, forks a guest, and says what came of it.

Run as a file, in an interpreter of its own. Everything that a guest may need is imported here: at the lower levels it
may be unable to read the standard library.
"""

from __future__ import annotations

import ctypes  # noqa: F401 - for the code of guests
import json
import mmap  # noqa: F401
import os
import resource  # noqa: F401
import select
import signal
import socket  # noqa: F401
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import threading  # noqa: F401
import time
from typing import Any

from rlassay.guest import confine, limits, namespaces, probe, syscalls  # noqa: F401

GUEST_SECONDS = 60.0


def main() -> None:
    job = json.load(sys.stdin)
    if job["torch"]:
        import numpy as np
        import torch

        torch.set_num_threads(1)
        torch.ones(3, requires_grad=True).sum().backward()
        np.random.default_rng(0).normal(size=3)
    if job["user"] is not None:
        os.setgroups([])
        os.setresgid(job["user"], job["user"], job["user"])
        os.setresuid(job["user"], job["user"], job["user"])
    os.chdir("/")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _guest(job, writing)
    os.close(writing)
    json.dump(_outcome(job, pid, reading), sys.stdout)


def _outcome(job: dict[str, Any], pid: int, reading: int) -> dict[str, Any]:
    answer = b""
    until = time.monotonic() + GUEST_SECONDS
    signalled = False
    while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(reading, 2**16)
        answer += part
        if not part or (job["leaves"] and _is_whole(answer)):
            break
        if job["end"] and not signalled:
            signalled = True
            os.kill(pid, job["end"])
    else:
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    closed = not select.select([reading], [], [], 0)[0] or not os.read(reading, 1)
    ended = {"status": os.waitstatus_to_exitcode(status), "cpu": usage.ru_utime + usage.ru_stime, "closed": closed}
    return (json.loads(answer) if answer else {}) | ended


def _is_whole(answer: bytes) -> bool:
    try:
        return isinstance(json.loads(answer), dict)
    except ValueError:
        return False


def _guest(job: dict[str, Any], writing: int) -> None:
    """Never returns."""
    scope: dict[str, Any] = dict(globals())

    def tell(answer: Any) -> None:
        os.write(writing, json.dumps({"answer": answer}).encode())

    try:
        if job["confinement"] is None:
            null = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(null, standard)
        else:
            fields = {k: tuple(v) if isinstance(v, list) else v for k, v in job["confinement"].items()}
            confinement = confine.Confinement(**fields)
            scope["folder"] = _enter(job["how"], confinement, writing)
        scope |= {"tell": tell, "targets": job["targets"]}
        exec(job["code"], scope)  # noqa: S102 - a test's own code
        os._exit(0)
    except confine.ConfinementError as error:
        os.write(writing, json.dumps({"unconfined": str(error)}).encode())
    except BaseException as error:  # noqa: BLE001 - told to the test
        os.write(writing, json.dumps({"raised": f"{type(error).__name__}: {error}"}).encode())
    finally:
        os._exit(1)


def _enter(how: str, confinement: confine.Confinement, writing: int) -> str:
    """All of it; or the namespaces alone, where nothing but they end what the guest leaves behind."""
    if how == "enter":
        return confine.enter(confinement, (writing,))
    limits.leave_parent((writing,))
    return namespaces.enter_namespaces(confinement, (writing,))


if __name__ == "__main__":
    main()
