"""Correct variants: right implementations in as many styles as people write. No conformance check may flag one.

One module per topic. `seen` is the entry of the list of legitimate choices that a variant stands for, where there is
one. They are as careless as such code is (no validation, masks multiplied, no thought of NaN), which robustness checks
may find.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rlassay.torch_subject import TorchSubject
from rlassay_spec.convention import LECTURE, Convention, convention_from

TOPICS = ("log_prob", "trajectory", "returns", "advantage", "loss", "ratio", "kl", "small")

Function = Callable[..., Any]


@dataclass(frozen=True)
class Variant:
    """One way to write some operations, and the convention that it declares."""

    id: str
    title: str
    functions: Mapping[str, Function]
    convention: Convention
    seen: str = ""

    def beside(self, reference: Mapping[str, Function]) -> TorchSubject:
        """The variant; under the lecture convention beside a reference, for the checks of several operations."""
        others = reference if self.convention == replace(LECTURE, name="declared") else {}
        return TorchSubject({**others, **self.functions}, self.id, self.convention)


class Variants:
    """Collects the variants of one topic."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []

    def add(
        self, identity: str, title: str, functions: Mapping[str, Function], seen: str = "", **declared: Any
    ) -> None:
        """Declare functions as a variant."""
        self.variants.append(Variant(identity, title, functions, convention_from(declared), seen))

    def variant(self, operation: str, title: str, seen: str = "", **declared: Any) -> Callable[[Function], Function]:
        """Declare the decorated function as a variant of an operation; its name is part of the id."""

        def declare(function: Function) -> Function:
            self.add(f"{operation}-{function.__name__.strip('_')}", title, {operation: function}, seen, **declared)
            return function

        return declare


@cache
def all_variants() -> dict[str, Variant]:
    """Every variant by id.

    Raises:
        ValueError: two variants have one id.
    """
    found: dict[str, Variant] = {}
    for topic in TOPICS:
        for variant in importlib.import_module(f"{__name__}.{topic}").VARIANTS.variants:
            if variant.id in found:
                raise ValueError(f"two variants are called {variant.id}")
            found[variant.id] = variant
    return found
