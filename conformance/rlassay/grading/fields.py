"""Reads the fields of TOML files one by one; whatever is wrong with one is an error with its line and a hint."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from rlassay.describe import plain
from rlassay.grading.toml_lines import Place, toml_lines
from rlassay.guest.importing import did_you_mean

UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
"""Units of sizes, in bytes."""


class TomlError(ValueError):
    """A file that cannot be used: its name, the line, what is wrong, and what to do about it."""


@dataclass(frozen=True)
class Table:
    """One table of a file, its place in it, and the lines of everything in the file."""

    path: Path
    entries: Mapping[str, Any]
    lines: Mapping[Place, int]
    error: type[TomlError]
    place: Place = ()

    def fail(self, field: str | int, what: str) -> NoReturn:
        """Raise the error about a field, or about the table where the field is missing or empty."""
        place = (*self.place, field)
        while place and place not in self.lines:
            place = place[:-1]
        raise self.error(plain(f"{self.path}, line {self.lines.get(place, 1)}: {what}"))

    def wrong(self, field: str, wanted: str) -> NoReturn:
        """Raise the error about a field that has another value than it should have, or none."""
        if field not in self.entries:
            self.fail(field, f"{field} is missing; it should be {wanted}")
        self.fail(field, f"{field} is {shown(self.entries[field])}, but should be {wanted}")

    def only(self, *fields: str) -> None:
        """Every field of the table is one of these."""
        for field in self.entries:
            if field not in fields:
                hint = did_you_mean(field, fields) or f"; the fields here are {', '.join(fields)}"
                self.fail(field, f"unknown field {field!r}{hint}")

    def text(self, field: str, default: str | None = None) -> str:
        """A line of text that is not empty."""
        value = self.entries.get(field, default)
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            self.wrong(field, "one line of text that is not empty")
        return value.strip()

    def choice(self, field: str, allowed: Collection[str], default: str | None = None) -> str:
        """One of some texts."""
        value = self.entries.get(field, default)
        if not isinstance(value, str) or value not in allowed:
            hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
            self.wrong(field, f"one of {', '.join(map(repr, allowed))}{hint}")
        return value

    def flag(self, field: str, default: bool) -> bool:
        """True or false."""
        value = self.entries.get(field, default)
        if not isinstance(value, bool):
            self.wrong(field, "true or false")
        return value

    def number(self, field: str, default: Fraction | None = None, most: int | None = None) -> Fraction:
        """A number above 0, exactly as it is written in decimals."""
        value = self.entries.get(field)
        if value is None and default is not None:
            return default
        wanted = "a number above 0" if most is None else f"a number above 0 and at most {most}"
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.wrong(field, wanted)
        if value <= 0 or (most is not None and value > most):
            self.wrong(field, wanted)
        return Fraction(str(value))

    def whole(self, field: str, default: int | None = None, least: int = 1) -> int:
        """A whole number of at least `least`."""
        value = self.entries.get(field, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.wrong(field, f"a whole number of at least {least}")
        return value

    def size(self, field: str, default: int) -> int:
        """A size in bytes, written as a number with a unit."""
        if field not in self.entries:
            return default
        value = self.entries[field]
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)", value) if isinstance(value, str) else None
        if found is None or found[2] not in UNITS or float(found[1]) == 0:
            self.wrong(field, f'a size above 0 with its unit, such as "64 MiB"; the units are {", ".join(UNITS)}')
        return int(Fraction(found[1]) * UNITS[found[2]])

    def texts(self, field: str) -> tuple[str, ...]:
        """A list of texts, each once; empty where the field is missing."""
        values = self.entries.get(field, [])
        if not isinstance(values, list) or not all(isinstance(value, str) and value.strip() for value in values):
            self.wrong(field, 'a list of texts, such as ["one", "two"]')
        for index, value in enumerate(values):
            if value in values[:index]:
                self.under(field).fail(index, f"{value!r} is listed twice in {field}; leave one out")
        return tuple(values)

    def table(self, field: str) -> Table:
        """A table within this one; an empty one where it is missing."""
        value = self.entries.get(field, {})
        if not isinstance(value, dict):
            self.wrong(field, f"a table, begun with [{field}]")
        return self.under(field, value)

    def tables(self, field: str) -> list[Table]:
        """A list of tables; empty where it is missing."""
        values = self.entries.get(field, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            self.wrong(field, f"a list of tables, each begun with [[{field}]]")
        return [self.under(field, value, index) for index, value in enumerate(values)]

    def under(self, field: str, entries: Mapping[str, Any] | None = None, *rest: int) -> Table:
        """The place of a field as a table, for what is in it."""
        return replace(self, entries=entries or {}, place=(*self.place, field, *rest))


def shown(value: object) -> str:
    """A value as a message shows it, cut where it is long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    text = value.isoformat() if hasattr(value, "isoformat") else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def read_toml(path: Path, error: type[TomlError]) -> Table:
    """The outermost table of a file.

    Raises:
        TomlError: of the class `error`; it cannot be read or is not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return Table(path, tomllib.loads(text), toml_lines(text), error)
    except OSError as problem:
        raise error(plain(f"{path}: cannot be read: {problem.strerror}; is the path right?")) from problem
    except UnicodeDecodeError as problem:
        raise error(plain(f"{path}: is not UTF-8 text: {problem}; save it as UTF-8")) from problem
    except tomllib.TOMLDecodeError as problem:
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(problem), re.DOTALL)
        what, line = (f"{found[1]} in column {found[3]}", found[2]) if found else (problem, len(text.splitlines()))
        hint = "texts need quotes, and every field stands once"
        raise error(plain(f"{path}, line {line}: is not TOML: {what}; {hint}")) from problem
