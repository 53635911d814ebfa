"""Explanations: what a failing operation behaves like.

The subject is called on many cases. A candidate, which is the oracle under another convention or a known fault,
explains it only if it agrees with the subject on all of them, in value and gradients, and differs from what is expected
on at least one. Otherwise nothing is named: an explanation is never a guess.

The cases are random ones of the operation's domain. Where the subject is right on all of these, they are the calls that
the suite's own checks make (other dtypes, NaN under the mask, no token at all, extreme numbers …).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rlassay.check import NotDeclared, Trial
from rlassay.comparison import Mismatch, require_gradient, require_value, tolerance
from rlassay.draw import Draw
from rlassay.faults import Fault, faults_of
from rlassay.guest.errors import SubjectRaised
from rlassay.guest.observation import Observation
from rlassay.guest.values import Arguments, Tensor
from rlassay.identify import identifiable, identify
from rlassay.identify.agreement import agree
from rlassay.likeness import plain, reach_of, same
from rlassay.record import UNEXPLAINED, Explanation
from rlassay.search import Case, Sample, conventions, random_cases
from rlassay.subject import Subject
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject
from rlassay_spec.convention import Convention
from rlassay_spec.operations import OPERATIONS
from rlassay_spec.oracles import takes_convention
from rlassay_spec.oracles.expected import Expected

EXAMPLES = 8
"""Examples of each check whose calls a candidate has to answer like the subject, where random cases show nothing."""

TO_DECLARE = "declare it in CONVENTION, or change it"
"""What to do about another convention, for whoever is free to choose it."""

ENOUGH = 12
"""Fewest random cases that have to be answered before the rest is explained by itself."""


def explain(operation: str, subject: Subject) -> Explanation:
    """What a failing operation of the subject behaves like."""
    return next(explanations(operation, subject), Explanation(operation=operation, text=UNEXPLAINED))


def explanations(operation: str, subject: Subject) -> Iterator[Explanation]:
    """All that the operation behaves like, conventions before faults; the first is the one to give."""
    declared = subject.convention
    samples = sorted((_sample(case, subject) for case in random_cases(operation, declared)), key=_promise)
    if not any(sample.wrong for sample in samples):
        recorded = sorted(_recorded(operation, subject), key=_promise)
        samples = [sample for sample in recorded if not sample.case.options.get("keywords")]
        if any(sample.wrong for sample in recorded) and not any(sample.wrong for sample in samples):
            yield Explanation(
                operation=operation, text=f"takes its arguments under other names than {_names(operation)}"
            )
    if not any(sample.wrong for sample in samples):
        return
    yield from _by_convention(samples, declared)
    named = False
    for explanation in _by_fault(samples, declared):
        named = True
        yield explanation
    if not named:
        yield from _by_identification(samples, subject)
    yield from _apart_from_accidents(samples, declared)
    for sample in samples:
        if isinstance(sample.observed, SubjectRaised) and sample.wrong:
            yield Explanation(operation=operation, text=f"raises {sample.observed} on inputs that the contract allows")
            return


def _names(operation: str) -> str:
    return f"{operation}({', '.join(OPERATIONS[operation].parameters)})"


def _promise(sample: Sample) -> tuple[bool, int]:
    """Wrong samples first, as they refute most candidates, and small ones first among them."""
    return not sample.wrong, sample.case.size


def _sample(case: Case, subject: Subject) -> Sample:
    observed = _observe(subject, case)
    return Sample(case, observed, wrong=not _agrees(case, observed, subject.convention))


def _observe(subject: Subject, case: Case) -> Observation | SubjectRaised:
    try:
        return subject.call(case.operation, case.arguments, **case.options)
    except SubjectRaised as raised:
        return raised


class _Recorder:
    """A subject that keeps the calls that checks make."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.name, self.convention, self.operations = subject.name, subject.convention, subject.operations
        self.calls: list[tuple[Case, Observation | SubjectRaised]] = []

    def call(self, operation: str, arguments: Arguments, **options: Any) -> Observation:
        case = Case(operation, arguments, options)
        observed = _observe(self.subject, case)
        self.calls.append((case, observed))
        if isinstance(observed, SubjectRaised):
            raise observed
        return observed


