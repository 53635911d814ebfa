"""Checks of the claims about the advantages of single groups; `groups` has those about all groups that chance can make.

Where a number depends on what is declared (the standard deviation of grpo_advantages), the oracle's under the declared
convention is expected; under the lecture convention that is the lecture's number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rlassay.check import NotDeclared, Trial, require
from rlassay.guest.values import Arguments, Tensor
from rlassay.laws import require_refusal
from rlassay.suite.advantage import TOPIC
from rlassay.suite.claims.reading import Reading, read
from rlassay_spec.exact import advantage as exact
from rlassay_spec.exact import number_search
from rlassay_spec.exact.sorting import inclusion_order_reward

CENTERED, GRPO, RLOO = "centered_advantages", "grpo_advantages", "rloo_advantages"
MAX, KEEP = "max_advantages", "keep_groups"

Groups = Sequence[Sequence[float]]


def rewards(groups: npt.ArrayLike) -> Arguments:
    """Rewards [N, G] in float64."""
    return {"rewards": Tensor(np.asarray(groups, dtype=np.float64), "float64")}


def require_groups(trial: Trial, operation: str, groups: npt.ArrayLike) -> Reading:
    """What the subject gives for these groups, required to be the oracle's answer."""
    arguments = rewards(groups)
    got = read(trial, operation, arguments)
    got.require(operation, trial.expect(operation, arguments).value)
    return got


BINARY = ((1, 1, 0, 0), (1, 0, 0, 0), (1, 1, 1, 0))
SORTING = tuple(inclusion_order_reward((1, 0, 2), y) for y in ((0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 0, 0)))
RARE = tuple(exact.binary_group(8, k) for k in range(1, 8))
EQUAL = ((1, 1, 1), (0, 0, 0), (-2, -2, -2), (0.5, 0.5, 0.5))

NUMBERS: tuple[tuple[str, str, str, Groups], ...] = (
    (
        "B7.4",
        CENTERED,
        "a failure among 20 weighs −0.95, a success among 20 +0.95",
        (exact.binary_group(20, 19), exact.binary_group(20, 1)),
    ),
    ("B8.16", GRPO, "ignores scale and shift of the rewards", ((1, 1, 0, 0), (12, 12, 8, 8), (9, 9, 8, 8))),
    (
        "B8.16",
        CENTERED,
        "ignores a shift of the rewards, not their scale",
        ((1, 1, 0, 0), (12, 12, 8, 8), (9, 9, 8, 8)),
    ),
    ("B9.1", GRPO, "1, 1, 0, 0 are one standard deviation from their mean", ((1, 1, 0, 0),)),
    ("B9.2", GRPO, "1, 0, 0, 0 and 1, 1, 1, 0 have mirrored advantages", ((1, 0, 0, 0), (1, 1, 1, 0))),
    ("B10.1", CENTERED, "1, 0, 0, 0 are 3/4, −1/4, −1/4, −1/4 from their mean", BINARY),
    ("B10.2", GRPO, "makes rare outcomes loud: 1 to 7 successes of 8", RARE),
    ("B10.6", CENTERED, "equal rewards give exactly 0", EQUAL),
    ("B10.6", GRPO, "equal rewards give exactly 0", EQUAL),
    ("B10.6", RLOO, "equal rewards give exactly 0", EQUAL),
    ("B10.6", KEEP, "equal rewards have no contrast", (*EQUAL, (1, 0, 1))),
    ("B10.8", CENTERED, "all succeed or all fail: no weight for anyone", ((1, 1, 1, 1), (0, 0, 0, 0), (1, 1, 0, 0))),
    ("P3.3", CENTERED, "11, 9 and 0, 2 weigh +1, −1 and −1, +1", ((11, 9), (0, 2))),
    ("P4.1", CENTERED, "δ = R − mean", ((3, 5, 5, 1), SORTING)),
    ("P4.1", GRPO, "δ = (R − mean)/σ", ((3, 5, 5, 1), SORTING)),
    ("P4.1", MAX, "δ = R for the best and all that tie with it, 0 for the others", ((3, 5, 5, 1), SORTING)),
    ("P4.2", CENTERED, "responses of equal reward have δ = 0", ((3, 3, 3), (5, 4, 3))),
    ("P4.2", GRPO, "responses of equal reward have δ = 0", ((3, 3, 3), (5, 4, 3))),
    ("P4.2", KEEP, "a prompt whose responses have equal rewards is dropped", ((3, 3, 3), (5, 4, 3))),
    (
        "P4.4",
        MAX,
        "imitates a positive best, pushes a negative one away, imitates all ties",
        ((3, 5, 1), (-1, -2, -4), (3, 3, 3)),
    ),
    ("P5.1", GRPO, "1, 1, 0, 0 are centred and divided by the declared standard deviation", ((1, 1, 0, 0),)),
)


