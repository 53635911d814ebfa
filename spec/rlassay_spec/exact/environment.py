"""Small stochastic environments whose every probability is known.

An environment draws an observation o_0; each action then draws a reward and the next observation. A policy is one row
of action probabilities per observation.

Source: the loop of lecture rl-basics, section 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from rlassay_spec.exact.moments import Real, fraction

Policy: TypeAlias = tuple[tuple[Fraction, ...], ...]
Outcome: TypeAlias = tuple[Fraction, int, Fraction]
"""Probability, next observation, reward."""


@dataclass(frozen=True)
class Environment:
    """`horizon` actions; `start[o]` = P(o_0 = o); `outcomes[o, a]` = what action a may lead to at observation o."""

    horizon: int
    start: tuple[Fraction, ...]
    outcomes: Mapping[tuple[int, int], tuple[Outcome, ...]]


def policy(*rows: Sequence[Real]) -> Policy:
    """A policy from one row of probabilities per observation."""
    return tuple(tuple(fraction(p) for p in row) for row in rows)


_HALF, _THIRD, _QUARTER = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)

NOISY_DOOR = Environment(
    horizon=2,
    start=(2 * _THIRD, _THIRD),
    outcomes={
        (0, 0): ((_HALF, 0, Fraction(0)), (_HALF, 1, Fraction(1))),
        (0, 1): ((3 * _QUARTER, 1, -_HALF), (_QUARTER, 0, Fraction(2))),
        (1, 0): ((_THIRD, 0, Fraction(3)), (2 * _THIRD, 1, Fraction(0))),
        (1, 1): ((Fraction(1), 1, _THIRD),),
    },
)
"""Two steps, two observations; start, observations and rewards are random, the rewards of both signs."""

_FEE: tuple[Outcome, ...] = ((Fraction(1), 1, Fraction(-1)),)
_REFUND: tuple[Outcome, ...] = ((Fraction(1), 1, Fraction(1)),)
FEE_AND_REFUND = Environment(
    horizon=2,
    start=(Fraction(1), Fraction(0)),
    outcomes={(0, 0): _FEE, (0, 1): _FEE, (1, 0): _REFUND, (1, 1): _REFUND},
)
"""Two steps that cost 1 and pay 1 whatever is done: R(τ) is always 0, the reward to go is not."""

LEARNER: Policy = policy((0.3, 0.7), (0.6, 0.4))
SAMPLER: Policy = policy((0.5, 0.5), (0.2, 0.8))
"""Two policies for the environments above."""


def subtasks(count: int, reward: Real = 0.2) -> Environment:
    """`count` independent subtasks: action 1 completes one and earns `reward`, action 0 earns nothing."""
    nothing: tuple[Outcome, ...] = ((Fraction(1), 0, Fraction(0)),)
    return Environment(count, (Fraction(1),), {(0, 0): nothing, (0, 1): ((Fraction(1), 0, fraction(reward)),)})
