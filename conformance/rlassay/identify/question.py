"""Questions to a subject: one call, what it gave, and what it may have given under a convention."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rlassay.check import expected
from rlassay.comparison import Mismatch, kink_margin, require_gradient, require_value, tolerance
from rlassay.guest.errors import SubjectRaised
from rlassay.guest.observation import Observation
from rlassay.guest.values import Arguments, Tensor
from rlassay.subject import Subject
from rlassay_spec.convention import Convention
from rlassay_spec.oracles.expected import Expected


class Bounds(NamedTuple):
    """Between what the numbers of a right answer lie, rounding included; −inf and inf where anything may stand."""

    low: np.ndarray
    high: np.ndarray

    @property
    def centre(self) -> np.ndarray:
        """The exact numbers; NaN where anything may stand."""
        with np.errstate(invalid="ignore"):
            return np.asarray((self.low + self.high) / 2)


@dataclass(frozen=True, eq=False)
class Question:
    """One call. `live` are the arguments that carry a graph, the first of them the one that is differentiated, `weight`
    what the result is differentiated against (ones if None)."""

    operation: str
    arguments: Arguments
    live: tuple[str, ...] = ()
    weight: np.ndarray | None = None
    known: dict[Convention, Bounds | None] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """How many numbers are passed."""
        return sum(value.array.size for value in self.arguments.values() if isinstance(value, Tensor))

    @property
    def dtype(self) -> str:
        """The dtype of the first tensor."""
        return next(value.dtype for value in self.arguments.values() if isinstance(value, Tensor))

    def bounds(self, convention: Convention) -> Bounds | None:
        """Bounds of the value and of the gradient in the first live argument, in one row; None where the convention
        refuses the call."""
        if convention not in self.known:
            self.known[convention] = self._bounds(convention)
        return self.known[convention]

    def _bounds(self, convention: Convention) -> Bounds | None:
        try:
            want = expected(self.operation, self.arguments, convention)
        except ValueError:
            return None
        parts = [_around(want.value, tolerance(want.scale, want.terms, None), np.isnan(want.value))]
        if self.live and want.pullback is not None:
            gradient = want.pullback(self.cotangent(want))
            free = np.isnan(gradient.value) | (gradient.kink <= kink_margin(self.dtype))
            parts.append(_around(gradient.value, tolerance(gradient.scale, want.terms, self.dtype), free))
        return Bounds(*(np.concatenate(side) for side in zip(*parts, strict=True)))

    def cotangent(self, want: Expected) -> np.ndarray:
        """What the result is differentiated against, as its dtype holds it."""
        weight = np.ones(want.value.shape) if self.weight is None else self.weight
        return Tensor(weight, self.dtype).array

    def differs(self, one: Convention, other: Convention) -> bool:
        """Whether two conventions give different answers, by more than rounding can hide."""
        a, b = self.bounds(one), self.bounds(other)
        if a is None or b is None:
            return a is not b
        apart = (a.high < b.low) | (b.high < a.low) | (np.isinf(a.low) != np.isinf(b.low))
        return bool(apart.any())

    def depends(self, one: Convention, other: Convention) -> bool:
        """Whether two conventions give different answers at all."""
        a, b = self.bounds(one), self.bounds(other)
        if a is None or b is None:
            return a is not b
        return not (np.array_equal(a.low, b.low) and np.array_equal(a.high, b.high))


def _around(centre: np.ndarray, reach: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centre = centre.astype(np.float64)
    with np.errstate(invalid="ignore"):
        low, high = np.where(free, -np.inf, centre - reach), np.where(free, np.inf, centre + reach)
    return low.ravel(), high.ravel()


@dataclass(frozen=True, eq=False)
class Probe:
    """A question and its answer. `seen` holds the numbers of the answer in the order of `Question.bounds`, None where
    there are none to compare; `leaks` names constants that a gradient flows into."""

    question: Question
    observed: Observation | SubjectRaised
    seen: np.ndarray | None
    leaks: tuple[str, ...] = ()

    @property
    def raised(self) -> bool:
        """Whether the subject raised."""
        return isinstance(self.observed, SubjectRaised)

    @property
    def refused(self) -> bool:
        """Whether it raised a ValueError."""
        return isinstance(self.observed, SubjectRaised) and "ValueError" in self.observed.bases

    def fits(self, conventions: Iterable[Convention]) -> bool:
        """Whether the answer lies between the bounds of some conventions, taken together."""
        bounds = [self.question.bounds(convention) for convention in conventions]
        if any(one is None for one in bounds):
            return self.refused
        if self.seen is None:
            return False
        low = np.min([one.low for one in bounds if one is not None], axis=0)
        high = np.max([one.high for one in bounds if one is not None], axis=0)
        return self.seen.shape == low.shape and bool((within(self.seen, low, high)).all())

    def complaint(self, convention: Convention) -> Mismatch:
        """How the answer contradicts a convention."""
        operation, first = self.question.operation, self.question.live[:1]
        if isinstance(self.observed, SubjectRaised):
            return Mismatch(f"{operation} raised {self.observed}")
        try:
            want = expected(operation, self.question.arguments, convention)
            require_value(operation, self.observed, want)
            if first and want.pullback is not None:
                gradient = want.pullback(self.question.cotangent(want))
                require_gradient(operation, first[0], self.observed, gradient, want.terms, self.question.dtype)
        except Mismatch as mismatch:
            return mismatch
        except ValueError:
            return Mismatch(f"{operation} accepted the input, but should raise a ValueError")
        return Mismatch(f"{operation} answers otherwise")


def within(seen: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which numbers lie between their bounds; any does where there is none, NaN too."""
    with np.errstate(invalid="ignore"):
        return np.asarray(((low <= seen) & (seen <= high)) | (np.isinf(low) & np.isinf(high)))


def ask(subject: Subject, question: Question) -> Probe:
    """Put a question to a subject."""
    try:
        observed = subject.call(question.operation, question.arguments, live=question.live, cotangent=question.weight)
    except SubjectRaised as raised:
        return Probe(question, raised, None)
    if not isinstance(observed.value, np.ndarray) or observed.value.dtype.kind not in "fiub":
        return Probe(question, observed, None)
    parts = [observed.value]
    for name in question.live[:1]:
        gradient = observed.gradients.get(name)
        parts.append(np.zeros(question.arguments[name].array.shape) if gradient is None else gradient)
    seen = np.concatenate([part.astype(np.float64).ravel() for part in parts])
    leaks = tuple(name for name in question.live[1:] if _flows(observed, name))
    return Probe(question, observed, seen, leaks)


def _flows(observed: Observation, name: str) -> bool:
    gradient = observed.gradients.get(name)
    return gradient is not None and bool(gradient.any())
