"""Softmax with rational probabilities against differences and mpmath."""

from fractions import Fraction
from math import exp, log

import mpmath
import numpy as np
import pytest

from rlassay_spec.exact import log_prob

WEIGHTS = (Fraction(1), Fraction(2), Fraction(3), Fraction(1, 2))
POLICY = log_prob.softmax(WEIGHTS)


def log_softmax(logits: list[float]) -> list[float]:
    total = log(sum(map(exp, logits)))
    return [z - total for z in logits]


def moved(k: int, h: float) -> list[float]:
    return log_softmax([log(w) + h * (i == k) for i, w in enumerate(WEIGHTS)])


@pytest.mark.parametrize("k", range(4))
def test_scores_and_jacobian_are_slopes(k: int) -> None:
    h = 1e-5
    for a in range(4):
        slope = (moved(k, h)[a] - moved(k, -h)[a]) / (2 * h)
        assert float(log_prob.score(POLICY, a)[k]) == pytest.approx(slope, rel=1e-7, abs=1e-9)
        slope = (exp(moved(k, h)[a]) - exp(moved(k, -h)[a])) / (2 * h)
        assert float(log_prob.jacobian(WEIGHTS)[a][k]) == pytest.approx(slope, rel=1e-7, abs=1e-9)


def test_a_slope_is_the_probability_times_the_score() -> None:
    for a, row in enumerate(log_prob.jacobian(WEIGHTS)):
        assert row == tuple(POLICY[a] * s for s in log_prob.score(POLICY, a))
    assert log_prob.sft_gradient(POLICY, 1) == tuple(-s for s in log_prob.score(POLICY, 1))


def test_the_gradient_of_the_return_is_the_mean_of_reward_times_score() -> None:
    rewards = (Fraction(1), Fraction(-2), Fraction(1, 3), Fraction(0))
    terms = [
        [p * r * s for s in log_prob.score(POLICY, a)] for a, (p, r) in enumerate(zip(POLICY, rewards, strict=True))
    ]
    assert log_prob.return_gradient(POLICY, rewards) == tuple(map(sum, zip(*terms, strict=True)))


@pytest.mark.parametrize("step", [(1, 0, 0, 0), (-1, 2, 0, 3)])
def test_first_order_rates_are_slopes_along_the_step(step: tuple[int, ...]) -> None:
    h = 1e-5
    after, before = (
        log_softmax([log(w) + sign * h * s for w, s in zip(WEIGHTS, step, strict=True)]) for sign in (1, -1)
    )
    slopes = [(a - b) / (2 * h) for a, b in zip(after, before, strict=True)]
    assert [float(r) for r in log_prob.log_prob_rates(POLICY, step)] == pytest.approx(slopes, rel=1e-7, abs=1e-9)


def test_an_action_that_nobody_demonstrated_rises_exactly_when_the_squares_outweigh_it() -> None:
    rng = np.random.default_rng(0)
    risen = 0
    for _ in range(200):
        policy = log_prob.softmax([Fraction(int(w)) for w in rng.integers(1, 100, 4) ** 3])
        rates = log_prob.log_prob_rates(policy, log_prob.score(policy, 0))
        squares = sum(p * p for p in policy)
        assert rates[0] > 0
        assert all((rates[a] > 0) == (squares > policy[a] + policy[0]) for a in (1, 2, 3))
        risen += any(rate > 0 for rate in rates[1:])
    assert 0 < risen < 200


@pytest.mark.parametrize("n", [0, 1, 4, 30])
def test_a_tempered_policy_is_the_softmax_of_logits_over_the_temperature(n: int) -> None:
    with mpmath.workdps(40):
        powers = [mpmath.exp(n * mpmath.log(mpmath.mpf(w.numerator) / w.denominator)) for w in WEIGHTS]
        expected = [float(power / sum(powers)) for power in powers]
    assert [float(p) for p in log_prob.tempered(POLICY, n)] == pytest.approx(expected, rel=1e-14)
