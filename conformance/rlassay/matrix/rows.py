"""Rows of the matrix: what every check does to one known fault or one correct variant."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import msgspec

from rlassay.check import Check, Kind, NotDeclared
from rlassay.comparison import Mismatch
from rlassay.engine import examples, not_provided, run_check
from rlassay.faults import Fault, Function, all_faults
from rlassay.faults.generic import generic_faults
from rlassay.guest.errors import SubjectRaised
from rlassay.matrix.fingerprint import fingerprint
from rlassay.matrix.memory import Memory
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject
from rlassay.variants import all_variants

TRIED = 4
"""So many of the checks that kill a fault are asked for the smallest input on which it shows."""

DESCRIBED = re.compile("tensor of shape")
"""What stands for the numbers of an input that has too many of them."""

Form = Literal["reference", "fault", "generic", "variant"]


class Example(msgspec.Struct, kw_only=True):
    """The smallest input found on which a fault shows: the check that found it, the call, and both answers."""

    check: str
    call: str
    inputs: dict[str, str]
    message: str
    right: str
    faulty: str


class Row(msgspec.Struct, tag="row", tag_field="type", kw_only=True, omit_defaults=True):
    """One subject's line of the matrix.

    `kills` counts, by check, the examples in which the subject did not do what the contract says. `errors` holds, by
    check, what else went wrong: an exception where the fault is not that it raises, or a failure of the harness.
    Neither is a kill. `examples` is how many examples ran in all, `example` the smallest input on which a known fault
    shows.
    """

    subject: str
    form: Form
    fingerprint: str
    kills: dict[str, int] = {}
    errors: dict[str, str] = {}
    examples: int = 0
    seconds: float = 0.0
    example: Example | None = None


ORACLE = Memory()


@dataclass(frozen=True)
class Entry:
    """A subject of the matrix: what it is, and how it is made.

    `operations` are those in which it differs from the reference, `kind` is the kind of check that has to see a fault,
    `raises` tells that a fault consists in raising, `validates` that its code refuses bad input, `declares`
    is the convention under which it is right, `excuse` says why a law of robustness may find something in a variant.
    """

    key: str
    form: Form
    title: str
    source: str
    operations: tuple[str, ...]
    make: Callable[[], TorchSubject]
    fingerprint: str
    kind: Kind = "conformance"
    raises: bool = False
    validates: bool = False
    declares: str = ""
    excuse: Callable[[str], str] = field(default=lambda law: "", repr=False)

    @property
    def wrong(self) -> bool:
        """Whether the suite has to find something."""
        return self.form in ("fault", "generic")


def entries(reference: Mapping[str, Function], identity: str) -> dict[str, Entry]:
    """Every subject of the matrix by key: the reference, the known faults, generic faults planted into the reference,
    the variants. `identity` is a hash of the reference.
    """
    plain = partial(TorchSubject, reference, "reference")
    found = [Entry("reference", "reference", "the reference", "", tuple(reference), plain, identity)]
    found += [
        _faulty(fault, "fault", reference, fingerprint(fault.code, fault.convention)) for fault in _known(reference)
    ]
    for operation, right in reference.items():
        found += [
            _faulty(fault, "generic", reference, fingerprint(fault.code)) for fault in generic_faults(operation, right)
        ]
    for variant in all_variants().values():
        mark = fingerprint(variant.functions, variant.convention)
        make = partial(variant.beside, reference)
        about = (variant.title, variant.seen, tuple(variant.functions))
        found.append(Entry(variant.id, "variant", *about, make, mark, excuse=variant.excuse))
    return {entry.key: entry for entry in found}


def _known(reference: Mapping[str, Function]) -> Iterator[Fault]:
    return (fault for fault in all_faults().values() if fault.operation in reference)


def _faulty(fault: Fault, form: Form, reference: Mapping[str, Function], mark: str) -> Entry:
    def make() -> TorchSubject:
        return TorchSubject({**reference, fault.operation: fault.function}, fault.key)

    about = (fault.title, fault.source, (fault.operation,))
    declared = ", ".join(f"{name}={value!r}" for name, value in fault.convention.items())
    return Entry(fault.key, form, *about, make, mark, fault.kind, fault.raises, fault.validates, declared)


def assess(entry: Entry, profile: str, seed: int) -> Row:
    """Run every check that is about an operation of the entry, all its examples, and count."""
    started = time.perf_counter()
    subject = entry.make()
    row = Row(subject=entry.key, form=entry.form, fingerprint=entry.fingerprint)
    for check in checks_of(entry):
        if not_provided(check, subject.operations) is None:
            _count(row, check, subject, entry.raises, profile, seed)
    if entry.form == "fault":
        row.example = _smallest(row, entry, profile, seed)
    row.seconds = round(time.perf_counter() - started, 3)
    return row


def checks_of(entry: Entry) -> list[Check]:
    """The checks that are about an operation in which the entry differs from the reference."""
    return [check for check in all_checks().values() if set(check.operations) & set(entry.operations)]


def killers(row: Row, entry: Entry) -> list[str]:
    """The checks that kill a fault and count: those of robustness only where it is one of robustness, and those that
    want bad input refused only where the fault's code would do so."""
    checks = [all_checks()[identity] for identity in row.kills]
    counting = (check for check in checks if entry.validates or not check.refuses)
    return [check.id for check in counting if entry.kind == "robustness" or check.kind == "conformance"]


def _count(row: Row, check: Check, subject: TorchSubject, raises: bool, profile: str, seed: int) -> None:
    for _, raised in examples(check, subject, profile, seed, ORACLE):
        if isinstance(raised, NotDeclared):
            return
        row.examples += 1
        if isinstance(raised, Mismatch) or (raises and isinstance(raised, SubjectRaised)):
            row.kills[check.id] = row.kills.get(check.id, 0) + 1
        elif raised is not None:
            row.errors.setdefault(check.id, f"{type(raised).__name__}: {raised}"[:200])


def _smallest(row: Row, entry: Entry, profile: str, seed: int) -> Example | None:
    """The failure with the smallest input among those of the checks that tell most, each shrunk."""
    subject, checks = entry.make(), all_checks()
    own = [checks[identity] for identity in killers(row, entry) if checks[identity].kind == entry.kind]
    killing = own or [checks[identity] for identity in row.kills]
    telling = sorted(killing, key=lambda check: (_rank(check), -row.kills[check.id]))[:TRIED]
    results = (run_check(check, subject, profile, seed) for check in telling)
    found = [
        Example(
            check=result.id,
            call=result.failure.call,
            inputs=result.failure.inputs,
            message=result.failure.message,
            right=result.failure.expected,
            faulty=result.failure.got,
        )
        for result in results
        if result.failure is not None
    ]
    return min(found, key=lambda example: (not example.right, _size(example)), default=None)


def _rank(check: Check) -> int:
    """The value first, then the gradient, then claims with one fixed example, then the other laws."""
    return {"value": 0, "gradient": 1}.get(check.law, 2 if check.examples == 1 else 3)


def _size(example: Example) -> int:
    """How much there is to read of the inputs; what is only described counts as very much."""
    return sum(len(text) if not DESCRIBED.search(text) else 10_000 for text in example.inputs.values())
