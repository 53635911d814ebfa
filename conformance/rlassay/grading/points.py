"""Points as reports show them: rounded once, from exact fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction


def rounded(points: str | Fraction) -> Decimal:
    """Points to two decimals; a tie goes up, in the student's favour."""
    return Decimal(math.floor(Fraction(points) * 100 + Fraction(1, 2))).scaleb(-2)


def points_text(points: str | Fraction) -> str:
    """The same as text, without zeros at the end: `12.5`."""
    text = f"{rounded(points):f}"
    return text.rstrip("0").rstrip(".")


def percent_text(share: str | Fraction) -> str:
    """A share in per cent: `10 %`."""
    return f"{points_text(Fraction(share) * 100)} %"
