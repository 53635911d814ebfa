"""Marks: only a pass earns, what rlassay failed in costs nothing, and lateness costs what the assignment says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path

import pytest

from rlassay.engine import result_of
from rlassay.grading.assignment import Assignment, Deadline, Part, Secret
from rlassay.grading.scoring import Marks, Penalty, late_penalty, marks
from rlassay.record import CheckResult, Outcome
from rlassay_spec.convention import LECTURE

ALL = Part("kl_k3", Fraction(10), operation="kl_k3")
SHARE = Part("kl_k1", Fraction(7), operation="kl_k1", partial="share")
CLAIM = Part("unbiased", Fraction(3), claim="P7.5")
DUE = datetime(2026, 12, 1, 23, 59, tzinfo=timezone(timedelta(hours=1)))
PER_DAY = Deadline(DUE, timedelta(minutes=15), Fraction(1, 10), 3)
REFUSE = Deadline(DUE)


def assignment(*parts: Part) -> Assignment:
    return Assignment(Path("a.toml"), "KL", Secret("s" * 16), "0" * 64, LECTURE, 32, parts)


def results(asked: Assignment, **outcomes: Outcome) -> list[CheckResult]:
    """All checks pass, but for those named, with `__` for the slash and `_` for the dash, or of those operations."""
    named = {key.replace("__", "/"): outcome for key, outcome in outcomes.items()}
    return [
        result_of(check, named.get(check.id.replace("-", "_"), named.get(check.operation, "pass")))
        for check in asked.checks()
    ]


def judged(asked: Assignment, **outcomes: Outcome) -> Marks:
    return marks(asked, results(asked, **outcomes), Penalty())


def test_a_submission_that_passes_everything_earns_all_points() -> None:
    asked = assignment(ALL, SHARE, CLAIM)
    found = judged(asked)
    assert found.points == found.earned == asked.maximum == 20
    assert [part.failed for part in found.parts] == [0, 0, 0]
    assert [part.passed for part in found.parts] == [len(asked.part_checks(part)) for part in asked.parts]
    assert found.alerts == ()


@pytest.mark.parametrize("outcome", ["fail", "error", "timeout", "crash", "not-provided"])
def test_only_a_pass_earns(outcome: Outcome) -> None:
    found = judged(assignment(ALL, SHARE), kl_k3__value=outcome, kl_k1__value=outcome)
    checks = len(assignment(SHARE).checks())
    assert [part.earned for part in found.parts] == [0, Fraction(7 * (checks - 1), checks)]
    assert [part.failed for part in found.parts] == [1, 1]


def test_a_check_counts_for_each_part_that_covers_it() -> None:
    asked = assignment(ALL, CLAIM)
    found = judged(asked, **{"kl_k3__P7.5": "fail"})
    assert [part.earned for part in found.parts] == [0, 0]
    assert [part.failed for part in found.parts] == [1, 1]


def test_an_operation_that_is_not_provided_earns_nothing() -> None:
    found = judged(assignment(ALL, SHARE), kl_k3="not-provided", kl_k1="not-provided")
    assert found.points == 0
    assert [(part.provided, part.passed) for part in found.parts] == [(False, 0), (False, 0)]
    assert found.alerts == ()


def test_nothing_is_earned_where_rlassay_failed_in_some_checks_of_an_operation_that_is_not_provided() -> None:
    found = judged(assignment(SHARE), kl_k1="not-provided", kl_k1__value="harness-error")
    assert found.points == 0


def test_a_failure_of_rlassay_is_taken_out_of_the_count_and_told() -> None:
    asked = assignment(ALL, SHARE)
    found = judged(asked, kl_k3__value="harness-error", kl_k1__value="harness-error", kl_k1__dtype="fail")
    counted = len(asked.part_checks(SHARE)) - 1
    assert [part.earned for part in found.parts] == [10, Fraction(7 * (counted - 1), counted)]
    assert [part.excused for part in found.parts] == [1, 1]
    failed = "rlassay itself failed in kl_k1/value, kl_k3/value, which cost nothing; grade again, or by hand"
    assert found.alerts == (failed,)


def test_a_part_whose_checks_are_all_excused_earns_its_points_and_is_told() -> None:
    asked = assignment(ALL, SHARE)
    found = judged(asked, kl_k3="harness-error", kl_k1="fail")
    assert [part.earned for part in found.parts] == [10, 0]
    assert found.parts[0].provided
    count = len(asked.part_checks(ALL))
    assert found.alerts[1] == f"kl_k3: none of its {count} checks could be judged, so its points are given"


def test_what_the_convention_leaves_open_is_out_of_the_count_and_no_alert() -> None:
    found = judged(assignment(ALL), kl_k3__value="not-declared")
    assert (found.points, found.parts[0].excused, found.alerts) == (10, 1, ())


def test_marks_are_refused_where_a_result_is_missing_or_there_twice() -> None:
    asked = assignment(ALL)
    every = results(asked)
    with pytest.raises(ValueError, match="kl_k3/value has no result; marks need exactly one of each check"):
        marks(asked, [result for result in every if result.id != "kl_k3/value"], Penalty())
    with pytest.raises(ValueError, match="a check has two results"):
        marks(asked, [*every, every[0]], Penalty())


def test_a_penalty_takes_its_share_of_what_was_earned_and_its_alert_is_told() -> None:
    asked = assignment(ALL, SHARE)
    found = marks(asked, results(asked, kl_k1="fail"), Penalty(Fraction(1, 3), "late", "look"))
    assert (found.earned, found.points) == (10, Fraction(20, 3))
    assert found.alerts == ("look",)


def test_without_a_deadline_nothing_is_late() -> None:
    assert late_penalty(None, DUE, True) == Penalty()


@pytest.mark.parametrize(
    ("after", "share", "sentence"),
    [
        (timedelta(days=-1), 0, ""),
        (timedelta(), 0, ""),
        (timedelta(minutes=15), 0, ""),
        (timedelta(minutes=15, seconds=1), Fraction(1, 10), "16 min after … : 1 begun day costs 10 % of the points."),
        (timedelta(days=1, minutes=15), Fraction(1, 10), "1 d 15 min after … : 1 begun day costs 10 % of the points."),
        (timedelta(days=1, hours=1), Fraction(1, 5), "1 d 1 h after … : 2 begun days cost 20 % of the points."),
        (timedelta(days=3), Fraction(3, 10), "3 d after … : 3 begun days cost 30 % of the points."),
        (timedelta(days=3, minutes=16), 1, "3 d 16 min after … : after 3 days a submission earns no points."),
    ],
)
def test_each_day_that_has_begun_after_the_grace_costs_its_share(
    after: timedelta, share: Fraction, sentence: str
) -> None:
    text = sentence.replace(" … ", " the deadline (2026-12-01 23:59+01:00)")
    assert late_penalty(PER_DAY, DUE + after, None) == Penalty(Fraction(share), text and f"Handed in {text}")


def test_the_days_together_cost_no_more_than_all_points() -> None:
    found = late_penalty(Deadline(DUE, timedelta(), Fraction(2, 5), 5), DUE + timedelta(days=4), None)
    assert found.share == 1


def test_times_are_compared_across_time_zones() -> None:
    assert late_penalty(REFUSE, datetime(2026, 12, 1, 22, 59, tzinfo=UTC), None).share == 0
    assert late_penalty(REFUSE, datetime(2026, 12, 1, 23, 0, tzinfo=UTC), None).share == 1


def test_a_time_without_an_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="submitted is 2026-12-01T00:00:00, but should have an offset from UTC"):
        late_penalty(REFUSE, datetime(2026, 12, 1), None)


def test_late_submissions_are_refused_where_the_assignment_says_so() -> None:
    found = late_penalty(REFUSE, DUE + timedelta(hours=2), True)
    sentence = "Handed in 2 h after the deadline (2026-12-01 23:59+01:00): late submissions earn no points."
    assert found == Penalty(Fraction(1), sentence)


@pytest.mark.parametrize("marked", [None, False])
def test_an_unknown_time_costs_nothing_where_nothing_is_marked_late(marked: bool | None) -> None:
    sentence = "When it was handed in is not known, and it is not marked late: no points are taken off."
    assert late_penalty(PER_DAY, None, marked) == late_penalty(REFUSE, None, marked) == Penalty(sentence=sentence)


def test_what_is_marked_late_at_an_unknown_time_counts_as_one_day_late_and_staff_is_told() -> None:
    assert late_penalty(PER_DAY, None, True) == Penalty(
        Fraction(1, 10),
        "Marked late where it was handed in: 1 begun day costs 10 % of the points.",
        "the platform marks it late, but not by how much; it counts as one day late",
    )
    assert late_penalty(REFUSE, None, True) == Penalty(
        Fraction(1),
        "Marked late where it was handed in: late submissions earn no points.",
        "the platform marks it late, but not by how much; it counts as refused",
    )


def test_staff_is_told_where_the_time_and_the_platform_disagree() -> None:
    early = late_penalty(PER_DAY, DUE, True)
    assert (early.share, early.alert) == (
        0,
        "the platform marks it late, but its time is before the deadline; no points are taken off",
    )
    assert late_penalty(PER_DAY, DUE + timedelta(minutes=1), True) == Penalty()
    extended = late_penalty(PER_DAY, DUE + timedelta(hours=1), False)
    assert extended.share == Fraction(1, 10)
    assert extended.alert.endswith("the platform does not mark it late: is there an extension?")
