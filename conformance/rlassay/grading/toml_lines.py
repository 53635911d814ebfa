"""On which line of a TOML file each value stands, which `tomllib` does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

Place = tuple[str | int, ...]
"""Where a value is: keys of tables, and places in lists counted from 0."""

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""+' + r"|'''.*?'''+" + r'|"(?:\\.|[^"\\])*"' + r"|'[^']*'", re.DOTALL
)  # """+ and '''+ take the quotes that may stand right before the closing three
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[^,\]}#\n]+")


def toml_lines(text: str) -> Mapping[Place, int]:
    """The line, counted from 1, of every table, key and list item of a text that `tomllib` reads."""
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.document()
    return scanner.lines


class _Scanner:
    """Walks over valid TOML; on anything else its answers are worthless."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Place, int] = {}
        self.lists: dict[Place, int] = {}

    def document(self) -> None:
        table: Place = ()
        while self._skip_blank() < len(self.text):
            if not self._take("["):
                self._pair(table)
                continue
            is_item = self._take("[")
            start = self.at
            table = self._header(self._key(), is_item)
            self._note(table, start)
            self._take("]]" if is_item else "]")

    def _header(self, key: Place, is_item: bool) -> Place:
        """The place of the table that a header opens: of a list of tables, it is the last one."""
        place: Place = ()
        for part in key[:-1]:
            place += (part,)
            if place in self.lists:
                place += (self.lists[place],)
        place += key[-1:]
        if not is_item:
            return place
        self.lists[place] = self.lists.get(place, -1) + 1
        return (*place, self.lists[place])

    def _pair(self, table: Place) -> None:
        start = self.at
        place = table + self._key()
        self._note(place, start)
        self._take("=")
        self._value(place)

    def _value(self, place: Place) -> None:
        self._skip_blank()
        if self._take("["):
            index = 0
            while not self._take("]"):
                self._note((*place, index), self._skip_blank())
                self._value((*place, index))
                self._take(",")
                index += 1
        elif self._take("{"):
            while not self._take("}"):
                self._pair(place)
                self._take(",")
        else:
            found = _STRING.match(self.text, self.at) or _PLAIN.match(self.text, self.at)
            self.at = found.end() if found else len(self.text)

    def _key(self) -> Place:
        parts: list[str] = []
        while True:
            self._skip_blank()
            found = _BARE_KEY.match(self.text, self.at)
            if found is not None:
                parts.append(found[0])
            else:
                found = _STRING.match(self.text, self.at)
                assert found is not None
                parts.append(tomllib.loads(f"key = {found[0]}")["key"])
            self.at = found.end()
            if not self._take("."):
                return tuple(parts)

    def _skip_blank(self) -> int:
        found = _BLANK.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return self.at

    def _take(self, token: str) -> bool:
        """Step over white space and the token, if it is next."""
        self._skip_blank()
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def _note(self, place: Place, at: int) -> None:
        """Remember the line of a place, and of what is above it, the first time that it appears."""
        line = self.text.count("\n", 0, at) + 1
        for length in range(1, len(place) + 1):
            self.lines.setdefault(place[:length], line)
