"""Reads claims from TOML.

A file names its lecture and the letter its ids begin with, then lists claims:

    lecture = "rl-basics"
    letter = "B"

    [[claim]]
    id = "B3.3"
    section = "3 · Supervised fine-tuning"
    statement = "…"                     # our words, one or two sentences
    formula = "0.95²⁰"
    verdict = "holds"                   # see VERDICTS
    source = "section 3, the estimate of how errors add up"
    operations = ["action_log_probs"]   # through which an implementation can be checked
    asserted_by = "spec"                # only where no operation can show it; then operations = []
    condition = "…"                     # conditional and refuted claims only: when it is true
    truth = "…"                         #   and what is true instead

    [[claim.value]]                     # also [[claim.inside]] and [[claim.counterexample]]
    name = "success rate over 20 steps"
    value = "0.358486"                  # see evaluation.py: a decimal is rounded, all else is exact
    expression = "0.95**20"
    printed = "0.36"                    # optional: the number as the lecture prints it

Line breaks within a text count as spaces.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

VERDICTS: Mapping[str, str] = {
    "holds": "true as stated",
    "conditional": "true only under a condition that the lecture leaves out",
    "refuted": "false as stated",
    "measured": "an empirical claim that no exact computation settles; it needs an experiment with an interval",
}

FILES = tuple(Path(__file__).with_name(name) for name in ("rl_basics.toml", "rl_in_practice.toml"))


@dataclass(frozen=True)
class Value:
    """A number that a claim speaks of and the expression over `rlassay_spec.exact` that yields it."""

    name: str
    value: str
    expression: str
    printed: str | None = None


@dataclass(frozen=True)
class Claim:
    """One checkable statement of a lecture.

    `values` belong to the statement; `inside` shows a case where a conditional or refuted claim is true and
    `counterexamples` one where it is not. `asserted_by` is "conformance", or "spec" where no operation can show the
    claim and its expressions are the whole proof.
    """

    id: str
    lecture: str
    section: str
    statement: str
    formula: str
    verdict: str
    source: str
    operations: tuple[str, ...]
    asserted_by: str
    condition: str | None
    truth: str | None
    values: tuple[Value, ...]
    inside: tuple[Value, ...]
    counterexamples: tuple[Value, ...]


class ClaimError(ValueError):
    """A claims file that cannot be used; the message names file, claim and field, what it has and what it should."""


_REQUIRED = ("id", "section", "statement", "formula", "verdict", "source", "operations")
_QUALIFIED = ("condition", "truth", "inside", "counterexample")
_FIELDS = (*_REQUIRED, "asserted_by", "value", *_QUALIFIED)


def load_claims(paths: Sequence[Path | str] | None = None) -> dict[str, Claim]:
    """All claims by id, in the order of the files; without paths, those of both lectures.

    Raises: ClaimError for a file that is missing, not TOML, or not of the form above.
    """
    claims: dict[str, Claim] = {}
    for path in map(Path, FILES if paths is None else paths):
        for claim in _read(path):
            if claim.id in claims:
                raise ClaimError(f"{path.name}: claim {claim.id}: id is used twice, but should be unique")
            claims[claim.id] = claim
    return claims


def _read(path: Path) -> list[Claim]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ClaimError(f"{path.name}: cannot be read: {error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ClaimError(f"{path.name}: is not TOML: {error}") from error
    header = _Table(path.name, table)
    header.only("lecture", "letter", "claim")
    lecture, letter = header.text("lecture"), header.text("letter")
    return [
        _claim(_Table(f"{path.name}: claim {entry.get('id', f'number {n} (no id)')}", entry), lecture, letter)
        for n, entry in enumerate(header.tables("claim"), start=1)
    ]


def _claim(table: "_Table", lecture: str, letter: str) -> Claim:
    table.only(*_FIELDS)
    for field in _REQUIRED:
        table.needs(field, "a claim")
    identifier, verdict = table.text("id"), table.choice("verdict", tuple(VERDICTS))
    section, _, number = identifier.removeprefix(letter).partition(".")
    if not (identifier.startswith(letter) and section.isdecimal() and number.isdecimal()):
        table.wrong("id", identifier, f"{letter}<section>.<number>, for example {letter}2.1")
    if verdict in ("conditional", "refuted"):
        for field in _QUALIFIED:
            table.needs(field, f"a {verdict} claim")
    else:
        for field in _QUALIFIED:
            if field in table.entries:
                table.wrong(field, "given", f"left out: the claim is {verdict!r}, not conditional or refuted")
    if verdict == "holds":
        table.needs("value", f"a claim that {verdict}")
    asserted_by = table.choice("asserted_by", ("conformance", "spec"), default="conformance")
    operations = table.texts("operations")
    if bool(operations) == (asserted_by == "spec"):
        table.wrong("operations", list(operations), 'at least one operation, or [] together with asserted_by = "spec"')
    return Claim(
        id=identifier,
        lecture=lecture,
        section=table.text("section"),
        statement=table.text("statement"),
        formula=table.text("formula"),
        verdict=verdict,
        source=table.text("source"),
        operations=operations,
        asserted_by=asserted_by,
        condition=table.text("condition") if "condition" in table.entries else None,
        truth=table.text("truth") if "truth" in table.entries else None,
        values=_values(table, "value"),
        inside=_values(table, "inside"),
        counterexamples=_values(table, "counterexample"),
    )


def _values(table: "_Table", field: str) -> tuple[Value, ...]:
    values: list[Value] = []
    for n, entry in enumerate(table.tables(field), start=1):
        row = _Table(f"{table.where}: {field} {n}", entry)
        row.only("name", "value", "expression", "printed")
        for part in ("name", "value", "expression"):
            row.needs(part, f"a {field}")
        printed = row.text("printed") if "printed" in entry else None
        values.append(Value(row.text("name"), row.text("value"), row.text("expression"), printed))
    return tuple(values)


@dataclass(frozen=True)
class _Table:
    """One TOML table and where it stands, for messages."""

    where: str
    entries: Mapping[str, Any]

    def wrong(self, field: str, had: object, expected: str) -> NoReturn:
        raise ClaimError(f"{self.where}: {field} is {had!r}, but should be {expected}")

    def only(self, *fields: str) -> None:
        for field in self.entries:
            if field not in fields:
                raise ClaimError(f"{self.where}: unknown field {field!r}; the fields are {', '.join(fields)}")

    def needs(self, field: str, owner: str) -> None:
        had = self.entries.get(field)
        if had is None or (had == [] and field != "operations"):
            raise ClaimError(f"{self.where}: {field} is missing; {owner} must have it")

    def text(self, field: str) -> str:
        had = self.entries.get(field)
        if not isinstance(had, str) or not had.strip():
            self.wrong(field, had, "a text that is not empty")
        return " ".join(had.split())

    def texts(self, field: str) -> tuple[str, ...]:
        had = self.entries.get(field)
        if not isinstance(had, list) or not all(isinstance(item, str) for item in had):
            self.wrong(field, had, "a list of texts")
        return tuple(had)

    def tables(self, field: str) -> list[dict[str, Any]]:
        had = self.entries.get(field, [])
        if not isinstance(had, list) or not all(isinstance(item, dict) for item in had):
            self.wrong(field, had, f"a list of tables, each begun with [[…{field}]]")
        return had

    def choice(self, field: str, allowed: Sequence[str], default: str | None = None) -> str:
        had = self.entries.get(field, default)
        if had not in allowed:
            self.wrong(field, had, f"one of {', '.join(allowed)}")
        return str(had)
