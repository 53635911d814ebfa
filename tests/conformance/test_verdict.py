"""What the outcomes of a run amount to."""

from __future__ import annotations

import pytest

from rlassay.verdict import footer, tallies
from tests.conformance.cli_support import record, result

FINDING = result("kl_k3/side-effects", "fail", kind="robustness")


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (("pass", "pass"), 0),
        (("pass", "fail"), 1),
        (("pass", "error"), 1),
        (("pass", "timeout"), 1),
        (("pass", "crash"), 1),
        (("pass", "not-provided"), 0),
        (("pass", "not-declared"), 0),
        (("not-provided", "not-declared"), 2),
        ((), 2),
        (("pass", "harness-error"), 3),
        (("fail", "harness-error"), 3),
    ],
)
def test_the_exit_code_follows_from_the_outcomes(outcomes: tuple[str, ...], code: int) -> None:
    end = footer([result(f"kl_k1/{place}", outcome) for place, outcome in enumerate(outcomes)], [], strict=False)
    assert (end.exit_code, end.conforms) == (code, code == 0)


def test_a_robustness_finding_decides_only_a_strict_run() -> None:
    checks = [result("kl_k3/value"), FINDING]
    assert [footer(checks, [], strict).exit_code for strict in (False, True)] == [0, 1]
    assert (footer(checks, [], strict=True).conforms, footer(checks, [], strict=True).robust) == (True, False)


def test_robustness_checks_alone_are_nothing_to_check_unless_the_run_is_strict() -> None:
    checks = [result("kl_k3/side-effects", kind="robustness")]
    assert [footer(checks, [], strict).exit_code for strict in (False, True)] == [2, 0]


def test_a_known_deviation_is_no_failure_and_a_stale_one_is() -> None:
    known = result("kl_k1/value", "fail", known="as the paper has it")
    assert footer([known, result("kl_k1/gradient")], [], strict=False).exit_code == 0
    assert footer([result("kl_k1/value")], ["kl_k1/value"], strict=False).exit_code == 1


def test_the_footer_counts_every_outcome() -> None:
    checks = [result("kl_k1/value"), result("kl_k1/gradient", "fail"), result("kl_k3/value"), FINDING]
    assert footer(checks, [], strict=False).outcomes == {"fail": 2, "pass": 2}


def test_a_tally_holds_what_was_judged_in_the_order_of_the_operations() -> None:
    run = record(
        FINDING,
        result("kl_k3/value", "fail", known="as the paper has it"),
        result("kl_k3/gradient"),
        result("gae/value", "not-provided"),
        result("entropy/value", "crash"),
        result("entropy/gradient", "not-declared"),
    )
    entropy, k3 = tallies(run)
    assert (entropy.operation, entropy.ran, entropy.passed) == ("entropy", 1, 0)
    assert [failure.id for failure in entropy.failures] == ["entropy/value"]
    assert (k3.operation, k3.ran, k3.passed, k3.failures) == ("kl_k3", 2, 1, [])
    assert ([finding.id for finding in k3.findings], [known.id for known in k3.known]) == (
        ["kl_k3/side-effects"],
        ["kl_k3/value"],
    )


def test_a_finding_of_a_strict_run_is_a_failure() -> None:
    (tally,) = tallies(record(result("kl_k3/value"), FINDING, strict=True))
    assert (tally.ran, tally.failures, tally.findings) == (2, [FINDING], [])
