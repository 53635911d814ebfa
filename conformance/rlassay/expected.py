"""Known deviations: a TOML file of checks that a subject is known to fail, each with the reason.

    [[expected]]
    id = "grpo_advantages/B9.1"
    outcome = "fail"                # or error, timeout, crash
    reason = "divides by the sample standard deviation, as its paper does"
    link = "https://…"              # optional

The list is strict: a known failure that passes, or fails in another way, fails the run until the entry is removed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlassay.describe import plain
from rlassay.guest.importing import did_you_mean
from rlassay.record import CheckResult
from rlassay.verdict import FAILURES, counts, failed

REQUIRED = ("id", "outcome", "reason")
FIELDS = (*REQUIRED, "link")
TODO = "TODO"


class ExpectedError(ValueError):
    """A file of known deviations that cannot be used; names the file and the entry."""


@dataclass(frozen=True)
class Deviation:
    """One known failure: the check, how it fails, why that is accepted and where it is discussed."""

    id: str
    outcome: str
    reason: str
    link: str = ""


def read_expected(path: Path, checks: Collection[str]) -> dict[str, Deviation]:
    """The known deviations by check id; `checks` are the ids of the whole suite.

    Raises:
        ExpectedError: the file cannot be read, is not TOML, or an entry is incomplete, unknown or given twice.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExpectedError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExpectedError(f"{path}: is not TOML: {error}") from error
    entries = table.pop("expected", [])
    if table:
        raise ExpectedError(f"{path}: unknown field {next(iter(table))!r}; the file is a list of [[expected]] tables")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ExpectedError(f"{path}: expected is no list of tables, each begun with [[expected]]")
    deviations: dict[str, Deviation] = {}
    for number, entry in enumerate(entries, start=1):
        deviation = _deviation(f"{path}, entry {number}", entry, checks)
        if deviation.id in deviations:
            raise ExpectedError(f"{path}, entry {number}: {deviation.id} is listed twice")
        deviations[deviation.id] = deviation
    return deviations


def _deviation(where: str, entry: Mapping[str, Any], checks: Collection[str]) -> Deviation:
    for field, value in entry.items():
        if field not in FIELDS:
            raise ExpectedError(f"{where}: unknown field {field!r}; the fields are {', '.join(FIELDS)}")
        if not isinstance(value, str) or not value.strip():
            raise ExpectedError(f"{where}: {field} is {value!r}, but should be a text that is not empty")
    for field in REQUIRED:
        if field not in entry:
            raise ExpectedError(f"{where}: {field} is missing")
    deviation = Deviation(**entry)
    if deviation.id not in checks:
        hint = did_you_mean(deviation.id, checks)
        raise ExpectedError(f"{where}: no check is called {deviation.id}{hint}")
    if deviation.outcome not in FAILURES:
        allowed = ", ".join(sorted(FAILURES))
        raise ExpectedError(f"{where}: outcome is {deviation.outcome!r}, but should be one of {allowed}")
    return deviation


def draft(results: Iterable[CheckResult], known: Mapping[str, Deviation], strict: bool) -> str:
    """The file that lists what a run shows: the known deviations that still hold, and its other failures as drafts."""
    entries = ["# Known deviations. Replace every TODO by the reason why the deviation is accepted."]
    for result in results:
        if result.known:
            entries.append(_entry(known[result.id], ""))
        elif failed(result) and counts(result, strict):
            message = result.failure.message if result.failure else ""
            entries.append(_entry(Deviation(result.id, result.outcome, f"{TODO}: why this is accepted"), message))
    return "\n\n".join(entries) + "\n"


def _entry(deviation: Deviation, comment: str) -> str:
    lines = [f"# {line}" for line in plain(comment).split("\n") if line]
    lines.append("[[expected]]")
    lines += [f"{field} = {_quoted(getattr(deviation, field))}" for field in FIELDS if getattr(deviation, field)]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A TOML string; JSON's escapes are TOML's, but for the one control character that JSON leaves alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
