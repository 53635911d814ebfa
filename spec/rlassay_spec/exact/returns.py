"""Returns in exact arithmetic (rl-basics 8.3, rl-in-practice 1)."""

from collections.abc import Sequence
from fractions import Fraction

from rlassay_spec.exact.moments import Real, fraction


def reward_to_go(rewards: Sequence[Real], gamma: Real = 1) -> tuple[Fraction, ...]:
    """Σ_{k≥t} γ^{k−t} rewards[k], where rewards[t] is what follows action t (the lecture's r_{t+1})."""
    discount = fraction(gamma)
    return tuple(
        sum((discount ** (k - t) * fraction(rewards[k]) for k in range(t, len(rewards))), Fraction(0))
        for t in range(len(rewards))
    )
