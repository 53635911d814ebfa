"""Calls that show one group of choices and no other: cases of an operation's domain with some arguments changed.

Arguments are changed by their names, which are the same in every operation: `old_log_probs` follows `log_probs` where
ratios shall be 1, rewards are ±s, so that exact numbers reach σ, and so on. What a call shows is asked of the oracle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice

import numpy as np

from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.identify.choices import AVERAGE, DEVIATION, GROUPS, K3, RATIO, ROWS, SINGLETONS, Group
from rlassay.identify.question import Question
from rlassay.inputs import cast
from rlassay.suite import domain_of
from rlassay_spec.convention import LECTURE, Convention

CASES = 96
"""Cases that are drawn of a domain, to choose from."""

RANDOM = 32
"""So many of them are asked as they are."""

SPREADS = tuple(2.0**k for k in range(-44, 8, 2))
"""Half distances between rewards, from 6e-14 to 64: powers of two, whose mean and deviation are exact in float32. The
small ones first: an ε far above them shows as well as one that is near."""

DISTANCES = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0)
"""Distances of log π_ref from log π; k3 is 0.03 at the first and 9e6 at the last."""

LOG_RATIOS = (0.125, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 18.0, 20.5, 23.0, 26.0)
"""Sizes of log π − log π_old."""

FAR = 0.4
"""A distance of log π_ref from log π at which k3 is 0.09, below any clamp that is looked for."""


@cache
def cases(operation: str) -> tuple[Arguments, ...]:
    """Cases of the operation's domain, under the lecture convention."""
    domain = domain_of(operation)
    if domain is None:
        return ()
    return tuple(domain.case(Draw(f"identify:{operation}", index), LECTURE) for index in range(CASES))


@cache
def small_cases(operation: str) -> tuple[Arguments, ...]:
    """The same, the smallest first."""
    return tuple(sorted(cases(operation), key=_size))


@cache
def random_questions(operation: str) -> tuple[Question, ...]:
    """Cases as they are, in two dtypes, with a graph in every argument that may carry one, but for old_log_probs."""
    domain = domain_of(operation)
    found = []
    for index, arguments in enumerate(cases(operation)[:RANDOM]):
        assert domain is not None
        constants = [name for name in domain.constants if name in arguments and name != "old_log_probs"]
        live = (next(iter(arguments)), *constants) if domain.differentiable else ()
        typed = cast(arguments, ("float32", "float64")[index % 2])
        shape = () if domain.mask else arguments[next(iter(arguments))].array.shape
        weight = np.random.default_rng(index).uniform(0.5, 1.5, size=shape) if domain.differentiable else None
        found.append(Question(operation, typed, live, weight))
    return tuple(found)


def _question(operation: str, arguments: Arguments, dtype: str = "float64") -> Question:
    domain = domain_of(operation)
    live = (next(iter(arguments)),) if domain is not None and domain.differentiable else ()
    return Question(operation, cast(arguments, dtype), live)


def policies_agree(arguments: Arguments) -> Arguments:
    """π = π_old = π_ref: every ratio is 1 and the KL 0."""
    policy = arguments["log_probs"].array if "log_probs" in arguments else None
    others = [name for name in ("old_log_probs", "ref_log_probs") if name in arguments]
    return replaced(arguments, **{name: policy for name in others}) if policy is not None else arguments


def reference_far(arguments: Arguments, distance: float) -> Arguments:
    """π = π_old, and log π_ref lies above log π by a distance."""
    if "ref_log_probs" not in arguments:
        return arguments
    policy = arguments["log_probs"].array
    lower = {name: policy - distance for name in ("log_probs", "old_log_probs") if name in arguments}
    return replaced(arguments, ref_log_probs=policy, **lower)


def alternating(shape: tuple[int, ...]) -> np.ndarray:
    """1, −1, 1, −1, …"""
    size = int(np.prod(shape))
    return np.where(np.arange(size) % 2 == 0, 1.0, -1.0).reshape(shape)


