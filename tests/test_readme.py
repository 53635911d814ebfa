"""The README's code runs, its commands exist, and its tables are complete."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import click
import pytest
import torch

from rlassay.cli import cli
from rlassay.engine import run_check
from rlassay.load import load_target
from rlassay.runner import START_SECONDS, TIMEOUTS
from rlassay.statistics import BUDGET
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject
from rlassay.verdict import CONFORMS, DOES_NOT_CONFORM, HARNESS_FAILED, NOTHING_TO_CHECK
from rlassay_spec.convention import ALLOWED, CONVENTIONS, Convention, convention_from

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBERS = {2: "two", 3: "three"}


def blocks(language: str) -> list[str]:
    """The code blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("rlassay ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_parses(command: str) -> None:
    name, *arguments = shlex.split(command, comments=True)[1:]
    subcommand = cli.commands[name]
    with click.Context(cli) as parent:
        subcommand.make_context(name, arguments, parent=parent)


def test_the_solution_of_the_readme_normalises_the_lectures_example() -> None:
    namespace: dict[str, object] = {}
    for block in blocks("python"):
        exec(block, namespace)  # noqa: S102 - our own text
    advantages = namespace["grpo_advantages"](torch.tensor([[1.0, 1.0, 0.0, 0.0]]))  # type: ignore[operator]
    assert advantages.tolist() == [[1, 1, -1, -1]]
    assert convention_from(namespace["CONVENTION"]).std_ddof == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("field", [field.name for field in fields(Convention) if field.name != "name"])
def test_the_table_of_conventions_has_every_field(field: str) -> None:
    row = next(line for line in README.splitlines() if line.startswith("|") and f"`{field}`" in line)
    for value in ALLOWED.get(field, ()):
        assert str(value) in row


@pytest.mark.parametrize("path", re.findall(r"`((?:spec|impl|conformance|examples|tests|benchmarks)[/\w.]*)`", README))
def test_a_path_of_the_readme_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_readmes_numbers_are_those_of_the_code() -> None:
    text = " ".join(README.split())
    assert f"(`--timeout`, {TIMEOUTS['standard']:g} s)" in text
    assert f"importing the target may take {NUMBERS[START_SECONDS / 60]} minutes" in text
    assert f"share one false-alarm budget of {BUDGET:.0e}".replace("e-0", "e-") in text
    assert CONVENTIONS["cs336"].std_ddof == 1
    assert f"(sample deviation, ε {CONVENTIONS['cs336'].std_eps:.0e} added)".replace("e-0", "e-") in text
    codes = re.findall(r"^\| (\d) \| (.*) \|$", README, flags=re.MULTILINE)
    meanings = dict(zip((CONFORMS, DOES_NOT_CONFORM, NOTHING_TO_CHECK, HARNESS_FAILED), codes, strict=True))
    assert [int(code) for code, _ in codes] == list(meanings)
    assert "nothing to check" in meanings[NOTHING_TO_CHECK][1]
    assert "rlassay itself failed" in meanings[HARNESS_FAILED][1]


def test_the_wrong_example_has_as_many_faults_as_the_readme_says() -> None:
    target = load_target(str(ROOT / "examples/wrong_std.py"))
    subject = TorchSubject(target.functions, convention=target.convention)
    wrong = {
        check.operation
        for check in all_checks().values()
        if check.kind == "conformance" and run_check(check, subject, "quick").outcome == "fail"
    }
    assert wrong == {"grpo_advantages", "clipped_loss"}
    assert f"a plausible solution with {NUMBERS[len(wrong)]} faults" in " ".join(README.split())
