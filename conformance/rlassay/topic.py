"""Topics: a module of the suite collects its domains and checks in one `Topic`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from rlassay.check import Check, Kind, Trial
from rlassay.laws import Domain, laws
from rlassay.refusals import standard

Function = Callable[[Trial], None]


class Topic:
    """The checks of one topic, in the order in which they are declared."""

    def __init__(self, *domains: Domain) -> None:
        complete = [replace(domain, refusals={**standard(domain), **domain.refusals}) for domain in domains]
        self.domains = {domain.operation: domain for domain in complete}
        self.checks: list[Check] = [check for domain in complete for check in laws(domain)]

    def check(
        self,
        *operations: str,
        law: str,
        title: str,
        claims: tuple[str, ...] = (),
        kind: Kind = "conformance",
        examples: int | Literal["profile"] = "profile",
    ) -> Callable[[Function], Function]:
        """Declare a check of the first of `operations` under the id `operation/law`."""

        def declare(function: Function) -> Function:
            identity = f"{operations[0]}/{law}"
            self.checks.append(Check(identity, title, operations, function, claims, kind, examples))
            return function

        return declare

    def claim(
        self,
        claim: str,
        *operations: str,
        title: str,
        kind: Kind = "conformance",
        examples: int | Literal["profile"] = 1,
    ) -> Callable[[Function], Function]:
        """Declare the check of one claim; its id ends in the claim's."""
        return self.check(*operations, law=claim, title=title, claims=(claim,), kind=kind, examples=examples)
