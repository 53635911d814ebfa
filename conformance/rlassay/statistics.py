"""Statistical checks: one false-alarm budget for the whole suite, and tail bounds that hold without approximation.

A statistical check draws n samples, turns what it sees into p-values and fails only if chance alone would show as much
with a probability below its share of `BUDGET`. So a run of all of them on correct code raises a false alarm with
probability at most `BUDGET`, whatever the dependence between them. Shares are what Holm's procedure starts from; what
it adds once a hypothesis falls is applied within a check, where it decides which hypotheses a failure names.

Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure; Hoeffding, Probability Inequalities for Sums of
Bounded Random Variables, theorems 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, sqrt
from typing import Final

from rlassay.check import require

BUDGET: Final = 1e-6
"""Largest probability that any statistical check of one run fails on correct code."""

MISS: Final = 1e-3
"""Largest probability with which a check may overlook the effect that its design states."""


@dataclass(frozen=True)
class Design:
    """What a statistical check is able to see.

    It asserts `claim` from `samples` draws that lie in intervals of at most this `width`, by so many `hypotheses`, with
    this `share` of the budget; a mean that is off by `effect` escapes it with probability `MISS` at most.
    """

    claim: str
    samples: int
    effect: float
    width: float = 1.0
    hypotheses: int = 1
    share: Fraction = Fraction(1, 16)

    @property
    def level(self) -> float:
        """The false-alarm probability that the check may spend."""
        return BUDGET * float(self.share)


DESIGNS: Final[dict[str, Design]] = {
    "number_search/B2.8-sampled": Design("B2.8", samples=1_000, effect=0.16),
    "masked_log_probs/B6.2-sampled": Design("B6.2", samples=1_000_000, effect=0.026, width=5.2, hypotheses=4),
    "bandit_gradient/B8.8-sampled": Design("B8.8", samples=100_000, effect=0.016, hypotheses=2),
    "bandit_gradient/B8.9-sampled": Design("B8.9", samples=1_000_000, effect=0.011, width=2.25),
}
"""The statistical checks by id; their shares add up to at most 1."""


def binomial_p(successes: int, trials: int, chance: float) -> float:
    """Bound on the two-sided p-value of a number of successes, Hoeffding's theorem 1 on either side.

        P(X/n further from p on its side than x/n) ≤ exp(−n·KL(x/n ∥ p)),  KL of two Bernoulli distributions, nats

    Raises:
        ValueError: the chance is not inside (0, 1).
    """
    if not 0 < chance < 1:
        raise ValueError(f"chance: is {chance}, expected a number between 0 and 1")
    share = successes / trials
    divergence = _term(share, chance) + _term(1 - share, 1 - chance)
    return min(1.0, 2 * exp(-trials * max(divergence, 0.0)))


def mean_p(deviation: float, samples: int, width: float) -> float:
    """Bound on the two-sided p-value of a mean of independent samples that lie in an interval of this width.

        P(∣mean − μ∣ ≥ d) ≤ 2·exp(−2nd²/width²)

    A deviation of the width or more, or one that is not a number, is impossible and has p-value 0.
    """
    if not deviation < width:
        return 0.0
    return min(1.0, 2 * exp(-2 * samples * (max(deviation, 0.0) / width) ** 2))


def detectable(design: Design) -> float:
    """Smallest shift of a mean (or of a success probability, width 1) that is missed with probability at most `MISS`.

        width·(√(ln(2m/α)/2n) + √(ln(1/MISS)/2n)),  m hypotheses at level α together

    It serves `binomial_p` as well, because KL(q∥p) ≥ 2(q − p)².
    """
    alarm = sqrt(log(2 * design.hypotheses / design.level) / (2 * design.samples))
    return design.width * (alarm + sqrt(log(1 / MISS) / (2 * design.samples)))


def holm(p_values: Mapping[str, float], level: float) -> list[str]:
    """The hypotheses that Holm's procedure rejects, most striking first.

    The k-th smallest of m p-values has to be at most level/(m − k + 1), and so have all before it.
    """
    rejected: list[str] = []
    for name in sorted(p_values, key=lambda name: p_values[name]):
        if p_values[name] > level / (len(p_values) - len(rejected)):
            break
        rejected.append(name)
    return rejected


def require_plausible(check: str, p_values: Mapping[str, float]) -> None:
    """Fail if chance does not explain what was seen, within the check's share of the budget.

    Raises:
        Mismatch: Holm's procedure rejects a hypothesis; the message names those it rejects.
    """
    rejected = holm(p_values, DESIGNS[check].level)
    shown = "; ".join(f"{name} (p ≤ {p_values[name]:.1e})" for name in rejected)
    require(not rejected, f"chance does not explain {shown}")


def _term(seen: float, expected: float) -> float:
    return seen * log(seen / expected) if seen > 0 else 0.0
