"""What can go wrong with a subject."""

from __future__ import annotations


class SubjectRaised(Exception):
    """The subject raised an exception; keeps the names of its type and base types, its message and its traceback."""

    def __init__(
        self, kind: str, message: str, bases: tuple[str, ...] = (), traceback: str = "", during: str = "the call"
    ) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.message = message
        self.bases = bases
        self.traceback = traceback
        self.during = during


class TargetError(Exception):
    """The target cannot be judged at all; says what, why and what to do."""
