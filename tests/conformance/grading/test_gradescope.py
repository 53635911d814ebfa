"""Gradescope's results.json: points on the parts, visible checks below them, nothing that is not ours to say."""

from __future__ import annotations

import json
from typing import Any

from rlassay.grading.feedback import OURS, for_student
from rlassay.grading.grade import Grade, PartGrade
from rlassay.grading.gradescope import FAILED, REVIEW, results_json
from rlassay.record import CheckResult, Explanation, Failure
from tests.conformance.cli_support import result
from tests.conformance.grading.report_support import HOSTILE, assignment, grade, outcomes, run_of

TOP = {
    "score",
    "output",
    "output_format",
    "test_output_format",
    "test_name_format",
    "visibility",
    "stdout_visibility",
    "tests",
    "extra_data",
}
TEST = {"score", "max_score", "status", "name", "number", "output", "visibility"}


def document(mark: Grade, lines: dict[str, CheckResult] | None = None, told: list[Explanation] | None = None) -> Any:
    task = assignment()
    found = json.loads(results_json(mark, for_student(run_of(outcomes(task, lines or {}), told or []), task)))
    assert set(found) <= TOP
    for test in found["tests"]:
        assert set(test) <= TEST
        assert test["visibility"] == "visible"
        assert test.get("status", "passed") in ("passed", "failed")
    return found


def test_parts_carry_the_points_and_visible_checks_a_status() -> None:
    found = document(grade(), {"kl_k1/value": result("kl_k1/value", "fail", "is 1, but should be 2")})
    first, check, second = found["tests"]
    assert (first["number"], first["name"], first["score"], first["max_score"], first["status"]) == (
        "1",
        "k1 by hand",
        7.0,
        10.0,
        "failed",
    )
    assert (check["number"], check["name"], check["status"]) == ("1.1", "kl_k1: value", "failed")
    assert "score" not in check
    assert check["output"].startswith("fail: what kl_k1/value asserts\nis 1, but should be 2")
    assert (second["score"], second["max_score"], second["status"]) == (5.0, 5.0, "passed")
    assert second["output"].endswith("hidden checks passed")
    assert (found["score"], found["stdout_visibility"]) == (12.0, "hidden")


def test_points_are_rounded_once_from_the_exact_fraction() -> None:
    parts = [PartGrade(name="a", points="10", earned="20/3", passed=2, failed=1)] * 2
    found = document(grade(points="40/3", parts=parts))
    assert found["score"] == 13.33
    assert [test["score"] for test in found["tests"] if "score" in test] == [6.67, 6.67]


def test_the_penalty_and_the_notes_are_said() -> None:
    mark = grade(points="54/5", earned="12", penalty="1/10", lateness="1 day late", notes=["only its definitions"])
    assert document(mark)["output"].splitlines() == [
        "10.8 of 15 points",
        "1 day late",
        "12 points were earned, of which being late costs 10 %",
        "only its definitions",
    ]


def test_a_grade_for_review_says_so() -> None:
    found = document(grade(status="review", alerts=["STAFF"]))
    assert REVIEW in found["output"]
    assert found["score"] == 12.0
    assert "STAFF" not in json.dumps(found)


def test_without_marks_there_is_no_score() -> None:
    found = document(grade(status="failed", points="0", parts=[]))
    assert found["output"] == FAILED
    assert "score" not in found
    assert not any("score" in test for test in found["tests"])


def test_a_harness_error_neither_passes_nor_fails() -> None:
    found = document(grade(), {"kl_k1/value": result("kl_k1/value", "harness-error", "STAFF")})
    check = found["tests"][1]
    assert check["output"] == f"harness-error: {OURS}"
    assert "status" not in check


def test_explanations_stand_with_their_part() -> None:
    told = [Explanation(operation="kl_k1", text="behaves like swapped: it swaps", fault="swapped")]
    found = document(grade(), {"kl_k1/value": result("kl_k1/value", "fail")}, told)
    assert found["tests"][0]["output"].splitlines()[-1] == "kl_k1 behaves like swapped: it swaps"


def test_hostile_texts_are_plain_text_and_valid_json() -> None:
    line = result("kl_k1/value", "error", HOSTILE, traceback=HOSTILE, inputs={"log_probs": HOSTILE * 100_000})
    line.failure = line.failure or Failure(message="")
    mark = grade(notes=[HOSTILE], lateness=HOSTILE)
    task = assignment()
    raw = results_json(mark, for_student(run_of(outcomes(task, {"kl_k1/value": line})), task))
    text = raw.decode("utf-8")
    assert json.loads(text)["output_format"] == json.loads(text)["test_output_format"] == "text"
    assert "\x1b" not in text and "\\u001b" not in text and "\\u0000" not in text
    assert len(raw) < 200_000
