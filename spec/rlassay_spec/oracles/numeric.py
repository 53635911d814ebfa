"""Sums and exponentials that neither lose digits nor raise on what is outside the contract, and what to divide by."""

import math
from collections.abc import Iterable
from fractions import Fraction

from rlassay_spec.convention import Convention


def total(terms: Iterable[float]) -> float:
    """The sum, rounded once; inf and NaN as IEEE arithmetic has them."""
    values = [float(term) for term in terms]
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return sum(values)


def exp(x: float) -> float:
    """eˣ, inf where it overflows."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def divisor(variance: Fraction, convention: Convention) -> float:
    """What the convention divides by: the standard deviation with its ε."""
    if convention.std_eps_place == "inside":
        return math.sqrt(variance + Fraction(convention.std_eps))
    if convention.std_eps_place == "floor":
        return max(math.sqrt(variance), convention.std_eps)
    return math.sqrt(variance) + convention.std_eps
