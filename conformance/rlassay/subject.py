"""Subjects: what is judged. A subject answers calls of operations with observations made of plain numpy data.

Checks never touch the subject's tensors. They hand over `values.Tensor` arguments and read an `Observation`, so the
same check judges torch code in this process, code in another environment, or code that is not written in torch at
all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from rlassay.values import Arguments
from rlassay_spec.convention import Convention

Cotangent: TypeAlias = np.ndarray | Mapping[str | int, np.ndarray]
"""What a result is differentiated against: an array, or one for each part, by key or place, that is differentiated."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What one call gave.

    `value` is a float64 (or bool, int64) array for tensors and numbers, else the Python value itself. `dtype` is the
    tensor's dtype name, or None for a Python value. `gradients` holds, for every live argument, the vector-Jacobian
    product with the cotangent, or None where no gradient arrives; if the call went `backward` itself, the gradient
    that it left behind. `connected` tells whether the result carries a graph. `parts` are the entries of a dictionary
    (by key) or of a tuple or list (by place), `parameters` those of every model among the arguments after the call. The
    parameters of a model, and gradients in them, are one row of numbers.
    """

    value: Any
    dtype: str | None = None
    connected: bool = False
    gradients: dict[str, np.ndarray | None] = field(default_factory=dict)
    side_effects: tuple[str, ...] = ()
    parts: Mapping[Any, Observation] = field(default_factory=dict)
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    backward: bool = False


class Subject(Protocol):
    """Something that provides operations."""

    name: str
    convention: Convention

    @property
    def operations(self) -> frozenset[str]:
        """Names of the operations it provides."""
        ...

    def call(
        self,
        operation: str,
        arguments: Arguments,
        *,
        live: tuple[str, ...] = (),
        cotangent: Cotangent | None = None,
        keywords: bool = False,
        audit: bool = False,
        times: int = 1,
    ) -> Observation:
        """Call an operation.

        `live` names the arguments that require a gradient, `cotangent` (ones if None) is what the result is
        differentiated against, `keywords` passes by name instead of by position, `audit` also reports side effects,
        `times` is how often it is called with the same objects; the last result counts.

        Raises:
            SubjectRaised: the subject raised, in the call or in its backward pass.
        """
        ...


class Reachable(Subject, Protocol):
    """A subject that other code can get hold of."""

    def code(self, operation: str) -> str:
        """Python lines after which `subject` has the operation; nothing where there are none."""
        ...


class SubjectRaised(Exception):
    """The subject raised an exception; keeps the names of its type and base types, its message and its traceback."""

    def __init__(
        self, kind: str, message: str, bases: tuple[str, ...] = (), traceback: str = "", during: str = "the call"
    ) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.message = message
        self.bases = bases
        self.traceback = traceback
        self.during = during


class TargetError(Exception):
    """The target cannot be judged at all; says what, why and what to do."""
