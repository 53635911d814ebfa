"""Which failures of an operation are shown, which are only named, and which are echoes of the first one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlassay.describe import known_claims, law_of, message
from rlassay.record import CheckResult

SHOWN = 2
"""So many failures of one operation are shown, unless all are asked for."""

ECHOES = frozenset(
    {
        "keywords",
        "repeat",
        "dtype",
        "bfloat16",
        "layout",
        "permutation",
        "split",
        "mask-dtype",
        "masked",
        "padding",
        "group-order",
        "accumulation",
    }
)
"""Laws that compare with the oracle on other inputs, and so fail wherever the value is wrong."""

VALUE, GRADIENT, CLAIM, LAW, NOT_RUN = range(5)


@dataclass(frozen=True)
class Ranked:
    """The failures of one operation: those to show, and what is left of the claims, of the laws, and of the rest."""

    shown: Sequence[CheckResult]
    claims: Sequence[CheckResult]
    laws: Sequence[CheckResult]
    echoes: Sequence[CheckResult]
    not_run: Sequence[CheckResult]


def ranked(failures: Sequence[CheckResult]) -> Ranked:
    """The value's failure, or else the gradient's, then a claim's; laws are shown only where neither value nor gradient
    fails."""
    ordered = by_weight(failures)
    shown = _shown(ordered)
    rest = [result for result in ordered if result not in shown]
    wrong = any(rank(result) == VALUE for result in ordered)
    laws = [result for result in rest if rank(result) in (VALUE, GRADIENT, LAW)]
    echoes = [result for result in laws if wrong and law_of(result) in ECHOES]
    return Ranked(
        shown=shown,
        claims=[result for result in rest if rank(result) == CLAIM],
        laws=[result for result in laws if result not in echoes],
        echoes=echoes,
        not_run=[result for result in rest if rank(result) == NOT_RUN],
    )


def by_weight(failures: Sequence[CheckResult]) -> list[CheckResult]:
    """Failures, the most telling first: value, gradient, claims (those that hold as stated and have the smallest inputs
    first), laws, checks that were not run."""
    return sorted(failures, key=lambda result: (rank(result), *(_weight(result) if rank(result) == CLAIM else ())))


def rank(result: CheckResult) -> int:
    """Which kind of failure it is."""
    if message(result).startswith("not run: "):
        return NOT_RUN
    law = law_of(result)
    if law in ("value", "gradient"):
        return VALUE if law == "value" else GRADIENT
    return CLAIM if law in result.claims else LAW


def _shown(ordered: Sequence[CheckResult]) -> list[CheckResult]:
    kinds: set[int] = set()
    chosen: dict[str, CheckResult] = {}
    for result in ordered:
        kind = rank(result)
        if _fits(kind, kinds) and _gist(result) not in chosen:
            chosen[_gist(result)] = result
            kinds.add(kind)
    return list(chosen.values())[:SHOWN]


def _fits(kind: int, kinds: set[int]) -> bool:
    """Whether one more failure of a kind is shown beside those of other kinds."""
    if kind == CLAIM:
        return CLAIM not in kinds
    return not kinds if kind in (GRADIENT, NOT_RUN) else not kinds & {VALUE, GRADIENT}


def _gist(result: CheckResult) -> str:
    """The message without its numbers: of failures that say the same, one is shown."""
    return re.sub(r"[-\d.e+]+", "#", message(result))


def _weight(result: CheckResult) -> Iterator[int]:
    claims = known_claims()
    verdicts = [claims[identity].verdict for identity in result.claims if identity in claims]
    yield int("holds" not in verdicts)
    yield sum(map(len, result.failure.inputs.values())) if result.failure is not None else 0
