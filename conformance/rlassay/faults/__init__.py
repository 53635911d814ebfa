"""Known faults: wrong implementations of single operations, in torch.

They show that the suite bites (each check must kill one), and they give names to what a subject does wrong. One module per topic, loaded
when first asked for, so that importing rlassay does not import torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

TOPICS = ("log_prob", "trajectory", "returns", "advantage", "loss", "kl", "number_search", "sorting", "bandit")


@dataclass(frozen=True)
class Fault:
    """One wrong implementation of one operation: what is wrong, and where it was seen."""

    id: str
    operation: str
    title: str
    source: str
    function: Callable[..., Any]


class Faults:
    """Collects the faults of one topic."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fault(
        self, identity: str, operation: str, title: str, source: str
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare the decorated function as a fault of an operation."""

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            self.faults.append(Fault(identity, operation, title, source, function))
            return function

        return declare


@cache
def all_faults() -> dict[str, Fault]:
    """Every known fault by id.

    Raises:
        ValueError: two faults have one id.
    """
    found: dict[str, Fault] = {}
    for topic in TOPICS:
        for fault in importlib.import_module(f"rlassay.faults.{topic}").FAULTS.faults:
            if fault.id in found:
                raise ValueError(f"two faults are called {fault.id}")
            found[fault.id] = fault
    return found


def faults_of(operation: str) -> list[Fault]:
    """The known faults of an operation."""
    return [fault for fault in all_faults().values() if fault.operation == operation]
