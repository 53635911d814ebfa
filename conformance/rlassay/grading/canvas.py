"""The names in a Canvas bulk download: `doejane_LATE_12345_67890_solution-2.py`.

They are the sortable name in small letters, `LATE` where it is late, the user's number (or `anon_` and letters), the
file's number, and the file's name, before whose ending Canvas puts `-1`, `-2` when a student hands in again. Typed
text and links have `text.html` and `link.html` after the user's number.
"""

from __future__ import annotations

import re
from pathlib import Path

from rlassay.grading.archives import is_archive
from rlassay.grading.handed_in import HandedIn, LeftOut, Piece

USER = r"(?:(?P<name>.*?)_)??(?:(?P<late>LATE|late)_)?(?P<user>\d+|anon_[A-Za-z0-9]+)"
UPLOAD = re.compile(USER + r"_(?P<file>\d+)_(?P<rest>.+)", re.DOTALL)
TYPED = re.compile(USER + r"_(?P<kind>text|link)\.html", re.DOTALL)


def read(entry: Path) -> Piece | LeftOut | None:
    """Whose an entry is, or None where its name is not one that Canvas gives."""
    typed = TYPED.fullmatch(entry.name)
    if typed:
        return LeftOut("it is a typed text" if typed["kind"] == "text" else "it is a link to somewhere")
    match = UPLOAD.fullmatch(entry.name)
    if not match or not entry.is_file():
        return None
    return Piece(match["user"], match["name"] or "", HandedIn(entry, _original(match["rest"])), bool(match["late"]))


def _original(name: str) -> str:
    """A file's name without what Canvas adds when it is handed in again."""
    shorter = re.sub(r"-\d+(?=\.[^.]+$)", "", name)
    return shorter if shorter.endswith((".py", ".ipynb")) or is_archive(shorter) else name
