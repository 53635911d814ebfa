"""What a student or team handed in, as it lies in the folder of submissions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True)
class HandedIn:
    """A file or folder, and the name that its student gave it: none for a folder that the platform made."""

    path: Path
    name: str


@dataclass(frozen=True)
class Piece:
    """A file or folder with what its place in a layout says of whose it is; see `Submission`."""

    id: str
    name: str
    file: HandedIn
    late: bool | None = None
    submitted: datetime | None = None


@dataclass(frozen=True)
class LeftOut:
    """Why an entry is no submission; no reason is given for what belongs to the layout itself."""

    why: str = ""


@dataclass(frozen=True)
class Submission:
    """What one student or team handed in.

    Attributes:
        key: a safe name for files, different for each submission of a folder.
        id: the student's id as the platform has it; a team's are joined by "+".
        name: the person's or team's name, "" where the platform's download does not have it.
        files: what was handed in.
        late: what the platform says, None where it says nothing.
        submitted: when, where the platform says it.
    """

    key: str
    id: str
    name: str
    files: tuple[HandedIn, ...]
    late: bool | None = None
    submitted: datetime | None = None

    @property
    def path(self) -> Path:
        """The first of what was handed in."""
        return self.files[0].path


@dataclass(frozen=True)
class Found:
    """The submissions of a folder, its layout, and what the staff should know: entries left out, odd or doubled."""

    submissions: tuple[Submission, ...]
    layout: str
    problems: tuple[str, ...]