def _recorded(operation: str, subject: Subject) -> Iterator[Sample]:
    """The calls that the checks of the operation make, but those that ask for a ValueError."""
    for check in all_checks().values():
        if check.operations != (operation,) or check.refuses:
            continue
        for index in range(EXAMPLES if check.examples == "profile" else check.examples):
            recorder = _Recorder(subject)
            try:
                check.function(Trial(recorder, Draw(f"explain:{check.id}", index)))
                wrong = False
            except (Mismatch, SubjectRaised):
                wrong = True
            except NotDeclared:
                break
            yield from (Sample(case, observed, wrong, alone=False) for case, observed in recorder.calls)


def _by_fault(samples: list[Sample], declared: Convention) -> Iterator[Explanation]:
    """Known faults that give all of the subject's answers."""
    operation = samples[0].case.operation
    for fault in faults_of(operation):
        if fault.wrong_under(declared) and _behaves_like(fault, samples, declared):
            yield Explanation(operation=operation, text=f"behaves like {fault.id}: {fault.title}", fault=fault.id)


def _apart_from_accidents(samples: list[Sample], declared: Convention) -> Iterator[Explanation]:
    """What explains the rest, when a gradient into a constant or calls that raise are named and set aside.

    Both often come on top of another fault and hide what it is.
    """
    answered = [sample for sample in samples if isinstance(sample.observed, Observation)]
    raised = [s.observed for s in samples if isinstance(s.observed, SubjectRaised) and s.wrong]
    constants = dict.fromkeys(name for sample in answered for name in sample.case.live[1:])
    leaks = [name for name in constants if any(_flows(sample.observed, name) for sample in answered)]
    if not (leaks or raised) or len(answered) < ENOUGH:
        return
    notes = [f"lets a gradient into {' and '.join(leaks)}, which should be detached"] if leaks else []
    notes += [f"raises {raised[0]} on inputs that the contract allows"] if raised else []
    note = " and ".join(notes)
    rest = sorted((_without_constants(sample, declared) for sample in answered), key=_promise)
    operation = samples[0].case.operation
    if not any(sample.wrong for sample in rest):
        yield Explanation(operation=operation, text=f"is right where it answers, but {note}" if raised else note)
        return
    for explanation in (*_by_convention(rest, declared), *_by_fault(rest, declared)):
        yield Explanation(
            operation=operation,
            text=f"{explanation.text}; besides, it {note}",
            convention=explanation.convention,
            fault=explanation.fault,
        )


def _without_constants(sample: Sample, declared: Convention) -> Sample:
    """The sample with the gradient of the first argument alone."""
    observed = sample.observed
    assert isinstance(observed, Observation)
    first = sample.case.live[:1]
    case = replace(sample.case, options={**sample.case.options, "live": first}, twins={}) if first else sample.case
    gradients = {name: observed.gradients.get(name) for name in first}
    kept = replace(observed, gradients=gradients)
    return Sample(case, kept, wrong=not _agrees(case, kept, declared))


def _by_convention(samples: list[Sample], declared: Convention) -> Iterator[Explanation]:
    """Other conventions under which all of the subject's answers are right."""
    operation = samples[0].case.operation
    if not takes_convention(operation):
        return
    for convention in conventions(samples, declared):
        fits = all(_agrees(sample.case, sample.observed, convention) for sample in samples)
        if fits and not _excuses(convention, declared, samples):
            yield _to_declare(operation, convention, declared)


def _by_identification(samples: list[Sample], subject: Subject) -> Iterator[Explanation]:
    """The convention that is found where no usual number of it will do: an ε of 1.3e-6, a clamp at 3.7.

    A sum that is divided by less than one token is multiplied by a factor, which is no convention. Of what is found
    only as much is named as it takes.
    """
    operation, declared = samples[0].case.operation, subject.convention
    if not identifiable(operation):
        return
    identified = identify(operation, subject)
    found = replace(declared, **agree([identified]).convention)  # type: ignore[arg-type]
    if identified.verdict != "fits" or found == declared or (found.aggregation_constant or 1) < 1:
        return
    if not all(_agrees(sample.case, sample.observed, found) for sample in samples):
        return
    for name in _difference(found, declared):
        less = replace(found, **{name: getattr(declared, name)})
        if all(_agrees(sample.case, sample.observed, less) for sample in samples):
            found = less
    if found != declared and not _excuses(found, declared, samples):
        yield _to_declare(operation, found, declared)


