"""What a hostile submission tries, tried by a guest: the self-test of the confinement runs it in each level.

None of it does harm where it succeeds, beyond what the self-test has put there for it.
"""

from __future__ import annotations

import ctypes
import errno
import importlib.machinery
import mmap
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from .syscalls import ConfinementError, call

Targets = Mapping[str, Any]
"""What to reach for: `file`, `folder` and `missing` (a path beside the file), `readable` (a folder that may be read
only), `hidden` (paths), `modules` (names), `port`, `udp`, `abstract` (a name), `victim` (a process), `memory` and `tmp`
(the limits in bytes), `descriptors` (their limit), `mark` (a name for the process that is left behind)."""

REFUSED = (errno.EPERM, errno.EACCES, errno.ESRCH, errno.ENOSYS)
"""Answers of the kernel that mean no; another error comes from what was asked for, so it was not forbidden."""

DEVICES = ("mem", "kmem", "port", "kmsg", "vda", "sda", "xvda", "nvme0n1", "mmcblk0", "dm-0", "loop0", "fuse", "kvm")

PTRACE_SEIZE = 0x4206
NEW_USERS = 0x10000000
PR_SET_NAME = 15
DAEMON_SECONDS = 600
SPARE_BYTES = 2**28

_ATTEMPTS: dict[str, Callable[[Targets], str]] = {}


def _attempt(function: Callable[[Targets], str]) -> Callable[[Targets], str]:
    """Make a function, which says what it achieved and raises OSError where it is held back, one of the attempts."""
    _ATTEMPTS[function.__name__.replace("_", " ")] = function
    return function


def names() -> tuple[str, ...]:
    """The names of all attempts."""
    return tuple(_ATTEMPTS)


def attempts(targets: Targets) -> dict[str, str]:
    """Try everything; by name what succeeded, or nothing where the attempt was withstood."""
    found = {}
    for name, function in _ATTEMPTS.items():
        found[name] = ""
        with suppress(OSError, MemoryError, ConfinementError):
            found[name] = function(targets)
    return found


def _reached(name: str, *arguments: Any) -> str:
    """Make a system call that cannot succeed; what tells that nothing but its arguments held it back."""
    try:
        call(name, *arguments)
    except OSError as error:
        return "" if error.errno in REFUSED else f"{name} is carried out (it says {error.strerror})"
    return f"{name} succeeds"


def _write_into(folder: str, targets: Targets) -> str:
    path = Path(folder, f"rlassay-{targets['mark']}")
    path.touch()
    path.unlink()
    return f"wrote to {folder}"


@_attempt
def read_a_file(targets: Targets) -> str:
    return f"read {len(Path(targets['file']).read_bytes())} bytes of {targets['file']}"


@_attempt
def list_a_folder(targets: Targets) -> str:
    return f"found {len(os.listdir(targets['folder']))} names in {targets['folder']}"


@_attempt
def write_a_file(targets: Targets) -> str:
    Path(targets["missing"]).write_text("written", encoding="utf-8")
    return f"wrote {targets['missing']}"


@_attempt
def change_a_file(targets: Targets) -> str:
    os.chmod(targets["file"], 0o777)
    return f"changed the mode of {targets['file']}"


@_attempt
def write_to_the_interpreter(targets: Targets) -> str:
    return _write_into(targets["readable"], targets)


@_attempt
def read_what_is_hidden(targets: Targets) -> str:
    for path in _files(targets["hidden"]):
        with suppress(OSError):
            if Path(path).read_bytes():
                return f"read {path}"
    return ""


def _files(places: list[str]) -> Iterator[str]:
    yield from places
    for folder, _, names in (part for place in places for part in os.walk(place)):
        yield from (os.path.join(folder, name) for name in names)


@_attempt
def import_what_is_hidden(targets: Targets) -> str:
    for name in targets["modules"]:
        spec = importlib.machinery.PathFinder.find_spec(name)
        if spec is not None and spec.origin is not None:
            with suppress(OSError), open(spec.origin, "rb") as source:
                source.read()
                return f"can import {name}"
    return ""


@_attempt
def connect_by_tcp(targets: Targets) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        client.connect(("127.0.0.1", targets["port"]))
    return f"connected to port {targets['port']}"


