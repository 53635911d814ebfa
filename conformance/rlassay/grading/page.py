"""The page that a student reads: points, parts, visible checks with the smallest failing input, counts of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from rlassay.describe import convention_text, facts, law_of, message
from rlassay.grading.assignment import Assignment
from rlassay.grading.document import document, text
from rlassay.grading.feedback import Feedback, PartFeedback
from rlassay.grading.grade import Grade, PartGrade
from rlassay.grading.gradescope import overall
from rlassay.grading.points import points_text
from rlassay.ranking import by_weight
from rlassay.record import CheckResult, Header
from rlassay.verdict import FAILURES


def page(grade: Grade, feedback: Feedback, assignment: Assignment) -> bytes:
    """The page of one submission."""
    lines = [*_head(grade, assignment)]
    marks = grade.parts if grade.status != "failed" else []
    for part, earned in zip_longest(feedback.parts, marks[: len(feedback.parts)]):
        lines += _part(part, earned)
    lines.append(f'<p class="dim">{text(_foot(feedback.record.header))}</p>')
    return document(f"{assignment.title}: {grade.name or grade.id}", "\n".join(lines))


def _head(grade: Grade, assignment: Assignment) -> Iterator[str]:
    yield f"<h1>{text(assignment.title)}</h1>"
    who = f"{grade.name} ({grade.id})" if grade.name else grade.id
    yield f'<p class="dim">{text(who)}{text(": " + ", ".join(grade.files)) if grade.files else ""}</p>'
    first, *rest = overall(grade)
    yield f'<p class="total">{text(first)}</p>'
    for line in rest:
        yield f'<p class="note">{text(line)}</p>'


def _part(part: PartFeedback, earned: PartGrade | None) -> Iterator[str]:
    points = f": {points_text(earned.earned)} of {points_text(earned.points)} points" if earned is not None else ""
    yield "<section>"
    yield f"<h2>{text(part.name)}{points}</h2>"
    for explanation in part.explanations:
        yield f'<p class="note"><b>{text(explanation.operation)}</b> {text(explanation.text)}</p>'
    if part.hidden:
        yield f"<p>{_mark(part.hidden.outcome)} {text(part.hidden.text)}</p>"
    failing = by_weight([result for result in part.visible if result.outcome in FAILURES])
    others = [result for result in part.visible if result.outcome not in FAILURES]
    if part.visible:
        yield "<ul>"
        for place, result in enumerate(failing):
            yield from _failure(result, opened=place == 0)
        for result in others:
            said = "" if result.outcome == "pass" else f'<br><span class="dim">{text(message(result))}</span>'
            yield f"<li>{_name(result)}{said}</li>"
        yield "</ul>"
    yield "</section>"


def _failure(result: CheckResult, opened: bool) -> Iterator[str]:
    yield f"<li><details{' open' if opened else ''}><summary>{_name(result)}</summary>"
    yield f"<p>{text(message(result))}</p>"
    rows = "".join(f"<dt>{text(label)}</dt><dd>{text(value)}</dd>" for label, value in facts(result, full=True))
    yield f"<dl>{rows}</dl>" if rows else ""
    failure = result.failure
    for what, code in (
        ("code that repeats it", failure.snippet if failure is not None else ""),
        ("traceback", failure.traceback if failure is not None else ""),
    ):
        if code:
            yield f'<p class="dim">{what}</p><pre>{text(code)}</pre>'
    yield "</details></li>"


def _name(result: CheckResult) -> str:
    return f"{_mark(result.outcome)} <b>{text(law_of(result))}</b> {text(result.title)}"


def _mark(outcome: str) -> str:
    """The outcome as a sign, a word and a colour."""
    if outcome == "pass":
        return '<span class="mark good">✔ passed</span>'
    if outcome == "fail":
        return '<span class="mark bad">✘ failed</span>'
    if outcome in FAILURES:
        return f'<span class="mark bad">✘ {outcome}</span>'
    words = {"not-provided": "not provided", "not-declared": "left out", "harness-error": "not judged"}
    return f'<span class="mark dim">– {words.get(outcome, outcome)}</span>'


def _foot(header: Header) -> str:
    libraries = ", ".join(f"{name} {version}" for name, version in header.libraries.items())
    judged = f"rlassay {header.rlassay}, {convention_text(header)} convention, Python {header.python}"
    return f"{judged}, {libraries}" if libraries else judged
