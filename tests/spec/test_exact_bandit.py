"""The bandit against closed forms, differences, scipy and the oracles."""

from fractions import Fraction
from math import comb, exp, log, sqrt

import pytest
from scipy.stats import binom

from rlassay_spec.exact import advantage, bandit, log_prob, moments
from rlassay_spec.oracles import ORACLES

PROBABILITIES = [Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)]


@pytest.mark.parametrize("p", PROBABILITIES)
def test_scores_are_the_slopes_of_the_log_probabilities(p: Fraction) -> None:
    theta, h = log(p / (1 - p)), 1e-5
    both = [[-log(1 + exp(-sign * (theta + step))) for step in (-h, h)] for sign in (1, -1)]
    slopes = [(after - before) / (2 * h) for before, after in both]
    assert slopes == pytest.approx([float(s) for s in bandit.scores(p)], rel=1e-8)


@pytest.mark.parametrize("p", PROBABILITIES)
def test_the_true_gradient_is_the_slope_of_the_success_probability(p: Fraction) -> None:
    theta, h = log(p / (1 - p)), 1e-5
    slope = (1 / (1 + exp(-theta - h)) - 1 / (1 + exp(-theta + h))) / (2 * h)
    assert slope == pytest.approx(float(bandit.true_gradient(p)), rel=1e-8)


@pytest.mark.parametrize("p", PROBABILITIES)
@pytest.mark.parametrize("b", [Fraction(-3), Fraction(0), Fraction(1, 2), Fraction(2)])
def test_any_constant_baseline_leaves_the_mean_and_shapes_the_variance_as_a_parabola(p: Fraction, b: Fraction) -> None:
    assert moments.mean(bandit.estimates(p, b)) == bandit.true_gradient(p)
    best = bandit.optimal_baseline((p, 1 - p), tuple(s * s for s in bandit.scores(p)), (1, 0))
    assert best == 1 - p
    assert moments.variance(bandit.estimates(p, b)) == (b - best) ** 2 * p * (1 - p)


@pytest.mark.parametrize(("p", "verdict"), [(0.6, "lower"), (Fraction(2, 3), "same"), (0.7, "higher")])
def test_the_mean_reward_beats_no_baseline_up_to_two_thirds(p: Fraction, verdict: str) -> None:
    with_it = moments.variance(bandit.estimates(p, moments.fraction(p)))
    without = moments.variance(bandit.estimates(p))
    assert verdict == ("lower" if with_it < without else "same" if with_it == without else "higher")


def test_the_optimal_baseline_minimises_the_total_variance_of_a_softmax() -> None:
    policy, rewards = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)), (1, 0, 3)
    scores = [log_prob.score(policy, a) for a in range(3)]

    def spread(b: Fraction) -> moments.Real:
        estimate = [(p, tuple((r - b) * s for s in row)) for p, r, row in zip(policy, rewards, scores, strict=True)]
        return moments.total_variance(estimate)

    squares = [sum(s * s for s in row) for row in scores]
    best = moments.fraction(bandit.optimal_baseline(policy, squares, rewards))
    step = Fraction(1, 1000)
    assert spread(best + step) == spread(best - step) > spread(best)
    assert best == Fraction(13, 11)


def test_the_optimal_baseline_agrees_with_the_oracle() -> None:
    policy, rewards = (0.5, 0.3, 0.2), (1.0, -2.0, 3.0)
    scores = [[float(s) for s in log_prob.score(policy, a)] for a in range(3)]
    squares = [sum(s * s for s in row) for row in scores]
    expected = ORACLES["optimal_baseline"](policy, scores, rewards).value
    assert float(bandit.optimal_baseline(policy, squares, rewards)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("baseline", [0.0, 0.5, 1.5])
def test_the_estimates_agree_with_the_oracle(baseline: float) -> None:
    for action, (_, value) in enumerate(bandit.estimates(0.25, baseline)):
        expected = ORACLES["bandit_gradient"](-log(3), action, baseline).value
        assert float(value) == pytest.approx(float(expected), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("baseline", "few", "many"), [(0.0, 4, 6), (0.5, 1, 9)])
def test_the_band_holds_a_run_of_counts_of_the_binomial(baseline: float, few: int, many: int) -> None:
    expected = binom.cdf(many, 20, 0.25) - binom.cdf(few - 1, 20, 0.25)
    assert float(bandit.band_probability(0.25, baseline, 20, 0.05)) == pytest.approx(expected, rel=1e-12)


def test_the_relative_variance_is_the_odds_of_failing() -> None:
    for p in PROBABILITIES:
        assert bandit.relative_variance(p) == (1 - p) / p


@pytest.mark.parametrize("earlier", [0, 1, 4])
def test_a_moving_average_biases_by_the_share_of_the_current_reward(earlier: int) -> None:
    p, rate = Fraction(1, 4), Fraction(1, 5)
    assert bandit.moving_average_gradient(p, rate, earlier, include_current=False) == bandit.true_gradient(p)
    biased = bandit.moving_average_gradient(p, rate, earlier, include_current=True)
    assert biased == (1 - rate) * bandit.true_gradient(p)


@pytest.mark.parametrize("p", PROBABILITIES)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_group_shrinks_the_mean_gradient_and_leave_one_out_does_not(p: Fraction, size: int) -> None:
    assert bandit.group_factor(p, size, advantage.centered) == 1 - Fraction(1, size)
    assert bandit.group_factor(p, size, advantage.leave_one_out) == 1


@pytest.mark.parametrize("size", [2, 4, 8])
def test_the_factor_of_the_normalised_group_agrees_with_a_sum_over_the_number_of_successes(size: int) -> None:
    p = 0.25
    total = 0.0
    for k in range(1, size):
        share = k / size
        win, lose = sqrt((1 - share) / share), -sqrt(share / (1 - share))
        chance = comb(size, k) * p**k * (1 - p) ** (size - k)
        total += chance * (share * win * (1 - p) + (1 - share) * lose * -p)
    assert float(bandit.group_factor(p, size, advantage.normalized)) == pytest.approx(total / (p * (1 - p)), rel=1e-12)


def test_a_softmax_is_biased_by_every_baseline_that_is_not_constant() -> None:
    policy = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    slopes = log_prob.jacobian((3, 2, 1))
    for b in ((1, 0, 0), (1, -1, 0), (0, 2, 5), (4, 4, 4)):
        bias = tuple(sum(x * row[k] for x, row in zip(b, slopes, strict=True)) for k in range(3))
        middle = sum(p * x for p, x in zip(policy, b, strict=True))
        assert bias == tuple(p * (x - middle) for p, x in zip(policy, b, strict=True))
        assert any(bias) == (len(set(b)) > 1)
