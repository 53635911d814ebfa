"""A session: one submission and the guests that answer for it, one after another as they hang, crash or break rules."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlassay.guest.confine import Confinement
from rlassay.guest.errors import TargetError
from rlassay.guest.interfaces.cs336 import ADAPTED
from rlassay.guest.submission import MOST_NAMES, MOST_NOTES, MOST_TEXT
from rlassay.guest.wire import Closed, Late, WireError
from rlassay.isolation.warm import Guest, IsolationError, WarmProcess
from rlassay.subject import SubjectGone

MOST_GUESTS = 40
"""So many guests a session may use up before it is over."""


@dataclass(frozen=True)
class Limits:
    """Seconds that a session may wait: for one call, for one load, and in all."""

    call: float
    load: float
    total: float


@dataclass(frozen=True)
class Loading:
    """What a guest is to load: the target and the folders where imports start, relative to the folder that it finds
    itself in, the interface, the names of the operations, modules that there are stand-ins for, and how ("modules" or
    "definitions")."""

    target: str
    interface: str
    operations: tuple[str, ...]
    imports: tuple[str, ...] = ()
    stubs: tuple[str, ...] = ()
    how: str = "modules"


@dataclass(frozen=True)
class Loaded:
    """What a guest says of what it loaded; of exact builtin types, but otherwise not to be believed."""

    operations: tuple[str, ...]
    declared: Any
    names: tuple[str, ...]
    notes: tuple[str, ...]
    python: str
    libraries: Mapping[str, str]


class Session:
    """Loads a submission when it is made, and answers calls.

    Raises:
        TargetError: the submission does not load.
        SubjectGone: it hangs or crashes while it loads.
        IsolationError: no guest is to be had.
    """

    def __init__(self, warm: WarmProcess, confinement: Confinement, loading: Loading, limits: Limits) -> None:
        self.warm, self.confinement, self.loading, self.limits = warm, confinement, loading, limits
        self.left = limits.total
        self.cpu = 0.0
        self.guests = 0
        self.guest: Guest | None = None
        self.broken: IsolationError | None = None
        try:
            self.loaded = self._start()
        except BaseException:
            self.close()
            raise

    def call(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a call.

        That no guest is to be had is remembered in `broken`: nothing that is said of the submission then counts.

        Raises:
            SubjectGone: there is none, or none that is one, and the guest is gone; the next call goes to another one.
        """
        try:
            if self.guest is None:
                self._start()
            return self._ask({"do": "call", **request}, self.limits.call)
        except IsolationError as error:
            self.broken = error
            raise
        except TargetError as error:
            raise SubjectGone(f"was not asked: the submission loaded at first, but not again: {error}") from error
        except WireError as error:
            raise SubjectGone(f"was ended: it {error}") from error

    def _start(self) -> Loaded:
        """Have a guest load the submission."""
        if self.guests >= MOST_GUESTS or self.left <= 0:
            spent = f"{self.limits.total:g} s" if self.left <= 0 else f"{MOST_GUESTS} processes"
            raise SubjectGone(f"was not asked: the {spent} that the submission may take are used up", late=True)
        self.guests += 1
        loading = self.loading
        self.guest = self.warm.guest(self.confinement, loading.imports, loading.stubs)
        request = {
            "do": "load",
            "target": loading.target,
            "interface": loading.interface,
            "operations": loading.operations,
            "how": loading.how,
        }
        try:
            answer = self._ask(request, self.limits.load)
            if "unusable" in answer:
                self._end()
                raise TargetError(_text(answer["unusable"]))
            return _loaded(answer, loading.operations)
        except WireError as error:
            self.close()
            raise TargetError(f"does not load: its process {error}") from error
        except SubjectGone as gone:
            raise SubjectGone(f"{gone} while it was loaded", gone.late) from None

    def _ask(self, request: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """Send a request and wait for its answer; a guest that gives none, or none that is one, is ended."""
        assert self.guest is not None
        channel = self.guest.channel
        nonce = secrets.token_hex(8)
        begun, left = time.monotonic(), max(self.left, 0.001)
        until = begun + min(seconds, left)
        try:
            channel.send({"nonce": nonce, **request}, until - begun)
            answer = channel.receive(until - time.monotonic())
            answered = answer.pop("nonce", None)
            if type(answered) is not str or answered != nonce:
                raise WireError("answered something that it was not asked")
        except Late:
            self._end()
            if seconds >= left:
                raise SubjectGone(f"has used up its {self.limits.total:g} s", late=True) from None
            raise SubjectGone(f"gave no answer within {seconds:g} s", late=True) from None
        except Closed:
            raise SubjectGone(self._end()) from None
        except WireError:
            self._end()
            raise
        finally:
            self.left -= time.monotonic() - begun
        return answer

    def _end(self) -> str:
        """End the guest; how it ended."""
        assert self.guest is not None
        guest, self.guest = self.guest, None
        try:
            ending = guest.end()
        except IsolationError as error:
            self.broken = error
            raise
        self.cpu += ending.cpu
        return ending.text

    def close(self) -> None:
        """End the guest and all of its processes; if there is another call, it goes to another guest."""
        if self.guest is not None:
            self._end()


def _loaded(answer: Mapping[str, Any], operations: tuple[str, ...]) -> Loaded:
    """An answer to a request to load.

    Raises:
        WireError: it is none.
    """
    libraries = answer.get("libraries")
    if type(libraries) is not dict or len(libraries) > MOST_NAMES:
        raise WireError("sent no names of libraries")
    provided = {_text(name) for name in _texts(answer.get("operations"))}
    return Loaded(
        operations=tuple(name for name in dict.fromkeys((*operations, *ADAPTED)) if name in provided),
        declared=answer.get("declared"),
        names=tuple(_texts(answer.get("names"))[:MOST_NAMES]),
        notes=tuple(_texts(answer.get("notes"))[:MOST_NOTES]),
        python=_text(answer.get("python")),
        libraries={_text(name): _text(version) for name, version in libraries.items()},
    )


def _texts(value: Any) -> list[str]:
    if type(value) is not list:
        raise WireError("sent no list")
    return [_text(entry) for entry in value]


def _text(value: Any) -> str:
    if type(value) is not str:
        raise WireError("sent no text")
    return value[-MOST_TEXT:]
