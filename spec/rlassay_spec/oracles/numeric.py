"""Sums and exponentials that neither lose digits nor raise on what is outside the contract."""

import math
from collections.abc import Iterable


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
