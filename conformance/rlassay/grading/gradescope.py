"""Gradescope's results.json: one test for each part of the assignment, one for each visible check of it.

Format: gradescope-autograders.readthedocs.io, "Output format". The parts carry the points. Visible checks have a status
and no points. All texts are declared as plain text, which Gradescope escapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import zip_longest
from typing import Any

import msgspec

from rlassay.describe import convention_text, failure_text, law_of, message
from rlassay.grading.feedback import Feedback, PartFeedback, shown
from rlassay.grading.grade import Grade, PartGrade
from rlassay.grading.points import percent_text, points_text, rounded
from rlassay.record import CheckResult
from rlassay.verdict import FAILURES

REVIEW = "rlassay itself failed in some checks: staff has been told and will look, so the points may still change"
FAILED = "rlassay could not grade this submission; this costs you nothing and staff has been told"


def results_json(grade: Grade, feedback: Feedback) -> bytes:
    """The document. Without marks it has no score, so that Gradescope does not take it for a zero."""
    document: dict[str, Any] = {
        "output": "\n".join(overall(grade)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": list(_tests(grade, feedback)),
        "extra_data": {
            "rlassay": grade.rlassay,
            "status": grade.status,
            "convention": convention_text(feedback.record.header),
        },
    }
    if grade.status != "failed":
        document = {"score": float(rounded(grade.points)), **document}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def overall(grade: Grade) -> Iterator[str]:
    """What is to be said to a student of the whole submission, line by line."""
    if grade.status == "failed":
        yield FAILED
    else:
        yield f"{points_text(grade.points)} of {points_text(grade.maximum)} points"
    if grade.status == "review":
        yield REVIEW
    if grade.lateness:
        yield shown(grade.lateness)
    if Fraction(grade.penalty) and grade.status != "failed":
        yield f"{points_text(grade.earned)} points were earned, of which being late costs {percent_text(grade.penalty)}"
    yield from map(shown, grade.notes)


def _tests(grade: Grade, feedback: Feedback) -> Iterator[dict[str, Any]]:
    marks = grade.parts if grade.status != "failed" else []
    for number, (part, earned) in enumerate(zip_longest(feedback.parts, marks[: len(feedback.parts)]), start=1):
        yield _part(number, part, earned)
        for place, result in enumerate(part.visible, start=1):
            yield _check(f"{number}.{place}", result)


def _part(number: int, part: PartFeedback, earned: PartGrade | None) -> dict[str, Any]:
    lines = [part.hidden.text] if part.hidden else []
    lines += [f"{explanation.operation} {explanation.text}" for explanation in part.explanations]
    test: dict[str, Any] = {
        "number": str(number),
        "name": part.name,
        "output": "\n".join(lines),
        "visibility": "visible",
    }
    if earned is not None:
        full = Fraction(earned.earned) == Fraction(earned.points)
        test["score"], test["max_score"] = float(rounded(earned.earned)), float(rounded(earned.points))
        test["status"] = "passed" if full else "failed"
    return test


def _check(number: str, result: CheckResult) -> dict[str, Any]:
    test: dict[str, Any] = {
        "number": number,
        "name": f"{result.operations[0]}: {law_of(result)}",
        "output": _text(result),
        "visibility": "visible",
    }
    if result.outcome == "pass":
        test["status"] = "passed"
    elif result.outcome not in ("harness-error", "not-declared"):
        test["status"] = "failed"
    return test


def _text(result: CheckResult) -> str:
    if result.outcome == "pass":
        return f"passed: {result.title}"
    if result.outcome in FAILURES:
        return f"{result.outcome}: {result.title}\n{failure_text(result)}"
    return f"{result.outcome}: {message(result)}"
