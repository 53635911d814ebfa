"""System calls of Linux: their numbers, and a way to make those that the standard library lacks."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

_TABLE = """
fork=57/- vfork=58/- clone=56/220 clone3=435 execve=59/221 execveat=322/281 socket=41/198 socketpair=53/199
connect=42/203 bind=49/200 listen=50/201 accept=43/202 accept4=288/242 ptrace=101/117 process_vm_readv=310/270
process_vm_writev=311/271 process_madvise=440 process_mrelease=448 kcmp=312/272 pidfd_open=434 pidfd_getfd=438
pidfd_send_signal=424 kill=62/129 tkill=200/130 tgkill=234/131 rt_sigqueueinfo=129/138 rt_tgsigqueueinfo=297/240
prlimit64=302/261 sched_setaffinity=203/122 sched_setscheduler=144/119 sched_setparam=142/118
sched_setattr=314/274 setpriority=141/140 ioprio_set=251/30 migrate_pages=256/238 move_pages=279/239
mount=165/40 umount2=166/39 pivot_root=155/41 chroot=161/51 unshare=272/97 setns=308/268 open_tree=428
move_mount=429 fsopen=430 fsconfig=431 fsmount=432 fspick=433 mount_setattr=442 bpf=321/280
perf_event_open=298/241 userfaultfd=323/282 io_uring_setup=425 io_uring_enter=426 io_uring_register=427
add_key=248/217 request_key=249/218 keyctl=250/219 shmget=29/194 shmat=30/196 shmctl=31/195 shmdt=67/197
semget=64/190 semop=65/193 semctl=66/191 semtimedop=220/192 msgget=68/186 msgsnd=69/189 msgrcv=70/188
msgctl=71/187 mq_open=240/180 mq_unlink=241/181 mq_timedsend=242/182 mq_timedreceive=243/183 mq_notify=244/184
mq_getsetattr=245/185 memfd_create=319/279 memfd_secret=447 personality=135/92 init_module=175/105
finit_module=313/273 delete_module=176/106 kexec_load=246/104 kexec_file_load=320/294 reboot=169/142
swapon=167/224 swapoff=168/225 quotactl=179/60 quotactl_fd=443 clock_settime=227/112 clock_adjtime=305/266
settimeofday=164/170 adjtimex=159/171 sethostname=170/161 setdomainname=171/162 acct=163/89 syslog=103/116
vhangup=153/58 name_to_handle_at=303/264 open_by_handle_at=304/265
capget=125/90 fanotify_init=300/262 fanotify_mark=301/263
lookup_dcookie=212/18 modify_ldt=154/- iopl=172/- ioperm=173/- uselib=134/- ustat=136/- sysfs=139/-
_sysctl=156/- chmod=90/- fchmod=91/52 fchmodat=268/53 chown=92/- fchown=93/55 lchown=94/- fchownat=260/54
utime=132/- utimes=235/- utimensat=280/88 futimesat=261/- setxattr=188/5 lsetxattr=189/6 fsetxattr=190/7
removexattr=197/14 lremovexattr=198/15 fremovexattr=199/16 ioctl=16/29 fcntl=72/25 prctl=157/167 seccomp=317/277
landlock_create_ruleset=444 landlock_add_rule=445 landlock_restrict_self=446 capset=126/91 setresuid=117/147
close_range=436 fchmodat2=452 statmount=457 listmount=458 setxattrat=463 removexattrat=466 open_tree_attr=467
file_setattr=469
"""
"""`name=x86_64/aarch64`, or one number for both; `-` where the machine has no such call."""

ARCHITECTURES = ("x86_64", "aarch64")


class ConfinementError(Exception):
    """A guest cannot be confined as asked; says what failed, why, and what to do. Nothing was loaded."""


@cache
def machine() -> str:
    """The architecture whose system calls this process makes.

    Raises:
        ConfinementError: it is none of those known here.
    """
    name = platform.machine()
    if sys.platform != "linux" or name not in ARCHITECTURES or sys.maxsize < 2**32:
        raise ConfinementError(
            f"{sys.platform} on {name}: only 64-bit Linux on {' or '.join(ARCHITECTURES)} confines processes beyond "
            "limits; grade on such a machine, or ask for the level limits by name"
        )
    return name


@contextmanager
def step(what: str, advice: str = "") -> Iterator[None]:
    """Do a step of the confinement; whatever the system refuses becomes a ConfinementError.

    Raises:
        ConfinementError: a system call failed.
    """
    try:
        yield
    except OSError as error:
        number = errno.errorcode.get(error.errno or 0, error.errno)
        why = f"{error.strerror or error} [{number}]" + (f" {error.filename}" if error.filename else "")
        raise ConfinementError(f"{what}: {why}" + (f"; {advice}" if advice else "")) from error


@cache
def numbers(architecture: str) -> Mapping[str, int]:
    """The numbers of the system calls that an architecture has, by name."""
    column = ARCHITECTURES.index(architecture)
    found = {}
    for entry in _TABLE.split():
        name, _, values = entry.partition("=")
        value = (values.split("/") * 2)[column]
        if value != "-":
            found[name] = int(value)
    return found


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: Any) -> int:
    """Make a system call; integers are passed as C longs, bytes as C strings.

    Raises:
        OSError: the kernel refuses.
    """
    number = ctypes.c_long(numbers(machine())[name])
    passed = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result: int = _libc().syscall(number, *passed)
    if result == -1:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def prctl(option: int, *arguments: int) -> int:
    """Set or get an attribute of this process.

    Raises:
        OSError: the kernel refuses.
    """
    return call("prctl", option, *(*arguments, 0, 0, 0, 0)[:4])


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder's own or one below it; both without links."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
