"""Wrong versions of single functions of the assignment, each with the check that has to see it and what that says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Wrong:
    """One wrong function: the operation, the law that fails, a part of the message, the function."""

    operation: str
    law: str
    says: str
    function: Function

    @property
    def name(self) -> str:
        """For test ids."""
        return self.function.__name__


WRONG: list[Wrong] = []


def wrong(operation: str, law: str, says: str) -> Callable[[Function], Function]:
    """Declare the function below as a wrong version of an operation."""

    def declare(function: Function) -> Function:
        WRONG.append(Wrong(operation, law, says, function))
        return function

    return declare
