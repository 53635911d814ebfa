"""The hand-out of an assignment: typed stubs with their contracts, a README, and the checks that students see.

Nothing in it tells the secret, or which checks are hidden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from inspect import getdoc

from rlassay import __version__
from rlassay.folder import NAME
from rlassay.grading.assignment import Assignment, Deadline, Part
from rlassay.grading.points import percent_text, points_text
from rlassay.grading.scoring import due_text
from rlassay.grading.stubs_text import stubs_text, student_name
from rlassay.guest.interfaces.cs336 import ADAPTED
from rlassay_spec import operations as contracts
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention, convention_from
from rlassay_spec.operations import CS336_OPERATIONS, OPERATIONS, Operation

ADAPTED_FROM = "compute_group_normalized_rewards"
"""The function of CS336 that some operations of ours are judged through."""

RULES = {
    "own": (getdoc(contracts) or "").partition("For all:")[2].strip(),
    "cs336": "- Arguments are given by name.\n- What a contract lists as free is never judged.",
}
"""What holds for every operation of an interface."""


class StarterError(ValueError):
    """An assignment of which no hand-out can be made; says why."""


def starter(assignment: Assignment) -> Mapping[str, str]:
    """The files of the hand-out by name.

    Raises:
        StarterError: it asks for two functions of one name.
    """
    return {
        "solution.py": _solution(assignment),
        "README.md": "\n".join(_readme(assignment)) + "\n",
        NAME: _settings(assignment),
    }


def handed_in(assignment: Assignment) -> list[Operation]:
    """The functions that a submission has to provide, in the table's order.

    Raises:
        StarterError: two of them have one name.
    """
    if assignment.interface == "own":
        return [operation for name, operation in OPERATIONS.items() if name in assignment.operations]
    wanted = set(assignment.operations)
    if wanted & set(ADAPTED) and ADAPTED_FROM not in wanted:
        wanted.add(f"{ADAPTED_FROM}_2026")
    found = [operation for name, operation in CS336_OPERATIONS.items() if name in wanted]
    for name, count in Counter(map(student_name, found)).items():
        if count > 1:
            both = f"{name} in its form of 2025 and in that of 2026, which one file cannot hold"
            raise StarterError(f"{assignment.path}: asks for {both}; leave out the part of one form")
    return found


def _solution(assignment: Assignment) -> str:
    rules = "In place of each `raise NotImplementedError`, write the function.\n\nFor all of them:\n"
    blocks = stubs_text(handed_in(assignment))
    parts = [f'"""{rules}\n{RULES[assignment.interface]}\n"""', next(blocks), "import torch"]
    parts += [f"CONVENTION = {declared}"] if (declared := declaration(assignment)) else []
    return "\n\n".join([*parts, *blocks]) + "\n"


def declaration(assignment: Assignment) -> str:
    """What a submission declares as CONVENTION, as Python; nothing where it is the interface's own convention."""
    convention, base = assignment.convention, CONVENTIONS.get(assignment.interface, LECTURE)
    if convention == base:
        return ""
    if convention == CONVENTIONS.get(convention.name):
        return f'"{convention.name}"'
    changed = {f.name: getattr(convention, f.name) for f in fields(Convention)}
    changed = {name: value for name, value in changed.items() if name != "name" and value != getattr(base, name)}
    if convention_from(changed, base) != convention:
        changed = {"name": convention.name, **changed}
    return repr(changed).replace("'", '"')


def _settings(assignment: Assignment) -> str:
    listed = "".join(f'    "{check.id}",\n' for check in assignment.checks() if assignment.is_visible(check.id))
    return (
        "# What `rlassay check` asks of the files in this folder.\n\n"
        f'interface = "{assignment.interface}"\nchecks = [\n{listed}]\n'
    )


def _readme(assignment: Assignment) -> Iterator[str]:
    names = {operation.name: f"`{student_name(operation)}`" for operation in handed_in(assignment)}
    yield f"# {assignment.title}\n"
    yield "Write the functions in `solution.py`. What each has to do, and when it has to refuse, is in its docstring,"
    yield "the contract. Keep names and parameters; a function that still raises `NotImplementedError` counts as not"
    yield "handed in. You may add functions, imports and files.\n"
    yield "## Points\n"
    yield "| part | functions | points | earned by | checks you see |"
    yield "|---|---|---|---|---|"
    yield from (_row(assignment, part, names) for part in assignment.parts)
    yield f"| total | | {points_text(assignment.maximum)} | | |\n"
    if assignment.deadline is not None:
        yield "## Deadline\n"
        yield f"{_deadline(assignment.deadline)}\n"
    yield "## Convention\n"
    yield "Where contracts name a convention, it is this one:\n"
    values = ((f.name, getattr(assignment.convention, f.name)) for f in fields(Convention) if f.name != "name")
    yield from (f"- `{name}`: {'none' if value is None else value}" for name, value in values)
    yield "\n## Check your work\n"
    yield f"    pip install rlassay=={__version__}\n    rlassay check solution.py\n"
    visible = [check for check in assignment.checks() if assignment.is_visible(check.id)]
    yield f"This makes the checks below, which `{NAME}` lists. Your mark comes from {len(assignment.checks())} checks,"
    yield f"{len(visible)} of them are these, and all of them get other inputs than on your machine.\n"
    yield from (f"- `{check.id}`: {check.title}" for check in visible)
    if not visible:
        yield "None of them can be seen."


def _row(assignment: Assignment, part: Part, names: Mapping[str, str]) -> str:
    checks = assignment.part_checks(part)
    functions = dict.fromkeys(names.get(check.operation) or _adapted(names) for check in checks)
    seen = sum(assignment.is_visible(check.id) for check in checks)
    earned = "the share of checks that pass" if part.partial == "share" else "passing all checks"
    cells = (part.name, ", ".join(functions), points_text(part.points), earned, f"{seen} of {len(checks)}")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _adapted(names: Mapping[str, str]) -> str:
    return next(text for name, text in names.items() if name.startswith(ADAPTED_FROM))


def _deadline(deadline: Deadline) -> str:
    text = f"Hand in until {due_text(deadline)}."
    if deadline.grace:
        text += f" {deadline.grace.total_seconds() / 60:g} more minutes cost nothing."
    if deadline.per_day is None:
        return f"{text} What comes later earns no points."
    day = "day" if deadline.days == 1 else "days"
    cost = f"Then each begun day costs {percent_text(deadline.per_day)} of the points"
    return f"{text} {cost}; after {deadline.days} {day} there are none left."
