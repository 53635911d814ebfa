"""The runner outlives whatever happens to its worker, and leaves nothing behind. The worker is a scripted one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlassay import process, runner
from rlassay.check import Check
from rlassay.guest.errors import TargetError
from rlassay.record import Explanation
from rlassay.runner import Runner, Settings, running
from tests.conformance.cli_support import alive, scripted, wait_for


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "START_SECONDS", 30.0)
    monkeypatch.setattr(process, "PARTING_SECONDS", 0.5)


def check(identity: str, *others: str) -> Check:
    operation = identity.partition("/")[0]
    return Check(identity, identity, (operation, *others), lambda trial: None)


def outcomes(target: str, *identities: str, timeout: float = 20.0) -> list[tuple[str, str]]:
    """Outcome and message of each check of one run."""
    with running(Settings(target, timeout=timeout)) as one:
        results = [one.run(check(identity)) for identity in identities]
    return [(found.outcome, found.failure.message if found.failure else "") for found in results]


def test_every_check_gets_the_workers_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    target = scripted(monkeypatch, kl_k1="pass", kl_k1__value="fail")
    assert outcomes(target, "kl_k1/value", "kl_k1/gradient") == [("fail", "kl_k1/value is scripted"), ("pass", "")]


def test_a_check_that_lacks_an_operation_is_not_provided_even_where_the_worker_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = scripted(monkeypatch, kl_k1="exit 1")
    assert outcomes(target, "kl_k1/value", "kl_k3/value")[1] == ("not-provided", "not provided: kl_k3")
    with running(Settings(target)) as one:
        assert one.run(check("kl_k1/value", "gae", "kl_k3")).outcome == "not-provided"


@pytest.mark.parametrize(
    ("behaviour", "outcome", "message"),
    [
        ("exit 3", "crash", "the process ended with exit status 3"),
        ("exit 0", "crash", "the process ended with exit status 0"),
        ("kill 11", "crash", "the process was killed by SIGSEGV"),
        ("kill 40", "crash", "the process was killed by signal 40"),
        ("garbage", "crash", "the process sent what is no answer"),
        ("hang", "timeout", "the process gave no answer within 1 s"),
    ],
)
def test_a_worker_that_gives_no_answer_costs_one_check(
    monkeypatch: pytest.MonkeyPatch, behaviour: str, outcome: str, message: str
) -> None:
    target = scripted(monkeypatch, kl_k1__value=behaviour, kl_k1="pass")
    found = outcomes(target, "kl_k1/value", "kl_k1/gradient", timeout=1.0)
    assert found == [(outcome, message), ("pass", "")]


@pytest.mark.parametrize(("behaviour", "outcome"), [("exit 3", "crash"), ("hang", "timeout")])
def test_after_two_strikes_the_other_checks_of_an_operation_are_not_run(
    monkeypatch: pytest.MonkeyPatch, behaviour: str, outcome: str
) -> None:
    target = scripted(monkeypatch, kl_k1=behaviour, kl_k3="pass")
    found = outcomes(target, "kl_k1/value", "kl_k3/value", "kl_k1/gradient", "kl_k1/dtype", "kl_k3/dtype", timeout=1.0)
    assert [kind for kind, _ in found] == [outcome, "pass", outcome, outcome, "pass"]
    assert found[3][1] == "not run: kl_k1 hung or crashed in 2 earlier checks"


def test_the_last_words_are_kept_in_bounds_and_tell_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    target = scripted(monkeypatch, kl_k1="noise")
    with running(Settings(target)) as one:
        failure = one.run(check("kl_k1/value")).failure
    assert failure is not None
    assert failure.message == "the process ended with exit status 7 (solution.py, line 7)"
    assert len(failure.traceback) == process.LAST_CHARACTERS


def test_a_target_that_cannot_be_used_is_an_error_with_the_workers_message(monkeypatch: pytest.MonkeyPatch) -> None:
    target = scripted(monkeypatch, unusable="solution.py: there is no such file")
    with pytest.raises(TargetError, match=r"^solution\.py: there is no such file$"):
        Runner(Settings(target))


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("exit 4", "cannot be loaded: its process ended with exit status 4"),
        ("kill 9", "cannot be loaded: its process was killed by SIGKILL"),
        ("hang", "cannot be loaded: its process gave no answer within 0.5 s"),
    ],
)
def test_a_target_that_ends_its_process_while_loading_is_an_error(
    monkeypatch: pytest.MonkeyPatch, behaviour: str, message: str
) -> None:
    monkeypatch.setattr(runner, "START_SECONDS", 0.5 if behaviour == "hang" else 30.0)
    target = scripted(monkeypatch, start=behaviour, kl_k1="pass")
    with pytest.raises(TargetError) as caught:
        Runner(Settings(target, timeout=0.1))
    assert str(caught.value).endswith(message)


def test_a_target_that_loads_only_once_makes_the_other_checks_crash_without_trying_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = scripted(monkeypatch, start=f"once {tmp_path / 'mark'}", kl_k1="pass", kl_k1__value="exit 3", kl_k2="pass")
    found = outcomes(target, "kl_k1/value", "kl_k1/gradient", "kl_k2/value", "kl_k3/value")
    assert [kind for kind, _ in found] == ["crash", "crash", "crash", "not-provided"]
    assert found[1][1].startswith("not run: the target loaded at first, but not again: ")
    assert found[1] == found[2]


def test_explanations_come_from_the_worker_and_are_left_out_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(Settings(scripted(monkeypatch, kl_k1="fail"))) as one:
        assert one.explain("kl_k1") == Explanation(operation="kl_k1", text="behaves like a script", fault="F-1")
    with running(Settings(scripted(monkeypatch, kl_k1="pass", explain="hang"), timeout=1.0)) as one:
        assert one.explain("kl_k1") is None
        assert one.run(check("kl_k1/value")).outcome == "pass"
    with running(Settings(scripted(monkeypatch, kl_k1="exit 1"))) as one:
        one.run(check("kl_k1/value"))
        assert one.explain("kl_k1") is None


def test_what_a_subject_started_ends_with_its_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with running(Settings(scripted(monkeypatch, kl_k1=f"child {note}"))) as one:
        assert one.run(check("kl_k1/value")).outcome == "pass"
        assert alive(int(note.read_text()))
    wait_for(lambda: not alive(int(note.read_text())), "the process that the subject started is gone")