def ratios_far(operation: str, arguments: Arguments, distance: float) -> Arguments:
    """Log-ratios of a size, on the side where the clipped surrogate follows them: up where the advantage is negative.

    Advantages alternate in sign, so both sides are seen, and the loss grows with what bounds the log-ratio.
    """
    neutral = policies_agree(arguments)
    policy = neutral["log_probs"].array
    name = "advantages" if "advantages" in arguments else spread_argument(operation)
    if name not in arguments:
        return replaced(neutral, old_log_probs=policy - distance)
    signs = alternating(arguments[name].array.shape)
    rows = signs.reshape(-1, 1)
    if len(rows) != len(policy):
        return replaced(neutral, old_log_probs=policy - distance)
    moved = {
        "log_probs": policy - distance * (rows > 0),
        "old_log_probs": policy - distance * (rows < 0),
    }
    if "ref_log_probs" in arguments:
        moved["ref_log_probs"] = moved["log_probs"]
    return replaced(neutral, **moved, **{name: signs})


@cache
def spread_argument(operation: str) -> str:
    """The argument that is divided by its standard deviation; empty where there is none."""
    spread, changed = 2.0**-20, DEVIATION.options[0].at(LECTURE, 2.0**-20)
    for arguments in cases(operation):
        for name, value in arguments.items():
            if isinstance(value, Tensor) and value.dtype == "float32" and value.array.ndim and value.array.size > 1:
                tiny = replaced(policies_agree(arguments), **{name: spread * alternating(value.array.shape)})
                if _question(operation, tiny).differs(LECTURE, changed):
                    return name
    return ""


def without_contrast(operation: str, arguments: Arguments) -> Arguments:
    """No reward differs from another, so that nothing depends on how they are normalised."""
    name = spread_argument(operation)
    return replaced(arguments, **{name: np.ones(arguments[name].array.shape)}) if name else arguments


@lru_cache(maxsize=256)
def questions_about(
    operation: str, group: Group, known: Convention, unknown: tuple[Group, ...]
) -> tuple[Question, ...]:
    """Questions whose answers depend on a group of choices, and on no other that is unknown."""
    return tuple(_Interview(operation, known, unknown).about(group))