@_attempt
def send_by_udp(targets: Targets) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"sent", ("127.0.0.1", targets["udp"]))
    return f"sent to port {targets['udp']}, as a question to a name server would be"


@_attempt
def connect_to_an_abstract_socket(targets: Targets) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect("\0" + targets["abstract"])
    return "connected to a socket of the host"


@_attempt
def fork(targets: Targets) -> str:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "forked a process"


@_attempt
def execute_a_program(targets: Targets) -> str:
    return _reached("execve", b"/nowhere/to/be/found", None, None)


@_attempt
def signal_the_parent(targets: Targets) -> str:
    os.kill(os.getppid(), 0)
    return "may send signals to its parent"


@_attempt
def trace_a_process(targets: Targets) -> str:
    for pid in (targets["victim"], os.getppid()):
        with suppress(OSError):
            call("ptrace", PTRACE_SEIZE, pid, 0, 0)
            return f"traces process {pid}"
    return ""


@_attempt
def read_memory_of_a_process(targets: Targets) -> str:
    part = (ctypes.c_size_t * 2)(ctypes.addressof(there := ctypes.create_string_buffer(8)), len(there))
    for pid in (targets["victim"], os.getppid()):
        if _reached("process_vm_readv", pid, part, 1, part, 1, 0):
            return f"reads the memory of process {pid}"
    return ""


@_attempt
def see_other_processes(targets: Targets) -> str:
    others = set(filter(str.isdecimal, os.listdir("/proc"))) - {"1", str(os.getpid())}
    return f"sees {len(others)} processes" if others else ""


@_attempt
def read_an_environment(targets: Targets) -> str:
    for pid in (targets["victim"], os.getppid()):
        with suppress(OSError):
            if Path(f"/proc/{pid}/environ").read_bytes():
                return f"read the environment of process {pid}"
    return ""


@_attempt
def become_root(targets: Targets) -> str:
    os.setuid(0)
    return "is root"


@_attempt
def have_capabilities(targets: Targets) -> str:
    held = (ctypes.c_uint32 * 6)()
    call("capget", (ctypes.c_uint32 * 2)(0x20080522, 0), held)
    return f"has capabilities {list(held)}" if any(held) else ""


@_attempt
def mount(targets: Targets) -> str:
    place = tempfile.mkdtemp()
    call("mount", b"none", place.encode(), b"tmpfs", 0, None)
    call("umount2", place.encode(), 2)
    return "mounted a file system"


@_attempt
def fill_tmp(targets: Targets) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            with open(Path(folder, str(number)), "xb") as file:
                os.posix_fallocate(file.fileno(), 0, targets["tmp"] // 2 + 1)
    return f"took more than {targets['tmp']} bytes"


@_attempt
def write_a_large_file(targets: Targets) -> str:
    with tempfile.TemporaryFile() as file:
        file.truncate(targets["tmp"] + 1)
    return f"wrote a file of more than {targets['tmp']} bytes"


@_attempt
def allocate_memory(targets: Targets) -> str:
    mmap.mmap(-1, targets["memory"] + SPARE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    return f"allocated more than {targets['memory']} bytes"


@_attempt
def open_devices(targets: Targets) -> str:
    for path in (*(f"/dev/{name}" for name in DEVICES), "/proc/kcore"):
        with suppress(OSError):
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            return f"opened {path}"
    return ""


@_attempt
def share_memory(targets: Targets) -> str:
    if reached := _reached("memfd_create", b"", -1) or _reached("shmget", 0, 0, 0):
        return reached
    return _write_into("/dev/shm", targets)


@_attempt
def open_many_descriptors(targets: Targets) -> str:
    with ExitStack() as opened:
        for _ in range(targets["descriptors"] + 1):
            opened.callback(os.close, os.dup(0))
    return f"opened more than {targets['descriptors']} descriptors"


@_attempt
def kill_a_process(targets: Targets) -> str:
    os.kill(targets["victim"], signal.SIGKILL)
    return f"killed process {targets['victim']}"


@_attempt
def leave_a_daemon(targets: Targets) -> str:
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                call("prctl", PR_SET_NAME, targets["mark"].encode(), 0, 0, 0)
                time.sleep(DAEMON_SECONDS)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return "left a process behind"


@_attempt
def make_a_user_namespace(targets: Targets) -> str:
    call("unshare", NEW_USERS)
    return "is all-powerful in a user namespace"
