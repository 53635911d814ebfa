"""The file of known deviations: strict when it is read, and drafted from what a run shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlassay.expected import Deviation, ExpectedError, draft, read_expected
from rlassay.judge import as_expected
from tests.conformance.cli_support import result

CHECKS = ["kl_k1/value", "kl_k3/value", "kl_k3/P7.2", "kl_k3/side-effects"]
ENTRY = '[[expected]]\nid = "kl_k3/value"\noutcome = "fail"\nreason = "as the paper has it"\n'


def read(folder: Path, content: str) -> dict[str, Deviation]:
    path = folder / "known.toml"
    path.write_text(content, encoding="utf-8")
    return read_expected(path, CHECKS)


def test_an_entry_has_an_id_a_kind_of_failure_a_reason_and_perhaps_a_link(tmp_path: Path) -> None:
    linked = ENTRY.replace("kl_k3", "kl_k1") + 'link = "https://example.org/1"\n'
    assert read(tmp_path, ENTRY + linked) == {
        "kl_k3/value": Deviation("kl_k3/value", "fail", "as the paper has it"),
        "kl_k1/value": Deviation("kl_k1/value", "fail", "as the paper has it", "https://example.org/1"),
    }


def test_an_empty_file_knows_no_deviation(tmp_path: Path) -> None:
    assert read(tmp_path, "") == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[expected]", "known.toml: is not TOML"),
        ("surplus = 1", "known.toml: unknown field 'surplus'; the file is a list of [[expected]] tables"),
        ("expected = 3", "known.toml: expected is no list of tables, each begun with [[expected]]"),
        (ENTRY + ENTRY, "known.toml, entry 2: kl_k3/value is listed twice"),
        (ENTRY + "note = 'x'", "known.toml, entry 1: unknown field 'note'; the fields are id, outcome, reason, link"),
        (ENTRY.replace('"as the paper has it"', '" "'), "entry 1: reason is ' ', but should be a text that is not"),
        (ENTRY.replace('"fail"', "3"), "entry 1: outcome is 3, but should be a text that is not empty"),
        ('[[expected]]\nid = "kl_k3/value"\noutcome = "fail"', "entry 1: reason is missing"),
        ('[[expected]]\noutcome = "fail"\nreason = "x"', "entry 1: id is missing"),
        ('[[expected]]\nid = "kl_k3/value"\nreason = "x"', "entry 1: outcome is missing"),
        (
            ENTRY.replace("kl_k3/value", "kl_k3/valve"),
            "entry 1: no check is called kl_k3/valve; did you mean kl_k3/value?",
        ),
        (ENTRY.replace("kl_k3/value", "zzz"), "entry 1: no check is called zzz"),
        (ENTRY.replace('"fail"', '"pass"'), "outcome is 'pass', but should be one of crash, error, fail, timeout"),
        (ENTRY.replace('"fail"', '"harness-error"'), "outcome is 'harness-error', but should be one of"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ExpectedError) as caught:
        read(tmp_path, content)
    assert message in str(caught.value)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ExpectedError, match=r"nowhere\.toml: cannot be read: No such file"):
        read_expected(tmp_path / "nowhere.toml", CHECKS)


def test_a_failure_that_is_listed_gets_the_reason() -> None:
    failure = result("kl_k3/value", "fail")
    assert as_expected(failure, Deviation("kl_k3/value", "fail", "as the paper has it"))
    assert failure.known == "as the paper has it"


@pytest.mark.parametrize("outcome", ["pass", "error", "not-provided", "not-declared"])
def test_what_did_not_come_as_listed_is_stale(outcome: str) -> None:
    other = result("kl_k3/value", outcome)
    assert not as_expected(other, Deviation("kl_k3/value", "fail", "as the paper has it"))
    assert not other.known


def test_a_failure_of_the_harness_says_nothing_about_the_list() -> None:
    assert as_expected(result("kl_k3/value", "harness-error"), Deviation("kl_k3/value", "fail", "x"))


def test_a_draft_can_be_read_and_asks_for_reasons(tmp_path: Path) -> None:
    failures = [
        result("kl_k3/value", "fail", 'is "1",\nnot\t2'),
        result("kl_k3/P7.2", "timeout"),
        result("kl_k1/value"),
    ]
    content = draft(failures, {}, strict=False)
    assert '# is "1",\n# not\\t2\n[[expected]]\nid = "kl_k3/value"\n' in content
    assert {deviation.id: deviation.outcome for deviation in read(tmp_path, content).values()} == {
        "kl_k3/value": "fail",
        "kl_k3/P7.2": "timeout",
    }
    assert all(deviation.reason.startswith("TODO") for deviation in read(tmp_path, content).values())


def test_a_draft_keeps_the_reasons_that_still_hold(tmp_path: Path) -> None:
    known = Deviation("kl_k3/value", "fail", 'a "quoted" reason, \x7f and 😀', "https://example.org")
    results = [result("kl_k3/value", "fail", known=known.reason), result("kl_k1/value", "error")]
    deviations = read(tmp_path, draft(results, {known.id: known}, strict=False))
    assert deviations["kl_k3/value"] == known
    assert deviations["kl_k1/value"].reason.startswith("TODO")


def test_a_draft_lists_robustness_findings_of_a_strict_run_only(tmp_path: Path) -> None:
    finding = [result("kl_k3/side-effects", "fail", kind="robustness")]
    assert [list(read(tmp_path, draft(finding, {}, strict))) for strict in (False, True)] == [
        [],
        ["kl_k3/side-effects"],
    ]
