"""Confinement: what a process gives up, for good, before it loads a submission.

    namespaces   processes, network, mounts and a view of its own, and all of the next level
    filtered     landlock for files, seccomp for system calls, and all of the next level
    limits       resource limits, no new privileges, a session of its own

Nothing here is a promise by itself: `rlassay.isolation.selftest` has a guest try to break out of each level.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

from . import limits
from .copying import copy_folder, open_folder
from .landlock import is_available, restrict_files
from .namespaces import enter_namespaces
from .seccomp import restrict_calls
from .syscalls import ConfinementError, machine, step, within

__all__ = ["LEVELS", "Confinement", "ConfinementError", "best_level", "enter"]

LEVELS = ("namespaces", "filtered", "limits")
"""Levels of confinement, strongest first."""

TRIAL_SECONDS = 30


@dataclass(frozen=True)
class Confinement:
    """How a guest is confined.

    level: one of `LEVELS`.
    source: folder of the submission; the guest gets a copy of its own, which it may write.
    readable: files and folders that it may read.
    hidden: files and folders inside of those that it may not.
    scratch: a folder made for guests, into which a lower level puts each guest's own; the place of its /tmp there.
    memory: bytes beyond what the process has when it is forked.
    cpu: seconds.
    tmp: bytes of /tmp, the copy of the submission among them; at lower levels of each file.
    threads: how many the submission may have, roughly.
    """

    level: str
    source: str
    readable: tuple[str, ...]
    hidden: tuple[str, ...]
    scratch: str
    memory: int
    cpu: int
    tmp: int
    threads: int


def enter(confinement: Confinement, keep: tuple[int, ...]) -> str:
    """Confine this process, a fork without threads; the folder where the copy of the submission lies.

    It returns in the process that is to run the submission, which is another one at the level namespaces: this one then
    waits, and ends as that one does (see `namespaces`). Of all descriptors only `keep` stay open.

    Raises:
        ConfinementError: it cannot be confined so. Raised in one process, with `keep` still open in it; the others end.
    """
    if confinement.level not in LEVELS:
        raise ConfinementError(f"{confinement.level}: no such level; there are {', '.join(LEVELS)}")
    _check_view(confinement)
    in_use = limits.address_space()
    limits.leave_parent(keep)
    tasks = confinement.threads + limits.SPARE_THREADS
    if confinement.level == "namespaces":
        machine()
        folder, home = enter_namespaces(confinement, keep), "/tmp"
    else:
        folder, home = _enter_scratch(confinement)
        tasks += limits.tasks_of(os.getuid())
    os.environ.update(TMPDIR=home, HOME=home)
    tempfile.tempdir = None
    limits.restrict_resources(confinement.memory, confinement.cpu, confinement.tmp, tasks, in_use)
    if sys.platform == "linux":
        limits.end_with_parent()
    if confinement.level == "namespaces":
        if is_available():
            restrict_files(("/",), (), (home,))
        restrict_calls(attributes=True)
    elif confinement.level == "filtered":
        restrict_files(confinement.readable, confinement.hidden, (home,))
        restrict_calls(attributes=False)
    return folder


def _check_view(confinement: Confinement) -> None:
    """What is readable must not hold what guests have each for themselves: one would see the others'."""
    for path in map(os.path.realpath, confinement.readable):
        for private in (confinement.source, confinement.scratch):
            if within(os.path.realpath(private), path):
                raise ConfinementError(
                    f"{path}: guests are to read it, but {private}, which is one guest's own, lies in it; "
                    "put submissions elsewhere, or leave that folder out of the interpreter's path"
                )


def _enter_scratch(confinement: Confinement) -> tuple[str, str]:
    """The folder of the submission's copy and the guest's own folder around it, in a process without privileges."""
    root = os.getuid() == 0
    owner = (limits.UNPRIVILEGED, limits.UNPRIVILEGED) if root else (os.getuid(), os.getgid())
    with step("the scratch folder"):
        home = tempfile.mkdtemp(prefix="guest-", dir=confinement.scratch)
        if root:
            os.chmod(confinement.scratch, 0o711)
            os.chown(home, *owner)
    source = open_folder(confinement.source)
    folder = os.path.join(home, "submission")
    copy_folder(source, folder, owner, confinement.tmp)
    os.close(source)
    if root:
        limits.become_unprivileged((*confinement.readable, folder))
    if sys.platform == "linux":
        limits.drop_capabilities()
        limits.hide_memory()
    return folder, home


def best_level() -> tuple[str, str]:
    """The strongest level that this machine gives, found by entering it, and why it gives no stronger one.

    Both may be empty: the level where not even limits are to be had, the reasons where nothing is missing.
    """
    reasons: list[str] = []
    for level in LEVELS:
        reason = _try(level)
        if not reason:
            return level, "; ".join(reasons)
        reasons.append(f"{level}: {reason}")
    return "", "; ".join(reasons)


def _try(level: str) -> str:
    """Why a level cannot be entered; empty where it can."""
    if not hasattr(os, "fork"):
        return f"{sys.platform} cannot fork processes; grade on Linux"
    with tempfile.TemporaryDirectory(prefix="rlassay-", ignore_cleanup_errors=True) as scratch:
        source = Path(scratch, "source")
        source.mkdir()
        Path(source, "submission.py").touch()
        readable = tuple(dict.fromkeys(path for path in (sys.prefix, sys.base_prefix) if path != "/"))
        trial = Confinement(level, str(source), readable, (), scratch, 2**28, 60, 2**22, 4)
        return _enter_in_fork(trial)


def _enter_in_fork(trial: Confinement) -> str:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the fork uses none
        pid = os.fork()
    if pid == 0:
        _answer(trial, writing)
    os.close(writing)
    with open(reading, "rb") as answers:
        answer = answers.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    if answer == "entered" and status == 0:
        return ""
    return answer if answer and answer != "entered" else f"the process that tried ended with status {status}"


def _answer(trial: Confinement, writing: int) -> None:
    """Never returns: enters, says so or why not, ends."""
    try:
        signal.alarm(TRIAL_SECONDS)
        enter(trial, (writing,))
        os.write(writing, b"entered")
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not go on
        os.write(writing, f"{error or type(error).__name__}".encode())
    finally:
        os._exit(1)
