"""Grades a class: every submission once, its files on disk as soon as it is done, then the tables of the class."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import replace

from rlassay import __version__
from rlassay.grading.assignment import Assignment
from rlassay.grading.batch import run
from rlassay.grading.classbook import write_classbook
from rlassay.grading.grade import Grade
from rlassay.grading.grader import Job, digest_of, grade, ungraded
from rlassay.grading.roster import RosterEntry
from rlassay.grading.scoring import late_penalty
from rlassay.grading.similarity import write_similarity
from rlassay.grading.store import SCHEMA, Run, Store, grades, read_grade, write
from rlassay.grading.submissions import Found, Submission
from rlassay.grading.summary import Summary, summarise, summary_json
from rlassay.grading.summary_page import summary_page


def run_of(assignment: Assignment, level: str, found: Found) -> Run:
    """What a folder of results says it was graded with."""
    return Run(
        schema=SCHEMA,
        rlassay=__version__,
        assignment=assignment.sha256,
        secret=f"{assignment.secret.seed(''):016x}",
        title=assignment.title,
        level=level,
        layout=found.layout,
        submissions=len(found.submissions),
    )


def with_roster(submissions: Sequence[Submission], roster: dict[str, RosterEntry]) -> Iterator[Submission]:
    """The submissions with what the staff's list knows of their students: names, and times where it has them."""
    for submission in submissions:
        entry = roster.get(submission.id)
        if entry is not None:
            submission = replace(
                submission, name=entry.name or submission.name, submitted=entry.submitted or submission.submitted
            )
        yield submission


def unfinished(store: Store, assignment: Assignment, submissions: Sequence[Submission]) -> list[Submission]:
    """Those that are not graded yet, or could not be, or have changed since: their files, name or lateness."""
    return [submission for submission in submissions if not _is_done(store, assignment, submission)]


def _is_done(store: Store, assignment: Assignment, submission: Submission) -> bool:
    known = read_grade(store.folder, submission.key)
    if known is None or known.status == "failed":
        return False
    penalty = late_penalty(assignment.deadline, submission.submitted, submission.late)
    now = (submission.id, submission.name, penalty.sentence, digest_of(submission))
    return now == (known.id, known.name, known.lateness, known.sha256)


def grade_class(
    store: Store,
    assignment: Assignment,
    level: str,
    submissions: Sequence[Submission],
    start: Callable[[], Executor],
    workers: int,
) -> Generator[Grade, None, None]:
    """Grade submissions on an executor; each grade as soon as it is stored."""
    jobs = (Job(submission, assignment, level) for submission in submissions)
    with closing(run(jobs, grade, start, workers)) as outcomes:
        for done in outcomes:
            graded = done.result if done.result is not None else ungraded(done.job, done.error)
            store.save(graded.grade.key, graded.files)
            yield graded.grade


def write_class(store: Store, assignment: Assignment, layout: str) -> Summary:
    """Write the tables and the summary of all that is graded in a folder of results."""
    write_classbook(store.folder, grades(store.folder), assignment, layout)
    summary = summarise(assignment.title, grades(store.folder))
    write(store.folder / "summary.json", summary_json(summary))
    write(store.folder / "summary.html", summary_page(summary))
    write_similarity(store.folder)
    return summary
