"""A class on an executor: each grade is stored as soon as it is there, and what is graded is not graded again."""

from __future__ import annotations

import csv
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from rlassay.grading import classroom
from rlassay.grading.assignment import Assignment, Deadline, Secret
from rlassay.grading.classroom import grade_class, run_of, unfinished, with_roster, write_class
from rlassay.grading.grade import Status
from rlassay.grading.grader import Graded, Job, digest_of
from rlassay.grading.handed_in import Found, HandedIn, Submission
from rlassay.grading.roster import RosterEntry
from rlassay.grading.scoring import late_penalty
from rlassay.grading.store import Store, grades, read_grade
from rlassay.isolation.warm import IsolationError
from tests.conformance.grading import report_support
from tests.conformance.grading.report_support import grade

DUE = datetime(2026, 12, 1, 12, tzinfo=UTC)
ASSIGNMENT = replace(report_support.assignment(), deadline=Deadline(DUE, per_day=Fraction(1, 10), days=3))


def submission(folder: Path, key: str, **changes: object) -> Submission:
    path = folder / f"{key}.py"
    if not path.exists():
        path.write_text(f"# {key}\n")
    return replace(Submission(key, key, key.title(), (HandedIn(path, path.name),)), **changes)  # type: ignore[arg-type]


def graded(job: Job, status: Status = "graded") -> Graded:
    """What a grader gives, without having looked at anything."""
    penalty = late_penalty(job.assignment.deadline, job.submission.submitted, job.submission.late)
    made = grade(
        job.submission.key,
        id=job.submission.id,
        name=job.submission.name,
        sha256=digest_of(job.submission),
        lateness=penalty.sentence,
        status=status,
    )
    return Graded(made, {"grade.json": msgspec.json.encode(made)})


def fails_for_bob(job: Job) -> Graded:
    if job.submission.id == "bob":
        raise IsolationError("no guest is to be had")
    return graded(job)


def one_thread() -> Executor:
    return ThreadPoolExecutor(1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results", run_of(ASSIGNMENT, "namespaces", Found((), "plain", ())), resume=False)


def keep(store: Store, one: Submission, assignment: Assignment = ASSIGNMENT, status: Status = "graded") -> None:
    store.save(one.key, graded(Job(one, assignment, "namespaces"), status).files)


def is_done(store: Store, one: Submission, assignment: Assignment = ASSIGNMENT) -> bool:
    return unfinished(store, assignment, [one]) == []


def test_each_grade_is_stored_before_it_is_told(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classroom, "grade", graded)
    class_ = [submission(tmp_path, key) for key in ("ada", "bob", "cyd")]
    told = []
    for one in grade_class(store, ASSIGNMENT, "namespaces", class_, one_thread, 1):
        assert read_grade(store.folder, one.key) == one
        told.append(one.key)
    assert sorted(told) == ["ada", "bob", "cyd"]


def test_a_submission_that_cannot_be_graded_has_no_marks_and_is_not_lost(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classroom, "grade", fails_for_bob)
    class_ = [submission(tmp_path, key) for key in ("ada", "bob", "cyd")]
    list(grade_class(store, ASSIGNMENT, "namespaces", class_, one_thread, 1))
    assert [(one.key, one.status) for one in grades(store.folder)] == [
        ("ada", "graded"),
        ("bob", "failed"),
        ("cyd", "graded"),
    ]
    failed = read_grade(store.folder, "bob")
    assert failed is not None
    assert failed.alerts == ["rlassay could not grade it: IsolationError: no guest is to be had"]
    assert (failed.name, failed.parts, failed.maximum) == ("Bob", [], "15")
    assert [one.key for one in unfinished(store, ASSIGNMENT, class_)] == ["bob"]


@pytest.mark.parametrize("status", ["graded", "review"])
def test_what_is_graded_is_done(store: Store, tmp_path: Path, status: Status) -> None:
    one = submission(tmp_path, "ada")
    assert not is_done(store, one)
    keep(store, one, status=status)
    assert is_done(store, one)


def test_a_grade_that_cannot_be_read_is_none(store: Store, tmp_path: Path) -> None:
    keep(store, one := submission(tmp_path, "ada"))
    (store.submissions / "ada" / "grade.json").write_text("{")
    assert not is_done(store, one)


def test_other_content_is_graded_again(store: Store, tmp_path: Path) -> None:
    keep(store, one := submission(tmp_path, "ada"))
    one.path.write_text("# better\n")
    assert not is_done(store, one)


def test_another_name_or_another_time_is_graded_again(store: Store, tmp_path: Path) -> None:
    keep(store, one := submission(tmp_path, "ada", submitted=DUE + timedelta(hours=1)))
    assert is_done(store, one)
    assert not is_done(store, replace(one, name="Ada Lovelace"))
    assert not is_done(store, replace(one, submitted=DUE - timedelta(hours=1)))
    assert not is_done(store, replace(one, submitted=DUE + timedelta(days=2)))


def test_the_roster_adds_names_and_times_and_leaves_the_others_alone(tmp_path: Path) -> None:
    ada, bob, cyd = (submission(tmp_path, key, submitted=DUE) for key in ("ada", "bob", "cyd"))
    roster = {
        "ada": RosterEntry("ada", "Ada Lovelace", DUE + timedelta(1)),
        "bob": RosterEntry("bob"),
        "eve": RosterEntry("eve", "Eve"),
    }
    assert list(with_roster([ada, bob, cyd], roster)) == [
        replace(ada, name="Ada Lovelace", submitted=DUE + timedelta(1)),
        bob,
        cyd,
    ]


def test_the_tables_hold_everyone_who_is_stored(store: Store, tmp_path: Path) -> None:
    for key in ("bob", "ada"):
        keep(store, submission(tmp_path, key))
    summary = write_class(store, ASSIGNMENT, "plain")
    assert (summary.submissions, summary.graded) == (2, 2)
    with (store.folder / "grades.csv").open(encoding="utf-8-sig", newline="") as stream:
        assert [row["id"] for row in csv.DictReader(stream)] == ["ada", "bob"]
    written = {path.name for path in store.folder.iterdir() if path.is_file()}
    assert written == {
        *("run.json", "grades.csv", "canvas.csv", "moodle.csv", "similarity.csv", "summary.json", "summary.html")
    }


def test_a_run_tells_one_secret_from_another_without_telling_it(tmp_path: Path) -> None:
    found = Found((submission(tmp_path, "ada"),), "canvas", ())
    run = run_of(ASSIGNMENT, "filtered", found)
    other = run_of(replace(ASSIGNMENT, secret=Secret("another secret of the class")), "filtered", found)
    assert (run.level, run.layout, run.submissions) == ("filtered", "canvas", 1)
    assert run.secret != other.secret
    assert "PLANTED" not in str(run)
