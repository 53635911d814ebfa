"""The filter of system calls: what a guest may not ask of the kernel, as a program of classic BPF (seccomp(2)).

Everything that is not named is allowed: a submission computes with libraries whose calls nobody can list. Named is what
makes processes, reaches others, opens connections, or talks to parts of the kernel that no computation needs.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Mapping

from .syscalls import call, machine, numbers, step

PROCESSES = ("fork", "vfork")
EXECUTION = ("execve", "execveat")
NETWORK = ("socket", "socketpair", "connect", "bind", "listen", "accept", "accept4")
OTHERS = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_open"),
    *("pidfd_getfd", "pidfd_send_signal", "ioprio_set", "migrate_pages", "move_pages"),
)
VIEWS = (
    *("mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "open_tree", "move_mount", "fsopen", "fsconfig"),
    *("fsmount", "fspick", "mount_setattr", "open_tree_attr", "statmount", "listmount"),
    *("name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark"),
)
SHARING = (
    *("shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv"),
    *("msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr"),
    *("memfd_create", "memfd_secret"),
)
KERNEL = (
    *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "add_key"),
    *("request_key", "keyctl", "personality", "init_module", "finit_module", "delete_module", "kexec_load"),
    *("kexec_file_load", "reboot", "swapon", "swapoff", "quotactl", "quotactl_fd", "clock_settime", "clock_adjtime"),
    *("settimeofday", "adjtimex", "sethostname", "setdomainname", "acct", "syslog", "vhangup", "lookup_dcookie"),
    *("modify_ldt", "iopl", "ioperm", "uselib", "ustat", "sysfs", "_sysctl"),
)
ATTRIBUTES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes"),
    *("utimensat", "futimesat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr"),
    *("fremovexattr", "removexattrat", "file_setattr"),
)
"""What changes modes, owners and times of files: landlock does not look at it, so without a view of its own a guest
could change those of every file that its user owns."""

FIRST_PID = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
"""Their first argument must be the process itself."""
FIRST_PID_OR_0 = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
"""Their first argument must be the process itself, by its number or as 0."""

IOCTLS = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCCONS": 0x541D, "FIOSETOWN": 0x8901, "SIOCSPGRP": 0x8902}
FCNTLS = {"F_SETOWN": 8, "F_SETSIG": 10, "F_SETOWN_EX": 15}
PRCTLS = {"PR_SET_PDEATHSIG": 1, "PR_SET_DUMPABLE": 4, "PR_SET_PTRACER": 0x59616D61}

LAST_KNOWN = 469
"""The newest system call that was looked at; newer ones are answered as an older kernel would."""

CLONE_THREAD = 0x00010000
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32 = 0x40000000

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD, JUMP_EQUAL, JUMP_ABOVE, JUMP_FROM, JUMP_BITS, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
SET_MODE_FILTER = 1

Instruction = tuple[int, int, int, int]
"""Operation, instructions skipped where its condition holds, those skipped where it does not, operand."""


def _refuse(number: int) -> Instruction:
    return (RETURN, 0, 0, ERRNO | number)


_allow: Instruction = (RETURN, 0, 0, ALLOW)
_deny = _refuse(errno.EPERM)


def _load_argument(index: int) -> Instruction:
    """The lower half of an argument: those that are looked at are ints."""
    return (LOAD, 0, 0, ARGUMENTS + 8 * index)


def _is(values: tuple[int, ...], then: Instruction, otherwise: Instruction) -> list[Instruction]:
    """What to return where the loaded value is one of these, and where it is not."""
    branches = [part for value in values for part in ((JUMP_EQUAL, 0, 1, value), then)]
    return [*branches, otherwise]


def _rules(pid: int, attributes: bool) -> Iterator[tuple[str, list[Instruction]]]:
    """System calls that are not simply allowed, and what is done about each."""
    for name in PROCESSES:
        yield name, [_refuse(errno.EAGAIN)]
    yield "clone", [_load_argument(0), (JUMP_BITS, 0, 1, CLONE_THREAD), _allow, _refuse(errno.EAGAIN)]
    yield "clone3", [_refuse(errno.ENOSYS)]
    refused = (*EXECUTION, *NETWORK, *OTHERS, *VIEWS, *SHARING, *KERNEL, *(() if attributes else ATTRIBUTES))
    for name in refused:
        yield name, [_deny]
    for name in FIRST_PID:
        yield name, [_load_argument(0), *_is((pid,), _allow, _deny)]
    for name in FIRST_PID_OR_0:
        yield name, [_load_argument(0), *_is((0, pid), _allow, _deny)]
    yield "setpriority", [*_only(0, 0), _load_argument(1), *_is((0, pid), _allow, _deny)]
    yield "ioctl", [_load_argument(1), *_is(tuple(IOCTLS.values()), _deny, _allow)]
    yield "fcntl", [_load_argument(1), *_is(tuple(FCNTLS.values()), _deny, _allow)]
    yield "prctl", [_load_argument(0), *_is(tuple(PRCTLS.values()), _deny, _allow)]


def _only(index: int, value: int) -> list[Instruction]:
    """Refuse unless an argument has this value."""
    return [_load_argument(index), (JUMP_EQUAL, 1, 0, value), _deny]


def program(architecture: str, pid: int, attributes: bool) -> list[Instruction]:
    """The filter for the process `pid`; `attributes` tells that it may change modes, owners and times of files."""
    foreign: list[Instruction] = [(RETURN, 0, 0, KILL)]
    code: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, AUDIT_ARCH[architecture]),
        *foreign,
        (LOAD, 0, 0, NUMBER),
    ]
    if architecture == "x86_64":
        code += [(JUMP_FROM, 0, 1, X32), *foreign]
    code += [(JUMP_ABOVE, 0, 1, LAST_KNOWN), _refuse(errno.ENOSYS)]
    known: Mapping[str, int] = numbers(architecture)
    for name, action in _rules(pid, attributes):
        if name in known:
            code += [(JUMP_EQUAL, 0, len(action), known[name]), *action]
    return [*code, _allow]


def restrict_calls(attributes: bool) -> None:
    """Put the filter on this process, for good; no_new_privs must be set.

    Raises:
        ConfinementError: the kernel has no such filters, or allows none.
    """
    code = program(machine(), os.getpid(), attributes)
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in code))
    header = ctypes.create_string_buffer(struct.pack("HP", len(code), ctypes.addressof(packed)))
    advice = "the kernel needs CONFIG_SECCOMP_FILTER; ask for the level limits by name where it lacks it"
    with step("seccomp: the filter of system calls cannot be set", advice):
        call("seccomp", SET_MODE_FILTER, 0, header)
