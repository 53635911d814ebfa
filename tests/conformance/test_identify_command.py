"""`rlassay identify`: exit codes, the text to paste, the document."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from rlassay.cli import run
from rlassay.identify.agreement import SCHEMA
from tests.conformance.cli_support import scripted

Capture = pytest.CaptureFixture[str]

LIBRARY_LIKE = """
import torch

def grpo_advantages(rewards):
    if rewards.shape[1] == 1:
        return torch.zeros_like(rewards)
    return (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1.3e-6)

def sft_loss(log_probs, mask):
    m = mask.to(log_probs.dtype)
    return -(log_probs * m).sum() / m.sum().clamp(min=1)

def kl_k1(log_probs, ref_log_probs):
    return log_probs - ref_log_probs.detach()
"""

CONTRADICTORY = (
    LIBRARY_LIKE
    + """
def grpo_loss(log_probs, mask, advantages):
    return -(log_probs * mask * advantages.detach()[:, None]).sum(1).mean().to(log_probs.dtype)
"""
)

BROKEN = """
import os

def kl_k3(log_probs, ref_log_probs):
    d = ref_log_probs.detach() - log_probs
    return d.exp() - d

def rloo_advantages(rewards):
    os._exit(5)
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pasted(output: str) -> str:
    """The line to paste."""
    return next(line for line in output.splitlines() if line.startswith("CONVENTION = "))


def test_what_is_printed_can_be_pasted_and_then_conforms(capsys: Capture) -> None:
    Path("solution.py").write_text(LIBRARY_LIKE)
    assert run(["identify", "solution.py"]) == 0
    line = pasted(capsys.readouterr().out)
    assert ast.literal_eval(line.removeprefix("CONVENTION = ")) == {
        "std_ddof": 1,
        "std_eps": 1.3e-6,
        "aggregation": "token_mean",
    }
    Path("solution.py").write_text(f"{line}\n{LIBRARY_LIKE}")
    assert run(["check", "solution.py", "--profile", "quick"]) == 0
    capsys.readouterr()
    assert run(["identify", "solution.py"]) == 0
    captured = capsys.readouterr().out
    assert "as it is declared already" in captured
    assert pasted(captured) == line


def test_operations_that_contradict_one_another_are_listed(capsys: Capture) -> None:
    Path("solution.py").write_text(CONTRADICTORY)
    assert run(["identify", "solution.py"]) == 1
    output = capsys.readouterr().out
    assert "the operations contradict one another in aggregation" in output
    assert "'token_mean'    sft_loss" in output
    assert "aggregation" not in pasted(output)


def test_what_fits_no_convention_is_refused_with_the_smallest_call(capsys: Capture) -> None:
    Path("solution.py").write_text(BROKEN)
    assert run(["identify", "solution.py", "--json", "found.json"]) == 1
    output = capsys.readouterr().out
    assert "no convention fits 2 of 2 operations: `rlassay check` may name the fault" in output
    assert "CONVENTION" not in output
    assert "but should be" in output
    document = json.loads(Path("found.json").read_text())
    verdicts = {one["operation"]: one["verdict"] for one in document["operations"]}
    assert verdicts == {"rloo_advantages": "no answer", "kl_k3": "none"}
    assert document["exit_code"] == 1
    assert document["operations"][1]["contradiction"]["call"].startswith("kl_k3(log_probs[")


def test_the_document_goes_to_standard_output_and_the_table_then_to_standard_error(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    Path("solution.py").write_text(LIBRARY_LIKE)
    assert run(["identify", "solution.py", "--operation", "grpo_advantages", "--json", "-"]) == 0
    captured = capfdbinary.readouterr()
    document = json.loads(captured.out)
    assert document["schema"] == SCHEMA
    assert document["independent"] == ["kl_k1"]
    (one,) = document["operations"]
    epsilon = next(finding for finding in one["findings"] if finding["field"] == "std_eps")
    assert epsilon["low"] < epsilon["value"] == 1.3e-6 < epsilon["high"]
    assert (one["agreeing"], one["verdict"]) == (one["observations"], "fits")
    assert document["declaration"] == 'CONVENTION = {"std_ddof": 1, "std_eps": 1.3e-06}'
    assert "one convention fits every operation" in captured.err.decode()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["missing.py"], "there is no such file"),
        (["solution.py", "--operation", "grpo_advantage"], "did you mean grpo_advantages?"),
        (["solution.py", "--operation", "kl_k1"], "there is nothing to identify"),
        (["solution.py", "--operation", "kl_k3"], "does not provide kl_k3; nothing to identify"),
        (["solution.py", "--json", "solution.py"], "would overwrite"),
    ],
)
def test_a_wrong_use_is_exit_code_2(capsys: Capture, options: list[str], message: str) -> None:
    Path("solution.py").write_text(LIBRARY_LIKE)
    assert run(["identify", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_target_steers_no_terminal(capsys: Capture) -> None:
    Path("solution.py").write_text("def kl_k3(a, b):\n    raise RuntimeError('\\x1b[31mred\\x07')\n")
    assert run(["identify", "solution.py"]) == 1
    output = capsys.readouterr().out
    assert "\x1b[31m" not in output
    assert "\\x1b[31mred\\x07" in output


def test_a_worker_that_dies_costs_its_operation(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(["identify", scripted(monkeypatch, kl_k3="exit 3"), "--timeout", "5"]) == 1
    assert "no answer" in capsys.readouterr().out
