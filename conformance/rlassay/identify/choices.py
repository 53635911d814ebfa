"""The choices that a convention makes, in groups that are found together: what can be chosen, and what shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlassay_spec.convention import ALLOWED, Convention

Change = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Option:
    """One choice among names; `number` is the field that then has a value of its own, from `least` to `most`.

    A number of inf stands for None.
    """

    change: Change
    number: str = ""
    least: float = 0.0
    most: float = math.inf

    def at(self, convention: Convention, number: float) -> Convention:
        """The convention with this choice."""
        numbers = {self.number: None if math.isinf(number) else number} if self.number else {}
        return replace(convention, **{**self.change, **numbers})


@dataclass(frozen=True, eq=False)
class Group:
    """Choices that are found together.

    `changes` are far from each other, so that a call that depends on the group at all differs under one of them.
    """

    fields: tuple[str, ...]
    options: tuple[Option, ...]
    changes: tuple[Change, ...]

    def variants(self, convention: Convention) -> list[Convention]:
        """The convention under each of the changes."""
        return [replace(convention, **change) for change in self.changes]


SMALL_CLAMP = 0.1
"""Bounds below this are not looked for."""

AVERAGE = Group(
    ("aggregation", "aggregation_constant"),
    (
        *(
            Option({"aggregation": mode, "aggregation_constant": None})
            for mode in ALLOWED["aggregation"]
            if mode != "constant"
        ),
        Option({"aggregation": "constant"}, "aggregation_constant", 1e-9, 1e15),
    ),
    (
        *({"aggregation": mode, "aggregation_constant": None} for mode in ("sequence_mean", "token_mean")),
        {"aggregation": "constant", "aggregation_constant": 1e3},
    ),
)

ROWS = Group(
    ("empty_rows", "empty_mean"),
    tuple(
        Option({"empty_rows": rows, "empty_mean": mean})
        for mean in ALLOWED["empty_mean"]
        for rows in ALLOWED["empty_rows"]
    ),
    ({"empty_rows": "dropped"}, {"empty_mean": "free"}),
)

DEVIATION = Group(
    ("std_ddof", "std_eps", "std_eps_place"),
    tuple(
        Option({"std_ddof": ddof, "std_eps_place": place}, "std_eps", 0.0, 1e4)
        for place in ALLOWED["std_eps_place"]
        for ddof in ALLOWED["std_ddof"]
    ),
    (
        {"std_ddof": 1},
        *({"std_eps": epsilon, "std_eps_place": place} for place in ALLOWED["std_eps_place"] for epsilon in (1.0, 1e3)),
    ),
)

SINGLETONS = Group(
    ("singleton_group",),
    tuple(Option({"singleton_group": name}) for name in ALLOWED["singleton_group"]),
    ({"singleton_group": "reward"}, {"singleton_group": "error"}),
)

K3 = Group(("k3_clamp",), (Option({}, "k3_clamp", 1e-3),), ({"k3_clamp": SMALL_CLAMP},))

RATIO = Group(("log_ratio_clamp",), (Option({}, "log_ratio_clamp", 1e-3),), ({"log_ratio_clamp": SMALL_CLAMP},))

GROUPS = (AVERAGE, DEVIATION, SINGLETONS, K3, RATIO, ROWS)
"""In the order in which they are found: each by calls that the later ones have no influence on."""


def alternatives(field: str, convention: Convention) -> list[Convention]:
    """Conventions that differ from this one in one field alone."""
    value = getattr(convention, field)
    if field in ALLOWED:
        others: list[Change] = [{field: other} for other in ALLOWED[field] if other != value]
        if field == "aggregation":
            others = [{**other, "aggregation_constant": convention.aggregation_constant or 1e3} for other in others]
    elif not value:
        others = [{field: other} for other in ((1e-8, 1e-4) if field == "std_eps" else (1.0, 10.0))]
    else:
        others = [{field: 1.01 * value}, {field: value / 1.01}]
    return [replace(convention, **other) for other in others]
