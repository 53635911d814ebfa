"""The record stream: one JSON object a line, a header, then one line per check, explanations, a footer.

The stream is the one truth about a run; the terminal summary, JUnit and every other report are derived from it. Each
line is flushed when written, so a run that is killed leaves a readable record; without a footer it is incomplete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Literal

import msgspec

SCHEMA = 1

UNEXPLAINED = "no known fault matches"
"""What an explanation that explains nothing begins with."""

Outcome = Literal["pass", "fail", "error", "timeout", "crash", "not-provided", "not-declared", "harness-error"]


class Header(msgspec.Struct, tag="header", tag_field="type", kw_only=True, omit_defaults=True):
    """Who judged what, with which settings, and how many checks should follow.

    `operations` are those that the target provides, `selected` those of which the run has checks. `checks` is how many
    check lines should follow, `available` how many checks the whole suite has. `notes` are about names in the target
    that are nearly an operation's.
    """

    schema: int
    rlassay: str
    python: str
    libraries: dict[str, str]
    target: str
    sha256: str
    interface: str
    convention: dict[str, str | int | float | None]
    seed: int
    profile: str
    operations: list[str]
    selected: list[str]
    checks: int
    available: int
    expression: str = ""
    strict: bool = False
    notes: list[str] = []


class Failure(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The smallest failing example: what was called, what came, what should have come."""

    message: str
    call: str = ""
    case: dict[str, str] = {}
    inputs: dict[str, str] = {}
    got: str = ""
    expected: str = ""
    snippet: str = ""
    traceback: str = ""


class CheckResult(msgspec.Struct, tag="check", tag_field="type", kw_only=True, omit_defaults=True):
    """The outcome of one check."""

    id: str
    title: str
    operations: list[str]
    claims: list[str]
    kind: Literal["conformance", "robustness"]
    outcome: Outcome
    examples: int = 0
    seconds: float = 0.0
    failure: Failure | None = None
    known: str = ""
    """Reason from the file of expected failures, if this outcome is in it."""


class Explanation(msgspec.Struct, tag="explanation", tag_field="type", kw_only=True, omit_defaults=True):
    """What a failing operation behaves like."""

    operation: str
    text: str
    convention: dict[str, str | int | float | None] = {}
    fault: str = ""


class Footer(msgspec.Struct, tag="footer", tag_field="type", kw_only=True, omit_defaults=True):
    """The end of a complete run."""

    outcomes: dict[str, int]
    conforms: bool
    robust: bool
    exit_code: int
    stale: list[str] = []


Line = Header | CheckResult | Explanation | Footer


class Record(msgspec.Struct):
    """A run as read back from its stream."""

    header: Header
    checks: list[CheckResult]
    explanations: list[Explanation]
    footer: Footer | None = None

    @property
    def complete(self) -> bool:
        """Whether the run came to its end: it has a footer and as many checks as the header promised."""
        return self.footer is not None and len(self.checks) == self.header.checks


class RecordError(Exception):
    """A record that cannot be read; names the file and the line."""


def encode(line: msgspec.Struct) -> bytes:
    """One line of the stream, with its newline; lone surrogates, which JSON cannot carry, become question marks."""
    try:
        return msgspec.json.encode(line) + b"\n"
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(line), ensure_ascii=False).encode(errors="replace") + b"\n"


def decode(line: bytes) -> Line:
    """One line back as an object."""
    return msgspec.json.decode(line, type=Line)


def write(stream: IO[bytes], line: msgspec.Struct) -> None:
    """Append a line and flush it."""
    stream.write(encode(line))
    stream.flush()


def read_record(path: Path) -> Record:
    """Read a record stream; one that was cut off in the middle of a line loses that line only.

    Raises:
        RecordError: the file is missing, has no header, or a line in it is no record line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    if not content:
        raise RecordError(f"{path}: is empty; its run ended before the first check")
    parsed: list[Line] = []
    for number, text in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            parsed.append(decode(text))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RecordError(f"{path}, line {number}: not a line of a record stream: {error}") from error
    return gather(parsed, str(path))


def gather(lines: Iterable[Line], origin: str = "record") -> Record:
    """Assemble a record from its lines.

    Raises:
        RecordError: the lines are not one header, checks and explanations, and at most one footer, in this order.
    """
    stream = iter(lines)
    header = next(stream, None)
    if not isinstance(header, Header):
        message = "does not start with a header; is this a record written by `rlassay check --json`?"
        raise RecordError(f"{origin}: {message}")
    if header.schema != SCHEMA:
        message = f"has schema {header.schema}, written by rlassay {header.rlassay}; this one reads schema {SCHEMA}"
        raise RecordError(f"{origin}: {message}")
    record = Record(header, [], [])
    for line in stream:
        if isinstance(line, Header) or record.footer is not None:
            raise RecordError(f"{origin}: goes on after its end; does it hold more than one run?")
        if isinstance(line, CheckResult):
            record.checks.append(line)
        elif isinstance(line, Explanation):
            record.explanations.append(line)
        else:
            record.footer = line
    return record
