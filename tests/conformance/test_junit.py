"""JUnit XML: what fails the run fails there, and nothing else passes than what passed."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from rlassay.junit import junit
from rlassay.record import Explanation, Record, gather
from tests.conformance.cli_support import header, record, result


def suite_of(run: Record) -> Element:
    suite = ElementTree.fromstring(junit(run)).find("testsuite")
    assert suite is not None
    return suite


def only_child(run: Record, name: str) -> Element | None:
    """What a test case holds besides its name."""
    case = suite_of(run).find(f"testcase[@name='{name}']")
    assert case is not None
    return next(iter(case), None)


def test_each_check_is_a_case_that_its_outcome_places() -> None:
    run = record(
        result("kl_k1/value"),
        result("kl_k1/gradient", "fail", "is 1, but should be 2"),
        result("kl_k1/dtype", "error"),
        result("kl_k1/layout", "timeout"),
        result("kl_k1/split", "crash"),
        result("kl_k2/value", "not-provided"),
        result("kl_k2/gradient", "not-declared"),
        result("kl_k3/value", "harness-error"),
    )
    suite = suite_of(run)
    places = {case.get("name"): child.tag for case in suite for child in case}
    assert places == {
        "kl_k1/gradient": "failure",
        "kl_k1/dtype": "error",
        "kl_k1/layout": "error",
        "kl_k1/split": "error",
        "kl_k2/value": "skipped",
        "kl_k2/gradient": "skipped",
        "kl_k3/value": "error",
    }
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "8",
        "failures": "1",
        "errors": "4",
        "skipped": "2",
    }


def test_a_failure_carries_message_facts_code_and_explanation() -> None:
    failure = result(
        "kl_k1/value", "fail", "is 1, but should be 2", call="kl_k1(…)", got="1", expected="2", snippet="import torch"
    )
    lines = [
        *gather([header(checks=1), failure]).checks,
        Explanation(operation="kl_k1", text="behaves like KL-01", fault="KL-01"),
    ]
    child = only_child(gather([header(checks=1), *lines]), "kl_k1/value")
    assert child is not None
    assert (child.get("type"), child.get("message")) == ("fail", "is 1, but should be 2")
    for part in (
        "is 1, but should be 2",
        "behaves like KL-01",
        "call: kl_k1(…)",
        "got: 1",
        "expected: 2",
        "import torch",
    ):
        assert part in (child.text or "")


def test_a_known_deviation_is_skipped_with_its_reason() -> None:
    child = only_child(record(result("kl_k1/value", "fail", known="as the paper has it")), "kl_k1/value")
    assert child is not None
    assert (child.tag, child.get("message")) == ("skipped", "known deviation: as the paper has it")


def test_a_robustness_finding_fails_in_a_strict_run_and_is_skipped_with_its_message_otherwise() -> None:
    finding = result("kl_k1/side-effects", "fail", "changed its input", kind="robustness")
    lenient = only_child(record(result("kl_k1/value"), finding), finding.id)
    strict = only_child(record(result("kl_k1/value"), finding, strict=True), finding.id)
    assert lenient is not None
    assert strict is not None
    assert (lenient.tag, lenient.get("message")) == ("skipped", "robustness finding: changed its input")
    assert strict.tag == "failure"


def test_characters_that_xml_cannot_hold_are_left_out_or_escaped() -> None:
    failure = result("kl_k1/value", "fail", "a null \0, a bell \a, <b> & \ud800 \ufffe", traceback="\x1b[31m]]>")
    child = only_child(record(failure), "kl_k1/value")
    assert child is not None
    assert "\\x1b[31m]]>" in (child.text or "")
    assert "<b> &" in (child.get("message") or "")


def test_an_incomplete_run_has_a_case_that_says_so() -> None:
    child = only_child(gather([header(checks=3), result("kl_k1/value")]), "the run is complete")
    assert child is not None
    assert (child.tag, child.get("message")) == ("error", "incomplete run: 1 of 3 checks ran")


def test_a_stale_known_deviation_has_a_case_that_fails() -> None:
    run = record(result("kl_k1/value"), stale=("kl_k1/value",))
    child = only_child(run, "the known deviation kl_k1/value is up to date")
    assert child is not None
    assert (child.tag, child.get("message")) == (
        "failure",
        "kl_k1/value is listed as a known deviation, but it passes",
    )
