"""Cases on which a subject is compared with candidates, and the conventions that are candidates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from rlassay.check import expected
from rlassay.draw import Draw
from rlassay.guest.errors import SubjectRaised
from rlassay.guest.observation import Observation
from rlassay.guest.values import Arguments, Tensor
from rlassay.suite import domain_of
from rlassay.suite.number_search import game
from rlassay_spec.convention import ALLOWED, Convention
from rlassay_spec.oracles.expected import Expected

CASES = 64
"""Random cases on which a candidate has to agree; a test makes sure that they tell conventions and faults apart."""

EPSILONS = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
BOUNDS = (None, 100.0, 50.0, 20.0, 10.0, 5.0, 2.0, 1.0)


@dataclass(frozen=True, eq=False)
class Case:
    """One call: its arguments, the options of `Subject.call`, and the answers of oracles and known faults so far."""

    operation: str
    arguments: Arguments
    options: Mapping[str, Any]
    answers: dict[Convention, Any] = field(default_factory=dict)
    twins: dict[str, Observation | SubjectRaised] = field(default_factory=dict)

    @property
    def live(self) -> tuple[str, ...]:
        """The arguments that carry a graph."""
        names: tuple[str, ...] = self.options.get("live", ())
        return names

    @property
    def size(self) -> int:
        """How many numbers are passed."""
        return sum(value.array.size for value in self.arguments.values() if isinstance(value, Tensor))

    def answer(self, convention: Convention) -> Any:
        """What the oracle says under a convention; None where it refuses the call."""
        if convention not in self.answers:
            try:
                self.answers[convention] = expected(self.operation, self.arguments, convention)
            except ValueError:
                self.answers[convention] = None
        return self.answers[convention]


@dataclass(frozen=True, eq=False)
class Sample:
    """A case and what the subject did with it; `wrong` if that is not what its convention asks for.

    `alone`: it was judged by itself, not as one of the calls of a check.
    """

    case: Case
    observed: Observation | SubjectRaised
    wrong: bool = False
    alone: bool = True


@cache
def random_cases(operation: str, declared: Convention) -> tuple[Case, ...]:
    """The operation's random cases, with a graph and a random cotangent where it has a gradient."""
    domain = domain_of(operation)
    draw_case = game if operation == "number_search" else None if domain is None else domain.case
    if draw_case is None:
        return ()
    cases = []
    for index in range(CASES):
        draw = Draw(f"like:{operation}", index)
        case = Case(operation, draw_case(draw, declared), {})
        if domain is not None and domain.differentiable:
            shape = case.answer(declared).value.shape
            old = ("old_log_probs",) if declared.old_log_probs == "detached" else ()
            constants = [name for name in dict.fromkeys((*old, *domain.constants)) if name in case.arguments]
            live = (next(iter(case.arguments)), *constants)
            case = replace(case, options={"live": live, "cotangent": draw.rng.uniform(0.5, 1.5, size=shape)})
        cases.append(case)
    return tuple(cases)


Change = dict[str, Any]

AVERAGES: tuple[Change, ...] = tuple(
    {"aggregation": aggregation, "empty_rows": rows}
    for aggregation, rows in itertools.product(("sequence_sum", "sequence_mean", "token_mean"), ALLOWED["empty_rows"])
)
DEVIATIONS: tuple[Change, ...] = tuple(
    {"std_ddof": ddof, "std_eps": epsilon, "std_eps_place": place}
    for ddof in (0, 1)
    for epsilon, place in ((0.0, "added"), *itertools.product(EPSILONS, ALLOWED["std_eps_place"]))
)
SINGLETONS: tuple[Change, ...] = tuple({"singleton_group": name} for name in ("zero", "reward", "error", "free"))
CLAMPS: tuple[tuple[Change, ...], ...] = tuple(
    tuple({name: bound} for bound in BOUNDS) for name in ("k3_clamp", "log_ratio_clamp")
)


def conventions(samples: Sequence[Sample], declared: Convention) -> Iterator[Convention]:
    """Every convention that differs from the declared one in one kind of choice, then those that differ in two.

    Of pairs only the usual ones: the average with another choice, the deviation with what groups of one get. `samples`
    are such that the first one is not explained by the declared convention.
    """
    averages, deviations, singletons, *clamps = (
        _changes(samples, declared, group)
        for group in ((*AVERAGES, *_constants(samples[0], declared)), DEVIATIONS, SINGLETONS, *CLAMPS)
    )
    singles = itertools.chain(averages, deviations, singletons, *clamps)
    pairs = itertools.chain(
        *(itertools.product(averages, others) for others in (deviations, singletons, *clamps)),
        itertools.product(deviations, singletons),
    )
    for changes in itertools.chain(zip(singles, strict=True), pairs):
        yield replace(declared, **{name: value for change in changes for name, value in change.items()})


def _changes(samples: Sequence[Sample], declared: Convention, group: Sequence[Change]) -> list[Change]:
    """The changes of a group, where the operation depends on this kind of choice at all."""
    changes = [change for change in group if replace(declared, **change) != declared]
    return changes if _matters(samples, declared, changes) else []


def _matters(samples: Sequence[Sample], declared: Convention, group: Sequence[Change]) -> bool:
    """Whether the operation depends on this kind of choice; the ends of a group are the changes that show most."""
    return any(
        _numbers(sample.case.answer(replace(declared, **change))) != _numbers(sample.case.answer(declared))
        for change in (group[0], group[-1])
        for sample in samples
    )


def _numbers(answer: Any) -> bytes:
    return answer.value.tobytes() if isinstance(answer, Expected) else b""


def _constants(sample: Sample, declared: Convention) -> list[Change]:
    """The constant, of more than one token, by which the sums of a sample seem to be divided."""
    value = getattr(sample.observed, "value", None)
    if not isinstance(value, np.ndarray) or value.shape != () or not value:
        return []
    found = []
    for rows in ("counted", "dropped"):
        sums = sample.case.answer(replace(declared, aggregation="sequence_sum", empty_rows=rows))
        constant = float(sums.value / value) if isinstance(sums, Expected) else 0.0
        if np.isfinite(constant) and constant > 1:
            rounded = float(f"{constant:.5g}")
            found.append({"aggregation": "constant", "aggregation_constant": rounded, "empty_rows": rows})
    return found
