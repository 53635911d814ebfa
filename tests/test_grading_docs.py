"""docs/grading.md: its assignment can be read, its numbers are the defaults, its commands exist, its table is full."""

import re
import shlex
import tomllib
from dataclasses import asdict
from pathlib import Path

import click
import pytest

from rlassay.check import PROFILES
from rlassay.cli import cli
from rlassay.grading.assignment import LEAST_SECRET, Limits
from rlassay.grading.assignment_file import MAKE_SECRET, read_assignment
from rlassay.guest.confine import LEVELS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


(ASSIGNMENT,) = blocks("toml")
COMMANDS = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("rlassay ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_parses(command: str) -> None:
    name, *arguments = shlex.split(command)[1:]
    with click.Context(cli) as parent:
        cli.commands[name].make_context(name, arguments, parent=parent)


def test_the_assignment_of_the_page_can_be_read_and_its_numbers_are_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "assignment.toml"
    path.write_text(ASSIGNMENT, encoding="utf-8")
    (tmp_path / "secret.txt").write_text("s" * LEAST_SECRET, encoding="utf-8")
    assignment = read_assignment(path)
    assert assignment.limits == Limits()
    assert (assignment.examples, assignment.interface, assignment.profile) == (PROFILES["standard"], "own", "standard")
    assert assignment.hints
    shortest = tmp_path / "shortest.toml"
    shortest.write_text('title = "t"\nsecret_file = "secret.txt"\n[[part]]\noperation = "kl_k3"\npoints = 1\n')
    assert asdict(read_assignment(shortest).limits) == asdict(Limits())


def test_the_example_that_ships_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "assignment.toml"
    path.write_bytes((ROOT / "examples" / "assignment.toml").read_bytes())
    (tmp_path / "secret.txt").write_text("s" * LEAST_SECRET, encoding="utf-8")
    assert read_assignment(path).maximum == 100


def test_the_table_explains_every_field_of_the_assignment() -> None:
    def names(table: dict[str, object]) -> set[str]:
        found = set()
        for name, value in table.items():
            inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
            found |= names(inner) if name in ("limits", "environment", "deadline", "part") else {name}
        return found

    explained = set(re.findall(r"`([a-z_]+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", PAGE, re.MULTILINE))))
    assert names(tomllib.loads(ASSIGNMENT)) - {"title"} <= explained


def test_numbers_in_the_text_are_those_of_the_code() -> None:
    assert f"at least {LEAST_SECRET} characters" in PAGE
    assert all(f"`{profile}` {examples}" in PAGE for profile, examples in PROFILES.items())
    assert all(f"| `{level}` |" in PAGE for level in LEVELS)
    assert MAKE_SECRET in PAGE
