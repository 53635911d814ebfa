"""Reads an assignment from its file:

    title = "GRPO from scratch"
    secret_file = "secret.txt"          # beside this file; or secret = "…", of 16 characters or more
    interface = "own"                   # or cs336
    convention = "lecture"              # or a table of fields, as CONVENTION in a target
    profile = "standard"                # or quick, thorough
    examples = 16                       # instead of the profile's number
    hints = true                        # students are told which known fault their code behaves like

    [limits]                            # seconds for a call, for loading, for all of a submission, of its CPU time
    call = 10.0
    load = 60.0
    submission = 300.0
    cpu = 300
    memory = "1 GiB"
    tmp = "64 MiB"
    unpacked = "200 MiB"
    files = 2000

    [environment]
    python = "/path/to/python"          # else the grader's own
    stubs = ["vllm", "wandb"]           # modules that stand-ins replace where they are not installed

    [deadline]
    due = 2026-12-01T23:59:00+01:00
    grace = 15                          # minutes that cost nothing
    late = { per_day = 0.1, days = 3 }  # or "refuse"

    [[part]]
    operation = "grpo_advantages"       # or claim = "B9.1": all conformance checks of it
    points = 10
    partial = "all"                     # or "share" of its checks that pass
    visible = ["value", "B9.1"]         # laws that a student sees in full; or true, false
    name = "advantages"                 # else the operation's or claim's

Only `title`, a secret and a part with its points have to be there. Without [deadline] nothing is late.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from rlassay.check import PROFILES
from rlassay.grading.assignment import LEAST_SECRET, Assignment, Deadline, Limits, Part, Secret, suite
from rlassay.grading.fields import Table, TomlError, read_toml
from rlassay.guest.importing import did_you_mean
from rlassay.guest.interfaces import INTERFACES
from rlassay_spec.claims import load_claims
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention, convention_from

MAKE_SECRET = 'python -c "import secrets; print(secrets.token_hex(16))" > secret.txt'
"""How to make a secret."""

DEFAULTS = Limits()


class AssignmentError(TomlError):
    """An assignment that cannot be used: `file, line N: what is wrong; what to do`. It never tells the secret."""


def read_assignment(path: Path) -> Assignment:
    """The assignment that a file describes.

    Raises:
        AssignmentError: it cannot be read, is not TOML, or a field is unknown, missing or wrong.
    """
    table = read_toml(path, AssignmentError)
    table.only(
        *("title", "secret", "secret_file", "interface", "convention", "profile", "examples", "hints"),
        *("limits", "environment", "deadline", "part"),
    )
    interface = table.choice("interface", tuple(INTERFACES), "own")
    profile = table.choice("profile", tuple(PROFILES), "standard")
    python, stubs = _environment(table.table("environment"))
    return Assignment(
        path=path,
        title=table.text("title"),
        secret=_secret(table),
        sha256=_digest(table.entries),
        convention=_convention(table, CONVENTIONS.get(interface, LECTURE)),
        examples=table.whole("examples", PROFILES[profile]),
        parts=_parts(table, interface),
        interface=interface,
        profile=profile,
        hints=table.flag("hints", True),
        limits=_limits(table.table("limits")),
        python=python,
        stubs=stubs,
        deadline=_deadline(table.table("deadline")) if "deadline" in table.entries else None,
        files=(path, path.parent / table.text("secret_file")) if "secret_file" in table.entries else (path,),
    )


def _digest(entries: Mapping[str, Any]) -> str:
    """The hash of what the file says; neither comments nor the secret matter."""
    public = {name: value for name, value in entries.items() if name not in ("secret", "secret_file")}
    return hashlib.sha256(json.dumps(public, sort_keys=True, default=str).encode()).hexdigest()


def _secret(table: Table) -> Secret:
    """The secret, of which no message may tell more than where it is."""
    given = [name for name in ("secret", "secret_file") if name in table.entries]
    make = f"make one: {MAKE_SECRET}"
    if not given:
        table.fail(
            "secret", f'there is no secret to derive the seeds from; {make}, and write secret_file = "secret.txt"'
        )
    if len(given) > 1:
        table.fail("secret_file", "secret and secret_file are both given; leave one out")
    name, value = given[0], table.entries[given[0]]
    if not isinstance(value, str) or not value.strip():
        table.fail(name, f"{name} is not a text, or is empty; {make}")
    if name == "secret_file":
        value, reason = _read(table.path.parent / value)
        if reason:
            table.fail(name, f"the file that secret_file names beside the assignment cannot be read: {reason}; {make}")
    if len(value.strip()) < LEAST_SECRET:
        table.fail(name, f"the secret has {len(value.strip())} characters, but should have {LEAST_SECRET}; {make}")
    return Secret(value.strip())


def _read(path: Path) -> tuple[str, str]:
    """A file's text, or why there is none; no exception, whose text would tell a secret that was taken for a name."""
    try:
        return path.read_text(encoding="utf-8"), ""
    except OSError as error:
        return "", error.strerror or "it is no file"
    except ValueError:
        return "", "it is not UTF-8 text"


