"""What the commands that grade a folder of submissions share. Imported late: it takes the time that torch does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rlassay.cli.check import Unusable
from rlassay.cli.outputs import OutputError
from rlassay.describe import plain
from rlassay.grading.assignment import Assignment
from rlassay.grading.assignment_file import AssignmentError
from rlassay.grading.batch import local
from rlassay.grading.classroom import grade_class, with_roster
from rlassay.grading.cluster import ClusterError, connect, executor, threads
from rlassay.grading.confined import tested_level
from rlassay.grading.roster import RosterEntry, RosterError, read_roster
from rlassay.grading.store import Store, StoreError
from rlassay.grading.submissions import Found, Submission, SubmissionError, find_submissions
from rlassay.isolation.warm import IsolationError
from rlassay.terminal import open_console, print_row

SHOWN = 10
"""So many problems of a folder are printed."""


@contextmanager
def explained() -> Iterator[None]:
    """Make what keeps submissions from being graded a usage error.

    Raises:
        Unusable: the assignment, a folder, the roster, the scheduler or the isolation cannot be used.
    """
    try:
        yield
    except (
        *(AssignmentError, SubmissionError, RosterError, StoreError),
        *(ClusterError, IsolationError, OutputError),
    ) as error:
        raise Unusable(plain(str(error))) from error


def find(folder: Path, layout: str | None, roster: Path | None, only: Sequence[str] = ()) -> Found:
    """The submissions in a folder, with what the roster says of their students; those of `only` alone, if any is named.

    Raises:
        SubmissionError: there is nothing to grade, or not what `only` names.
        RosterError: the roster cannot be read.
    """
    known = read_roster(roster) if roster is not None else {}
    found = find_submissions(folder.absolute(), layout)
    submissions = tuple(with_roster(found.submissions, known))
    if only:
        missing = set(only) - {submission.id for submission in submissions}
        if missing:
            raise SubmissionError(f"{folder}: has no submission of {', '.join(sorted(missing))}")
        submissions = tuple(submission for submission in submissions if submission.id in only)
    problems = found.problems if roster is None or only else (*found.problems, *_strangers(submissions, known))
    if not submissions:
        raise SubmissionError(f"{folder}: there is nothing to grade in it; {'; '.join(found.problems)}")
    return replace(found, submissions=submissions, problems=problems)


def _strangers(submissions: Sequence[Submission], known: Mapping[str, RosterEntry]) -> Iterator[str]:
    """Who is only in the roster, and who only in the folder."""
    there = {submission.id for submission in submissions}
    for count, names, what in (
        (len(known.keys() - there), sorted(known.keys() - there), "in the roster without a submission"),
        (len(there - known.keys()), sorted(there - known.keys()), "with a submission, but not in the roster"),
    ):
        if count:
            more = f" and {count - SHOWN} more" if count > SHOWN else ""
            yield f"{count} {what}: {', '.join(names[:SHOWN])}{more}"


def find_again(folder: Path, layout: str, roster: Path | None) -> Found:
    """The submissions in a folder whose layout an earlier run has found out, or was told.

    Raises:
        SubmissionError: there is nothing to grade.
        RosterError: the roster cannot be read.
    """
    found = find(folder, None, roster)
    return found if found.layout == layout else find(folder, layout, roster)


def announce(found: Found, assignment: Assignment, console: Console) -> None:
    """Print how many submissions there are, and what staff should know of the folder."""
    count = len(found.submissions)
    print_row(console, "", f"{count} submission{'s' if count != 1 else ''}, layout {found.layout}")
    unknown = sum(submission.submitted is None and not submission.late for submission in found.submissions)
    if assignment.deadline is not None and unknown:
        what = f"{unknown} of them have no known time and no mark of being late: the late rule costs them nothing"
        print_row(console, "  ", f"{what}; --roster can give times", 2)
    for problem in found.problems[:SHOWN]:
        print_row(console, "  ", plain(problem), 2)
    if len(found.problems) > SHOWN:
        print_row(console, "  ", f"and {len(found.problems) - SHOWN} more", 2)


def check_isolation(assignment: Assignment, level: str, private: Sequence[Path], console: Console) -> None:
    """Print the level in force and what its self-test found; `private` are folders that submissions must not see.

    Raises:
        IsolationError: the level is not to be had, does not hold, or would show what is private.
    """
    tested = tested_level(assignment, level, private)
    held = sum(not what for what in tested.attempts.values())
    print_row(console, "", f"isolation: {level}; its self-test withstood {held} of {len(tested.attempts)} attempts")


@dataclass(frozen=True)
class Graders:
    """Where submissions are graded: on this machine, so many at once, or on the workers of a Dask scheduler."""

    jobs: int | None = None
    scheduler: str | None = None

    def grade(self, store: Store, assignment: Assignment, level: str, submissions: Sequence[Submission]) -> bool:
        """Grade submissions, with a progress bar where standard error is a terminal; False if Ctrl-C ended it.

        Raises:
            ClusterError: the scheduler cannot be used.
        """
        workers = min(self.jobs or len(os.sched_getaffinity(0)), len(submissions)) or 1
        start = partial(local, workers)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with ExitStack() as stack:
            if self.scheduler is not None:
                client = stack.enter_context(connect(self.scheduler))
                workers, start = threads(client), partial(executor, client)
            bar = Progress(*columns, console=open_console(sys.stderr), transient=True, disable=not sys.stderr.isatty())
            stack.enter_context(bar)
            task = bar.add_task("grading", total=len(submissions))
            try:
                with closing(grade_class(store, assignment, level, submissions, start, workers)) as grades:
                    for done in grades:
                        bar.update(task, advance=1, description=plain(done.key))
            except KeyboardInterrupt:
                return False
            except CancelledError as error:
                raise ClusterError(
                    f"{self.scheduler}: the scheduler is gone; what is graded is stored, and --resume goes on"
                ) from error
        return True
