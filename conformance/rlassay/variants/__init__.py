"""Correct variants: right implementations in as many styles as people write. No conformance check may flag one.

One module per topic. `seen` is the entry of the list of legitimate choices that a variant stands for, where there is
one. They are as careless as such code is (no validation, masks multiplied, no thought of NaN); what robustness checks
may find in one is on record as its `lapses`.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from rlassay.torch_subject import TorchSubject
from rlassay_spec.convention import LECTURE, Convention, convention_from

TOPICS = (
    "log_prob",
    "trajectory",
    "returns",
    "advantage",
    "loss",
    "ratio",
    "kl",
    "small",
    "surrogate",
    "shaping",
    "sampling",
)

Function = Callable[..., Any]

UNVALIDATED = "written without validation"
MULTIPLIED = "masks by multiplication: 0·NaN is NaN"
ROUNDED = "its mean rounds: equal rewards leave 1e-9"
EMPTY = "divides by a count that may be 0"
BANNED = "0·∞ in the backward pass beside a banned token"
CANCELLING = "cancels where both policies agree"
EXTREME = "overflows or underflows at logits of ±1e4"
NUMPY = "numpy inside, which has no bfloat16"
EXACT = "Python's exact numbers, which know no NaN"
GRAPHED = "leaves a graph on what is to be a constant"

EPSILON = "an ε of 1e-8 that it does not declare"

LAPSES: Mapping[str, tuple[str, ...]] = {
    UNVALIDATED: ("refuses-",),
    MULTIPLIED: ("masked-nonfinite", "B6.6-nonfinite", "outside-nonfinite"),
    ROUNDED: ("inexact-no-contrast", "B10.6-float32"),
    EMPTY: ("all-masked",),
    BANNED: ("banned-tokens-gradient",),
    CANCELLING: ("never-negative", "P7.2-float32"),
    EPSILON: ("small-contrast",),
    EXTREME: ("extreme-logits",),
    NUMPY: ("bfloat16",),
    GRAPHED: ("no-gradient",),
    EXACT: ("nan-in-another-group",),
}
"""What variants are careless about, and the laws of robustness that may see it. All are written without validation."""


@dataclass(frozen=True)
class Variant:
    """One way to write some operations, and the convention that it declares."""

    id: str
    title: str
    functions: Mapping[str, Function]
    convention: Convention
    seen: str = ""
    lapses: tuple[str, ...] = ()

    def excuse(self, law: str) -> str:
        """Why a law of robustness may find something in it; nothing where it may not."""
        lapses = (lapse for lapse in (UNVALIDATED, *self.lapses) if law.startswith(LAPSES[lapse]))
        return next(lapses, "")

    def beside(self, reference: Mapping[str, Function]) -> TorchSubject:
        """The variant; under the lecture convention beside a reference, for the checks of several operations."""
        others = reference if self.convention == replace(LECTURE, name="declared") else {}
        return TorchSubject({**others, **self.functions}, self.id, self.convention)


class Variants:
    """Collects the variants of one topic."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []

    def add(
        self,
        identity: str,
        title: str,
        functions: Mapping[str, Function],
        seen: str = "",
        lapses: Sequence[str] = (),
        **declared: Any,
    ) -> None:
        """Declare functions as a variant."""
        convention = convention_from(declared)
        self.variants.append(Variant(identity, title, functions, convention, seen, tuple(lapses)))

    def variant(
        self, operation: str, title: str, seen: str = "", lapses: Sequence[str] = (), **declared: Any
    ) -> Callable[[Function], Function]:
        """Declare the decorated function as a variant of an operation; its name is part of the id."""

        def declare(function: Function) -> Function:
            identity = f"{operation}-{function.__name__.strip('_')}"
            self.add(identity, title, {operation: function}, seen, lapses, **declared)
            return function

        return declare


def unexpressed() -> dict[str, list[str]]:
    """Ids of legitimate choices that no variant stands for, by the reason."""
    document = tomllib.loads(Path(__file__).with_name("unexpressed.toml").read_text(encoding="utf-8"))
    return {reason: entry["ids"] for reason, entry in document.items()}


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