def _convention(table: Table, base: Convention) -> Convention:
    declared = table.entries.get("convention")
    if declared is None:
        return base
    if not isinstance(declared, str | dict):
        table.wrong("convention", f"a table of fields, or one of {', '.join(map(repr, CONVENTIONS))}")
    if isinstance(declared, dict):
        inner = table.table("convention")
        if "name" in declared:
            inner.text("name")
    try:
        return convention_from(declared, base)
    except ValueError as error:
        field, _, what = str(error).partition(": ")
        if isinstance(declared, dict) and field in declared:
            table.table("convention").fail(field, f"{field} {what}")
        table.fail("convention", str(error))


def _limits(table: Table) -> Limits:
    table.only(*Limits.__dataclass_fields__)

    def seconds(name: str, default: float) -> float:
        return float(table.number(name, Fraction(default)))

    limits = Limits(
        call=seconds("call", DEFAULTS.call),
        load=seconds("load", DEFAULTS.load),
        submission=seconds("submission", DEFAULTS.submission),
        cpu=table.whole("cpu", DEFAULTS.cpu),
        memory=table.size("memory", DEFAULTS.memory),
        tmp=table.size("tmp", DEFAULTS.tmp),
        unpacked=table.size("unpacked", DEFAULTS.unpacked),
        files=table.whole("files", DEFAULTS.files),
    )
    for name in ("call", "load"):
        if getattr(limits, name) > limits.submission:
            longer = f"{getattr(limits, name):g} s, longer than the {limits.submission:g} s of the whole submission"
            table.fail(name if name in table.entries else "submission", f"{name} is {longer}; raise submission")
    return limits


def _environment(table: Table) -> tuple[str, tuple[str, ...]]:
    table.only("python", "stubs")
    python = table.text("python") if "python" in table.entries else ""
    if python and not Path(python).is_absolute():
        table.wrong("python", "the whole path of a Python, begun with /")
    stubs = table.texts("stubs")
    for index, name in enumerate(stubs):
        if not all(part.isidentifier() for part in name.split(".")):
            table.under("stubs").fail(index, f"{name!r} is no name of a module; write it as after import")
    return python, stubs


def _deadline(table: Table) -> Deadline:
    table.only("due", "late", "grace")
    due = table.entries.get("due")
    if not isinstance(due, datetime) or due.tzinfo is None:
        table.wrong("due", "a date, a time and their offset from UTC, such as 2026-12-01T23:59:00+01:00")
    grace = timedelta(minutes=table.whole("grace", 0, least=0))
    late = table.entries.get("late")
    if late == "refuse":
        return Deadline(due, grace)
    if not isinstance(late, dict):
        table.wrong("late", '"refuse", or { per_day = 0.1, days = 3 }')
    rule = table.table("late")
    rule.only("per_day", "days")
    return Deadline(due, grace, rule.number("per_day", most=1), rule.whole("days"))


def _parts(table: Table, interface: str) -> tuple[Part, ...]:
    tables = table.tables("part")
    if not tables:
        table.fail("part", "there is no part, so there is nothing to grade; add [[part]] with operation and points")
    parts: list[Part] = []
    for entry in tables:
        part = _part(entry, interface)
        for earlier in parts:
            if (part.operation, part.claim) == (earlier.operation, earlier.claim):
                what = part.operation or f"claim {part.claim}"
                entry.fail(_kind(entry), f"{what} has a part already; put its points together")
            if part.name == earlier.name:
                entry.fail("name", f"another part is called {part.name!r} already; give one of them another name")
        parts.append(part)
    return tuple(parts)


def _kind(entry: Table) -> Literal["operation", "claim"]:
    return "operation" if "operation" in entry.entries else "claim"


def _part(entry: Table, interface: str) -> Part:
    entry.only("operation", "claim", "points", "partial", "visible", "name")
    if ("operation" in entry.entries) == ("claim" in entry.entries):
        entry.fail("operation", "a part is about either an operation or a claim; give one of the two fields")
    kind = _kind(entry)
    subject = entry.text(kind)
    part = Part(
        name=entry.text("name", subject),
        points=entry.number("points"),
        partial="share" if entry.choice("partial", ("all", "share"), "all") == "share" else "all",
        operation=subject if kind == "operation" else "",
        claim=subject if kind == "claim" else "",
    )
    checks = suite(interface).values()
    if kind == "operation":
        known = {check.operation for check in checks}
        if subject not in known:
            hint = did_you_mean(subject, known) or f"; `rlassay operations --interface {interface}` lists them"
            entry.fail(kind, f"the interface {interface} has no operation {subject!r}{hint}")
    elif subject not in load_claims():
        hint = did_you_mean(subject, load_claims()) or "; `rlassay claims` lists them"
        entry.fail(kind, f"there is no claim {subject!r}{hint}")
    laws = {check.law for check in checks if part.covers(check)}
    if not laws:
        what = f"no conformance check of the interface {interface} is about {kind} {subject}"
        entry.fail(kind, f"{what}, so nobody could earn its points; leave the part out")
    return replace(part, visible=_visible(entry, laws))


def _visible(entry: Table, laws: Collection[str]) -> bool | tuple[str, ...]:
    if not isinstance(entry.entries.get("visible", False), list):
        return entry.flag("visible", False)
    for index, law in enumerate(visible := entry.texts("visible")):
        if law not in laws:
            hint = did_you_mean(law, laws) or f"; its laws are {', '.join(sorted(laws))}"
            entry.under("visible").fail(index, f"no conformance check of this part is about {law!r}{hint}")
    return visible
