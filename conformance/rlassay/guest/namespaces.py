"""Namespaces: a guest's own processes, network, mounts, and a view of the file system in which nothing else is.

    keeper   forked from the warm process; waits for init and ends as the guest ended. SIGTERM: it ends everything, then
             itself, with the CPU time of all counted as its children's; SIGKILL: the kernel ends everything with it
    init     process 1 of the new namespaces; makes the view, then reaps. When it ends, the kernel kills all the others
    guest    in a user namespace below the one that owns the others, without capabilities in either

It takes Linux 5.14, whose limit of threads counts those of one user namespace.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from .limits import (
    UNPRIVILEGED,
    become_unprivileged,
    drop_capabilities,
    end_with_parent,
    hide_memory,
)
from .mounts import make_view
from .syscalls import call, step

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from .confine import Confinement

NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    *(0x00020000, 0x02000000, 0x04000000, 0x08000000),
    *(0x10000000, 0x20000000, 0x40000000),
)
OWN = NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWPID | NEWNET

HOST_NAME = "guest"

USERS_ADVICE = (
    "ordinary users need user namespaces: see the sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone "
    "and kernel.apparmor_restrict_unprivileged_userns"
)
ROOT_ADVICE = "root of a container needs CAP_SYS_ADMIN for this; start rlassay as an ordinary user, or outside"


def enter_namespaces(confinement: Confinement, keep: Sequence[int]) -> str:
    """Become the guest in namespaces of its own; the folder of the submission there. Keeper and init never return.

    Raises:
        ConfinementError: in whichever process cannot go on; the others then end by themselves.
    """
    user, group = os.getuid(), os.getgid()
    root = user == 0
    hide_memory(False)
    _unshare(root, user, group)
    ending, ended = os.pipe()
    alive, keeper = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    with step("init cannot be forked"):
        init = os.fork()
    if init:
        _close(ended, alive, *keep)
        _keep(init, ending)
    _close(ending, keeper)
    return _become_init(confinement, keep, (UNPRIVILEGED, UNPRIVILEGED) if root else (user, group), ended, alive)


def _unshare(root: bool, user: int, group: int) -> None:
    with step("no namespaces are to be had", ROOT_ADVICE if root else USERS_ADVICE):
        call("unshare", OWN if root else OWN | NEWUSER)
        if not root:
            _map("/proc/self", user, group)


def _map(process: str, user: int, group: int, folder: int | None = None) -> None:
    """Give the user namespace of a process one user and one group, which are what they are outside."""
    for name, text in (("setgroups", "deny"), ("gid_map", f"{group} {group} 1"), ("uid_map", f"{user} {user} 1")):
        written = os.open(f"{process}/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.write(written, text.encode())
        finally:
            os.close(written)


def _keep(init: int, ending: int) -> NoReturn:
    """Wait for the guest's end, and end in the same way."""
    status = _wait(init, signal.SIGTERM)
    told = os.read(ending, 4)
    _end_as(int.from_bytes(told, "big") if len(told) == 4 else status)


def _wait(child: int, parting: signal.Signals) -> int:
    """Reap processes until a child ends, which is sent a signal when this process is asked to end; its wait status.

    SIGTERM and SIGCHLD must be blocked.
    """
    while True:
        if signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGTERM:
            os.kill(child, parting)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == child:
                    return ended[1]


def _end_as(status: int) -> NoReturn:
    """End with the wait status that another process ended with."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _become_init(confinement: Confinement, keep: Sequence[int], owner: tuple[int, int], ended: int, alive: int) -> str:
    """Make the view, fork the guest, in which this returns, and give up all power before it may go on; then reap."""
    _end_with_keeper(alive)
    with step("the host name"):
        socket.sethostname(HOST_NAME)
    with step("/proc"):
        processes = os.open("/proc", os.O_PATH | os.O_CLOEXEC)
    folder = make_view(confinement, owner[0], owner[1])
    ready, told = os.pipe()
    waiting, mapped = os.pipe()
    with step("the guest cannot be forked"):
        guest = os.fork()
    if guest == 0:
        _close(ended, alive, ready, mapped)
        _become_guest(processes, told, waiting, owner)
        _close(processes, told, waiting)
        return folder
    _close(told, waiting)
    number = os.read(ready, 20).decode()
    if number:
        with step("the guest's user cannot be mapped", USERS_ADVICE):
            _map(number, *owner, folder=processes)
    if os.getuid() == 0:
        become_unprivileged(())
    drop_capabilities()
    hide_memory()
    _end_with_keeper(alive)
    if number:
        os.write(mapped, b"1")
        os.read(ready, 1)  # it ends when the guest has become its user: from then on init may kill it
    _close(processes, ready, mapped, *keep)
    os.write(ended, _wait(guest, signal.SIGKILL).to_bytes(4, "big"))
    os._exit(0)


def _become_guest(processes: int, told: int, waiting: int, owner: tuple[int, int]) -> None:
    """Into a user namespace that owns none of the others, as a user without capabilities."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.setsid()
    root = os.getuid() == 0
    with step("the guest's user namespace", USERS_ADVICE):
        if root:
            os.setgroups([])
        call("unshare", NEWUSER)
    os.write(told, os.readlink("self", dir_fd=processes).encode())
    if os.read(waiting, 1) != b"1":
        os._exit(1)  # init says why
    with step("the guest's user"):
        os.setresgid(owner[1], owner[1], owner[1])
        os.setresuid(owner[0], owner[0], owner[0])
    drop_capabilities()
    hide_memory()


def _end_with_keeper(alive: int) -> None:
    """End when the keeper does; `alive` tells whether it had ended before."""
    end_with_parent()
    os.set_blocking(alive, False)
    try:
        os.read(alive, 1)
    except BlockingIOError:
        return
    os._exit(1)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
