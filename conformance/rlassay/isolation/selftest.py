"""The self-test of the confinement: a guest tries to break out, and what it says and what it left are judged."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlassay.guest import probe
from rlassay.guest.confine import Confinement
from rlassay.guest.limits import DESCRIPTORS, UNPRIVILEGED

Run = Callable[[Confinement, dict[str, Any]], Mapping[str, str]]
"""Has a guest, confined so, make the attempts of `probe` on these targets: its answers."""

COUNTED = frozenset({"write a large file", "open many descriptors"})
OF_LINUX = frozenset({"allocate memory", "become root", "have capabilities"})

PROMISES: Mapping[str, frozenset[str]] = {
    "namespaces": frozenset(probe.names()),
    "filtered": frozenset(probe.names()) - {"fill tmp"},
    "limits": COUNTED | OF_LINUX if sys.platform == "linux" else COUNTED,
}
"""The attempts that each level withstands; of the others nothing is said."""

MODULES = ("rlassay", "rlassay_spec", "rlassay_impl")
VICTIM_SECONDS = "600"


@dataclass(frozen=True)
class SelfTest:
    """What came of it: by attempt what succeeded, or nothing, and whether the level keeps its promises."""

    level: str
    attempts: dict[str, str]
    withstood: bool

    @property
    def broken(self) -> dict[str, str]:
        """What succeeded although the level promises that it does not."""
        return {name: what for name, what in self.attempts.items() if what and name in PROMISES[self.level]}


def selftest(confinement: Confinement, run: Run) -> SelfTest:
    """Have a guest that is confined in this way (`source` apart) try to break out."""
    with _surroundings(confinement) as surroundings:
        answers = run(replace(confinement, source=str(surroundings.source)), surroundings.targets)
        found = {name: answers.get(name, "gave no answer") for name in probe.names()}
        found |= {name: what for name, what in surroundings.traces() if not found[name]}
    broken = any(found[name] for name in PROMISES[confinement.level])
    return SelfTest(confinement.level, found, not broken)


@dataclass(frozen=True)
class _Surroundings:
    """What a guest could reach if nothing held it back, and what shows whether it did."""

    source: Path
    targets: dict[str, Any]
    content: bytes
    victim: subprocess.Popen[bytes]
    sockets: Mapping[str, socket.socket]

    def traces(self) -> Iterator[tuple[str, str]]:
        """Attempts that left traces, whatever the guest says of them."""
        file, missing = Path(self.targets["file"]), Path(self.targets["missing"])
        if missing.exists() or file.read_bytes() != self.content or len(list(file.parent.iterdir())) != 1:
            yield "write a file", f"something was written to {file.parent}"
        if file.stat().st_mode & 0o777 != 0o644:
            yield "change a file", f"the mode of {file} is not what it was"
        for name, end in self.sockets.items():
            with suppress(BlockingIOError):
                if end.type == socket.SOCK_DGRAM:
                    end.recv(16)
                else:
                    end.accept()[0].close()
                yield name, "the listener was reached"
        if self.victim.poll() is not None:
            yield "kill a process", f"the victim ended with status {self.victim.returncode}"
        for pid in _named(self.targets["mark"]):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            yield "leave a daemon", f"process {pid} was still there"


@contextmanager
def _surroundings(confinement: Confinement) -> Iterator[_Surroundings]:
    """Everything lies open to the user that a guest is: nothing but the confinement holds it back."""
    mark = f"r{secrets.token_hex(6)}"
    content = secrets.token_bytes(32)
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rlassay-", ignore_cleanup_errors=True)))
        base.chmod(0o755)
        source, folder = base / "source", base / "folder"
        for made in (source, folder):
            made.mkdir()
        folder.chmod(0o777)
        Path(source, "submission.py").touch()
        file = folder / "canary"
        file.write_bytes(content)
        file.chmod(0o644)
        if os.getuid() == 0:
            os.chown(file, UNPRIVILEGED, UNPRIVILEGED)
        sockets = {name: stack.enter_context(end) for name, end in _listeners(mark)}
        victim = stack.enter_context(_victim(mark))
        targets = {
            "file": str(file),
            "folder": str(folder),
            "missing": str(folder / "missing"),
            "readable": next((path for path in confinement.readable if os.path.isdir(path)), "/usr"),
            "hidden": list(confinement.hidden),
            "modules": list(MODULES),
            "port": sockets["connect by tcp"].getsockname()[1],
            "udp": sockets["send by udp"].getsockname()[1],
            "abstract": mark,
            "victim": victim.pid,
            "memory": confinement.memory,
            "tmp": confinement.tmp,
            "descriptors": DESCRIPTORS,
            "mark": mark,
        }
        yield _Surroundings(source, targets, content, victim, sockets)


def _listeners(mark: str) -> Iterator[tuple[str, socket.socket]]:
    """Sockets that note it when they are reached, by the attempt that reaches them."""
    ends = [
        ("connect by tcp", socket.socket(socket.AF_INET, socket.SOCK_STREAM), ("127.0.0.1", 0)),
        ("send by udp", socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", 0)),
    ]
    for name, end, address in ends:
        end.bind(address)
        end.setblocking(False)
        if end.type == socket.SOCK_STREAM:
            end.listen()
        yield name, end
    if sys.platform == "linux":
        abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        abstract.bind(f"\0{mark}")
        abstract.setblocking(False)
        abstract.listen()
        yield "connect to an abstract socket", abstract


@contextmanager
def _victim(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the user that guests are."""
    command = [shutil.which("sleep") or "/bin/sleep", VICTIM_SECONDS]
    user = UNPRIVILEGED if os.getuid() == 0 else None
    process = subprocess.Popen(command, env={"CANARY": mark}, user=user, stdin=subprocess.DEVNULL, cwd="/")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _named(mark: str) -> Iterator[int]:
    """Processes that go by this name."""
    for entry in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if entry.read_text(encoding="utf-8", errors="replace").strip() == mark:
                yield int(entry.parent.name)
