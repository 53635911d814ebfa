"""The suite under pytest: `pytest --pyargs rlassay.suite --rlassay TARGET`, always with warnings as errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.cli_support import SUBJECTS, alive, wait_for

SUBJECT = """
import torch

def kl_k1(log_probs, ref_log_probs):
    return log_probs - ref_log_probs.detach()

def kl_k3(log_probs, ref_log_probs):
    log_ratio = ref_log_probs.detach() - log_probs
    return log_ratio.exp() - 1 + log_ratio
"""
SCRIPT = json.dumps({"kl_k1": "pass", "kl_k3": "fail", "kl_k1/side-effects": "fail"})
SELECTED = "kl_k1/value or kl_k1/side-effects or kl_k3/value or kl_k2/value"
FINDING = "test_suite.py::test_check[kl_k1/side-effects]"


def pytest_in(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder that no other configuration reaches."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", "-ra", *options],
        cwd=folder,
        env=os.environ | {"COLUMNS": "200"} | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def alone(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the suite without any other plug-in, which is quicker."""
    plugins = ("-p", "rlassay.plugin", *(("-p", "xdist.plugin") if "-n" in options else ()))
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return pytest_in(folder, *plugins, "--pyargs", "rlassay.suite", *options, **environment)


def scripted(folder: Path, *options: str, target: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    """Run the suite on the scripted worker."""
    path = os.pathsep.join(filter(None, (str(SUBJECTS), os.environ.get("PYTHONPATH"))))
    return alone(folder, "-p", "scripted_worker", "--rlassay", target, *options, PYTHONPATH=path)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """A run on a real subject with a pass, a failure, a finding and a check that lacks its operation."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "solution.py").write_text(SUBJECT)
    selected = "kl_k1/value or kl_k1/refuses or kl_k3/value or kl_k2/value"
    judged = ("--rlassay", "solution.py", "--rlassay-profile", "quick", "-k", selected)
    return pytest_in(folder, "-v", "--pyargs", "rlassay.suite", *judged)


def test_there_is_one_test_per_check_named_by_its_id(real: subprocess.CompletedProcess[str]) -> None:
    assert real.returncode == 1
    for line in (
        "test_suite.py::test_check[kl_k1/value] PASSED",
        "test_suite.py::test_check[kl_k3/value] FAILED",
        "test_suite.py::test_check[kl_k2/value] SKIPPED (not provided: kl_k2)",
        "test_suite.py::test_check[kl_k1/refuses-a-reference-of-another-length] XFAIL",
    ):
        assert line in real.stdout


def test_a_failure_shows_our_message_and_no_traceback(real: subprocess.CompletedProcess[str]) -> None:
    assert "kl_k3[" in real.stdout
    assert ", but should be " in real.stdout
    assert "\nexpected: [[" in real.stdout
    assert "print(subject.kl_k3(log_probs, ref_log_probs))" in real.stdout
    assert "Traceback" not in real.stdout
    assert "def test_check" not in real.stdout


def test_a_finding_of_a_run_that_is_not_strict_is_an_expected_failure(tmp_path: Path) -> None:
    run = scripted(tmp_path, "-k", "kl_k1/side-effects")
    assert (run.returncode, f"XFAIL {FINDING} - robustness finding: kl_k1/side-effects" in run.stdout) == (0, True)


@pytest.mark.parametrize("option", ["--rlassay-strict", "--runxfail"])
def test_a_finding_fails_where_the_run_is_strict_or_asks_for_expected_failures(tmp_path: Path, option: str) -> None:
    run = scripted(tmp_path, "-k", "kl_k1/side-effects", option)
    assert (run.returncode, f"FAILED {FINDING}" in run.stdout) == (1, True)


def test_under_xdist_every_worker_judges_by_itself(tmp_path: Path) -> None:
    run = scripted(tmp_path, "-k", SELECTED, "-n", "2")
    assert (run.returncode, "1 failed, 1 passed, 1 skipped, 1 xfailed" in run.stdout) == (1, True)


def test_a_failing_operation_is_explained(tmp_path: Path) -> None:
    assert "behaves like a script" in scripted(tmp_path, "-k", "kl_k3/value").stdout


def test_a_failure_of_the_harness_fails_the_test(tmp_path: Path) -> None:
    run = scripted(tmp_path, "-k", "kl_k1/value", target='{"kl_k1": "harness-error"}')
    assert (run.returncode, "1 failed" in run.stdout) == (1, True)


def test_known_deviations_have_to_happen_as_listed(tmp_path: Path) -> None:
    entry = '[[expected]]\nid = "{}"\noutcome = "fail"\nreason = "as the paper has it"\n'
    (tmp_path / "known.toml").write_text(entry.format("kl_k3/value") + entry.format("kl_k1/value"))
    run = scripted(tmp_path, "-k", SELECTED, "--rlassay-expected", "known.toml")
    assert run.returncode == 1
    assert "XFAIL test_suite.py::test_check[kl_k3/value] - known deviation: as the paper has it" in run.stdout
    assert "kl_k1/value is listed as a known deviation, but it passes" in run.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "what should be judged? Say it with --rlassay: a .py file, a folder, a module or module:object"),
        (["-n", "2"], "what should be judged? Say it with --rlassay"),
        (["--rlassay", "nowhere.py"], "nowhere.py: there is no such file"),
        (["--rlassay", "x", "--rlassay-profile", "fast"], "--rlassay-profile: is 'fast', but should be one of quick,"),
        (["--rlassay", "x", "--rlassay-interface", "no"], "--rlassay-interface: is 'no', but should be one of own,"),
        (["--rlassay", "x", "--rlassay-convention", "no"], "--rlassay-convention: is 'no', but should be one of lectu"),
        (["--rlassay", "x", "--rlassay-expected", "known.toml"], "known.toml: cannot be read"),
    ],
)
def test_what_cannot_be_judged_is_one_error_that_says_what_to_pass(
    tmp_path: Path, options: list[str], message: str
) -> None:
    run = alone(tmp_path, *options)
    assert run.returncode != 0
    assert message in run.stdout
    assert "1 error in" in run.stdout
    assert "Traceback" not in run.stdout


def test_the_tests_are_listed_without_a_target(tmp_path: Path) -> None:
    run = alone(tmp_path, "--collect-only", "-q", "-k", "kl_k3/value")
    assert (run.returncode, "test_suite.py::test_check[kl_k3/value]" in run.stdout) == (0, True)


def test_the_options_are_one_group_with_one_prefix(tmp_path: Path) -> None:
    text = pytest_in(tmp_path, "--help").stdout
    group = text.partition("\nrlassay: judge an implementation")[2].partition("\n\n")[0]
    options = [line.split("=")[0].split()[0] for line in group.splitlines() if line.strip().startswith("--")]
    assert options[0] == "--rlassay"
    assert all(option.startswith("--rlassay-") for option in options[1:])
    assert len(options) > 5


def test_a_run_of_other_tests_is_left_alone(tmp_path: Path) -> None:
    absent = "not {'torch', 'rlassay.suite', 'rlassay.check', 'msgspec'} & set(sys.modules)"
    (tmp_path / "test_other.py").write_text(f"import sys\ndef test_other():\n    assert {absent}\n")
    run = pytest_in(tmp_path, "test_other.py")
    assert (run.returncode, "1 passed" in run.stdout) == (0, True), run.stdout


def test_no_process_is_left_after_the_run(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    run = scripted(tmp_path, "-k", "kl_k1/value", target=json.dumps({"kl_k1": f"child {note}"}))
    assert (run.returncode, "1 passed" in run.stdout) == (0, True)
    wait_for(lambda: not alive(int(note.read_text())), "the process that the subject started is gone")


def test_the_time_limit_can_be_set(tmp_path: Path) -> None:
    run = scripted(tmp_path, "-k", "kl_k1/value", "--rlassay-timeout", "0.5", target='{"kl_k1": "hang"}')
    assert (run.returncode, "the process gave no answer within 0.5 s" in run.stdout) == (1, True)
