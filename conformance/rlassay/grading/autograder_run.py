"""Grades one submission in Gradescope's container: python -m rlassay.grading.autograder_run /autograder

Before it begins, results.json says that there are no marks; it is replaced when there are some. Whatever is printed is
for staff: Gradescope hides it from students.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from rlassay import __file__ as own_file
from rlassay import __version__
from rlassay.describe import plain
from rlassay.grading.assignment import Assignment
from rlassay.grading.assignment_file import read_assignment
from rlassay.grading.autograder_layout import ASSIGNMENT, SETTINGS, Settings, failed_json
from rlassay.grading.confined import end_warm_process
from rlassay.grading.grade import Grade
from rlassay.grading.grader import Job, grade
from rlassay.grading.handed_in import HandedIn, Submission
from rlassay.grading.keys import safe_key
from rlassay.grading.store import write
from rlassay.guest.confine import LEVELS, best_level
from rlassay.isolation.warm import IsolationError
from rlassay.verdict import HARNESS_FAILED

METADATA = "submission_metadata.json"

NOT_ISOLATED = "It was not run, since this container does not isolate it as staff asked."

OTHERS = 0o077
"""Mode bits of everybody but the owner."""

Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Dates(msgspec.Struct):
    """When an assignment is due."""

    due_date: Time | None = None


class User(msgspec.Struct):
    """A student, and when the assignment is due for this one."""

    id: int | str
    email: str | None = None
    name: str | None = None
    assignment: Dates | None = None


class Metadata(msgspec.Struct):
    """What Gradescope says of a submission: gradescope-autograders.readthedocs.io, "Submission Metadata"."""

    id: int | str
    created_at: Time
    assignment: Dates = msgspec.field(default_factory=Dates)
    users: list[User] = []

    @property
    def extension(self) -> timedelta:
        """By how much longer the students may take than others, the most of a team's."""
        due = self.assignment.due_date
        own = [user.assignment.due_date for user in self.users if user.assignment is not None]
        return max([timedelta(), *(date - due for date in own if date is not None and due is not None)])

    @property
    def late(self) -> bool | None:
        """Whether Gradescope's own deadline had passed; None where it has none."""
        due = self.assignment.due_date
        return None if due is None else self.created_at > due + self.extension


def main(root: Path) -> int:
    """Grade the submission in Gradescope's folder; the exit code is 0 where there are marks."""
    level = ""
    try:
        hide(root)
        settings = msgspec.json.decode((root / "source" / SETTINGS).read_bytes(), type=Settings)
        level = settings.isolation
        metadata = msgspec.json.decode((root / METADATA).read_bytes(), type=Metadata)
        assignment = extended(read_assignment(root / "source" / ASSIGNMENT / settings.assignment), metadata)
        graded = grade(Job(submission_of(metadata, root / "submission"), assignment, level))
        write(root / "results" / "results.json", graded.files["results.json"])
        print("\n".join(map(plain, _summary(graded.grade))))
    except IsolationError as error:
        write(root / "results" / "results.json", failed_json(NOT_ISOLATED))
        print(plain(f"not graded: the level {level} is not to be had here: {error}{_advice(level)}"))
        return HARNESS_FAILED
    except Exception:  # noqa: BLE001 - whatever it is, staff reads it, and results.json says that there are no marks
        traceback.print_exc(file=sys.stdout)
        return HARNESS_FAILED
    finally:
        end_warm_process()
    return 0


def hide(root: Path) -> None:
    """Keep from all other users what is not for submissions: the assignment, its secret, rlassay, earlier results.

    Raises:
        OSError: the modes cannot be changed.
    """
    for path in (root, root / "source", root / "results", root / "submission", root / METADATA):
        path.chmod(path.stat().st_mode & ~OTHERS)
        if path.stat().st_mode & OTHERS:
            raise OSError(f"{path}: its mode cannot be changed, so submissions could read it")


def extended(assignment: Assignment, metadata: Metadata) -> Assignment:
    """The assignment with the deadline that these students have."""
    deadline = assignment.deadline
    if deadline is None:
        return assignment
    return replace(assignment, deadline=replace(deadline, due=deadline.due + metadata.extension))


def submission_of(metadata: Metadata, folder: Path) -> Submission:
    """The submission, whose id is that of its students: handed in again, it gets the same inputs."""
    ids = sorted(user.email or str(user.id) for user in metadata.users)
    return Submission(
        key=safe_key(str(metadata.id)),
        id="+".join(ids) or str(metadata.id),
        name=", ".join(user.name for user in metadata.users if user.name),
        files=(HandedIn(folder, ""),),
        late=metadata.late,
        submitted=metadata.created_at,
    )


def _summary(done: Grade) -> Iterator[str]:
    """What staff may want to know, line by line."""
    yield f"rlassay {__version__} from {Path(own_file).parent}, isolation {done.level}, as user {os.getuid()}"
    yield f"submission {done.key}: {done.status}, judged by its {done.how}, in {done.seconds:.1f} s"
    for part in done.parts:
        told = f" ({part.explanation})" if part.explanation else ""
        counts = f"{part.passed} passed, {part.failed} failed, {part.excused} excused"
        yield f"{part.name}: {part.earned} of {part.points} points, {counts}{told}"
    yield from (f"look at this: {alert}" for alert in done.alerts)


def _advice(level: str) -> str:
    best, _ = best_level()
    if best in LEVELS and level in LEVELS and LEVELS.index(best) > LEVELS.index(level):
        return f"; it gives {best}, which is used if you make the archive with --isolation {best}"
    return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
