"""A subject in another process: what it answers is taken from its guest, and believed only as a value to be judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlassay.guest.errors import SubjectRaised
from rlassay.guest.objects import LanguageModel
from rlassay.guest.observation import Cotangent, Observation
from rlassay.guest.packing import MOST_NAME, NAMED_DTYPES
from rlassay.guest.submission import MOST_TEXT
from rlassay.guest.values import UNIT, Arguments
from rlassay.isolation.session import Session
from rlassay.subject import SubjectGone
from rlassay_spec.convention import Convention

NO_MEMORY = "DefaultCPUAllocator: can't allocate memory"
"""What torch says instead of a MemoryError."""

KNOWN_DTYPES = frozenset({*NAMED_DTYPES, *UNIT})
"""Dtypes that checks can reckon with."""


class RemoteSubject:
    """The operations that a session's submission provides, under a convention (see `Subject`)."""

    def __init__(self, session: Session, name: str, convention: Convention) -> None:
        self.session = session
        self.name = name
        self.convention = convention

    @property
    def operations(self) -> frozenset[str]:
        """Names of the operations it provides."""
        return frozenset(self.session.loaded.operations)

    def code(self, operation: str) -> str:
        """Python lines after which `subject` has the operation."""
        importable = all(part.isidentifier() for part in self.name.split("."))
        return f"import {self.name} as subject" if importable else ""

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
        """Call an operation (see `Subject.call`).

        Raises:
            SubjectRaised: it raised.
            SubjectGone: its process hangs, has ended, or had to be ended: it has no memory left, or sent no answer.
        """
        answer = self.session.call(
            {
                "operation": operation,
                "arguments": arguments,
                "live": live,
                "cotangent": cotangent,
                "keywords": keywords,
                "audit": audit,
                "times": times,
            }
        )
        raised = answer.get("raised")
        if isinstance(raised, SubjectRaised):
            if "MemoryError" in raised.bases or NO_MEMORY in raised.message:
                self.session.close()
                raise SubjectGone("used up the memory that it may take")
            raise _clipped(raised)
        observation = answer.get("observation")
        if not isinstance(observation, Observation) or not _fits(observation, arguments, live):
            self.session.close()
            raise SubjectGone("was ended: it sent no observation")
        return observation


def _fits(observation: Observation, arguments: Arguments, live: tuple[str, ...]) -> bool:
    """Whether an observation is one of such a call, in what checks take for granted: what a forged one breaks would be
    taken for an error of the harness."""
    models = {name for name, value in arguments.items() if isinstance(value, LanguageModel)}
    return (
        observation.gradients.keys() == set(live)
        and observation.parameters.keys() == models
        and all(_is_like(arguments[name], found) for name, found in observation.gradients.items())
        and all(_is_like(arguments[name], found) for name, found in observation.parameters.items())
        and all(part.dtype is None or part.dtype in KNOWN_DTYPES for part in (observation, *observation.parts.values()))
    )


def _is_like(argument: Any, found: np.ndarray | None) -> bool:
    """Whether numbers are those of an argument, or of a gradient in it."""
    model = isinstance(argument, LanguageModel)
    shape = (argument.embedding.size + argument.head.size,) if model else argument.array.shape
    return found is None or (found.shape == shape and found.dtype == np.float64)


def _clipped(raised: SubjectRaised) -> SubjectRaised:
    texts = (raised.message[-MOST_TEXT:], raised.bases, raised.traceback[-MOST_TEXT:])
    return SubjectRaised(raised.kind[:MOST_NAME], *texts, raised.during[:MOST_NAME])
