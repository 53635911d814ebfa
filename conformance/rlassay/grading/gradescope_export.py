"""A Gradescope export: folders `submission_12345`, and `submission_metadata.yml` with names, ids and times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlassay.grading.handed_in import HandedIn, LeftOut, Piece
from rlassay.grading.tree import shown

METADATA = "submission_metadata.yml"
NAME = re.compile(r"submission_(\d+)")


class Reader:
    """Reads the entries of an export; `problems` are about its metadata."""

    def __init__(self, folder: Path) -> None:
        self.problems: list[str] = []
        self.metadata = self._metadata(folder / METADATA)
        self.problems += [
            f"{shown(name)} is listed in {METADATA}, but is not there"
            for name in self.metadata
            if not (folder / Path(name).name).exists()
        ]

    def read(self, entry: Path) -> Piece | LeftOut | None:
        """Whose an entry is, or None where its name is not one that Gradescope gives."""
        if entry.name == METADATA:
            return LeftOut()
        match = NAME.fullmatch(entry.name)
        if not match or not entry.is_dir():
            return None
        known = self.metadata.get(entry.name, {})
        people = [person for person in _list(known.get(":submitters")) if isinstance(person, Mapping)]
        ids = [str(person.get(":sid") or person.get(":email") or "") for person in people]
        names = [str(person.get(":name") or "") for person in people]
        return Piece(
            "+".join(filter(None, ids)) or match[1],
            ", ".join(filter(None, names)),
            HandedIn(entry, ""),
            submitted=_time(known.get(":created_at")),
        )

    def _metadata(self, path: Path) -> dict[str, Mapping[str, Any]]:
        if not path.is_file():
            return {}
        without = "so names and times are not known, and ids are the folders' numbers"
        try:
            import yaml
        except ImportError:
            self.problems.append(f"{METADATA} is not read, {without}; pip install pyyaml")
            return {}
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except Exception as error:  # noqa: BLE001 - the module's errors cannot be named where it is not installed
            self.problems.append(f"{METADATA} cannot be read ({shown(str(error))}), {without}")
            return {}
        return dict(_entries(content))


def _entries(content: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, entry in content.items() if isinstance(content, Mapping) else ():
        if isinstance(name, str) and isinstance(entry, Mapping):
            yield name, entry


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _time(value: Any) -> datetime | None:
    """A time of the metadata, which is in UTC where it does not say."""
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
