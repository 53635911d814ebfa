"""Finding the submissions in a folder, however the platform that it was downloaded from arranges them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rlassay.grading import canvas, gradescope_export, moodle
from rlassay.grading.archives import SUFFIXES
from rlassay.grading.handed_in import Found, HandedIn, LeftOut, Piece, Submission
from rlassay.grading.keys import distinct_keys
from rlassay.grading.tree import SKIPPED, SubmissionError, shown

LAYOUTS = ("plain", "canvas", "moodle", "gradescope")

STAFF = (".csv", ".tsv", ".json", ".toml", ".yaml", ".yml", ".md", ".xlsx")
"""Endings of files that lie beside submissions and are none."""

Reading = Callable[[Path], Piece | LeftOut | None]


def find_submissions(folder: Path, layout: str | None = None) -> Found:
    """The submissions in a folder; its layout is found out where it is not named.

    What does not fit the layout is graded under its own name, and a problem says so. In the plain layout each entry is
    a submission; in the others all files of one student are.

    Raises:
        SubmissionError: there is no such folder or layout.
    """
    if not folder.is_dir():
        raise SubmissionError(f"{folder}: is not a folder; unpack what the platform gave into one, and name that")
    if layout is not None and layout not in LAYOUTS:
        raise SubmissionError(f"{layout!r} is no layout of submissions; there are {', '.join(LAYOUTS)}")
    if layout is None:
        folder, layout = _detect(folder)
    problems: list[str] = []
    reading: Reading = {"plain": _read_plain, "canvas": canvas.read, "moodle": moodle.read}.get(layout, _read_plain)
    if layout == "gradescope":
        reader = gradescope_export.Reader(folder)
        problems += reader.problems
        reading = reader.read
    pieces = list(_pieces(folder, layout, reading, problems))
    submissions = tuple(_submissions(pieces, problems))
    if not submissions:
        problems.append("there are no submissions in it")
    return Found(submissions, layout, tuple(problems))


def _detect(folder: Path) -> tuple[Path, str]:
    """The layout that most entries have; the one folder in a folder is looked into."""
    layout = _layout_of(folder)
    entries = _entries(folder)
    if layout == "plain" and len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink():
        inner = _layout_of(entries[0])
        return (entries[0], inner) if inner != "plain" else (folder, layout)
    return folder, layout


def _layout_of(folder: Path) -> str:
    entries = _entries(folder)
    if (folder / gradescope_export.METADATA).is_file():
        return "gradescope"
    counts = {
        "moodle": sum(moodle.read(entry) is not None for entry in entries),
        "canvas": sum(canvas.read(entry) is not None for entry in entries),
        "gradescope": sum(gradescope_export.NAME.fullmatch(entry.name) is not None for entry in entries),
    }
    layout = max(counts, key=counts.__getitem__)
    return layout if counts[layout] and 2 * counts[layout] >= len(entries) else "plain"


def _entries(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.name not in SKIPPED and not path.name.startswith("._")]


def _pieces(
    folder: Path, layout: str, reading: Reading, problems: list[str]
) -> Iterator[tuple[Piece, tuple[str, str]]]:
    """Each piece, with what is the same for all that belong to one submission."""
    for entry in _entries(folder):
        name = shown(entry.name)
        read: Piece | LeftOut | None
        if entry.is_symlink():
            read = LeftOut("it is a link, which may lead anywhere; copy what it leads to")
        elif not (entry.is_dir() or entry.is_file()):
            read = LeftOut("it is not a regular file")
        else:
            read = reading(entry)
        if read is None:
            read = _read_plain(entry)
            if isinstance(read, Piece):
                problems.append(f"{name} has no name of the layout {layout}; it is graded as {shown(read.id)}")
                yield read, ("plain", entry.name)
        elif isinstance(read, Piece):
            yield read, ("plain", entry.name) if layout == "plain" else (layout, read.id)
        if isinstance(read, LeftOut) and read.why:
            problems.append(f"{name} is left out: {read.why}")


def _read_plain(entry: Path) -> Piece | LeftOut:
    name = os.fsencode(entry.name).decode(errors="backslashreplace")
    if name.startswith("."):
        return LeftOut("its name says that it is hidden")
    if entry.is_file() and name.lower().endswith(STAFF):
        return LeftOut("it is no kind of submission")
    suffix = max((ending for ending in SUFFIXES if name.lower().endswith(ending)), key=len, default="")
    stem = name[: -len(suffix)] if suffix else Path(name).stem
    return Piece(name if entry.is_dir() else stem, "", HandedIn(entry, entry.name))


def _submissions(pieces: Sequence[tuple[Piece, tuple[str, str]]], problems: list[str]) -> Iterator[Submission]:
    groups: dict[tuple[str, str], list[Piece]] = {}
    for piece, owner in pieces:
        groups.setdefault(owner, []).append(piece)
    entries = [(group[0].id, group[0].file.path.name) for group in groups.values()]
    seen: dict[str, str] = {}
    for key, group in zip(distinct_keys(entries), groups.values(), strict=True):
        first = group[0]
        other = seen.setdefault(first.id, first.file.path.name)
        if other != first.file.path.name:
            problems.append(
                f"{shown(first.id)} is the id of both {shown(other)} and {shown(first.file.path.name)}; "
                "both are graded, so pick the one that counts"
            )
        yield Submission(key, first.id, first.name, _files(group), first.late, first.submitted)


def _files(group: Iterable[Piece]) -> tuple[HandedIn, ...]:
    """The files of one submission; one whose name another has too keeps the one that the platform gave it."""
    names: set[str] = set()
    files: list[HandedIn] = []
    for piece in group:
        file = piece.file if piece.file.name.lower() not in names else HandedIn(piece.file.path, piece.file.path.name)
        names.add(file.name.lower())
        files.append(file)
    return tuple(files)
