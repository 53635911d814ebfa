"""The summary of a run: what a student reads, at any width, in any encoding, whatever the subject says."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from rlassay.record import CheckResult, Explanation, Footer, Record, gather
from rlassay.terminal import open_console, progress, render, show_progress
from rlassay_spec.claims import load_claims
from tests.conformance.cli_support import header, record, result

WRONG = result(
    "kl_k3/value",
    "fail",
    "kl_k3[0, 0] is 1, but should be 2 (within 1.0e-06)",
    call="kl_k3(log_probs[1, 1] float32, ref_log_probs[1, 1] float32)",
    inputs={"log_probs": "[[0.0]]", "ref_log_probs": "[[1.0]]"},
    expected="[[2.]]",
    got="[[1.]]",
    snippet="import torch\nprint(subject.kl_k3(log_probs))",
    traceback="Traceback of the subject",
)


def shown(run: Record, *, verbose: bool = False, width: int = 80) -> str:
    """The summary as plain text."""
    stream = io.StringIO()
    render(run, Console(file=stream, width=width, highlight=False, markup=False, emoji=False), verbose)
    return stream.getvalue()


def last_line(run: Record) -> str:
    return shown(run).splitlines()[-1]


def explained(text: str, *results: CheckResult, fault: str = "") -> Record:
    run = record(*results)
    run.explanations.append(Explanation(operation=results[0].operations[0], text=text, fault=fault))
    return run


def test_the_first_lines_say_what_was_judged_and_how() -> None:
    text = shown(record(result("kl_k1/value"), seed=7, available=1))
    assert text.splitlines()[:2] == ["solution.py", "rlassay 0.1.0 · lecture convention · quick profile · seed 7"]


def test_a_selection_an_interface_a_strict_run_and_declared_fields_are_named() -> None:
    convention = {"name": "declared", "std_ddof": 1}
    run = record(result("kl_k1/value"), strict=True, interface="cs336", expression="kl", convention=convention)
    line = shown(run, width=200).splitlines()[1]
    assert line == (
        "rlassay 0.1.0 · cs336 interface · declared (std_ddof=1) convention · quick profile, strict · seed 0"
        " · 1 of 400 checks (kl)"
    )


def test_each_operation_has_a_line_that_says_how_much_of_it_holds() -> None:
    finding = result("kl_k3/side-effects", "fail", kind="robustness")
    known = result("kl_k2/value", "fail", known="as the paper has it")
    lines = shown(record(result("kl_k1/value"), WRONG, finding, known)).splitlines()
    assert "✔ kl_k1   1 of  1 checks" in lines
    assert "✔ kl_k2   0 of  1 checks, 1 known deviation" in lines
    assert "✘ kl_k3   0 of  1 checks, 1 robustness finding" in lines


def test_a_failure_shows_its_smallest_input_what_was_expected_and_what_came() -> None:
    text = shown(record(WRONG))
    for line in (
        "kl_k3/value  what kl_k3/value asserts",
        "  kl_k3[0, 0] is 1, but should be 2 (within 1.0e-06)",
        "  log_probs      [[0.0]]",
        "  ref_log_probs  [[1.0]]",
        "  expected       [[2.]]",
        "  got            [[1.]]",
    ):
        assert line in text.splitlines()
    assert "import torch" not in text


def test_all_of_it_and_code_that_repeats_it_is_shown_on_demand() -> None:
    others = [result(f"kl_k3/{law}", "fail") for law in ("repeat", "layout", "dtype")]
    text = shown(record(WRONG, *others), verbose=True)
    assert "    print(subject.kl_k3(log_probs))" in text
    assert "    Traceback of the subject" in text
    assert all(f"{other.id} is wrong" in text for other in others)


def test_the_explanation_comes_before_the_failures() -> None:
    text = shown(explained("behaves like KL-01: the sign is wrong", WRONG, fault="KL-01"))
    assert text.index("behaves like KL-01: the sign is wrong") < text.index("kl_k3/value  what")
    assert "rlassay faults kl_k3/KL-01 tells more" in text
    unexplained = shown(explained("no known fault matches", WRONG))
    assert "no known fault matches" in unexplained
    assert "tells more" not in unexplained


def test_the_value_is_shown_first_then_one_claim_and_laws_that_fail_with_the_value_are_counted() -> None:
    laws = [result(f"kl_k3/{law}", "fail", f"kl_k3 breaks the law of {law}") for law in ("layout", "repeat", "dtype")]
    gradient = result("kl_k3/gradient", "fail", "the gradient is dead")
    claims = [result(f"kl_k3/{claim}", "fail", f"{claim} is off", claims=[claim]) for claim in ("B9.1", "B9.2", "B9.4")]
    text = shown(record(*laws, gradient, *claims, WRONG))
    assert text.index("is 1, but should be 2") < text.index("B9.1 is off")
    assert "the gradient is dead" not in text
    lines = text.splitlines()
    assert "and 2 more claims: B9.2, B9.4" in lines
    assert "and 1 more check: gradient" in lines
    assert "3 laws fail with it (-v lists them)" in lines
    assert not any(law.id in text for law in laws)
    assert all(law.id in shown(record(*laws, WRONG), verbose=True) for law in laws)


def test_the_gradient_stands_in_for_a_value_that_is_right_and_laws_for_both() -> None:
    laws = [result(f"kl_k3/{law}", "fail", f"breaks the law of {law}") for law in ("layout", "repeat", "dtype")]
    gradient = result("kl_k3/gradient", "fail", "the gradient is dead")
    claim = result("kl_k3/P7.2", "fail", "it is negative", claims=["P7.2"])
    text = shown(record(*laws, claim, gradient))
    assert text.index("the gradient is dead") < text.index("it is negative")
    assert "and 3 more checks: layout, repeat, dtype" in text
    text = shown(record(*laws))
    assert text.index("breaks the law of layout") < text.index("breaks the law of repeat")
    assert "and 1 more check: dtype" in text


def test_checks_that_were_not_run_come_last() -> None:
    hung = result("kl_k3/masked", "timeout", "the process was killed")
    skipped = [result(f"kl_k3/{law}", "timeout", "not run: kl_k3 hung") for law in ("value", "gradient")]
    text = shown(record(*skipped, hung))
    assert "kl_k3/masked  what" in text
    assert "kl_k3/value" not in text
    assert "2 checks not run after that" in text
    verbose = shown(record(*skipped, hung), verbose=True)
    assert verbose.index("kl_k3/masked  what") < verbose.index("kl_k3/value  what")


def test_of_several_claims_one_that_holds_as_stated_and_has_the_smallest_input_comes_first() -> None:
    sizes = {"B9.6": "[[1]]", "B9.1": "[[1.0, 1.0]]", "B9.2": "[[1.0]]", "B9.4": "[[1.0, 1.0, 1.0]]"}
    known = load_claims()
    assert [known[claim].verdict == "holds" for claim in sizes] == [False, True, True, True]
    claims = [
        result(f"grpo_advantages/{claim}", "fail", f"wrong on {inputs}", claims=[claim], inputs={"rewards": inputs})
        for claim, inputs in sizes.items()
    ]
    text = shown(record(*claims))
    assert "wrong on [[1.0]]" in text
    assert "and 3 more claims: B9.1, B9.4, B9.6" in text


def test_failures_that_say_the_same_are_shown_once() -> None:
    other = result("kl_k3/gradient", "fail", "kl_k3[1, 2] is -3.5e-07, but should be 0 (within 1.0e-06)")
    assert "and 1 more check: gradient" in shown(record(WRONG, other))


def test_a_claim_is_shown_with_its_statement_and_its_place_in_the_lecture() -> None:
    claim = load_claims()["B9.1"]
    text = shown(record(result("grpo_advantages/B9.1", "fail", claims=["B9.1"])), width=1000)
    assert f"claim B9.1  {claim.statement}" in text
    assert f"lecture     {claim.lecture}, {claim.source}" in text


def test_of_a_refuted_claim_the_truth_is_shown() -> None:
    claim = load_claims()["B9.6"]
    text = shown(record(result("rloo_advantages/B9.6", "fail", claims=["B9.6"])), width=1000)
    assert f"claim B9.6  {claim.truth} (the lecture's statement is refuted)" in text
    assert claim.statement not in text


def test_an_error_is_shown_with_the_contract_of_the_operation() -> None:
    text = shown(record(result("kl_k3/value", "error", "kl_k3 raised TypeError")))
    assert "kl_k3/value  what kl_k3/value asserts  [error]" in text
    assert "contract  kl_k3(log_probs, ref_log_probs)" in text


def test_robustness_findings_of_operations_that_fail_anyway_are_counted_only() -> None:
    findings = [
        result(f"{name}/side-effects", "fail", "changed rewards", kind="robustness") for name in ("gae", "kl_k3")
    ]
    run = record(result("gae/value"), WRONG, *findings)
    lines = shown(run).splitlines()
    place = lines.index("robustness findings (in full with -v)")
    assert lines[place + 1 : place + 3] == [
        "  gae/side-effects: changed rewards",
        "  and 1 more, of operations that do not conform",
    ]
    assert "  kl_k3/side-effects: changed rewards" in shown(run, verbose=True)


def test_findings_are_one_line_each_and_bad_inputs_one_line_for_each_operation() -> None:
    laws = ("refuses-a-mask-of-another-length", "side-effects", "refuses-a-negative-id")
    findings = [result(f"gae/{law}", "fail", f"{law} {'x ' * 200}", kind="robustness") for law in laws]
    run = record(*findings, result("gae/value"))
    lines = shown(run, width=400).splitlines()
    place = lines.index("robustness findings (in full with -v)")
    assert lines[place + 1].startswith("  gae/side-effects: side-effects x x")
    assert len(lines[place + 1]) < 160
    assert lines[place + 2] == (
        "  gae: 2 bad inputs are not refused with a ValueError that names the argument: "
        "a mask of another length, a negative id"
    )
    assert shown(run, verbose=True, width=4000).count("x " * 199) == 3


def test_many_operations_that_are_not_provided_are_counted() -> None:
    run = record(result("kl_k1/value"), selected=["kl_k1", "kl_k2", "kl_k3", "gae", "entropy"], operations=["kl_k1"])
    assert "4 of 5 operations not provided\n" in shown(run)
    assert "not provided: kl_k2, kl_k3, gae, entropy" in shown(run, verbose=True)


def test_notes_stand_below_the_header() -> None:
    note = "it has grpo_advantage, which is no operation: did you mean grpo_advantages?"
    assert shown(record(GOOD, notes=[note]), width=100).splitlines()[2] == f"note: {note}"


def test_checks_that_the_convention_leaves_out_are_grouped_by_the_reason() -> None:
    checks = [result(f"kl_k1/{law}", "not-declared", "singleton_group is free") for law in ("one", "two")]
    text = shown(record(GOOD, *checks))
    assert "left out by the declared convention\n  singleton_group is free: kl_k1/one, kl_k1/two\n" in text


def test_what_is_not_provided_not_declared_known_or_stale_has_its_place() -> None:
    run = record(
        result("kl_k1/value", "fail", known="TODO: why"),
        result("kl_k3/value"),
        result("gae/value", "not-provided"),
        result("kl_k3/gradient", "not-declared", "the convention leaves it open"),
        stale=("kl_k3/value",),
        selected=["kl_k1", "kl_k3", "gae"],
    )
    text = shown(run)
    assert "not provided: gae" in text
    assert "known deviations\n  kl_k1/value: TODO: why" in text
    assert "stale\n  kl_k3/value is listed as a known deviation, but it passes" in text
    assert "left out by the declared convention\n  the convention leaves it open: kl_k3/gradient" in text


FINDING = result("kl_k1/side-effects", "fail", kind="robustness")
GOOD = result("kl_k1/value")


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (record(GOOD), "conforms"),
        (record(GOOD, strict=True), "conforms strictly"),
        (record(GOOD, FINDING), "conforms, 1 robustness finding"),
        (record(GOOD, FINDING, strict=True), "does not conform strictly: 1 of 1 operation"),
        (record(GOOD, WRONG, FINDING), "does not conform: 1 of 2 operations, 1 robustness finding"),
        (record(GOOD, result("kl_k1/dtype", "fail", known="x")), "conforms, 1 known deviation"),
        (
            record(*(result(f"kl_k1/{law}", "fail", known="TODO: why") for law in ("value", "dtype"))),
            "conforms, 2 known deviations without a reason (TODO)",
        ),
        (
            record(*(result(f"kl_k1/{law}", "fail", known=known) for law, known in (("a", "TODO"), ("b", "as it is")))),
            "conforms, 2 known deviations, 1 of them without a reason (TODO)",
        ),
        (record(GOOD, stale=("kl_k1/value",)), "conforms, 1 known deviation out of date"),
        (record(GOOD, result("kl_k3/value", "harness-error")), "no verdict: rlassay itself failed in 1 check"),
        (
            record(result("kl_k3/value", "not-declared")),
            "nothing was checked: the declared convention leaves all of it open",
        ),
        (gather([header(), GOOD]), "incomplete run: 1 of 3 checks ran; no verdict"),
        (gather([header()]), "incomplete run: 0 of 3 checks ran; no verdict"),
        (
            gather([header(), GOOD, Footer(outcomes={"pass": 1}, conforms=True, robust=True, exit_code=0)]),
            "incomplete run: 1 of 3 checks ran; no verdict",
        ),
    ],
)
def test_the_last_line_is_the_verdict(run: Record, line: str) -> None:
    assert last_line(run) == line


def test_what_the_subject_says_neither_steers_the_terminal_nor_is_read_as_markup() -> None:
    hostile = "[bold]no[/bold] \x1b[31mred\x1b[0m \r\a \u202e [/] :smile: \ud800"
    failure = result("kl_k3/value", "fail", hostile, got=hostile, inputs={"log_probs": hostile})
    run = record(failure, target=f"{hostile}.py")
    text = shown(run, width=400)
    assert text.count(r"[bold]no[/bold] \x1b[31mred\x1b[0m \r\x07 \u202e [/] :smile: \ud800") == 4
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("width", [80, 40])
def test_no_line_is_wider_than_the_terminal_or_ends_in_blanks(width: int) -> None:
    claim = result("grpo_advantages/B9.1", "fail", "x" * 300, claims=["B9.1"], got="[[0.1, 0.2]] " * 40)
    finding = result("gae/side-effects", "fail", "changed rewards " * 20, kind="robustness")
    for line in shown(record(WRONG, claim, finding), width=width).splitlines():
        assert len(line) <= width
        assert line == line.rstrip()


def test_long_inputs_are_cut_unless_all_is_asked_for() -> None:
    failure = result("kl_k3/value", "fail", got="0.125, " * 100)
    assert shown(record(failure)).count("0.125") < 60
    assert shown(record(failure), verbose=True).count("0.125") == 100


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_every_encoding_can_be_written(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    claim = result("grpo_advantages/B9.1", "fail", "σ is 0.5 — not 1 ✘ 😀", claims=["B9.1"])
    render(record(claim, GOOD), open_console(stream))
    stream.flush()
    text = raw.getvalue().decode(encoding)
    assert ("+ kl_k1" in text) == (encoding != "utf-8")
    assert ("✔ kl_k1" in text) == (encoding == "utf-8")
    assert (r"\u03c3 is 0.5" in text) == (encoding != "utf-8")


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colour_is_for_terminals_and_can_be_turned_off(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    render(record(WRONG), open_console(stream))
    stream.seek(0)
    text = stream.read()
    assert ("\x1b[31m" in text or "\x1b[1;31m" in text) == coloured


def test_progress_is_silent_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress("solution.py") as bar:
        for line in (header(), GOOD):
            show_progress(bar, line)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_progress_counts_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress("[bold]solution.py") as bar:
        assert bar.tasks[0].description == "loading [bold]solution.py"
        for line in (header(), GOOD, GOOD):
            show_progress(bar, line)
        assert (bar.tasks[0].description, bar.tasks[0].completed, bar.tasks[0].total) == ("kl_k1", 2, 3)
        show_progress(bar, Explanation(operation="kl_k1", text=""))
        assert bar.tasks[0].description == "explaining"
