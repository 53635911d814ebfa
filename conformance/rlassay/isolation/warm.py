"""The warm process seen from the harness: guests are had from it, confined before they load anything."""

from __future__ import annotations

import json
import os
import signal
import site
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from rlassay.guest.confine import Confinement
from rlassay.guest.wire import Channel, Closed, Late, WireError
from rlassay.isolation.view import view_of
from rlassay.process import signal_name

WARM = Path(__file__).parents[1] / "guest" / "warm.py"

START_SECONDS = 300.0
"""How long importing torch may take on a machine that is busy, or reads it from a network."""

CONFINE_SECONDS = 60.0
"""How long a fork and its confinement may take."""

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "USER": "guest",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "TORCHDYNAMO_DISABLE": "1",
}
"""All that a submission finds in its environment. torch.compile leaves functions as they are: compiling them takes a
compiler and new processes, and the numbers are the same."""


class IsolationError(Exception):
    """The harness cannot give a submission the process it should have; nothing of this is the submission's fault."""


@dataclass(frozen=True)
class Ending:
    """How a guest ended: in words, and the CPU seconds that it took."""

    text: str
    cpu: float


class WarmProcess:
    """A process that has imported torch and numpy, of the interpreter `python`, which forks guests.

    `view` is what of the machine they should see.

    Raises:
        IsolationError: it does not start.
    """

    def __init__(self, python: str = sys.executable) -> None:
        self.python = python
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process that writes to it
        try:
            self.process = subprocess.Popen(
                [python, "-B", "-W", "ignore", str(WARM), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                env=_environment(python),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            self.control.close()
            self.errors.close()
            raise IsolationError(f"{python}: cannot be started: {error.strerror}") from error
        finally:
            theirs.close()
        try:
            self.view = view_of(**self._answer(START_SECONDS))
        except BaseException:
            self.close()
            raise

    def guest(
        self, confinement: Confinement, imports: Sequence[str] = (), stubs: Sequence[str] = (), run: str = "serve"
    ) -> Guest:
        """A new guest, which is confined already.

        `imports` are folders of the submission that modules are looked for in, `stubs` modules that there are stand-ins
        for; `run` is what to do: to serve, or to make the attempts of the self-test on the targets that it holds.

        Raises:
            IsolationError: there is none to be had.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        request = {
            "do": "fork",
            "confinement": asdict(confinement),
            "imports": list(imports),
            "stubs": list(stubs),
            "run": run,
        }
        try:
            answer = self._ask(request, [theirs.fileno()])
        except IsolationError:
            ours.close()
            raise
        finally:
            theirs.close()
        guest = Guest(self, answer["pid"], Channel(ours), keeper=confinement.level == "namespaces")
        try:
            first = guest.channel.receive(CONFINE_SECONDS)
        except (Closed, Late, WireError) as error:
            ending = guest.end()
            raise IsolationError(f"a guest {ending.text} before it was confined: {error}") from error
        if "confined" not in first:
            guest.end()
            raise IsolationError(f"a guest cannot be confined: {first.get('unconfined')}")
        return guest

    def end(self, pid: int, keeper: bool) -> Ending:
        """End a guest with all of its processes; `keeper` tells that the process is the keeper of its namespaces."""
        answer = self._ask({"do": "end", "pid": pid, "keeper": keeper}, [])
        status = answer["status"]
        if os.WIFSIGNALED(status):
            text = f"was killed by {signal_name(os.WTERMSIG(status))}"
        else:
            text = f"ended with exit status {os.WEXITSTATUS(status)}"
        return Ending(text, answer["cpu"])

    def _ask(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        try:
            socket.send_fds(self.control, [json.dumps(request).encode()], descriptors)
        except OSError as error:
            raise IsolationError(f"the warm process is gone: {error}{self._last_words()}") from error
        return self._answer(CONFINE_SECONDS)

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            self.control.settimeout(seconds)
            data = self.control.recv(2**16)
        except TimeoutError:
            self.close()
            raise IsolationError(f"{self.python}: the warm process does not answer") from None
        except OSError:
            data = b""
        if not data:
            words = self._last_words()
            self.close()
            raise IsolationError(f"{self.python}: the warm process ended{words}; does it have torch and numpy?")
        answer: dict[str, Any] = json.loads(data)
        return answer

    def _last_words(self) -> str:
        if self.errors.closed:
            return ""
        self.errors.seek(0)
        lines = self.errors.read()[-4000:].decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def close(self) -> None:
        """End it, and with it every guest."""
        self.control.close()
        if self.process.returncode is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            self.process.wait()
        self.errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Guest:
    """A guest and the connection to it."""

    def __init__(self, warm: WarmProcess, pid: int, channel: Channel, keeper: bool) -> None:
        self.warm = warm
        self.pid = pid
        self.channel = channel
        self.keeper = keeper

    def end(self) -> Ending:
        """End it, with all of its processes."""
        self.channel.end.close()
        return self.warm.end(self.pid, self.keeper)


def _environment(python: str) -> dict[str, str]:
    """The environment of a guest; packages of the user's own are found where this interpreter has them too."""
    if python == sys.executable and site.ENABLE_USER_SITE:
        return {**ENVIRONMENT, "PYTHONUSERBASE": site.getuserbase()}
    return dict(ENVIRONMENT)
