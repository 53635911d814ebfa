"""The names in a Moodle download of all submissions: `Jane Doe_1234567_assignsubmission_file_`.

That is a folder with what was handed in, or the beginning of a file's name. The number is the participant's in the
grading sheet. A team has its name and number there, the default team no number. Other kinds than `file` are typed.
"""

from __future__ import annotations

import re
from pathlib import Path

from rlassay.grading.handed_in import HandedIn, LeftOut, Piece

NAME = re.compile(r"(?P<name>.+?)(?:_(?P<number>\d+))?_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<rest>.*))?", re.DOTALL)


def read(entry: Path) -> Piece | LeftOut | None:
    """Whose an entry is, or None where its name is not one that Moodle gives."""
    match = NAME.fullmatch(entry.name)
    if not match:
        return None
    if match["kind"] != "file":
        return LeftOut("it is a typed text" if match["kind"] == "onlinetext" else f"it is of kind {match['kind']}")
    name = match["rest"] or ""
    if entry.is_file() and not name:
        return None
    return Piece(match["number"] or match["name"], match["name"], HandedIn(entry, "" if entry.is_dir() else name))
