"""Advantages of one group in exact arithmetic, and what chance does to groups (rl-basics 9 and 10, rl-in-practice 4).

A group is the rewards of G rollouts of one task instance. Square roots stay fractions where they can.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from rlassay_spec.exact.moments import Real, correlation, covariance, fraction, sqrt, variance


def group_mean(rewards: Sequence[Real]) -> Fraction:
    """R̄ = (1/G) Σ_j R_j."""
    return sum(map(fraction, rewards), Fraction(0)) / len(rewards)


def group_std(rewards: Sequence[Real], ddof: int = 0) -> Real:
    """σ_R = √(Σ_j (R_j − R̄)²/(G − ddof)); ddof 0 is the population value, 1 the sample value."""
    squares = [value**2 for value in centered(rewards)]
    return sqrt(sum(squares, Fraction(0)) / (len(rewards) - ddof))


def centered(rewards: Sequence[Real]) -> tuple[Fraction, ...]:
    """R_j − R̄."""
    middle = group_mean(rewards)
    return tuple(fraction(reward) - middle for reward in rewards)


def normalized(rewards: Sequence[Real], ddof: int = 0, eps: Real = 0) -> tuple[Real, ...]:
    """(R_j − R̄)/(σ_R + ε), and 0 throughout a group without contrast."""
    if max(rewards) == min(rewards):
        return (Fraction(0),) * len(rewards)
    spread = group_std(rewards, ddof) + eps
    return tuple(value / spread for value in centered(rewards))


def leave_one_out(rewards: Sequence[Real]) -> tuple[Fraction, ...]:
    """R_j minus the mean of the other G − 1 rewards."""
    total = sum(map(fraction, rewards), Fraction(0))
    others = len(rewards) - 1
    return tuple(fraction(reward) - (total - fraction(reward)) / others for reward in rewards)


def best_only(rewards: Sequence[Real]) -> tuple[Real, ...]:
    """The reward of each response that ties for the best of its group, 0 for the others."""
    best = max(rewards)
    return tuple(reward if reward == best else Fraction(0) for reward in rewards)


def binary_group(size: int, successes: int) -> tuple[int, ...]:
    """Rewards of a group with so many ones, then zeros."""
    return (1,) * successes + (0,) * (size - successes)


def absolute_total(rewards: Sequence[Real]) -> Real:
    """Σ_j ∣Â_j∣ of the normalised advantages, which for a success share p is 2G√(p(1 − p))."""
    total: Real = Fraction(0)
    for value in normalized(rewards):
        total = total + max(value, -value)
    return total


def equal_group_probability(probabilities: Sequence[Real], size: int) -> Fraction:
    """Chance that G independent draws all agree, Σ_k p_kᴳ; for two outcomes pᴳ + (1 − p)ᴳ."""
    return sum((fraction(p) ** size for p in probabilities), Fraction(0))


def smallest_group(p: Real, chance: Real) -> int:
    """Smallest G whose binary group has contrast with at least this probability (0 < p < 1, chance < 1)."""
    p, size = fraction(p), 1
    while 1 - equal_group_probability((p, 1 - p), size) < chance:
        size += 1
    return size


def _binary_groups(p: Real, size: int) -> list[tuple[Fraction, tuple[int, ...]]]:
    chance = fraction(p)
    groups = product((1, 0), repeat=size)
    return [(chance ** sum(rewards) * (1 - chance) ** (size - sum(rewards)), rewards) for rewards in groups]


def mean_variance(p: Real, size: int) -> Real:
    """Var R̄ of G binary rewards, by enumeration of the groups; p(1 − p)/G."""
    return variance([(chance, group_mean(rewards)) for chance, rewards in _binary_groups(p, size)])


def advantage_variance(p: Real, size: int) -> Real:
    """Var(R_1 − R̄) of one rollout with a binary reward, by enumeration of the groups; p(1 − p)(1 − 1/G)."""
    return variance([(chance, centered(rewards)[0]) for chance, rewards in _binary_groups(p, size)])


def advantage_correlation(p: Real, size: int) -> Real:
    """Correlation of R_1 − R̄ with the true advantage R_1 − p, by enumeration of the groups; √(1 − 1/G)."""
    value = fraction(p)
    groups = _binary_groups(p, size)
    return correlation([(chance, centered(rewards)[0], rewards[0] - value) for chance, rewards in groups])


def rollout_covariance(instances: Sequence[Real]) -> Fraction:
    """Cov of the binary rewards of two rollouts of one instance drawn uniformly: the variance of V(x) over instances.

    Given the instance the two are independent, so one instance alone gives 0.
    """
    rates = [fraction(rate) for rate in instances]
    weight = Fraction(1, len(rates))
    joint: list[tuple[Fraction, Real, Real]] = []
    for p in rates:
        for first, second in product((1, 0), repeat=2):
            chance = (p if first else 1 - p) * (p if second else 1 - p)
            joint.append((weight * chance, Fraction(first), Fraction(second)))
    return fraction(covariance(joint))
