"""What a student may see of a run, and what no report for students holds."""

from __future__ import annotations

import json
import random

import pytest

from rlassay.grading.feedback import MOST, OURS, Feedback, for_student, own_frames
from rlassay.grading.gradescope import results_json
from rlassay.grading.page import page
from rlassay.junit import junit
from rlassay.record import CheckResult, Explanation, Failure, Record
from tests.conformance.cli_support import result
from tests.conformance.grading.report_support import assignment, grade, outcomes, planted, run_of

SEED = 918273645


def failing(identity: str, mark: str, outcome: str = "fail") -> CheckResult:
    """A failed check whose every text carries a mark."""
    line = result(identity, outcome, title=f"{mark}-title", seconds=7.654321)
    line.failure = planted(mark)
    return line


def feedback_of(lines: dict[str, CheckResult], told: list[Explanation] | None = None) -> Feedback:
    task = assignment()
    return for_student(run_of(outcomes(task, lines), told or [], seed=SEED), task)


def everything(feedback: Feedback) -> bytes:
    """All bytes that a student can get."""
    mark = grade(alerts=["STAFF-alert"], notes=["a note"])
    documents = [results_json(mark, feedback), page(mark, feedback, assignment()), junit(feedback.record)]
    return b"\n".join(documents)


@pytest.mark.parametrize("outcome", ["fail", "error", "timeout", "crash", "harness-error", "not-declared"])
def test_nothing_of_a_hidden_check_reaches_a_student(outcome: str) -> None:
    lines = {name: failing(name, "SECRET", outcome) for name in ("kl_k1/gradient", "kl_k2/value", "kl_k2/P7.2")}
    told = [Explanation(operation="kl_k2", text="raises ValueError: SECRET-quoted on inputs that the contract allows")]
    seen = everything(feedback_of(lines, told)).decode()
    for leak in ("SECRET", "kl_k2/value", "kl_k1/gradient", "P7.2", str(SEED), "7.654321", "STAFF", "PLANTED"):
        assert leak not in seen


def test_hidden_checks_are_counted_part_by_part() -> None:
    lines = {"kl_k1/gradient": failing("kl_k1/gradient", "SECRET")}
    first, second = feedback_of(lines).parts
    task = assignment()
    counts = [len(task.part_checks(part)) for part in task.parts]
    assert first.hidden.text == f"{counts[0] - 2} of {counts[0] - 1} hidden checks passed"
    assert second.hidden.text == f"{counts[1]} of {counts[1]} hidden checks passed"


def test_a_visible_check_is_shown_in_full() -> None:
    seen = feedback_of({"kl_k1/value": failing("kl_k1/value", "SEEN", "error")})
    (shown,) = seen.parts[0].visible
    assert shown.failure == planted("SEEN")
    text = everything(seen).decode()
    for mark in ("SEEN-title", "SEEN-message", "SEEN-input", "SEEN-got", "SEEN-expected", "SEEN-snippet", "SEEN-trace"):
        assert mark in text


def test_the_last_words_of_a_process_are_not_shown() -> None:
    """They may be about any call, those of hidden checks too."""
    seen = feedback_of({"kl_k1/value": failing("kl_k1/value", "SEEN", "crash")})
    (shown,) = seen.parts[0].visible
    assert shown.failure is not None
    assert shown.failure.traceback == ""


def test_a_harness_error_is_ours() -> None:
    lines = {name: failing(name, "SECRET", "harness-error") for name in ("kl_k1/value", "kl_k2/value")}
    seen = feedback_of(lines)
    assert seen.parts[0].visible[0].failure == Failure(message=OURS)
    assert seen.parts[1].hidden.text.endswith(f"1 hidden check not judged: {OURS}")


def test_explanations_are_given_where_hints_are_on_and_something_fails() -> None:
    told = [
        Explanation(operation="kl_k1", text="behaves like swapped", fault="swapped"),
        Explanation(operation="kl_k2", text="no known fault matches"),
        Explanation(operation="kl_k3", text="behaves like something of no part", fault="other"),
    ]
    lines = {name: failing(name, "X") for name in ("kl_k1/gradient", "kl_k2/value")}
    seen = feedback_of(lines, told)
    assert [[one.text for one in part.explanations] for part in seen.parts] == [["behaves like swapped"], []]
    assert [one.operation for one in seen.record.explanations] == ["kl_k1"]
    task = assignment(hints=False)
    silent = for_student(run_of(outcomes(task, lines), told), task)
    assert not any(part.explanations for part in silent.parts)
    assert "swapped" not in everything(silent).decode()


