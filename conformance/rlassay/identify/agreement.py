"""What the operations of a target agree on: the convention to declare, and where they follow different ones."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields

import msgspec

from rlassay.identify.finding import Finding, Identification, Value
from rlassay.identify.solve import simplest
from rlassay_spec.convention import LECTURE, Convention, convention_from

SCHEMA = 1

FIELDS = tuple(field.name for field in fields(LECTURE) if field.name != "name")

TOGETHER = (("std_eps", "std_eps_place"), ("aggregation", "aggregation_constant"))
"""Fields of which neither says anything where the operations contradict one another in the other one."""


class Agreement(msgspec.Struct, kw_only=True):
    """What to declare.

    `convention` holds each field that some operation determines and none contradicts. `contradictions` maps a field to
    what is said of it, and that to the operations that say so. `undetermined` are the fields that no operation
    determines, though some depend on them; `unseen` those that no operation depends on.
    """

    convention: dict[str, Value]
    contradictions: dict[str, dict[str, list[str]]]
    undetermined: list[str]
    unseen: list[str]

    def declared(self, base: Convention) -> dict[str, Value]:
        """What differs from the convention that holds where nothing is declared."""
        return {name: value for name, value in self.convention.items() if value != getattr(base, name)}


class Report(msgspec.Struct, kw_only=True):
    """The document that `rlassay identify --json` writes.

    `operations` are the provided ones that depend on the convention, `declaration` is the line to paste, `declares`
    what the target declares now. `independent` are the provided operations whose answers no convention changes.
    """

    schema: int
    rlassay: str
    target: str
    sha256: str
    interface: str
    declares: dict[str, Value]
    operations: list[Identification]
    independent: list[str]
    convention: dict[str, Value]
    declaration: str
    contradictions: dict[str, dict[str, list[str]]]
    undetermined: list[str]
    unseen: list[str]
    exit_code: int


def agree(found: Sequence[Identification]) -> Agreement:
    """Unite what the operations that follow a convention say of each field."""
    agreement = Agreement(convention={}, contradictions={}, undetermined=[], unseen=[])
    fitting = [one for one in found if one.verdict == "fits"]
    for field in FIELDS:
        said = {one.operation: one.by_field[field] for one in fitting if field in one.by_field}
        sure = {operation: finding for operation, finding in said.items() if finding.state != "undetermined"}
        if not said:
            agreement.unseen.append(field)
        elif not sure:
            agreement.undetermined.append(field)
        else:
            possible = _united(field, list(sure.values()))
            if possible:
                agreement.convention[field] = possible[0]
            else:
                agreement.contradictions[field] = _grouped(sure)
    for pair in TOGETHER:
        if any(field in agreement.contradictions for field in pair):
            for field in pair:
                agreement.convention.pop(field, None)
    if agreement.convention.get("aggregation") == "constant" and "aggregation_constant" not in agreement.convention:
        del agreement.convention["aggregation"]
    return agreement


def _united(field: str, findings: Sequence[Finding]) -> list[Value]:
    """The value that all of them allow, or nothing."""
    if any(finding.low is not None for finding in findings):
        return _common(findings)
    values = list(dict.fromkeys(finding.value for finding in findings))
    if len(values) > 1 and field in ("singleton_group", "empty_mean") and set(values) == {"zero", "free"}:
        return ["free"]
    return values if len(values) == 1 else []


def _common(findings: Sequence[Finding]) -> list[Value]:
    """The number that lies in all intervals: the one of the narrowest if it does, else the simplest."""
    low = max(finding.low or 0.0 for finding in findings)
    high = min(_end(finding) for finding in findings)
    if low > high:
        return []
    narrow = min(findings, key=lambda finding: _end(finding) - (finding.low or 0.0))
    number = math.inf if narrow.value is None else float(narrow.value)
    if low <= number <= high:
        return [narrow.value]
    return [simplest(low, high)]


def _end(finding: Finding) -> float:
    return math.inf if finding.high is None else finding.high


def _grouped(said: dict[str, Finding]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for operation, finding in said.items():
        grouped.setdefault(repr(finding.value), []).append(operation)
    return grouped


def declaration(convention: dict[str, Value], base: Convention) -> str:
    """The line to paste into the target.

    Raises:
        ValueError: it would declare what is not allowed.
    """
    convention_from(convention, base)
    entries = (f"{json.dumps(name)}: {_literal(value)}" for name, value in convention.items())
    return f"CONVENTION = {{{', '.join(entries)}}}"


def _literal(value: Value) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)
