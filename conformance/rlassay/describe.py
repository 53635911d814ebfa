"""A check's outcome in words, as every report shows it: what was called, what came, what should have come, and why."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import Parameter

from rlassay.record import UNEXPLAINED, CheckResult, Explanation, Header
from rlassay_spec.claims import Claim, load_claims
from rlassay_spec.convention import CONVENTIONS, convention_from
from rlassay_spec.operations import CS336_OPERATIONS, OPERATIONS, Operation

KNOWN_OPERATIONS: Mapping[str, Operation] = CS336_OPERATIONS | OPERATIONS
"""The operations of every interface by name, in the order in which reports show them."""

CLIP = 400
"""Longer inputs and results than this are cut, unless all is asked for."""


def plain(text: str) -> str:
    """Text of a subject without control characters, which could steer a terminal: they are shown as escapes."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def law_of(result: CheckResult) -> str:
    """The part of a check's id that says what it asserts of its operation."""
    return result.id.partition("/")[2]


def facts(result: CheckResult, full: bool = False) -> list[tuple[str, str]]:
    """Label and text of everything that is known about a failure, besides its message."""
    failure = result.failure
    found: list[tuple[str, str]] = []
    if failure is not None:
        operation = KNOWN_OPERATIONS.get(result.operations[0])
        if result.outcome == "error" and operation is not None:
            found.append(("contract", signature_text(operation)))
        found.append(("call", failure.call))
        found += failure.inputs.items()
        found += [("expected", failure.expected), ("got", failure.got)]
    for claim in filter(None, map(known_claims().get, result.claims)):
        found += _claim_facts(claim)
    return [(label, _clipped(plain(text), full)) for label, text in found if text]


@cache
def known_claims() -> Mapping[str, Claim]:
    """The claims of the specification, read once."""
    return load_claims()


def _claim_facts(claim: Claim) -> list[tuple[str, str]]:
    text = claim.statement if claim.truth is None else f"{claim.truth} (the lecture's statement is {claim.verdict})"
    return [(f"claim {claim.id}", text), ("lecture", f"{claim.lecture}, {claim.source}")]


def _clipped(text: str, full: bool) -> str:
    return text if full or len(text) <= CLIP else f"{text[:CLIP]} …"


def signature_text(operation: Operation) -> str:
    """`name(parameter, parameter=default)`."""
    parameters = operation.signature.parameters.values()
    texts = (p.name if p.default is Parameter.empty else f"{p.name}={p.default!r}" for p in parameters)
    return f"{operation.name}({', '.join(texts)})"


def message(result: CheckResult) -> str:
    """What is wrong, in one sentence."""
    text = result.failure.message if result.failure is not None else ""
    return plain(text) or result.outcome


def failure_text(result: CheckResult, explanation: Explanation | None = None) -> str:
    """A failure as plain text: message, explanation, facts, code that repeats the call, the subject's traceback."""
    lines = [message(result)]
    if explanation is not None and names_something(explanation):
        lines.append(plain(explanation.text))
    lines += [f"{label}: {text}" for label, text in facts(result, full=True)]
    if result.failure is not None:
        lines += [f"\n{plain(text)}" for text in (result.failure.snippet, result.failure.traceback) if text]
    return "\n".join(lines)


def names_something(explanation: Explanation) -> bool:
    """Whether the search for an explanation found one."""
    return not explanation.text.startswith(UNEXPLAINED)


def convention_text(header: Header) -> str:
    """The convention's name, with what it declares where it is not a named one."""
    convention = convention_from(header.convention)
    if convention.name in CONVENTIONS:
        return convention.name
    fields = ", ".join(f"{name}={value!r}" for name, value in convention.declared().items())
    return f"{convention.name} ({fields})" if fields else "lecture"


def stale_text(result: CheckResult) -> str:
    """Why an entry of the known deviations has to go."""
    what = "it passes" if result.outcome == "pass" else f"its outcome is {result.outcome}"
    return f"{result.id} is listed as a known deviation, but {what}"


def many(count: int, noun: str) -> str:
    """`1 check`, `2 checks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
