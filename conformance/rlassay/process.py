"""One worker process, seen from its parent: requests go in, answers or the reason why there is none come out."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

import msgspec

from rlassay.record import encode
from rlassay.subject import SubjectGone
from rlassay.worker import Answer, Request

COMMAND = (sys.executable, "-P", "-W", "ignore", "-m", "rlassay.worker")
"""What starts a worker: without the current folder on the path, where a file of the subject may be called random.py."""

LAST_LINES, LAST_CHARACTERS = 200, 4000
"""So much of the end of the worker's standard error is searched for the place of a crash, and recorded."""

PARTING_SECONDS = 2.0
"""How long a worker that is to end may take over it."""

FRAME = re.compile(r'^  File "(?P<file>[^<].*)", line (?P<line>\d+) in ')
HARNESS = str(Path(__file__).parent)
TORCH = os.path.join("site-packages", "torch", "")


class Process:
    """A worker process and the threads that read its answers and its standard error.

    It leads a process group of its own: Ctrl-C in the terminal does not reach the subject, and what the subject starts
    ends with it.
    """

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.stderr: deque[bytes] = deque(maxlen=LAST_LINES)
        self.readers = [threading.Thread(target=read, daemon=True) for read in (self._read_answers, self._read_stderr)]
        for reader in self.readers:
            reader.start()

    def _read_answers(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                self.answers.put(line)
        self.answers.put(b"")

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            while chunk := stream.readline(4096):
                self.stderr.append(chunk)

    def ask(self, request: Request, seconds: float) -> Answer:
        """Send a request and wait for its answer; a worker that gives none is ended.

        Raises:
            SubjectGone: the worker died or did not answer in time.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(encode(request))
            self.process.stdin.flush()
            line = self.answers.get(timeout=seconds)
            answer: Answer = msgspec.json.decode(line, type=Answer)
        except queue.Empty:
            self.process.send_signal(signal.SIGABRT)  # it writes where it is to its standard error, and ends
            self._ending()
            raise _gone(f"gave no answer within {seconds:g} s", self._last_words(), late=True) from None
        except (OSError, msgspec.MsgspecError):
            ending = self._ending()
            raise _gone(ending, self._last_words()) from None
        return answer

    def _ending(self) -> str:
        """How the worker ended, or was made to end if it did not."""
        try:
            status = self.process.wait(PARTING_SECONDS)
        except subprocess.TimeoutExpired:
            return "sent what is no answer"
        return f"was killed by {signal_name(-status)}" if status < 0 else f"ended with exit status {status}"

    def _last_words(self) -> str:
        """What the worker wrote to its standard error before it ended."""
        self.close()
        return b"".join(self.stderr).decode(errors="replace")

    def close(self) -> None:
        """Kill the worker and the processes that it started."""
        if sys.platform == "win32":
            self.process.kill()
        else:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        for reader in self.readers:
            reader.join(PARTING_SECONDS)
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except OSError:
            pass


def _gone(what: str, stderr: str, late: bool = False) -> SubjectGone:
    return SubjectGone(what + _place(stderr), late, stderr[-LAST_CHARACTERS:])


def signal_name(number: int) -> str:
    """`SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _place(stderr: str) -> str:
    """The line of the subject that was running, from the frames that a dying worker writes, innermost first."""
    inner: re.Match[str] | None = None
    for frame in filter(None, map(FRAME.match, stderr.splitlines())):
        if frame["file"].startswith(HARNESS):
            break
        inner = inner if TORCH in frame["file"] else frame
    return f" ({inner['file']}, line {inner['line']})" if inner else ""
