"""The class's marks as tables: grades.csv for people, canvas.csv and moodle.csv for the platforms' imports.

Points are rounded once, to two decimals. A grade that a person has to look at first (`review`) and one that rlassay
could not give (`failed`) leave the cell blank in the imports, which both platforms take for "leave it as it is".

canvas.csv is the form of the gradebook's import: Canvas finds a student by its own number, else by the SIS id or
login, else by the name, and an assignment by its title. Its own number is known from its bulk download alone; any other
id goes into the SIS columns, since Canvas takes the digits at the beginning of whatever stands under ID.

moodle.csv serves both of Moodle's imports. The offline grading worksheet finds a student by "Participant N", where N is
the number in the folder names of its bulk download; the gradebook's CSV import is told to map "ID number". The
worksheet leaves a student who has been graded before alone, unless it is asked to update records that are newer in
Moodle than in the file.
"""

from __future__ import annotations

import csv
import html
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from rlassay.grading.assignment import Assignment
from rlassay.grading.feedback import shown
from rlassay.grading.grade import Grade
from rlassay.grading.gradescope import overall
from rlassay.grading.points import percent_text, points_text, rounded

FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@＝＋－＠]|[\t\r])")
"""Where a spreadsheet would begin a formula; semicolons part the cells in some countries."""

MAXIMUM = "Points Possible"
"""Where this stands under Student, Canvas takes the row for the assignment's maximum."""

CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
MOODLE = [
    "Identifier",
    "Full name",
    "ID number",
    "Grade",
    "Maximum Grade",
    "Last modified (grade)",
    "Feedback comments",
]


class _Writer(Protocol):
    def writerow(self, row: Sequence[str], /) -> object: ...


def write_classbook(folder: Path, grades: Iterable[Grade], assignment: Assignment, layout: str) -> None:
    """Write the three tables into a folder, row by row, each of them there in full or not at all.

    `layout` is the one the submissions came in, which says whose ids theirs are.
    """
    title, maximum = cell(assignment.title), ""
    with ExitStack() as stack:
        # Excel reads UTF-8 only where the file begins with a byte order mark; the platforms need none.
        book = stack.enter_context(_table(folder / "grades.csv", encoding="utf-8-sig"))
        canvas = stack.enter_context(_table(folder / "canvas.csv"))
        moodle = stack.enter_context(_table(folder / "moodle.csv"))
        parts = [f"{number}. {part.name}" for number, part in enumerate(assignment.parts, start=1)]
        book.writerow([*BOOK, *map(cell, parts), "notes", "for staff"])
        canvas.writerow([*CANVAS, title])
        moodle.writerow(MOODLE)
        for grade in grades:
            if not maximum:
                maximum = f"{rounded(grade.maximum):f}"
                canvas.writerow([f"    {MAXIMUM}", "", "", "", "", maximum])
            book.writerow(_book_row(grade, len(parts)))
            canvas.writerow(_canvas_row(grade, layout))
            moodle.writerow(_moodle_row(grade, layout))


BOOK = ["id", "name", "points", "maximum", "earned", "late", "penalty", "status", "judged"]


def cell(text: str) -> str:
    """A text on one line that no spreadsheet takes for a formula: an apostrophe stands before what would be one."""
    return shown(FORMULA.sub(r"\1'", text)).replace("\n", " · ")


@contextmanager
def _table(path: Path, encoding: str = "utf-8") -> Iterator[_Writer]:
    beside = path.with_name(f".{path.name}.part")
    with beside.open("w", encoding=encoding, newline="") as stream:
        yield csv.writer(stream, quoting=csv.QUOTE_ALL)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)


def _book_row(grade: Grade, parts: int) -> list[str]:
    given = grade.status != "failed"
    earned = [points_text(part.earned) for part in grade.parts[:parts]] if given else []
    return [
        cell(grade.id),
        cell(grade.name),
        f"{rounded(grade.points):f}" if given else "",
        f"{rounded(grade.maximum):f}",
        f"{rounded(grade.earned):f}" if given else "",
        cell(grade.lateness),
        percent_text(grade.penalty) if Fraction(grade.penalty) else "",
        grade.status,
        grade.how,
        *earned,
        *[""] * (parts - len(earned)),
        cell("\n".join(grade.notes)),
        cell("\n".join(grade.alerts)),
    ]


def _exported(grade: Grade) -> str:
    """The points as an import takes them."""
    return f"{rounded(grade.points):f}" if grade.status == "graded" else ""


def _canvas_row(grade: Grade, layout: str) -> list[str]:
    name = cell(grade.name).replace(MAXIMUM, MAXIMUM.replace(" ", "-"))
    identity = cell(grade.id)
    ids = [identity, "", ""] if layout == "canvas" and _is_number(grade.id) else ["", identity, identity]
    return [name, *ids, "", _exported(grade)]


def _moodle_row(grade: Grade, layout: str) -> list[str]:
    identity = cell(grade.id)
    known = layout == "moodle" and _is_number(grade.id)
    ids = (f"Participant {grade.id}", "") if known else ("", identity)
    points = _exported(grade)
    return [
        ids[0],
        cell(grade.name),
        ids[1],
        points,
        f"{rounded(grade.maximum):f}",
        "",
        cell(_comment(grade)) if points else "",
    ]


def _is_number(identity: str) -> bool:
    return identity.isascii() and identity.isdecimal()


def _comment(grade: Grade) -> str:
    """What the student reads in Moodle, which takes it for HTML."""
    lines = [*overall(grade)]
    for part in grade.parts:
        lines.append(f"{shown(part.name)}: {points_text(part.earned)} of {points_text(part.points)} points")
    return "<br>".join(map(html.escape, lines))
