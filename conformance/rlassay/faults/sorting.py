"""Known faults of the two rewards of the sorting task."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from rlassay.faults import Faults, Function

FAULTS = Faults()


def _position(identity: str, title: str, source: str, points: Function) -> None:
    def reward(prompt: Any, response: Any) -> float:
        return float(points([int(n) for n in prompt], [int(n) for n in response]))

    FAULTS.add(identity, "position_reward", title, source, reward)


def matches(left: list[int], right: list[int]) -> int:
    """Places where both agree."""
    return sum(a == b for a, b in zip(left, right, strict=True))


_position("SOR-01", "matches with the prompt as it stands", "claim P8.1", matches)
_position("SOR-02", "matches with the prompt in falling order", "claim P8.1", lambda p, r: matches(sorted(p)[::-1], r))
_position("SOR-03", "1 for a sorted response, else 0", "claim P8.3", lambda p, r: sorted(p) == r)
_position("SOR-04", "the share of the places that match", "claim P8.1", lambda p, r: matches(sorted(p), r) / len(p))
_position("SOR-05", "matches with the sorted response", "claim P8.1", lambda p, r: matches(sorted(r), r))
_position("SOR-06", "matches of both when sorted", "claim P8.1", lambda p, r: matches(sorted(p), sorted(r)))
_position(
    "SOR-07",
    "matches up to the first miss",
    "claim P8.1",
    lambda p, r: next((i for i, (a, b) in enumerate(zip(sorted(p), r, strict=True)) if a != b), len(p)),
)
_position("SOR-08", "matches without the last place", "textbook", lambda p, r: matches(sorted(p)[:-1], r[:-1]))


def in_order(response: list[int]) -> int:
    """Adjacent pairs that do not fall."""
    return sum(a <= b for a, b in pairwise(response))


def included(prompt: list[int], response: list[int]) -> int:
    """Numbers of the prompt that are in the response."""
    return sum(n in response for n in prompt)


def _inclusion(identity: str, title: str, source: str, points: Function) -> None:
    def reward(prompt: Any, response: Any) -> float:
        return float(points([int(n) for n in prompt], [int(n) for n in response]))

    FAULTS.add(identity, "inclusion_order_reward", title, source, reward)


_inclusion(
    "SOR-09", "numbers of the response that are in the prompt", "claim P8.2", lambda p, r: included(r, p) + in_order(r)
)
_inclusion("SOR-10", "different numbers counted once", "claim P8.4", lambda p, r: len(set(p) & set(r)) + in_order(r))
_inclusion(
    "SOR-11", "pairs that rise strictly", "claim P8.2", lambda p, r: included(p, r) + sum(a < b for a, b in pairwise(r))
)
_inclusion("SOR-12", "no points for order", "claim P8.2", included)
_inclusion("SOR-13", "no points for inclusion", "claim P8.2", lambda p, r: in_order(r))
_inclusion("SOR-14", "one point for a response in order", "claim P8.2", lambda p, r: included(p, r) + (r == sorted(r)))
_inclusion("SOR-15", "pairs that fall", "claim P8.2", lambda p, r: included(p, r) + sum(a >= b for a, b in pairwise(r)))
_inclusion(
    "SOR-16",
    "numbers included as often as asked",
    "claim P8.4",
    lambda p, r: sum(min(p.count(n), r.count(n)) for n in set(p)) + in_order(r),
)
_inclusion("SOR-17", "the position reward", "claim P8.3", lambda p, r: matches(sorted(p), r))
_inclusion("SOR-18", "order of the prompt, not of the response", "textbook", lambda p, r: included(p, r) + in_order(p))
