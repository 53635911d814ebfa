"""Smallest failing input: replay a failing example with simpler choices and keep what still fails.

It starts from the example that failed and makes a bounded number of replays, so it finds something for rare failures
too and never takes long. (Hypothesis would have to find the failure again before it could shrink it.)
"""

from __future__ import annotations

from collections.abc import Callable

from rlassay.draw import Draw

REPLAYS = 60
"""Most replays of one failing example."""


def shrink(draw: Draw, fails: Callable[[Draw], bool]) -> Draw:
    """The simplest failing example found: choices towards their first option, then numbers with fewer decimals.

    `fails` replays the check and tells whether it still fails in the same way.
    """
    best = draw
    left = REPLAYS

    def attempt(forced: dict[str, int], digits: int | None) -> bool:
        nonlocal best, left
        if left == 0:
            return False
        left -= 1
        candidate = Draw(draw.seed, draw.index, forced, digits)
        if not fails(candidate):
            return False
        best = candidate
        return True

    improved = True
    while improved and left:
        improved = False
        for name, position in list(best.choices.items()):
            for simpler in sorted({0, position // 2, position - 1} & set(range(position))):
                if attempt(best.choices | {name: simpler}, best.digits):
                    improved = True
                    break
    for digits in (0, 1, 2):
        if attempt(best.choices, digits):
            break
    return best