def _declare(claim: str, operation: str, title: str, groups: Groups) -> None:
    @TOPIC.claim(claim, operation, title=f"{operation}: {title}")
    def numbers(trial: Trial) -> None:
        """The exact advantages of the claim's groups."""
        require_groups(trial, operation, groups)


for _row in NUMBERS:
    _declare(*_row)


def _declare_inexact(operation: str) -> None:
    @TOPIC.check(
        operation,
        law="B10.6-float32",
        claims=("B10.6",),
        kind="robustness",
        examples=1,
        title=f"{operation}: equal rewards of 0.1 or 0.7 in float32 have no contrast either",
    )
    def inexact(trial: Trial) -> None:
        """0.1 and 0.7 have no exact binary form, so the mean of equal rewards may differ from them."""
        for size in (3, 7):
            trial.agree(operation, {"rewards": Tensor(np.outer((0.1, 0.7), np.ones(size)))})


for _operation in (CENTERED, GRPO, RLOO, KEEP):
    _declare_inexact(_operation)


def _declare_own_group(operation: str) -> None:
    @TOPIC.claim("B9.4", operation, title=f"{operation} looks at the instance's own group only, in any order")
    def own_group(trial: Trial) -> None:
        """1, 0, 0, 0 gets the same alone, beside other groups, and reordered."""
        alone = trial.expect(operation, rewards([(1, 0, 0, 0)])).value[0]
        for others in ((1, 1, 1, 0), (100, -50, 3, 7)):
            got = require_groups(trial, operation, [(1, 0, 0, 0), others, (0, 1, 0, 0)])
            got[0].require(f"{operation} of 1, 0, 0, 0 beside {others}", alone)
            got[2].require(f"{operation} of 0, 1, 0, 0 beside {others}", alone[[1, 0, 2, 3]])


for _operation in (CENTERED, GRPO, RLOO, MAX):
    _declare_own_group(_operation)


def _declare_negative(operation: str) -> None:
    @TOPIC.claim("B9.8", operation, title=f"{operation} gives a failure in a mixed group a negative weight")
    def negative(trial: Trial) -> None:
        """Â(failure) < 0 < Â(success) for 1..7 successes of 8."""
        got = read(trial, operation, rewards(RARE))
        for k, group in enumerate(got.value, start=1):
            signs = (
                f"with {k} of 8 successes {operation} is {group[0]:.3g} for a success, {group[-1]:.3g} for a failure"
            )
            require(bool(group[-1] < 0 < group[0]), f"{signs}, but should be positive and negative")
        got.require(operation, trial.expect(operation, rewards(RARE)).value)


for _operation in (CENTERED, GRPO, RLOO):
    _declare_negative(_operation)


def _declare_zero_sum(operation: str) -> None:
    @TOPIC.claim("B9.10", operation, title=f"{operation}: the advantages of a group add up to 0")
    def zero_sum(trial: Trial) -> None:
        """Σ_j Â_j = 0."""
        got = require_groups(trial, operation, [(3, 1, 0, 0), *BINARY])
        Reading(got.value.T, got.error.T).combined(np.ones(4)).require(f"sum of {operation} over a group", 0.0)


for _operation in (CENTERED, GRPO, RLOO):
    _declare_zero_sum(_operation)


def _declare_singletons(operation: str) -> None:
    @TOPIC.claim("B7.5", operation, title=f"{operation} of one rollout per instance, which has nothing to compare with")
    def singletons(trial: Trial) -> None:
        """R − R̄ = 0 for G = 1, or what is declared instead."""
        declared = trial.convention.singleton_group
        groups = [(1,), (0,), (0.5,)]
        if declared == "free":
            raise NotDeclared("singleton_group is free: what a group of one gives is left open")
        if declared == "error":
            require_refusal(operation, trial, rewards(groups), "rewards")
        else:
            require_groups(trial, operation, groups)


for _operation in (CENTERED, GRPO):
    _declare_singletons(_operation)