@cache
def groups_of(operation: str) -> tuple[Group, ...]:
    """The groups of choices that the operation's answers depend on."""
    asked = [Question(operation, arguments) for arguments in small_cases(operation)[: CASES // 2]]
    return tuple(
        group
        for group in GROUPS
        if any(question.depends(LECTURE, variant) for question in asked for variant in group.variants(LECTURE))
    )


class _Interview:
    """Chooses the questions of one operation, when some groups of choices are known and others not."""

    def __init__(self, operation: str, known: Convention, unknown: Sequence[Group]) -> None:
        self.operation, self.known = operation, known
        self.others = [variant for group in unknown for variant in group.variants(known)]

    def about(self, group: Group) -> Iterator[Question]:
        """The questions for a group."""
        chosen = {
            AVERAGE: self._average,
            DEVIATION: self._deviation,
            SINGLETONS: self._singletons,
            K3: self._distances,
            RATIO: self._ratios,
            ROWS: self._rows,
        }[group]
        return chosen()

    def _shows(self, question: Question, group: Group) -> bool:
        variants = group.variants(self.known)
        return any(question.differs(self.known, variant) for variant in variants) and not any(
            question.depends(self.known, other) for other in self.others
        )

    def _average(self) -> Iterator[Question]:
        found = 0
        for arguments in cases(self.operation):
            flat = without_contrast(self.operation, reference_far(arguments, FAR))
            for changed in (policies_agree(arguments), flat):
                question = _question(self.operation, changed, "float32" if found % 4 == 3 else "float64")
                if self._shows(question, AVERAGE):
                    yield question
                    found += 1
                    break
            if found == 14:
                return

    def _deviation(self) -> Iterator[Question]:
        name = spread_argument(self.operation)
        lengths: dict[int, Arguments] = {}
        for arguments in small_cases(self.operation) if name else ():
            shape = arguments[name].array.shape
            if shape[-1] % 2 or shape[-1] in lengths or len(lengths) == 3:
                continue
            changed = policies_agree(arguments)
            if "mask" in arguments and name != "rewards":
                changed = replaced(changed, mask=np.ones(arguments["mask"].array.shape))
            question = _question(self.operation, replaced(changed, **{name: 2.0**-6 * alternating(shape)}))
            if self._shows(question, DEVIATION):
                lengths[shape[-1]] = changed
        for spread in SPREADS:
            for place, changed in enumerate(lengths.values()):
                tiny = replaced(changed, **{name: spread * alternating(changed[name].array.shape)})
                for dtype in ("float64", "float32") if place == 0 else (("float64", "float32")[place % 2],):
                    yield _question(self.operation, tiny, dtype)

    def _singletons(self) -> Iterator[Question]:
        single = [arguments for arguments in small_cases(self.operation) if has_groups_of_one(arguments)]
        for place, arguments in enumerate(single[:12]):
            question = _question(self.operation, policies_agree(arguments), ("float64", "float32")[place % 2])
            if self._shows(question, SINGLETONS):
                yield question

    def _distances(self) -> Iterator[Question]:
        def asked(arguments: Arguments, distance: float, dtype: str = "float64") -> Question:
            far = without_contrast(self.operation, reference_far(arguments, distance))
            return _question(self.operation, far, dtype)

        found = (a for a in small_cases(self.operation) if "ref_log_probs" in a and self._shows(asked(a, 1.0), K3))
        for arguments, dtype in zip(islice(found, 2), ("float64", "float32"), strict=False):
            yield from (asked(arguments, distance, dtype) for distance in DISTANCES)

    def _ratios(self) -> Iterator[Question]:
        def asked(arguments: Arguments, distance: float, dtype: str = "float64") -> Question:
            return _question(self.operation, ratios_far(self.operation, arguments, distance), dtype)

        found = (
            a
            for a in small_cases(self.operation)
            if {"log_probs", "old_log_probs"} <= set(a)
            and len(a["log_probs"].array) > 1
            and self._shows(asked(a, 1.0), RATIO)
        )
        for arguments, dtype in zip(islice(found, 2), ("float64", "float32"), strict=False):
            yield from (asked(arguments, distance, dtype) for distance in LOG_RATIOS)

    def _rows(self) -> Iterator[Question]:
        masked = [arguments for arguments in small_cases(self.operation) if "mask" in arguments]
        found = 0
        for arguments in masked:
            if found == 8 or arguments["mask"].array.any(axis=1).all():
                continue
            question = _question(self.operation, arguments, ("float64", "float32")[found % 2])
            if self._shows(question, ROWS):
                yield question
                found += 1
        for arguments in masked[:1]:
            empty = replaced(arguments, mask=np.zeros(arguments["mask"].array.shape))
            question = Question(self.operation, empty)
            if self._shows(question, ROWS):
                yield question


def has_groups_of_one(arguments: Arguments) -> bool:
    """Whether an argument may be rewards in groups of one."""
    tensors = (value.array for value in arguments.values() if isinstance(value, Tensor))
    return any(array.ndim == 2 and array.shape[1] == 1 for array in tensors)


def _size(arguments: Arguments) -> int:
    return sum(value.array.size for value in arguments.values() if isinstance(value, Tensor))


def old_policy_questions(operation: str) -> tuple[list[Question], list[Question]]:
    """Calls in which π_old carries a graph of its own, and calls in which it is the very tensor that π is."""
    domain = domain_of(operation)
    apart: list[Question] = []
    same: list[Question] = []
    if domain is None or not domain.differentiable:
        return apart, same
    for arguments in cases(operation):
        if "old_log_probs" not in arguments or len(apart) == 8:
            break
        typed = cast(arguments, ("float32", "float64")[len(apart) % 2])
        first = next(iter(typed))
        apart.append(Question(operation, typed, (first, "old_log_probs")))
        same.append(Question(operation, typed | {"old_log_probs": typed[first]}, (first,)))
    return apart, same
