"""Checks: what the suite asserts, and the trial in which one example of a check runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from rlassay.comparison import Mismatch, Shown, require_fine, require_gradient, require_value
from rlassay.draw import Draw
from rlassay.guest.observation import Cotangent, Observation
from rlassay.guest.values import Arguments, Tensor, unwrap
from rlassay.subject import Subject
from rlassay_spec.convention import Convention
from rlassay_spec.oracles import ORACLES, takes_convention
from rlassay_spec.oracles.expected import Expected

Kind = Literal["conformance", "robustness"]

PROFILES: Mapping[str, int] = {"quick": 4, "standard": 32, "thorough": 400}
"""Examples per check, by profile."""


@dataclass(frozen=True)
class Check:
    """One assertion about the operations of a subject.

    `id` is `operation/law` or `operation/claim` and never changes meaning. `operations` must all be provided, else
    the outcome is not-provided. `claims` are the ids it asserts. `examples` is how many examples a run draws:
    "profile" (as many as the profile says) or a fixed number, 1 for a check without random inputs.
    """

    id: str
    title: str
    operations: tuple[str, ...]
    function: Callable[[Trial], None]
    claims: tuple[str, ...] = ()
    kind: Kind = "conformance"
    examples: int | Literal["profile"] = "profile"

    @property
    def operation(self) -> str:
        """The operation that a failure is reported under."""
        return self.operations[0]

    @property
    def law(self) -> str:
        """The part of the id that says what is asserted of the operation: a claim, or a law that several share."""
        return self.id.partition("/")[2]

    @property
    def refuses(self) -> bool:
        """Whether it wants a bad input refused."""
        return self.law.startswith("refuses-")

    def examples_in(self, profile: str | int) -> int:
        """How many examples a run draws with this profile, or with this number of examples instead of one."""
        if self.examples != "profile":
            return self.examples
        return PROFILES[profile] if isinstance(profile, str) else profile


class NotDeclared(Exception):
    """The check asks about something that the declared convention leaves open; says what."""


def expected(operation: str, arguments: Arguments, convention: Convention) -> Expected:
    """The oracle's answer to a call."""
    oracle = ORACLES[operation]
    plain = unwrap(arguments)
    result: Expected = oracle(**plain, convention=convention) if takes_convention(operation) else oracle(**plain)
    return result


Oracle = Callable[[str, Arguments, Convention], Expected]


@dataclass
class Trial:
    """One example of a check: the subject, the convention it declares, the choices, and the last call with its options
    for the report."""

    subject: Subject
    draw: Draw
    operation: str = ""
    arguments: Arguments | None = None
    live: tuple[str, ...] = ()
    cotangent: Cotangent | None = None
    keywords: bool = False
    oracle: Oracle = expected

    @property
    def convention(self) -> Convention:
        """What the subject declares."""
        return self.subject.convention

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
        """Call the subject and remember the call.

        Raises:
            Mismatch: the answer is complex, or of a coarser dtype than all that it is made of.
        """
        self.operation, self.arguments = operation, arguments
        self.live, self.cotangent, self.keywords = live, cotangent, keywords
        observed = self.subject.call(
            operation, arguments, live=live, cotangent=cotangent, keywords=keywords, audit=audit, times=times
        )
        for answer in (observed, *observed.parts.values()):
            require_fine(operation, answer, arguments)
        return observed

    def expect(self, operation: str, arguments: Arguments) -> Expected:
        """What the oracle says under the subject's convention."""
        return self.oracle(operation, arguments, self.convention)

    def agree(
        self,
        operation: str,
        arguments: Arguments,
        want: Expected | None = None,
        *,
        gradient: bool = False,
        keywords: bool = False,
        dtypes: tuple[str, ...] | None = None,
    ) -> Observation:
        """Call the subject and require the oracle's value and, if asked for, its gradient in the first argument.

        The gradient is taken against a random cotangent, so that no sign or weight cancels.

        Raises:
            Mismatch: value, shape, dtype or gradient differ.
        """
        want = self.expect(operation, arguments) if want is None else want
        first = next(iter(arguments))
        cotangent = self.draw.rng.uniform(0.5, 1.5, size=want.value.shape) if gradient else None
        observed = self.call(
            operation, arguments, live=(first,) if gradient else (), cotangent=cotangent, keywords=keywords
        )
        require_value(operation, observed, want, dtypes)
        if gradient and want.pullback is not None and cotangent is not None:
            dtype = arguments[first].dtype
            weights = Tensor(cotangent, observed.dtype or dtype).array
            require_gradient(operation, first, observed, want.pullback(weights), want.terms, dtype)
        return observed


def require(condition: bool, message: str, got: Shown = "", expected: Shown = "") -> None:
    """Raise `Mismatch` with the message unless the condition holds."""
    if not condition:
        raise Mismatch(message, got, expected)