@TOPIC.claim("B9.3", GRPO, title="a success weighs three times as much where it is rare as where it is common")
def rare_success(trial: Trial) -> None:
    """√3 against 1/√3; the successes of a group together weigh the same. Both hold for any ddof and ε."""
    got = require_groups(trial, GRPO, [(1, 0, 0, 0), (1, 1, 1, 0)]).reshaped(-1)
    got.combined([1, 0, 0, 0, -3, 0, 0, 0]).require("weight of a rare success minus 3 × that of a common one", 0.0)
    got.combined([1, 0, 0, 0, -1, -1, -1, 0]).require("weight of the rare success minus that of all common ones", 0.0)


@TOPIC.claim("B10.3", GRPO, title="÷σ makes the largest ∣Â∣ of extreme groups larger, their total ∣Â∣ smaller")
def domination(trial: Trial) -> None:
    """1..4 of 8: max ∣Â∣ falls, Σ∣Â∣ = 2G√(p(1−p)) rises; groups that always or never succeed have no voice."""
    counts = (1, 2, 3, 4)
    got = require_groups(trial, GRPO, [exact.binary_group(8, k) for k in (*counts, 0, 8)])
    largest, total = np.abs(got.value).max(axis=1), np.abs(got.value).sum(axis=1)
    for k in counts[:-1]:
        rarer, commoner = f"with {k} of 8 successes", f"with {k + 1}"
        require(largest[k - 1] > largest[k], f"the largest ∣Â∣ {rarer} is not above that {commoner}")
        require(total[k - 1] < total[k], f"the total ∣Â∣ {rarer} is not below that {commoner}")
    require(not total[len(counts) :].any(), "a group of equal rewards has a voice")


@TOPIC.claim("B10.3", CENTERED, title="R − mean gives more weight in total to groups of medium difficulty")
def medium_difficulty(trial: Trial) -> None:
    """1..4 of 8: Σ∣R − R̄∣ = 2Gp(1−p) rises more steeply than after ÷σ, which multiplies it with 1/σ."""
    got = require_groups(trial, CENTERED, [exact.binary_group(8, k) for k in (1, 2, 3, 4)])
    sums = np.abs(got.value).sum(axis=1)
    Reading(sums, got.error.sum(axis=1)).require("Σ∣R − mean∣ for 1 to 4 successes of 8", (1.75, 3, 3.75, 4))


@TOPIC.claim("B8.1", CENTERED, title="under uniform play R − mean of the Q values is A = Q − V, 0 in the mean")
def value_of_play(trial: Trial) -> None:
    """Q = 2/3, 1, 2/3 for 9, 10, 11 with two guesses left, V = 7/9."""
    _require_advantages(trial, None)


@TOPIC.claim("B8.2", CENTERED, title="10 beats 9 and 11 if the last guess is played well, and loses to them if not")
def middle_guess(trial: Trial) -> None:
    """(−1/9, 2/9, −1/9), and the opposite for a player who wastes the last guess after a missed 10."""
    _require_advantages(trial, None)
    _require_advantages(trial, {(9,): {12: 1}, (11,): {12: 1}})


def _require_advantages(trial: Trial, policy: number_search.Policy | None) -> None:
    candidates = (9, 10, 11)
    values = [float(number_search.action_value(candidates, guess, 2, policy)) for guess in candidates]
    want = [float(number_search.advantage(candidates, guess, 2, policy)) for guess in candidates]
    got = read(trial, CENTERED, rewards([values]))[0]
    got.require("advantages of guessing 9, 10, 11", want)
    got.combined(np.ones(3)).require("their sum", 0.0)


def _declare_sorting(operation: str, title: str) -> None:
    @TOPIC.claim("P8.5", operation, title=f"{operation} of the sorting task: {title}")
    def worse_responses(trial: Trial) -> None:
        """Rewards 5, 4, 3, 3: raw ones push everything up, the worst too."""
        got = require_groups(trial, operation, [SORTING])
        worst = got.value[0, 2:]
        pushed = bool((worst == 0).all()) if operation == MAX else bool((worst < 0).all())
        require(pushed, f"{operation} gives the worst of the rewards {SORTING} the weights {worst.tolist()}")


_declare_sorting(CENTERED, "worse responses are pushed down")
_declare_sorting(GRPO, "worse responses are pushed down")
_declare_sorting(MAX, "worse responses are left alone")
