"""The filter of system calls: what it answers, read from the program itself, and what the kernel makes of it."""

from __future__ import annotations

import errno
import platform
import re
import signal
import struct
from pathlib import Path

import pytest

from rlassay.guest import seccomp
from rlassay.guest.syscalls import ARCHITECTURES, numbers

from .guests import FILTERED, linux, place

PID = 4242
ALLOWED, KILLED = 0, -1

HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}


def answer(architecture: str, number: int, *arguments: int, attributes: bool = True, arch: int | None = None) -> int:
    """What the program makes of a call: an error number, 0 where it is allowed, -1 where the process is killed."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    identity = seccomp.AUDIT_ARCH[architecture] if arch is None else arch
    data = struct.pack("<IIQ6Q", number, identity, 0, *(value % 2**64 for value in padded))
    program = seccomp.program(architecture, PID, attributes)
    place, loaded = 0, 0
    while True:
        operation, if_so, if_not, operand = program[place]
        place += 1
        if operation == seccomp.RETURN:
            if operand == seccomp.KILL:
                return KILLED
            return ALLOWED if operand == seccomp.ALLOW else operand & 0xFFFF
        if operation == seccomp.LOAD:
            loaded = struct.unpack_from("<I", data, operand)[0]
            continue
        holds = {
            seccomp.JUMP_EQUAL: loaded == operand,
            seccomp.JUMP_ABOVE: loaded > operand,
            seccomp.JUMP_FROM: loaded >= operand,
            seccomp.JUMP_BITS: bool(loaded & operand),
        }
        place += if_so if holds[operation] else if_not


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("clone", (0x10900,), ALLOWED),
        ("clone", (signal.SIGCHLD,), errno.EAGAIN),
        ("clone3", (), errno.ENOSYS),
        ("execve", (), errno.EPERM),
        ("socket", (), errno.EPERM),
        ("kill", (PID, 9), ALLOWED),
        ("kill", (PID + 2**32, 9), ALLOWED),  # the kernel looks at the lower half alone
        ("kill", (0, 9), errno.EPERM),
        ("kill", (-1, 9), errno.EPERM),
        ("kill", (-PID, 9), errno.EPERM),
        ("kill", (1, 0), errno.EPERM),
        ("tgkill", (PID, PID + 1, 9), ALLOWED),
        ("tgkill", (PID + 1, PID + 1, 9), errno.EPERM),
        ("rt_sigqueueinfo", (1, 9), errno.EPERM),
        ("prlimit64", (0,), ALLOWED),
        ("prlimit64", (PID,), ALLOWED),
        ("prlimit64", (1,), errno.EPERM),
        ("sched_setaffinity", (PID + 1,), errno.EPERM),
        ("setpriority", (0, 0), ALLOWED),
        ("setpriority", (0, PID), ALLOWED),
        ("setpriority", (0, 1), errno.EPERM),
        ("setpriority", (2, 0), errno.EPERM),
        ("ioctl", (0, 0x5412), errno.EPERM),
        ("ioctl", (0, 0x5412 + 2**32), errno.EPERM),
        ("ioctl", (0, 0x5401), ALLOWED),
        ("fcntl", (3, 8, 1), errno.EPERM),
        ("fcntl", (3, 1), ALLOWED),
        ("prctl", (1, 0), errno.EPERM),
        ("prctl", (15,), ALLOWED),
        ("seccomp", (), ALLOWED),
    ],
)
def test_the_program_answers(architecture: str, name: str, arguments: tuple[int, ...], expected: int) -> None:
    assert answer(architecture, numbers(architecture)[name], *arguments) == expected


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_another_architecture_s_calls_kill(architecture: str) -> None:
    assert answer(architecture, 0, arch=0x40000003) == KILLED
    if architecture == "x86_64":
        assert answer(architecture, 0x40000000 + 39) == KILLED


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_calls_newer_than_the_filter_do_not_exist(architecture: str) -> None:
    assert answer(architecture, seccomp.LAST_KNOWN + 1) == errno.ENOSYS
    assert answer(architecture, 451) == ALLOWED


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_attributes_of_files_are_refused_where_there_is_no_view(architecture: str) -> None:
    number = numbers(architecture)["fchmodat"]
    assert answer(architecture, number) == ALLOWED
    assert answer(architecture, number, attributes=False) == errno.EPERM


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_numbers_are_those_of_the_kernel_s_headers(architecture: str) -> None:
    header = next((path for path in map(Path, HEADERS[architecture]) if path.exists()), None)
    if header is None:
        pytest.skip("the kernel's headers are not installed")
    text = header.read_text(encoding="utf-8")
    theirs = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    ours = numbers(architecture)
    assert {name: number for name, number in ours.items() if theirs.get(name, number) != number} == {}
    assert set(theirs.values()) & set(ours.values()) == {theirs[name] for name in ours if name in theirs}


@linux
@pytest.mark.parametrize(("level", "user"), FILTERED)
def test_the_kernel_refuses_what_the_program_names(level: str, user: int | None) -> None:
    code = """
import errno
def refused(name, *arguments):
    try:
        syscalls.call(name, *arguments)
    except OSError as error:
        return error.errno
    return 0
harmless = '''unshare setns chroot bpf userfaultfd io_uring_setup keyctl personality memfd_create perf_event_open
    pidfd_open msgget mq_open shmget name_to_handle_at process_vm_readv syslog'''.split()
answers = {name: refused(name, -1, -1, -1, -1, -1, -1) for name in harmless}
read, write = os.pipe()
tell([sorted({number for number in answers.values()}), refused("fcntl", read, 8, 1), refused("kill", os.getppid(), 0),
      refused("tkill", 1, 0), refused("setpriority", 2, os.getuid(), 19), refused("sched_setaffinity", 1, 8, None),
      refused("clone3", None, 0), refused("execve", b"/bin/true", None, None)])
"""
    with place(level, user) as guests:
        outcome = guests.run(code)
    assert outcome["answer"] == [[errno.EPERM], *[errno.EPERM] * 5, errno.ENOSYS, errno.EPERM]


@linux
@pytest.mark.parametrize(("level", "user"), FILTERED)
def test_a_guest_signals_itself(level: str, user: int | None) -> None:
    code = """
seen = []
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
os.kill(os.getpid(), signal.SIGUSR1)
signal.raise_signal(signal.SIGUSR1)
thread = threading.Thread(target=lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))
thread.start()
thread.join()
tell(len(seen))
"""
    with place(level, user) as guests:
        assert guests.run(code)["answer"] == 3


@linux
@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has other kinds of calls beside its own")
@pytest.mark.parametrize(("level", "user"), FILTERED)
@pytest.mark.parametrize(
    "code",
    [
        """
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid of 32 bits); int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
""",
        "ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 + 39))",
    ],
    ids=["32-bit", "x32"],
)
def test_calls_of_another_kind_kill_the_guest(level: str, user: int | None, code: str) -> None:
    with place(level, user) as guests:
        outcome = guests.run(code + "\ntell('survived')")
    assert "answer" not in outcome
    assert outcome["status"] == -signal.SIGSYS
