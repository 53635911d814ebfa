"""Pairs of submissions that are wrong in the same unusual way: a hint for a conversation, never a verdict.

What a submission does wrong is a set of features. Where an operation behaves like a known fault or another convention,
that is its one feature, since every failing check follows from it; else each failing check is one, with its outcome,
and one more with its message without numbers. A feature weighs −log₂ of the share of the class that has it, in bits:

    alike(A, B) = Σ_{f ∈ A∩B} w(f) / Σ_{f ∈ A∪B} w(f)

Only pairs that share `SHARED` features that few have are looked at, so common faults make none, and the time is bounded
by the number of features times the square of `few`. A mistake that more than `few` share is taken for a common one.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from rlassay.describe import message, names_something
from rlassay.grading.classbook import cell
from rlassay.grading.grade import Grade
from rlassay.grading.store import grades, write
from rlassay.record import CheckResult, Record, read_record
from rlassay.verdict import FAILURES

LEVEL = 0.6
"""Pairs below this likeness are not listed."""

SHARED = 2
"""So many features that few have must be shared."""

NAMED = 5
"""So many shared features are named, the rarest first."""

NOTE = "a hint for a conversation, not a verdict: people who learn together err together"

MOST_GIST = 200
"""A message counts up to this many characters."""

NUMBERS = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?|\b(?:nan|inf)\b| \((?:within [^)]*|exactly)\)")
"""What of a message depends on the inputs: numbers, and the tolerance."""


@dataclass(frozen=True)
class Pair:
    """Two submissions, how alike their wrong behaviour is (0 to 1), and the rarest of what they share."""

    first: str
    second: str
    alike: float
    shared: tuple[str, ...]


def features(record: Record) -> frozenset[str]:
    """What the subject of a record does wrong."""
    explained = {
        explanation.operation: f"{explanation.operation} {explanation.text}"
        for explanation in record.explanations
        if names_something(explanation) and (explanation.fault or explanation.convention)
    }
    found: set[str] = set()
    for result in record.checks:
        if result.outcome not in FAILURES or message(result).startswith("not run: "):
            continue
        explanation = explained.get(result.operations[0])
        found |= {explanation} if explanation is not None else set(_of_check(result))
    return frozenset(found)


def _of_check(result: CheckResult) -> Iterator[str]:
    yield f"{result.id}: {result.outcome}"
    gist = NUMBERS.sub("#", message(result)[: 4 * MOST_GIST])[:MOST_GIST]
    yield f"{result.id}: {result.outcome}: {gist}"


def few(count: int) -> int:
    """What so many submissions of a class have at most is rare: one in twenty, but always two, and never more than
    five, since what more people do is a mistake that people make."""
    return min(max(2, count // 20), 5)


def pairs(behaviour: Mapping[str, frozenset[str]], level: float = LEVEL) -> list[Pair]:
    """The pairs that are alike, the most alike first, from the features of each submission by key."""
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for key, found in behaviour.items():
        for feature in found:
            owners[feature].append(key)
    count = len(behaviour)
    weights = {feature: math.log2(count / len(keys)) for feature, keys in owners.items()}
    candidates: Counter[tuple[str, str]] = Counter()
    for keys in owners.values():
        if 2 <= len(keys) <= few(count):
            candidates.update(combinations(keys, 2))
    found_pairs = []
    for (first, second), shared in candidates.items():
        if shared >= SHARED:
            pair = _pair(first, second, behaviour, weights)
            if pair.alike >= level:
                found_pairs.append(pair)
    return sorted(found_pairs, key=lambda pair: (-pair.alike, pair.first, pair.second))


def _pair(first: str, second: str, behaviour: Mapping[str, frozenset[str]], weights: Mapping[str, float]) -> Pair:
    both = sorted(behaviour[first] & behaviour[second], key=lambda feature: (-weights[feature], feature))
    either = behaviour[first] | behaviour[second]
    alike = math.fsum(weights[feature] for feature in both) / math.fsum(weights[feature] for feature in either)
    return Pair(first, second, round(alike, 4), tuple(both[:NAMED]))


def write_similarity(folder: Path, level: float = LEVEL) -> int:
    """Write similarity.csv into a folder of results; returns how many pairs it lists.

    Raises:
        StoreError: a grade cannot be read.
        RecordError: a record cannot be read.
    """
    students: dict[str, Grade] = {}
    behaviour: dict[str, frozenset[str]] = {}
    known: dict[str, str] = {}
    for grade in grades(folder):
        path = folder / "submissions" / grade.key / "record.ndjson"
        if grade.status != "failed" and path.exists():
            students[grade.key] = grade
            behaviour[grade.key] = frozenset(known.setdefault(text, text) for text in features(read_record(path)))
    found = pairs(behaviour, level)
    write(folder / "similarity.csv", _table(found, students))
    return len(found)


def _table(found: Iterable[Pair], students: Mapping[str, Grade]) -> bytes:
    stream = io.StringIO(newline="")
    table = csv.writer(stream, quoting=csv.QUOTE_ALL)
    table.writerow(["first", "name", "second", "name", "alike", "what both do and few others", "note"])
    for pair in found:
        first, second = students[pair.first], students[pair.second]
        row = [first.id, first.name, second.id, second.name, f"{pair.alike:.2f}", " | ".join(pair.shared), NOTE]
        table.writerow(map(cell, row))
    return stream.getvalue().encode("utf-8-sig")