def _excuses(convention: Convention, declared: Convention, samples: list[Sample]) -> bool:
    """Whether a convention leaves something free that is meant for NaN and for refusals, and excuses numbers by it."""
    frees = "free" in {getattr(convention, name) for name in _difference(convention, declared)}
    return frees and not all(_undefined(sample.observed) for sample in samples if sample.wrong)


def _undefined(observed: Observation | SubjectRaised) -> bool:
    if isinstance(observed, SubjectRaised):
        return True
    return isinstance(observed.value, np.ndarray) and bool(np.isnan(observed.value.astype(float)).any())


def _to_declare(operation: str, convention: Convention, declared: Convention) -> Explanation:
    fields = _difference(convention, declared)
    assignments = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    text = f"conforms with {assignments}: {TO_DECLARE}"
    return Explanation(operation=operation, text=text, convention=fields)


def _difference(convention: Convention, declared: Convention) -> dict[str, str | int | float | None]:
    names = {**convention.declared(), **declared.declared()}
    fields = {name: getattr(convention, name) for name in names if getattr(convention, name) != getattr(declared, name)}
    if fields.get("std_eps"):
        fields["std_eps_place"] = convention.std_eps_place
    return fields


def _agrees(case: Case, observed: Observation | SubjectRaised, convention: Convention) -> bool:
    """Whether the subject's observation is the oracle's answer under a convention."""
    want = case.answer(convention)
    if isinstance(observed, SubjectRaised):
        return want is None and "ValueError" in observed.bases
    if not isinstance(want, Expected):
        return want is not None and bool(plain(observed.value) == plain(want))
    if _far(observed, want):
        return False
    try:
        require_value(case.operation, observed, want)
        if case.live and want.pullback is not None:
            first = case.live[0]
            dtype = case.arguments[first].dtype
            weights = case.options.get("cotangent")
            weights = np.ones(want.value.shape) if weights is None else weights
            cotangent = Tensor(weights, observed.dtype or dtype).array
            require_gradient(case.operation, first, observed, want.pullback(cotangent), want.terms, dtype)
    except Mismatch:
        return False
    return not any(_flows(observed, name) for name in case.live[1:])


def _far(observed: Observation, want: Expected) -> bool:
    """Whether a value is off: the quick way to refute a candidate, without a message."""
    got = observed.value
    if not isinstance(got, np.ndarray) or got.shape != want.value.shape or want.value.dtype == bool:
        return False
    with np.errstate(invalid="ignore"):
        return bool((np.abs(got - want.value) > tolerance(want.scale, want.terms, observed.dtype)).any())


def _flows(observed: Observation | SubjectRaised, name: str) -> bool:
    gradient = observed.gradients.get(name) if isinstance(observed, Observation) else None
    return gradient is not None and bool(gradient.any())


def _behaves_like(fault: Fault, samples: list[Sample], declared: Convention) -> bool:
    """Whether a known fault gives all of the subject's observations, and is wrong itself wherever the subject is.

    Without the second condition a small error would be explained by any fault that is right on these samples.
    """
    model = TorchSubject({fault.operation: fault.under(declared)}, convention=declared)
    for sample in samples:
        twin = _twin(fault, model, sample.case)
        if not same(sample, twin, reach_of(sample.case, declared)):
            return False
        if sample.wrong and sample.alone and _agrees(sample.case, twin, declared):
            return False
    return True


def _twin(fault: Fault, model: TorchSubject, case: Case) -> Observation | SubjectRaised:
    """What a known fault does on a case."""
    if fault.key not in case.twins:
        case.twins[fault.key] = _observe(model, case)
    return case.twins[fault.key]
