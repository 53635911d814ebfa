"""Subjects: what is judged. A subject answers calls of operations with observations made of plain numpy data.

Checks never touch the subject's tensors. They hand over `values.Tensor` arguments and read an `Observation`, so the
same check judges torch code in this process, code in another environment, or code that is not written in torch at
all.
"""

from __future__ import annotations

from typing import Protocol

from rlassay.guest.observation import Cotangent, Observation
from rlassay.guest.values import Arguments
from rlassay_spec.convention import Convention


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


class SubjectGone(Exception):
    """There is no answer, and the subject's process with it; says what it did instead.

    `late` tells that it was too slow and was ended, `last_words` what it wrote before.
    """

    def __init__(self, what: str, late: bool = False, last_words: str = "") -> None:
        super().__init__(what)
        self.late = late
        self.last_words = last_words
