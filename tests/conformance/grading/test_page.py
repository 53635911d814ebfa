"""The student's page: complete, readable without colour, and inert whatever a submission says."""

from __future__ import annotations

import base64
import hashlib
from xml.etree import ElementTree

from rlassay.grading.feedback import for_student
from rlassay.grading.page import page
from rlassay.junit import junit
from rlassay.record import Explanation
from tests.conformance.cli_support import result
from tests.conformance.grading.report_support import HOSTILE, assignment, grade, outcomes, read_page, run_of


def test_the_page_says_all_that_a_student_may_know() -> None:
    task = assignment()
    line = result(
        "kl_k1/value", "fail", "is 1, but should be 2", inputs={"log_probs": "[[-1.5]]"}, snippet="import torch"
    )
    told = [Explanation(operation="kl_k1", text="behaves like swapped", fault="swapped")]
    feedback = for_student(run_of(outcomes(task, {line.id: line}), told), task)
    said = read_page(page(grade(lateness="2 days late", files=["kl.py"]), feedback, task)).said
    for text in (
        "Losses",
        "Ada (ada): kl.py",
        "12 of 15 points",
        "2 days late",
        "k1 by hand: 7 of 10 points",
        "✘ failed",
        "is 1, but should be 2",
        "[[-1.5]]",
        "import torch",
        "kl_k1 behaves like swapped",
        "kl_k2: 5 of 5 points",
        "✔ passed",
        "hidden checks passed",
        "lecture convention",
    ):
        assert text in said, text


def test_the_style_sheet_is_the_one_that_the_policy_allows() -> None:
    task = assignment()
    written = page(grade(), for_student(run_of(outcomes(task, {})), task), task)
    style = written.partition(b"<style>")[2].partition(b"</style>")[0]
    allowed = base64.b64encode(hashlib.sha256(style).digest()).decode()
    assert f"'sha256-{allowed}'" in read_page(written).policy


def test_hostile_texts_are_shown_and_never_obeyed() -> None:
    task = assignment(title="a <b> & c", name="<i>k1</i>")
    line = result(
        "kl_k1/value",
        "error",
        HOSTILE,
        call=HOSTILE,
        got=HOSTILE,
        expected=HOSTILE,
        snippet=f"</pre>{HOSTILE}",
        traceback=f"</details></section>{HOSTILE}",
        inputs={"log_probs": HOSTILE},
    )
    told = [Explanation(operation="kl_k1", text=HOSTILE, fault="x")]
    feedback = for_student(run_of(outcomes(task, {line.id: line}), told), task)
    mark = grade(id=HOSTILE, name=HOSTILE, files=[HOSTILE], notes=[HOSTILE], lateness=HOSTILE)
    reader = read_page(page(mark, feedback, task))
    assert "<script>alert(1)</script>" in reader.said
    assert not set(reader.said) & {"\x1b", "\x00", "\x07", "\u202e"}


def test_a_million_characters_are_cut() -> None:
    task = assignment()
    line = result("kl_k1/value", "fail", "<" * 1_000_000, got="&" * 1_000_000)
    mark = grade(name="n" * 1_000_000, notes=["\x1b" * 1_000_000])
    assert len(page(mark, for_student(run_of(outcomes(task, {line.id: line})), task), task)) < 400_000


def test_a_submission_without_marks_has_a_page_without_points() -> None:
    task = assignment()
    feedback = for_student(run_of(outcomes(task, {}, "not-provided")), task)
    said = read_page(page(grade(status="failed", parts=[], points="0"), feedback, task)).said
    assert "could not grade" in said
    assert "points" not in said


def test_junit_of_the_redacted_record_is_xml_whatever_is_in_it() -> None:
    task = assignment(name="<k1> & co")
    line = result("kl_k1/value", "error", HOSTILE, traceback=HOSTILE)
    suite = ElementTree.fromstring(junit(for_student(run_of(outcomes(task, {line.id: line})), task).record))[0]
    assert {case.get("name") for case in suite} == {"kl_k1/value", "part 1/hidden checks", "part 2/hidden checks"}
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
