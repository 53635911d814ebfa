"""Explanations: what a failing operation behaves like.

The subject is called on many random cases. A candidate, which is the oracle under another convention or a known
fault, explains it only if it agrees with the subject on all of them, in value and gradients, and differs from what is
expected on at least one. Otherwise nothing is named: an explanation is never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from rlassay.check import expected
from rlassay.comparison import Mismatch, require_gradient, require_value, tolerance
from rlassay.draw import Draw
from rlassay.faults import Fault, faults_of
from rlassay.laws import Domain
from rlassay.record import Explanation
from rlassay.subject import Observation, Subject, SubjectRaised
from rlassay.suite import domain_of
from rlassay.torch_subject import TorchSubject
from rlassay.values import Arguments
from rlassay_spec.convention import Convention
from rlassay_spec.oracles import takes_convention

CASES = 60
"""Random cases on which a candidate has to agree."""


@dataclass(frozen=True, eq=False)
class Sample:
    """One case and what the subject did with it."""

    arguments: Arguments
    live: tuple[str, ...]
    cotangent: np.ndarray
    observed: Observation


def explain(operation: str, subject: Subject) -> Explanation:
    """What a failing operation of the subject behaves like."""
    domain = domain_of(operation)
    if domain is None:
        return Explanation(operation=operation, text="no known fault matches")
    try:
        samples = list(_samples(domain, subject))
    except SubjectRaised as raised:
        return Explanation(operation=operation, text=f"it raises {raised} on inputs that the contract allows")
    for convention in _conventions(operation, subject.convention):
        if _explains(operation, samples, convention, subject.convention):
            fields = _difference(convention, subject.convention)
            text = f"conforms with {_assignments(fields)}: declare it in CONVENTION, or change it"
            return Explanation(operation=operation, text=text, convention=fields)
    for fault in faults_of(operation):
        if _behaves_like(fault, operation, samples, subject.convention):
            text = f"behaves like {fault.id}: {fault.title}"
            return Explanation(operation=operation, text=text, fault=fault.id)
    return Explanation(operation=operation, text="no known fault matches")


def _samples(domain: Domain, subject: Subject) -> Iterator[Sample]:
    for index in range(CASES):
        draw = Draw(f"explain:{domain.operation}", index)
        arguments = domain.case(draw, subject.convention)
        want = expected(domain.operation, arguments, subject.convention)
        cotangent = draw.rng.uniform(0.5, 1.5, size=want.value.shape)
        live = _live(domain, subject.convention, arguments)
        observed = subject.call(domain.operation, arguments, live=live, cotangent=cotangent)
        yield Sample(arguments, live, cotangent, observed)


def _live(domain: Domain, convention: Convention, arguments: Arguments) -> tuple[str, ...]:
    if not domain.differentiable:
        return ()
    first = next(iter(arguments))
    old = ("old_log_probs",) if "old_log_probs" in arguments and convention.old_log_probs == "detached" else ()
    return (first, *old, *domain.constants)


def _conventions(operation: str, declared: Convention) -> Iterator[Convention]:
    """Other conventions, those that change least first."""
    if not takes_convention(operation):
        return
    for aggregation in ("sequence_sum", "sequence_mean", "token_mean"):
        for rows in ("counted", "dropped"):
            yield replace(declared, aggregation=aggregation, empty_rows=rows)
    for singleton in ("zero", "reward"):
        for ddof, eps in product((0, 1), (0.0, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3)):
            for place in ("added", "inside", "floor") if eps else ("added",):
                yield replace(declared, std_ddof=ddof, std_eps=eps, std_eps_place=place, singleton_group=singleton)


def _difference(convention: Convention, declared: Convention) -> dict[str, str | int | float | None]:
    changed = convention.declared().items() - declared.declared().items()
    back = {name: getattr(convention, name) for name in declared.declared() if name not in convention.declared()}
    fields = dict(sorted(changed)) | back
    if fields.get("std_eps_place") is None and "std_eps" in fields:
        fields["std_eps_place"] = convention.std_eps_place
    return fields


def _assignments(fields: dict[str, str | int | float | None]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in fields.items())


def _explains(operation: str, samples: list[Sample], candidate: Convention, declared: Convention) -> bool:
    if candidate == declared:
        return False
    if not all(_agrees(operation, sample, candidate) for sample in samples):
        return False
    return not all(_agrees(operation, sample, declared) for sample in samples)


def _agrees(operation: str, sample: Sample, convention: Convention) -> bool:
    """Whether the subject's observation is the oracle's answer under a convention."""
    try:
        want = expected(operation, sample.arguments, convention)
        require_value(operation, sample.observed, want)
        if sample.live and want.pullback is not None:
            first = sample.live[0]
            dtype = sample.arguments[first].dtype
            require_gradient(operation, first, sample.observed, want.pullback(sample.cotangent), want.terms, dtype)
    except (Mismatch, ValueError):
        return False
    return not any(_flows(sample.observed, name) for name in sample.live[1:])


def _flows(observed: Observation, name: str) -> bool:
    gradient = observed.gradients.get(name)
    return gradient is not None and bool(gradient.any())


def _behaves_like(fault: Fault, operation: str, samples: list[Sample], convention: Convention) -> bool:
    """Whether a known fault gives the subject's observations, one of which is wrong."""
    model = TorchSubject({operation: fault.function}, convention=convention)
    for sample in samples:
        try:
            twin = model.call(operation, sample.arguments, live=sample.live, cotangent=sample.cotangent)
        except SubjectRaised:
            return False
        if not _same(twin, sample, expected(operation, sample.arguments, convention).scale):
            return False
    return not all(_agrees(operation, sample, convention) for sample in samples)


def _same(twin: Observation, sample: Sample, scale: np.ndarray) -> bool:
    seen = sample.observed
    if not isinstance(twin.value, np.ndarray) or not isinstance(seen.value, np.ndarray):
        return False
    if twin.value.shape != seen.value.shape:
        return False
    reach = float(np.max(scale, initial=0.0)) + float(
        np.max(np.abs(np.nan_to_num(twin.value.astype(float))), initial=0.0)
    )
    return _close(twin.value, seen.value, reach) and all(
        _close_gradients(twin.gradients.get(name), seen.gradients.get(name), reach) for name in sample.live
    )


def _close(a: np.ndarray, b: np.ndarray, reach: float) -> bool:
    allowed = float(tolerance(np.array(reach), 64, "float32"))
    return bool(np.allclose(a.astype(float), b.astype(float), rtol=1e-5, atol=allowed, equal_nan=True))


def _close_gradients(a: np.ndarray | None, b: np.ndarray | None, reach: float) -> bool:
    if a is None or b is None:
        other = b if a is None else a
        return other is None or not other.any()
    return _close(a, b, max(reach, float(np.max(np.abs(np.nan_to_num(a)), initial=0.0))))
