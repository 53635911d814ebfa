"""Checks of group advantages and of the filter of groups without contrast."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.inputs import group_rewards
from rlassay.laws import Domain
from rlassay.refusals import integers, no_rows_of
from rlassay.topic import Topic
from rlassay_spec.convention import Convention
from rlassay_spec.oracles.expected import Expected

ADVANTAGES = ("centered_advantages", "grpo_advantages", "rloo_advantages", "max_advantages", "keep_groups")
INEXACT = (0.1, 0.7, 0.3, 0.95, -0.6, 1e-3)
"""Rewards that binary floating point cannot represent: their mean may differ from them."""


def rewards_case(draw: Draw, convention: Convention) -> Arguments:
    """Rewards [N, G]."""
    return {"rewards": group_rewards(draw, convention)}


def domain(operation: str) -> Domain:
    """All advantages share one domain."""
    return Domain(
        operation,
        rewards_case,
        rows=("rewards",),
        per_row=True,
        result="bool" if operation == "keep_groups" else "first",
        refusals={"empty-groups": no_rows_of("rewards"), "integer-rewards": integers("rewards")},
    )


TOPIC = Topic(*map(domain, ADVANTAGES))

SMALL = (2.0**-10, 2.0**-14, 2.0**-20)
"""Differences of rewards that are exact in float32, and a contrast like any other. (Where σ divides, an ε of 1e-8 that
nobody declares shows in them.)"""


def _declare_small(operation: str) -> None:
    @TOPIC.check(
        operation,
        law="small-contrast",
        kind="robustness" if operation == "grpo_advantages" else "conformance",
        examples=len(SMALL),
        title=f"{operation} takes a small contrast for a contrast",
    )
    def small_contrast(trial: Trial) -> None:
        """Rewards 0 and 2⁻²⁰; there is no threshold below which they are alike."""
        spread = trial.draw.choice("spread", SMALL)
        trial.agree(operation, {"rewards": Tensor(spread * np.array([[0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 1.0, 1.0]]))})


for _operation in ADVANTAGES:
    _declare_small(_operation)


def _declare_nearly_equal(operation: str) -> None:
    @TOPIC.check(operation, law="nearly-equal", examples=1, title=f"{operation} compares rewards exactly")
    def nearly_equal(trial: Trial) -> None:
        """1 and 1 + 2⁻²⁰ differ."""
        near = 1 + 2.0**-20
        trial.agree(operation, {"rewards": Tensor(np.array([[1.0, near, 1.0], [near, 1.0, near], [near, near, near]]))})


_declare_nearly_equal("max_advantages")
_declare_nearly_equal("keep_groups")


def _declare(operation: str) -> None:
    @TOPIC.check(operation, law="group-order", title=f"{operation} follows the order inside a group")
    def group_order(trial: Trial) -> None:
        """Permuting a group permutes its advantages."""
        arguments = rewards_case(trial.draw, trial.convention)
        rewards = arguments["rewards"].array
        order = trial.draw.permutation(rewards.shape[1])
        trial.agree(operation, replaced(arguments, rewards=rewards[:, order]))

    @TOPIC.check(
        operation,
        law="inexact-no-contrast",
        kind="robustness",
        title=f"{operation} sees that equal rewards are equal when binary cannot represent them",
    )
    def inexact_no_contrast(trial: Trial) -> None:
        """0.1 × 7 in float32: the mean is not 0.1, the advantages are still exactly 0."""
        size = trial.draw.choice("size", (7, 2, 3, 5, 6, 8, 11))
        reward = trial.draw.choice("reward", INEXACT)
        trial.agree(operation, {"rewards": Tensor(np.full((2, size), reward))})

    @TOPIC.check(
        operation,
        law="nan-in-another-group",
        kind="robustness",
        title=f"{operation} keeps a NaN reward inside its group",
    )
    def nan_in_another_group(trial: Trial) -> None:
        """The groups without NaN get what they get alone."""
        arguments = rewards_case(trial.draw, trial.convention)
        rewards = arguments["rewards"].array
        want = trial.expect(operation, arguments)
        nan = np.full_like(rewards[:1], np.nan)
        spoilt = replaced(arguments, rewards=np.concatenate([rewards, nan]))
        trial.agree(operation, spoilt, with_free_row(want))


def with_free_row(want: Expected) -> Expected:
    """The expected rows and one more that may be anything."""
    value = want.value.astype(np.float64)
    free = np.full_like(value[:1], np.nan)
    scale = np.concatenate([want.scale, np.zeros_like(want.scale[:1])])
    return Expected(np.concatenate([value, free]), scale, want.terms, None)


for _operation in ADVANTAGES:
    _declare(_operation)
