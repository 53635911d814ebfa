"""The README's code runs, its commands exist, and its tables are complete."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import click
import pytest
import torch

from rlassay.cli import cli
from rlassay_spec.convention import ALLOWED, Convention, convention_from

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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
