"""A folder that is filled with files of a submission: safe names, regular files only, within limits."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from rlassay.describe import plain

CHUNK = 1 << 15
"""Bytes that are read at once."""

DEEPEST = 24
"""Folders inside of folders."""

LONGEST = 120
"""Bytes of one name."""

SKIPPED = frozenset(
    {
        *("__MACOSX", "__pycache__", "node_modules", "venv", ".venv", ".git", ".hg", ".svn", ".tox", ".nox"),
        *(".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".idea", ".vscode", ".DS_Store"),
        *("Thumbs.db", "desktop.ini"),
    }
)
"""Files and folders that tools leave behind; they are left out wherever they lie."""


class SubmissionError(Exception):
    """A submission that cannot be graded; says what, why and what to do, for the student to read."""


class Limits(Protocol):
    """How much may come out of a submission: bytes, and files and folders."""

    @property
    def unpacked(self) -> int: ...

    @property
    def files(self) -> int: ...


class Tree:
    """Fills a folder. `notes` say what was left out or renamed; nothing that is written lies outside of the folder."""

    def __init__(self, root: Path, limits: Limits) -> None:
        self.root = root
        self.limits = limits
        self.notes: list[str] = []
        self._junk: set[str] = set()
        self._bytes = self._entries = 0

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a file under a name that somebody else chose; what is there by that name already is replaced.

        Raises:
            SubmissionError: it is more than the limits allow.
        """
        parts = self.place(name)
        if not parts or not self._make_folders(parts[:-1]):
            return
        target = self.root.joinpath(*parts)
        if target.is_dir():
            self.leave_out(name, "there is a folder of that name")
            return
        if target.exists():
            target.unlink()
            self.notes.append(f"{shown(name)} is there twice; the last one counts")
        self._count_entry()
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with os.fdopen(handle, "wb") as sink:
            os.fchmod(handle, 0o644)
            for chunk in chunks:
                self._bytes += len(chunk)
                if self._bytes > self.limits.unpacked:
                    raise SubmissionError(too_large(self.limits.unpacked))
                sink.write(chunk)

    def add_folder(self, folder: Path, prefix: str = "") -> None:
        """Copy what a folder holds, without following links.

        Raises:
            SubmissionError: it is more than the limits allow.
        """
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            name = f"{prefix}{entry.name}"
            if entry.is_symlink():
                self.leave_out(name, "it is a link")
            elif entry.is_file():
                self.add(name, read_file(Path(entry.path)))
            elif not entry.is_dir():
                self.leave_out(name, "it is not a regular file")
            elif self.place(name):
                self.add_folder(Path(entry.path), f"{name}/")

    def place(self, name: str) -> tuple[str, ...]:
        """The parts of a safe path inside the folder; none for what is to be left out, of which a note is made."""
        raw = name.replace("\\", "/")
        parts = [part for part in raw.split("/") if part not in ("", ".")]
        if raw.startswith("/") or re.match("[A-Za-z]:/", raw) or ".." in parts:
            self.leave_out(name, "its name leads out of the submission")
            return ()
        junk = next((part for part in parts if part in SKIPPED or part.startswith("._")), None)
        if junk is not None:
            self._junk.add("._*" if junk.startswith("._") else junk)
            return ()
        if len(parts) > DEEPEST:
            self.leave_out(name, f"it lies more than {DEEPEST} folders deep")
            return ()
        safe = tuple(_safe_part(part) for part in parts)
        if safe != tuple(parts):
            self.notes.append(f"{shown(name)} is renamed {'/'.join(safe)}")
        return safe

    def leave_out(self, name: str, why: str) -> None:
        """Note that something is left out."""
        self.notes.append(f"{shown(name)} is left out: {why}")

    def all_notes(self, most: int = 20) -> tuple[str, ...]:
        """The notes, no more than can be read."""
        notes = [f"left out, as tools make them: {', '.join(sorted(self._junk))}"] if self._junk else []
        notes += self.notes[:most]
        return (*notes, f"and {len(self.notes) - most} more like this") if len(self.notes) > most else tuple(notes)

    def _make_folders(self, parts: tuple[str, ...]) -> bool:
        folder = self.root
        for part in parts:
            folder /= part
            if folder.is_dir():
                continue
            if folder.exists():
                self.leave_out("/".join(parts), "there is a file of that name")
                return False
            self._count_entry()
            folder.mkdir()
            folder.chmod(0o755)
        return True

    def _count_entry(self) -> None:
        self._entries += 1
        if self._entries > self.limits.files:
            raise SubmissionError(
                f"it holds more than {self.limits.files} files and folders; "
                "hand in the code alone, without data, models or environments"
            )


def read_file(path: Path) -> Iterator[bytes]:
    """The content of a regular file; a link is not followed."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise SubmissionError(f"{shown(path.name)} is not a regular file")
        while chunk := stream.read(CHUNK):
            yield chunk


def shown(name: str) -> str:
    """A name as it can be shown: printable, and not too long."""
    text = plain(name).replace("\n", "\\n")
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 4 :]}"


def too_large(limit: int) -> str:
    """What a student reads whose submission holds more than so many bytes."""
    size = f"{limit / 2**20:.0f} MiB" if limit >= 2**20 else f"{limit} bytes"
    return f"it unpacks to more than {size}; hand in the code alone, without data, models or environments"


def _safe_part(part: str) -> str:
    text = "".join(c if c.isprintable() else "_" for c in part)
    if len(text.encode()) <= LONGEST:
        return text
    stem, dot, suffix = text.rpartition(".")
    ending = f"{dot}{suffix}" if stem and len(suffix) <= 10 else ""
    return text.encode()[: LONGEST - 50].decode(errors="ignore") + ending
