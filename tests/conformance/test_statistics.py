"""The statistical checks' budget, tail bounds and designs."""

import math
from fractions import Fraction

import pytest

from rlassay.comparison import Mismatch
from rlassay.statistics import (
    BUDGET,
    DESIGNS,
    MISS,
    Design,
    binomial_p,
    detectable,
    holm,
    mean_p,
    require_plausible,
)
from rlassay.suite import all_checks


def tail(n: int, p: Fraction, k: int, upper: bool) -> Fraction:
    """P(X ≥ k) or P(X ≤ k), exact."""
    side = range(k, n + 1) if upper else range(k + 1)
    return sum((math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in side), Fraction(0))


@pytest.mark.parametrize("p", [Fraction(1, 4), Fraction(1, 2), Fraction(49, 50)])
def test_the_binomial_bound_is_never_below_twice_the_exact_tail(p: Fraction) -> None:
    for n in (1, 20, 60):
        for k in range(n + 1):
            exact = 2 * float(tail(n, p, k, upper=k > n * p))
            assert binomial_p(k, n, float(p)) >= min(1.0, exact) * (1 - 1e-12)


def test_the_binomial_bound_is_one_at_the_expected_share_and_rejects_a_certain_chance() -> None:
    assert binomial_p(5, 20, 0.25) == 1
    with pytest.raises(ValueError, match="chance: is 1"):
        binomial_p(5, 20, 1)


def test_the_bound_of_a_mean_is_never_below_the_exact_tail_of_a_fair_coin() -> None:
    for n in (4, 30):
        for k in range(n + 1):
            off = abs(k / n - 0.5)
            exact = float(2 * tail(n, Fraction(1, 2), max(k, n - k), upper=True))
            assert mean_p(off, n, 1.0) >= min(1.0, exact) * (1 - 1e-12)


def test_a_mean_that_is_not_a_number_has_p_value_zero_and_one_without_deviation_has_one() -> None:
    assert mean_p(math.nan, 10, 1.0) == 0
    assert mean_p(math.inf, 10, 1.0) == 0
    assert mean_p(1.0, 10, 1.0) == 0
    assert mean_p(-0.1, 10, 1.0) == 1


def test_holm_compares_with_growing_levels_and_stops_at_the_first_that_holds() -> None:
    assert holm({"a": 0.01, "b": 0.02, "c": 0.9}, 0.05) == ["a", "b"]
    assert holm({"a": 0.02, "b": 0.021, "c": 0.022}, 0.05) == []
    assert holm({"b": 0.04, "a": 0.001}, 0.05) == ["a", "b"]


def test_the_shares_of_the_budget_add_up_to_one_at_most() -> None:
    assert sum(design.share for design in DESIGNS.values()) <= 1
    assert sum(design.level for design in DESIGNS.values()) <= BUDGET


@pytest.mark.parametrize("check", DESIGNS)
def test_each_design_belongs_to_a_check_of_its_claim_and_detects_the_effect_it_states(check: str) -> None:
    assert all_checks()[check].claims == (DESIGNS[check].claim,)
    assert 0.9 * DESIGNS[check].effect < detectable(DESIGNS[check]) <= DESIGNS[check].effect


def test_the_detectable_effect_is_missed_with_the_stated_probability_at_most() -> None:
    design = Design("B0.0", samples=400, effect=0.3)
    p = Fraction(1, 2) + Fraction(detectable(design)).limit_denominator(10**6)
    accepted = [k for k in range(design.samples + 1) if binomial_p(k, design.samples, 0.5) > design.level]
    assert tail(design.samples, p, max(accepted), upper=False) <= MISS


def test_an_implausible_sample_is_named_with_its_p_value() -> None:
    require_plausible("bandit_gradient/B8.9-sampled", {"a mean of 0.1875": 0.3})
    with pytest.raises(Mismatch, match=r"chance does not explain a mean of 0 \(p ≤ 1.0e-09\)"):
        require_plausible("bandit_gradient/B8.9-sampled", {"a mean of 0": 1e-9, "a mean of 0.1875": 0.3})
