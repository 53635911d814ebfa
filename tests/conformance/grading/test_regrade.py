"""What changed between two gradings, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlassay.grading.grade import Grade, PartGrade
from rlassay.grading.regrade import UNSTEADY, Change, changes, changes_json
from rlassay.grading.store import StoreError
from rlassay.record import Record
from tests.conformance.cli_support import result
from tests.conformance.grading.report_support import HOSTILE, grade, run_of, store

PASSED = run_of([result("kl_k1/value"), result("kl_k1/dtype")])
FAILED = run_of([result("kl_k1/value", "fail"), result("kl_k1/dtype")])


def compare(
    folder: Path,
    old: Grade,
    new: Grade,
    records: tuple[Record | None, Record | None] = (PASSED, PASSED),
    **run: object,
) -> list[Change]:
    before = store(folder / "old", [old], [records[0]])
    return changes(before, store(folder / "new", [new], [records[1]], **run))


def test_the_same_grades_have_no_changes(tmp_path: Path) -> None:
    assert compare(tmp_path, grade(seconds=1.0), grade(seconds=2.0)) == []


def test_points_parts_and_checks_are_compared(tmp_path: Path) -> None:
    better = [PartGrade(name="k1 by hand", points="10", earned="10", passed=12, failed=0), grade().parts[1]]
    (change,) = compare(tmp_path, grade(), grade(points="15", sha256="1" * 64, parts=better), (FAILED, PASSED))
    assert list(change.lines()) == [
        "Ada (ada): 12 of 15 → 15 of 15",
        "  points: 12 → 15",
        "  part 1, k1 by hand: 7 of 10 → 10 of 10",
        "  check kl_k1/value: fail → pass",
        "  because its code changed (sha256 000000000000 before, 111111111111 now)",
    ]


def test_a_check_that_changed_is_told_even_where_no_point_did(tmp_path: Path) -> None:
    (change,) = compare(tmp_path, grade(), grade(), (FAILED, PASSED))
    assert change.what == ["check kl_k1/value: fail → pass"]
    assert change.why == [UNSTEADY]


def test_the_assignment_and_the_version_are_reasons(tmp_path: Path) -> None:
    (change,) = compare(tmp_path, grade(), grade(points="11"), assignment="b" * 64, rlassay="0.2.0", level="filtered")
    assert change.why == [
        "the assignment changed",
        "rlassay 0.1.0 graded before, 0.2.0 now",
        "the level of isolation was namespaces, and is filtered now",
    ]


def test_the_settings_of_the_record_are_reasons(tmp_path: Path) -> None:
    other = run_of(FAILED.checks, libraries={"torch": "2.14.0"}, seed=5)
    (change,) = compare(tmp_path, grade(), grade(points="11"), (PASSED, other))
    assert change.why == ["libraries: torch 2.13.0 before, torch 2.14.0 now", "the seed changed"]


def test_being_late_and_how_it_was_judged_are_reasons(tmp_path: Path) -> None:
    late = grade(points="6", penalty="1/2", lateness="5 days late", how="definitions")
    (change,) = compare(tmp_path, grade(), late)
    assert change.why == [
        "being late costs 50 % (5 days late) now, 0 % (in time) before",
        "its modules were judged before, its definitions now",
    ]


def test_a_submission_that_could_not_be_graded(tmp_path: Path) -> None:
    (change,) = compare(tmp_path, grade(), grade(status="failed", points="0", parts=[]), (PASSED, None))
    assert (change.before, change.after) == ("12 of 15", "not graded")
    assert "status: graded → failed" in change.what
    assert change.why == ["rlassay could not grade it now"]


def test_a_grade_for_review(tmp_path: Path) -> None:
    (change,) = compare(tmp_path, grade(status="review"), grade())
    assert (change.before, change.after, change.what) == (
        "12 of 15, for review",
        "12 of 15",
        ["status: review → graded"],
    )


def test_new_and_missing_submissions_are_told(tmp_path: Path) -> None:
    old = store(tmp_path / "old", [grade("ada"), grade("bob")])
    new = store(tmp_path / "new", [grade("bob"), grade("cyd")])
    assert [(change.key, change.before, change.after) for change in changes(old, new)] == [
        ("ada", "12 of 15", "not there"),
        ("cyd", "not there", "12 of 15"),
    ]


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no results"):
        changes(store(tmp_path / "old", [grade()]), tmp_path)


def test_hostile_names_are_harmless_and_one_line_each(tmp_path: Path) -> None:
    nasty = HOSTILE.replace("\ud800", "\n")
    part = PartGrade(name=nasty, points="10", earned="1", passed=1, failed=1)
    found = compare(tmp_path, grade(name=nasty, id=nasty), grade(name=nasty, id=nasty, points="1", parts=[part]))
    assert json.loads(changes_json(found))[0]["key"] == "ada"
    for line in found[0].lines():
        assert line.isprintable()


def test_the_same_folders_give_the_same_bytes(tmp_path: Path) -> None:
    old = store(tmp_path / "old", [grade("bob"), grade("ada")])
    new = store(tmp_path / "new", [grade("ada", "11"), grade("bob", "10")])
    assert changes_json(changes(old, new)) == changes_json(changes(old, new))
    assert [change.key for change in changes(old, new)] == ["ada", "bob"]
