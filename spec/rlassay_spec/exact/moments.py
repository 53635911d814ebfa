"""Exact moments of finite distributions, and the square root that stays a fraction where it can."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import isqrt
from math import sqrt as float_sqrt
from typing import Any, TypeAlias

Real: TypeAlias = Fraction | float
"""An exact fraction (an int counts as one) or, once a root or a logarithm is involved, a float."""

Vector: TypeAlias = tuple[Any, ...]
Distribution: TypeAlias = Sequence[tuple[Fraction, Real]]
"""Pairs (probability, value); the probabilities add up to 1."""

VectorDistribution: TypeAlias = Sequence[tuple[Fraction, Vector]]


def fraction(number: Real | str) -> Fraction:
    """The exact fraction that a number is; a float counts for the shortest decimal that prints it (0.1 is 1/10)."""
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def sqrt(number: Real) -> Real:
    """√x, a fraction when x is the square of one, else the nearest float."""
    if isinstance(number, (int, Fraction)):
        exact = Fraction(number)
        root = Fraction(isqrt(exact.numerator), isqrt(exact.denominator))
        if root * root == exact:
            return root
    return float_sqrt(number)


def mean(distribution: Distribution) -> Real:
    """E[X] = Σ p·x."""
    total: Real = Fraction(0)
    for probability, value in distribution:
        total = total + probability * value
    return total


def variance(distribution: Distribution) -> Real:
    """Var X = E[(X − E X)²]."""
    centre = mean(distribution)
    return mean([(probability, (value - centre) ** 2) for probability, value in distribution])


def sd(distribution: Distribution) -> Real:
    """Standard deviation √Var X."""
    return sqrt(variance(distribution))


def covariance(joint: Sequence[tuple[Fraction, Real, Real]]) -> Real:
    """Cov(X, Y) = E[XY] − E[X]·E[Y] of triples (probability, x, y)."""
    product = mean([(probability, x * y) for probability, x, y in joint])
    first = mean([(probability, x) for probability, x, _ in joint])
    second = mean([(probability, y) for probability, _, y in joint])
    return product - first * second


def correlation(joint: Sequence[tuple[Fraction, Real, Real]]) -> Real:
    """Cov(X, Y)/(sd X · sd Y) of triples (probability, x, y); 0 when one of them is constant."""
    spread = variance([(p, x) for p, x, _ in joint]) * variance([(p, y) for p, _, y in joint])
    return covariance(joint) / sqrt(spread) if spread else Fraction(0)


def mixture(parts: Iterable[tuple[Fraction, Distribution]]) -> list[tuple[Fraction, Real]]:
    """Draw a part with its weight, then a value from it: pairs (weight·probability, value)."""
    return [(weight * probability, value) for weight, part in parts for probability, value in part]


def mean_vector(distribution: VectorDistribution) -> Vector:
    """E[X] of a random vector, entry by entry."""
    size = len(distribution[0][1])
    return tuple(mean([(probability, value[i]) for probability, value in distribution]) for i in range(size))


def total_variance(distribution: VectorDistribution) -> Real:
    """Trace of the covariance matrix, Σ_i Var X_i = E[‖X − E X‖²]."""
    size = len(distribution[0][1])
    total: Real = Fraction(0)
    for i in range(size):
        total = total + variance([(probability, value[i]) for probability, value in distribution])
    return total
