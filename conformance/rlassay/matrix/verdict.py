"""What the rows of a matrix amount to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rlassay.matrix.rows import Entry, Row, checks_of, killers
from rlassay.suite import all_checks

KILLERS = Path(__file__).with_name("killers.json")
TELLING = ("value", "gradient")
"""The laws that a fault in the numbers has to break."""


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a suite, by its matrix.

    `survivors` are faults that no check kills, `lost` maps a fault to what is on record as having to kill it but does
    not, `flagged` a correct subject to the checks that flag it, `toothless` are checks that kill nothing, `broken` maps
    a subject to the checks in which the harness failed.
    """

    survivors: Sequence[str]
    lost: Mapping[str, Sequence[str]]
    flagged: Mapping[str, Sequence[str]]
    toothless: Sequence[str]
    broken: Mapping[str, Sequence[str]]

    @property
    def green(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.survivors or self.lost or self.flagged or self.toothless or self.broken)


def judged(rows: Sequence[Row], entries: Mapping[str, Entry], recorded: Mapping[str, Sequence[str]]) -> Verdict:
    """The verdict over rows; checks are called toothless only where the rows are those of all subjects. `recorded` says
    by key what must kill a known fault."""
    wrong = [row for row in rows if entries[row.subject].wrong]
    right = [row for row in rows if not entries[row.subject].wrong]
    survivors = [row.subject for row in wrong if not killers(row, entries[row.subject])]
    flagged = {row.subject: found for row in right if (found := flags(row, entries[row.subject]))}
    broken = {row.subject: failures for row in rows if (failures := _failures(row))}
    lost = {row.subject: missing for row in wrong if row.form == "fault" and (missing := _lost(row, recorded))}
    complete = len(rows) == len(entries)
    return Verdict(survivors, lost, flagged, _toothless(wrong, entries) if complete else (), broken)


def must_kill(row: Row, entry: Entry) -> list[str]:
    """The claims and the laws of value and gradient that see a fault in at least half of their examples; where there is
    none, every law that sees it."""
    checks = all_checks()
    able = [checks[identity] for identity in killers(row, entry)]
    telling = [check for check in able if check.law in (*check.claims, *TELLING)]
    strong = [check for check in telling if 2 * row.kills[check.id] >= (check.examples_in("standard"))]
    return sorted({check.law for check in strong or able})


def read_killers() -> dict[str, list[str]]:
    """What is on record as having to kill each known fault."""
    return msgspec.json.decode(KILLERS.read_bytes(), type=dict[str, list[str]])


def _lost(row: Row, recorded: Mapping[str, Sequence[str]]) -> list[str]:
    """The laws on record that do not kill a fault any more; that it is not on record counts too."""
    checks = all_checks()
    seen = {checks[identity].law for identity in row.kills}
    return [law for law in recorded.get(row.subject, ("(not on record)",)) if law not in seen]


def flags(row: Row, entry: Entry) -> list[str]:
    """The checks that flag a correct subject without a lapse on record."""
    checks = all_checks()
    return [
        identity
        for identity in (*row.kills, *row.errors)
        if checks[identity].kind == "conformance" or not entry.excuse(checks[identity].law)
    ]


def _failures(row: Row) -> list[str]:
    return [identity for identity, message in row.errors.items() if not message.startswith("SubjectRaised")]


def _toothless(wrong: Sequence[Row], entries: Mapping[str, Entry]) -> list[str]:
    killing = {identity for row in wrong for identity in row.kills}
    asked = {check.id for entry in entries.values() for check in checks_of(entry)}
    return [identity for identity in all_checks() if identity in asked and identity not in killing]
