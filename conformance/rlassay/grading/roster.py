"""A list of students that the staff keep: ids, names, and when each handed in."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


class RosterError(Exception):
    """A roster that cannot be read; names the line, says what is wrong and what to do."""


@dataclass(frozen=True)
class RosterEntry:
    """A student: the id as the platform has it, the name, and when the submission came, where that is known."""

    id: str
    name: str = ""
    submitted: datetime | None = None


def read_roster(path: Path) -> dict[str, RosterEntry]:
    """The students in a CSV file with the columns `id` and, if wanted, `name` and `submitted`; others are not read.

    A time is ISO 8601 with an offset: `2026-12-01T23:41:07+01:00`.

    Raises:
        RosterError: it cannot be read, has no ids, an id twice, or a time without an offset.
    """
    entries: dict[str, RosterEntry] = {}
    for line, entry in _read(path):
        if entry.id in entries:
            raise RosterError(f"{path}, line {line}: {entry.id!r} is there twice; keep one of the lines")
        entries[entry.id] = entry
    return entries


def _read(path: Path) -> Iterator[tuple[int, RosterEntry]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, strict=True)
            header = [name.strip().lower() for name in next(rows, [])]
            if "id" not in header:
                raise RosterError(f"{path}, line 1: has no column named id; the first line names the columns")
            for row in rows:
                if any(map(str.strip, row)):
                    yield rows.line_num, _entry(path, rows.line_num, header, row)
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not UTF-8; save it as CSV UTF-8"
        raise RosterError(f"{path}: cannot be read: {what}") from error
    except csv.Error as error:
        raise RosterError(f"{path}, line {rows.line_num}: is not CSV: {error}") from error


def _entry(path: Path, line: int, header: list[str], row: list[str]) -> RosterEntry:
    if len(row) > len(header):
        raise RosterError(
            f"{path}, line {line}: has {len(row)} fields for {len(header)} columns; quote those with commas"
        )
    fields = {name: text.strip() for name, text in zip(header, row, strict=False)}
    if not fields.get("id"):
        raise RosterError(f"{path}, line {line}: has no id")
    return RosterEntry(fields["id"], fields.get("name", ""), _time(path, line, fields.get("submitted", "")))


def _time(path: Path, line: int, text: str) -> datetime | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        what = "is no time" if time is None else "has no offset from UTC"
        raise RosterError(f"{path}, line {line}: {text!r} {what}; write it as 2026-12-01T23:41:07+01:00")
    return time
