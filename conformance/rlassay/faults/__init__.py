"""Known faults: wrong implementations of single operations, in torch.

They show that the suite bites (each check must kill one), and they give names to what a subject does wrong. One module
per topic, loaded when first asked for, so that importing rlassay does not import torch. Each is made of right building
blocks (`rlassay.faults.parts` and the first lines of each module) with one of them exchanged, so that it is wrong in
one thing. `rlassay.faults.generic` plants faults of a generic kind into any right implementation.
"""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from rlassay.check import Kind
from rlassay_spec.convention import LECTURE, Convention

TOPICS = (
    *("log_prob", "trajectory", "returns", "advantage", "loss", "loss_ratio", "kl"),
    *("number_search", "sorting", "bandit", "surrogate", "surrogate_terms", "shaping", "shaping_rewards", "sampling"),
)

Function = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """One wrong implementation of one operation.

    `id` names the kind of fault and may occur once in each operation, `title` completes "behaves like …", `source` is
    where it was seen. `code` takes a keyword `convention` where the operation depends on one. `convention` is not empty
    for a choice that is right where those fields are declared. `kind` is the kind of check that has to see the fault,
    `raises` tells that it does so by an exception where the contract allows none. The other faults are written without
    validation: only where `validates` says so is it a kill that a bad input is accepted.
    """

    id: str
    operation: str
    title: str
    source: str
    code: Function
    convention: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind = "conformance"
    raises: bool = False
    validates: bool = False

    @property
    def key(self) -> str:
        """`operation/id`, unique among all faults."""
        return f"{self.operation}/{self.id}"

    @property
    def function(self) -> Function:
        """The wrong implementation under the lecture convention."""
        return self.under(LECTURE)

    def under(self, declared: Convention) -> Function:
        """The wrong implementation of somebody who declares a convention and follows it but for the fault."""
        if "convention" not in inspect.signature(self.code).parameters:
            return self.code
        return partial(self.code, convention=replace(declared, **self.convention))

    def wrong_under(self, declared: Convention) -> bool:
        """Whether it is a fault under that convention: a choice that is declared is none."""
        return not self.convention or replace(declared, **self.convention) != declared


class Faults:
    """Collects the faults of one topic."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def add(
        self,
        identity: str,
        operation: str,
        title: str,
        source: str,
        code: Function,
        *,
        convention: Mapping[str, Any] | None = None,
        kind: Kind = "conformance",
        raises: bool = False,
        validates: bool = False,
    ) -> None:
        """Declare a function as a fault of an operation."""
        self.faults.append(Fault(identity, operation, title, source, code, convention or {}, kind, raises, validates))

    def fault(
        self, identity: str, operation: str, title: str, source: str, **options: Any
    ) -> Callable[[Function], Function]:
        """Declare the decorated function as a fault of an operation; options as of `add`."""

        def declare(function: Function) -> Function:
            self.add(identity, operation, title, source, function, **options)
            return function

        return declare


@cache
def all_faults() -> dict[str, Fault]:
    """Every known fault by key.

    Raises:
        ValueError: two faults have one key.
    """
    found: dict[str, Fault] = {}
    for topic in TOPICS:
        for fault in importlib.import_module(f"rlassay.faults.{topic}").FAULTS.faults:
            if fault.key in found:
                raise ValueError(f"two faults are called {fault.key}")
            found[fault.key] = fault
    return found


def unexpressed() -> tuple[dict[str, str], dict[str, list[str]]]:
    """Ids of public reports that are no fault of their own: with the key of the fault that they are one with, and by
    the reason why no operation can show them."""
    document = tomllib.loads(Path(__file__).with_name("unexpressed.toml").read_text(encoding="utf-8"))
    return document["same"], {reason: entry["ids"] for reason, entry in document["outside"].items()}


def faults_of(operation: str) -> list[Fault]:
    """The known faults of an operation."""
    return [fault for fault in all_faults().values() if fault.operation == operation]
