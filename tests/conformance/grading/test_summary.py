"""The class in figures."""

from __future__ import annotations

import io
import json

from rich.console import Console

from rlassay.grading.grade import Grade, PartGrade
from rlassay.grading.summary import MOST_HELD, Summary, summarise, summary_json
from rlassay.grading.summary_page import render_summary, summary_page
from tests.conformance.grading.report_support import HOSTILE, grade, read_page


def part(name: str, earned: str, explanation: str = "", fault: str = "", provided: bool = True) -> PartGrade:
    return PartGrade(
        name=name,
        points="10",
        earned=earned,
        passed=1,
        failed=int(earned != "10"),
        explanation=explanation,
        fault=fault,
        provided=provided,
    )


def klass() -> list[Grade]:
    swapped = "behaves like swapped: it swaps"
    return [
        grade("a", "10", maximum="10", parts=[part("k1", "10")]),
        grade(
            "b", "4", maximum="10", parts=[part("k1", "4", swapped, "swapped")], penalty="1/10", lateness="1 day late"
        ),
        grade("c", "0", maximum="10", parts=[part("k1", "0", swapped, "swapped")], how="definitions"),
        grade("d", "0", maximum="10", parts=[part("k1", "0")]),
        grade("e", "0", maximum="10", parts=[part("k1", "0", provided=False)], how="nothing", alerts=["odd"]),
        grade("f", "9", maximum="10", parts=[part("k1", "9")], status="review", alerts=["harness-error in kl_k1/x"]),
        grade("g", "0", maximum="10", parts=[], status="failed", alerts=["no guest"]),
    ]


def rendered(summary: Summary, width: int = 80) -> str:
    stream = io.StringIO()
    render_summary(summary, Console(file=stream, width=width, highlight=False, markup=False, emoji=False))
    return stream.getvalue()


def test_submissions_are_counted_by_what_became_of_them() -> None:
    found = summarise("Losses", iter(klass()))
    assert (found.submissions, found.graded, found.review, found.failed) == (7, 5, 1, 1)
    assert (found.late, found.definitions, found.nothing, found.alerts) == (1, 1, 1, 3)


def test_the_distribution_is_of_those_that_are_graded() -> None:
    found = summarise("Losses", klass())
    assert found.spread is not None
    spread = found.spread
    assert (spread.mean, spread.lowest, spread.lower_quartile, spread.median) == (2.8, 0.0, 0.0, 0.0)
    assert (spread.upper_quartile, spread.highest) == (4.0, 10.0)
    assert [one.count for one in found.histogram] == [3, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert (found.histogram[4].low, found.histogram[4].high, found.maximum) == (4.0, 5.0, 10.0)


def test_a_quartile_between_two_is_interpolated() -> None:
    found = summarise("Losses", [grade(name, points) for name, points in (("a", "0"), ("b", "1"))])
    assert found.spread is not None
    assert (found.spread.lower_quartile, found.spread.median, found.spread.upper_quartile) == (0.25, 0.5, 0.75)


def test_parts_and_faults_are_counted() -> None:
    found = summarise("Losses", klass())
    (only,) = found.parts
    assert (only.full, only.some, only.none, only.absent) == (1, 2, 2, 1)
    assert [(fault.part, fault.fault, fault.count) for fault in found.faults] == [("k1", "swapped", 2)]
    assert found.unexplained == 2


def test_what_is_held_back_is_listed_for_staff() -> None:
    found = summarise("Losses", klass())
    assert [(alert.id, alert.held, alert.why) for alert in found.attention] == [
        ("e", False, ["odd"]),
        ("f", True, ["harness-error in kl_k1/x"]),
        ("g", True, ["no guest"]),
    ]


def test_the_list_for_staff_is_bounded() -> None:
    found = summarise("Losses", (grade(str(number), alerts=["hung"]) for number in range(MOST_HELD + 7)))
    assert (len(found.attention), found.alerts) == (MOST_HELD, MOST_HELD + 7)
    assert "and 7 more" in read_page(summary_page(found)).said


def test_the_page_and_the_terminal_say_the_same() -> None:
    found = summarise("Losses", klass())
    page, terminal = read_page(summary_page(found)), rendered(found)
    for text in (
        "Losses",
        "7 submissions, 5 graded, 1 for review, 1 not graded, 1 late",
        "1 judged from their definitions only",
        "swapped",
        "harness-error in kl_k1/x",
        "2.8",
        "not exported: for review",
    ):
        assert text in page.said, text
        assert text in " ".join(terminal.split()), text
    assert "svg" in page.tags
    assert any("4 to 5 points: 1" in value for name, value in page.attributes if name == "aria-label")


def test_the_terminal_is_not_wider_than_it_is() -> None:
    assert max(map(len, rendered(summarise("Losses", klass()), 60).splitlines())) <= 60


def test_hostile_texts_are_harmless_everywhere() -> None:
    mark = grade(id=HOSTILE, name=HOSTILE, alerts=[HOSTILE], parts=[part(HOSTILE, "0", HOSTILE)])
    found = summarise(HOSTILE, [mark, grade("x", name="n" * 1_000_000, alerts=["\n" * 1_000_000])])
    assert json.loads(summary_json(found))["submissions"] == 2
    read_page(summary_page(found))
    printed = rendered(found)
    assert not set(printed) & {"\x1b", "\x00", "\u202e", "\ud800"}


def test_no_submissions_no_points_and_no_division() -> None:
    for grades in ([], [grade(points="0", maximum="0", parts=[])]):
        found = summarise("Losses", grades)
        read_page(summary_page(found))
        assert rendered(found)
        assert found.histogram == []


def test_the_same_class_gives_the_same_bytes() -> None:
    one, two = summarise("Losses", klass()), summarise("Losses", klass())
    assert summary_json(one) == summary_json(two)
    assert summary_page(one) == summary_page(two)
