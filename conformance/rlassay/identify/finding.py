"""What is found about an operation, field by field, as it travels from the worker and into the report."""

from __future__ import annotations

from typing import Literal

import msgspec

Value = str | int | float | None

State = Literal["determined", "interval", "undetermined"]


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One field of the convention.

    `low` and `high` bound a number, as far as rounding lets it be known; a number of None lies beyond `low`. `allowed`
    are the names that the observations do not tell apart, where it is undetermined. `separating` is how many of the
    operation's observations contradict another value of the field, everything else being equal.
    """

    field: str
    state: State
    value: Value = None
    low: float | None = None
    high: float | None = None
    allowed: list[Value] = []
    separating: int = 0
    note: str = ""


class Contradiction(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The smallest call whose answer the closest convention forbids."""

    message: str
    call: str
    inputs: dict[str, str]
    got: str = ""
    expected: str = ""


class Identification(msgspec.Struct, tag="identification", tag_field="type", kw_only=True, omit_defaults=True):
    """What an operation follows.

    `verdict`: a convention `fits` all observations, `none` does, or there was `no answer` (it hung or crashed).
    `agreeing` of `observations` agree with the convention, or with the closest one where none fits; `closest` then
    holds what that one declares.
    """

    operation: str
    verdict: Literal["fits", "none", "no answer"]
    findings: list[Finding] = []
    observations: int = 0
    agreeing: int = 0
    notes: list[str] = []
    closest: dict[str, Value] = {}
    contradiction: Contradiction | None = None

    @property
    def by_field(self) -> dict[str, Finding]:
        """The findings by field."""
        return {finding.field: finding for finding in self.findings}
