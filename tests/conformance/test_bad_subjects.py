"""The real command on real files: whatever a subject is or does has one clear outcome, and nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rlassay.cli import run
from rlassay.record import CheckResult, Record, read_record
from tests.conformance.cli_support import COMMAND, SUBJECTS, alive, rlassay, wait_for

EXAMPLES = Path(__file__).parents[2] / "examples"
BAD_TARGETS = {
    "nowhere.py": ("", "nowhere.py: there is no such file"),
    "notes.txt": ("remember the milk\n", "notes.txt: is not a Python file"),
    "broken.py": ("x = 1\ndef f(:\n", "broken.py: syntax error in {folder}/broken.py, line 2: invalid syntax"),
    "raising.py": (
        "raise ValueError('no luck')\n",
        "raising.py: does not import: ValueError: no luck ({folder}/raising.py",
    ),
    "leaving.py": (
        "import sys\nsys.exit(5)\n",
        "leaving.py: does not import: SystemExit: 5 ({folder}/leaving.py, line 2)",
    ),
    "needing.py": ("import no_such_thing\n", "needing.py: does not import: it needs no_such_thing"),
    "dying.py": ("import os\nos._exit(5)\n", "dying.py: cannot be loaded: its process ended with exit status 5"),
    "empty.py": (
        "def grpo_advantage(r): return r\n",
        "It has grpo_advantage, which is no operation: did you mean grpo_advantages?",
    ),
    "no_such_module": ("", "no_such_module: there is no such module here"),
    "json:Nothing": ("", "json:Nothing: json has no attribute 'Nothing'"),
}


@pytest.mark.parametrize("target", BAD_TARGETS)
def test_a_target_that_cannot_be_judged_is_refused_with_the_reason(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content, message = BAD_TARGETS[target]
    monkeypatch.chdir(tmp_path)
    if content:
        Path(target).write_text(content)
    assert run(["check", target]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message.format(folder=tmp_path.resolve()) in captured.err
    assert captured.err.startswith("Error: ")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Record]:
    """One run on a subject whose operations are all odd."""
    folder = tmp_path_factory.mktemp("odd")
    options = ("--profile", "quick", "-k", "/value or kl_k3/gradient", "--json", "run.ndjson")
    done = rlassay("check", SUBJECTS / "odd.py", *options, cwd=folder)
    return done, read_record(folder / "run.ndjson")


ODD = {
    "token_log_probs": ("error", "TypeError: token_log_probs() takes 1 positional argument but 2 were given"),
    "masked_log_probs": ("fail", "masked_log_probs returned None, but should return a tensor of shape"),
    "entropy": ("fail", "entropy returned a str, but should return a tensor of shape"),
    "action_log_probs": ("fail", "action_log_probs has shape (2,), but should have (2, 1)"),
    "reward_to_go": ("fail", "reward_to_go[0, "),
    "centered_advantages": ("error", "RuntimeError: no \x1b[31mred\x1b[0m text,\r no lone surrogate ?, please"),
    "grpo_advantages": ("pass", ""),
    "rloo_advantages": ("fail", "rloo_advantages["),
    "max_advantages": ("error", "in reading what it returned"),
    "keep_groups": ("error", "in reading what it returned"),
    "sft_loss": ("fail", "sft_loss returned a tuple, but should return a tensor of shape ()"),
    "rest_loss": ("fail", "rest_loss is "),
    "reinforce_loss": ("pass", ""),
    "policy_gradient_loss": ("error", "policy_gradient_loss raised Wordless: (its message cannot be read)"),
    "kl_k1": ("error", "kl_k1 raised SystemExit: done for today in the call"),
    "kl_k2": ("error", "kl_k2 raised KeyboardInterrupt in the call"),
    "number_search": ("fail", "number_search returned "),
    "position_reward": ("fail", "position_reward returned a list, but should return a tensor of shape ()"),
    "expected_return": ("fail", "expected_return is nan, but should be"),
    "bandit_gradient": ("fail", "bandit_gradient returned a object, but should return a tensor of shape ()"),
}


@pytest.mark.parametrize("operation", ODD)
def test_whatever_an_operation_does_has_one_clear_outcome(
    odd: tuple[subprocess.CompletedProcess[str], Record], operation: str
) -> None:
    (found,) = [check for check in odd[1].checks if check.id == f"{operation}/value"]
    message = found.failure.message if found.failure is not None else ""
    outcome, part = ODD[operation]
    assert (found.outcome, part in message) == (outcome, True), message


def test_an_odd_subject_costs_the_run_nothing(odd: tuple[subprocess.CompletedProcess[str], Record]) -> None:
    done, record = odd
    assert (done.returncode, done.stderr) == (1, "")
    assert record.complete
    assert "harness-error" not in {check.outcome for check in record.checks}
    assert "\x1b" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("does not conform: ")


def outcomes(record: Record) -> dict[str, tuple[str, str]]:
    """Outcome and message by check id."""

    def message(check: CheckResult) -> str:
        return check.failure.message if check.failure is not None else ""

    return {check.id: (check.outcome, message(check)) for check in record.checks if check.outcome != "not-provided"}


def pids(folder: Path) -> list[int]:
    """The processes that the subject reported."""
    return [int(line) for line in (folder / "pids").read_text().split()]


def test_an_operation_that_hangs_or_kills_its_process_costs_its_own_checks_only(tmp_path: Path) -> None:
    expression = "entropy/value or reward_to_go/value or kl_k1/value"
    options = ("--profile", "quick", "-k", expression, "--timeout", "2", "--json", "run.ndjson")
    done = rlassay("check", SUBJECTS / "violent.py", *options, cwd=tmp_path, RLASSAY_TEST_PIDS=str(tmp_path / "pids"))
    assert (done.returncode, done.stderr) == (1, "")
    source = (SUBJECTS / "violent.py").read_text().splitlines()
    line = source.index("    while True:") + 1
    found = outcomes(read_record(tmp_path / "run.ndjson"))
    assert found["entropy/value"][0] == "timeout"
    assert found["entropy/value"][1].startswith(
        f"the process gave no answer within 2 s ({SUBJECTS / 'violent.py'}, line"
    )
    assert int(found["entropy/value"][1].rstrip(")").split()[-1]) in (line, line + 1)
    assert found["reward_to_go/value"] == ("crash", "the process ended with exit status 3")
    assert found["kl_k1/value"] == ("pass", "")
    wait_for(lambda: not any(map(alive, pids(tmp_path))), "no process of the subject is left")


@contextmanager
def hanging(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that has recorded its first checks and now waits for an operation that never returns."""
    options = ("--profile", "quick", "-k", "token_log_probs/value or entropy/value", "--json", "run.ndjson")
    environment = os.environ | {"RLASSAY_TEST_PIDS": str(folder / "pids")}
    with subprocess.Popen(
        [*COMMAND, "check", str(SUBJECTS / "violent.py"), *options, "--timeout", "500", "--junit", "run.xml"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_for(
                lambda: (folder / "run.ndjson").exists() and lines(folder) == 2, "header and first check are written"
            )
            yield process
        finally:
            process.kill()


def lines(folder: Path) -> int:
    return (folder / "run.ndjson").read_text().count("\n")


def require_readable_but_incomplete(folder: Path) -> None:
    record = read_record(folder / "run.ndjson")
    assert outcomes(record) == {"token_log_probs/value": ("pass", "")}
    shown = rlassay("show", "run.ndjson", cwd=folder)
    assert (shown.returncode, shown.stdout.splitlines()[-1]) == (0, "incomplete run: 1 of 2 checks ran; no verdict")


def test_a_killed_run_leaves_a_readable_record_and_no_process(tmp_path: Path) -> None:
    with hanging(tmp_path) as process:
        assert all(map(alive, pids(tmp_path)))
        process.kill()
    wait_for(lambda: not any(map(alive, pids(tmp_path))), "no process of the subject is left")
    require_readable_but_incomplete(tmp_path)


def test_an_interrupted_run_says_so_in_one_line_and_leaves_a_readable_record_and_no_process(tmp_path: Path) -> None:
    with hanging(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted after 1 of 2 checks; no verdict\n")
    wait_for(lambda: not any(map(alive, pids(tmp_path))), "no process of the subject is left")
    require_readable_but_incomplete(tmp_path)
    assert "incomplete run: 1 of 2 checks ran" in (tmp_path / "run.xml").read_text()


def test_the_reference_conforms_also_beside_files_that_are_called_like_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("random", "torch", "numpy", "rlassay", "queue", "statistics"):
        Path(f"{name}.py").write_text("raise RuntimeError('this file is not meant')\n")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    assert run(["check", "rlassay_impl", "--profile", "quick", "-k", "kl_k1", "--json", "run.ndjson", "--strict"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "conforms strictly"
    header = json.loads(Path("run.ndjson").read_text().splitlines()[0])
    assert header["libraries"].keys() == {"torch", "numpy"}


def test_a_known_mistake_is_named_in_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    target = str(EXAMPLES / "wrong_std.py")
    assert run(["check", target, "--profile", "quick", "--operation", "grpo_advantages"]) == 1
    assert "conforms with std_ddof=1" in capsys.readouterr().out
