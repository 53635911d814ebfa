"""What the kernel counts for a process, and what any process can give up: the least that confines a guest."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .syscalls import ConfinementError, call, prctl, step

if sys.platform != "win32":
    import resource

DESCRIPTORS = 256
SPARE_THREADS = 8

UNPRIVILEGED = 65534
"""The user and group that a guest of root becomes; systems keep it for those who own nothing."""

SET_PDEATHSIG, SET_DUMPABLE, CAPBSET_DROP, SET_SECUREBITS, SET_NO_NEW_PRIVS, CAP_AMBIENT = 1, 4, 24, 28, 38, 47
AMBIENT_CLEAR_ALL = 4
ALL_SECUREBITS_LOCKED = 0b11101111
"""No capabilities from being root, none kept or raised over a change of user; keep-caps off; all of it for good."""

MOST_CAPABILITIES = 64
CAPABILITY_VERSION = 0x20080522


def leave_parent(keep: Iterable[int]) -> None:
    """Become a session of its own that ends with its parent and has only these descriptors, and /dev/null as 0, 1, 2.

    Raises:
        ConfinementError: it is none that was just forked, or there is no /dev/null.
    """
    with step("a session of its own", "only a process that was just forked can be confined"):
        os.setsid()
    os.umask(0o077)
    with step("/dev/null"):
        null = os.open(os.devnull, os.O_RDWR)
    kept = sorted({*keep, null})
    for low, high in zip([-1, *kept], [*kept, 2**31 - 1], strict=True):
        os.closerange(low + 1, high)
    for standard in {0, 1, 2}.difference(kept):
        os.dup2(null, standard)
    if null > 2:
        os.close(null)
    if sys.platform == "linux":
        end_with_parent()
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")


def end_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it ends; a change of user undoes it."""
    with step("prctl"):
        prctl(SET_PDEATHSIG, signal.SIGKILL)


def hide_memory(hidden: bool = True) -> None:
    """Keep other processes of the same user from looking into this one, or let them."""
    with step("prctl"):
        prctl(SET_DUMPABLE, not hidden)


def become_unprivileged(readable: Iterable[str]) -> None:
    """From root to a user that owns nothing, where the level gives no view in which that would happen anyway.

    Raises:
        ConfinementError: that user cannot read what it must, or is not to be had.
    """
    with step(f"root cannot become user {UNPRIVILEGED}", "start rlassay as an ordinary user"):
        os.setgroups([])
        os.setgid(UNPRIVILEGED)
        os.setuid(UNPRIVILEGED)
    for path in readable:
        if os.path.isabs(path) and not os.access(path, os.R_OK):
            raise ConfinementError(
                f"{path}: user {UNPRIVILEGED}, which guests of root become at this level, cannot read it; "
                "start rlassay as an ordinary user, use a Python outside of root's home, or use the level namespaces"
            )


def drop_capabilities() -> None:
    """Give up every capability, and for good what could bring any back: no_new_privs.

    Raises:
        ConfinementError: the kernel lets none be given up.
    """
    with step("the capabilities cannot be given up"):
        with suppress(OSError):  # the kernel knows no more of them, or this process may drop none because it has none
            for capability in range(MOST_CAPABILITIES):
                prctl(CAPBSET_DROP, capability)
        with suppress(OSError):
            prctl(SET_SECUREBITS, ALL_SECUREBITS_LOCKED)
        with suppress(OSError):
            prctl(CAP_AMBIENT, AMBIENT_CLEAR_ALL)
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
        call("capset", header, (ctypes.c_uint32 * 6)())
        prctl(SET_NO_NEW_PRIVS, 1)


def address_space() -> tuple[int, int] | None:
    """Bytes of addresses in use, and those of them that are data; nothing where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    sizes = {name: int(size) << 10 for name, size in re.findall(r"^(VmSize|VmData):\s*(\d+) kB$", status, re.MULTILINE)}
    return (sizes["VmSize"], sizes["VmData"]) if len(sizes) == 2 else None


def tasks_of(user: int) -> int:
    """Threads of all processes of a user: the kernel counts them all against one limit."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid == user:
                total += sum(1 for _ in (process / "task").iterdir())
    return total


def restrict_resources(memory: int, cpu: int, largest_file: int, tasks: int, in_use: tuple[int, int] | None) -> None:
    """Limit memory beyond what is in use, CPU seconds, the size of files, threads and descriptors.

    Raises:
        ConfinementError: a limit cannot be set, or on Linux what is in use is not known.
    """
    limits = {
        "CPU": (cpu, cpu + 1),
        "FSIZE": (largest_file, largest_file),
        "NOFILE": (DESCRIPTORS, DESCRIPTORS),
        "NPROC": (tasks, tasks),
        "CORE": (0, 0),
    }
    if sys.platform == "linux":
        if in_use is None:
            raise ConfinementError("memory cannot be limited: /proc does not tell how much is in use; mount /proc")
        size, data = (part + memory for part in in_use)
        limits |= {"AS": (size, size), "DATA": (data, data), "MEMLOCK": (0, 0), "MSGQUEUE": (0, 0), "RTPRIO": (0, 0)}
    for name, (soft, hard) in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        allowed = resource.getrlimit(number)[1]
        if allowed != resource.RLIM_INFINITY:
            soft, hard = min(soft, allowed), min(hard, allowed)
        try:
            resource.setrlimit(number, (soft, hard))
        except (OSError, ValueError) as error:
            raise ConfinementError(f"RLIMIT_{name} cannot be set to {hard}: {error}") from error