def test_an_operation_that_is_not_provided_is_said_to_be() -> None:
    task = assignment()
    seen = for_student(run_of(outcomes(task, {}, "not-provided")), task)
    count = len(task.part_checks(task.parts[1]))
    assert seen.parts[1].hidden.text == f"0 of {count} hidden checks passed; not provided"
    assert seen.parts[1].hidden.outcome == "not-provided"


def test_checks_that_the_convention_leaves_open_are_not_counted() -> None:
    task = assignment()
    seen = for_student(run_of(outcomes(task, {}, "not-declared")), task)
    assert not seen.parts[1].hidden


def test_the_redacted_record_is_a_whole_record() -> None:
    seen = feedback_of({"kl_k2/value": failing("kl_k2/value", "SECRET")}).record
    assert seen.complete
    assert [(line.id, line.outcome) for line in seen.checks] == [
        ("kl_k1/value", "pass"),
        ("part 1/hidden checks", "pass"),
        ("part 2/hidden checks", "fail"),
    ]
    assert seen.header.target == "Losses"
    assert (seen.header.seed, {line.seconds for line in seen.checks}) == (0, {0.0})


def test_a_run_that_was_cut_off_stays_incomplete() -> None:
    task = assignment()
    run = run_of(outcomes(task, {}))
    seen = for_student(Record(run.header, run.checks[:3], [], None), task)
    assert not seen.record.complete


def test_texts_are_bounded_and_without_control_characters() -> None:
    line = result("kl_k1/value", "fail", "\x1b[31m" + "x" * 1_000_000, inputs={"log_probs": "\ud800" * 1_000_000})
    (shown,) = feedback_of({"kl_k1/value": line}).parts[0].visible
    assert shown.failure is not None
    assert shown.failure.message.startswith("\\x1b[31mxxx")
    assert len(shown.failure.message) < 2 * MOST
    assert shown.failure.inputs["log_probs"].startswith("\\ud800")
    assert shown.failure.message.endswith("(1000005 characters)")


def test_a_traceback_keeps_the_frames_of_the_submission_alone() -> None:
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "/opt/site-packages/rlassay/guest/torch_call.py", line 111, in _guarded\n'
        "    return action()\n"
        "           ^^^^^^^^\n"
        '  File "/submission/solution.py", line 5, in kl_k3\n'
        "    return torch.stack(parts)\n"
        '  File "/opt/python/lib/python3.12/site-packages/torch/functional.py", line 9, in stack\n'
        "    return _stack(x)\n"
        "RuntimeError: stack expects a list\n"
    )
    assert own_frames(traceback) == (
        "Traceback (most recent call last):\n"
        '  File "/submission/solution.py", line 5, in kl_k3\n'
        "    return torch.stack(parts)\n"
        "RuntimeError: stack expects a list\n"
    )


def test_an_exception_quoted_in_an_explanation_is_cut_out() -> None:
    text = "is right where it answers, but raises ValueError: QUOTED\nraises more on inputs that the contract allows"
    told = [Explanation(operation="kl_k2", text=text)]
    seen = feedback_of({"kl_k2/value": failing("kl_k2/value", "X")}, told)
    (explanation,) = seen.parts[1].explanations
    assert explanation.text == ("is right where it answers, but raises an exception on inputs that the contract allows")


def test_the_same_run_gives_the_same_bytes() -> None:
    lines = {name: failing(name, "X") for name in ("kl_k1/value", "kl_k2/value")}
    assert everything(feedback_of(lines)) == everything(feedback_of(lines))


def test_runs_that_differ_only_in_which_hidden_check_fails_look_the_same() -> None:
    """The strongest form of the rule: a student cannot tell them apart."""
    rng = random.Random(0)
    task = assignment()
    hidden = [check.id for check in task.part_checks(task.parts[1])]
    seen = set()
    for _ in range(5):
        chosen = rng.sample(hidden, 3)
        lines = {name: failing(name, f"SECRET{rng.random()}", rng.choice(["fail", "error"])) for name in chosen}
        run = run_of(outcomes(task, lines), seed=rng.randrange(10**9))
        seen.add(everything(for_student(run, task)))
    assert len(seen) == 1


def test_the_reports_can_be_read_by_machines() -> None:
    seen = feedback_of({"kl_k1/value": failing("kl_k1/value", "X")})
    assert json.loads(results_json(grade(), seen))["tests"][0]["name"] == "k1 by hand"
