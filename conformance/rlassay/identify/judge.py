"""From the choices that are left to findings: what is said of each field, and what contradicts the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlassay.identify.choices import DEVIATION, Group, alternatives
from rlassay.identify.finding import Contradiction, Finding, State
from rlassay.identify.question import Probe
from rlassay.identify.solve import Fit
from rlassay.snippet import call_text, inputs_text
from rlassay_spec.convention import Convention

THREE_DIGITS = 1e-3
"""Relative width of an interval that leaves three significant digits of a number."""

NOTHING = 1e-12
"""An ε that lies below this is 0."""

WIDEST = 10.0
"""Largest ratio of an interval's ends with which it still says something."""


def findings_of(group: Group, fits: Sequence[Fit], known: Convention, probes: Sequence[Probe]) -> list[Finding]:
    """What the choices that are left say of each field of a group."""
    found = []
    for field in group.fields:
        numbers = [fit for fit in fits if fit.option.number == field]
        if numbers:
            finding = _number(field, numbers)
        elif field in fits[0].option.change:
            finding = _name(field, fits)
        else:
            continue
        if field == "aggregation_constant" and known.aggregation != "constant":
            continue
        if finding.state != "undetermined":
            finding.separating = separating(field, known, probes)
        if finding.separating or finding.state == "undetermined":
            found.append(finding)
    return found


def _name(field: str, fits: Sequence[Fit]) -> Finding:
    values = list(dict.fromkeys(fit.option.change[field] for fit in fits))
    if len(values) == 1:
        return Finding(field=field, state="determined", value=values[0])
    note = "no difference where ε is 0" if field in DEVIATION.fields and not any(fit.low for fit in fits) else ""
    return Finding(field=field, state="undetermined", allowed=values, note=note)


def _number(field: str, fits: Sequence[Fit]) -> Finding:
    low, high, value = min(fit.low for fit in fits), max(fit.high for fit in fits), fits[0].value
    if math.isinf(value):
        return Finding(field=field, state="determined", value=None, low=low)
    note = (
        "less than one token: a factor rather than a constant" if field == "aggregation_constant" and high < 1 else ""
    )
    state = _state(low, high) if len(fits) == 1 or low == 0 else "undetermined"
    return Finding(
        field=field, state=state, value=None if state == "undetermined" else value, low=low, high=high, note=note
    )


def _state(low: float, high: float) -> State:
    if high - low <= THREE_DIGITS * low or (low == 0 and high <= NOTHING):
        return "determined"
    return "interval" if (low == 0 and high < 1) or high <= WIDEST * low else "undetermined"


def separating(field: str, known: Convention, probes: Sequence[Probe]) -> int:
    """How many probes, all of which agree with what is known, tell it from another value of a field."""
    others = alternatives(field, known)
    return sum(any(probe.question.differs(known, other) for other in others) for probe in probes)


def contradiction_of(misses: Sequence[Probe], closest: Convention) -> Contradiction | None:
    """The smallest call that contradicts a convention."""
    if not misses:
        return None
    smallest = min(misses, key=lambda probe: probe.question.size)
    complaint = smallest.complaint(closest)
    arguments = smallest.question.arguments
    return Contradiction(
        message=str(complaint),
        call=call_text(smallest.question.operation, arguments),
        inputs=inputs_text(arguments),
        got=complaint.got,
        expected=complaint.expected,
    )
