"""The small expectations against fractions, differences and a minimiser."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from rlassay_spec.oracles.bandit import bandit_gradient, expected_return, optimal_baseline

FLOAT32_EPS = float(np.finfo(np.float32).eps)


def test_the_lectures_policy_has_the_lectures_return() -> None:
    assert expected_return([0.30, 0.20, 0.25, 0.25], [1.0, 1.0, 0.0, 0.0]).value == 0.5


def test_the_expected_return_agrees_with_fractions() -> None:
    rng = np.random.default_rng(0)
    probabilities, returns = rng.dirichlet(np.ones(6)), rng.normal(size=6)
    exact = sum(Fraction(p) * Fraction(r) for p, r in zip(probabilities, returns, strict=True))
    assert expected_return(probabilities, returns).value == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize(
    ("baseline", "of_a", "of_b"), [(0.0, 0.75, 0.0), (0.5, 0.375, 0.125), (1.0, 0.0, 0.25), (-1.0, 1.5, -0.25)]
)
def test_the_bandits_estimates_at_one_quarter(baseline: float, of_a: float, of_b: float) -> None:
    theta = -math.log(3)
    assert bandit_gradient(theta, 0, baseline).value == pytest.approx(of_a, rel=1e-15)
    assert bandit_gradient(theta, 1, baseline).value == pytest.approx(of_b, rel=1e-15)


@pytest.mark.parametrize("theta", [-3.0, -0.2, 0.0, 2.5])
@pytest.mark.parametrize("action", [0, 1])
def test_the_bandits_score_agrees_with_differences(theta: float, action: int) -> None:
    def log_probability(x: float) -> float:
        return -math.log1p(math.exp(-x if action == 0 else x))

    score = (log_probability(theta + 1e-5) - log_probability(theta - 1e-5)) / 2e-5
    advantage = (1 - action) - 0.3
    assert bandit_gradient(theta, action, 0.3).value == pytest.approx(advantage * score, rel=1e-8)


def test_an_estimate_without_advantage_is_exactly_zero() -> None:
    expected = bandit_gradient(0.3, 1, 0.0)
    assert expected.value == 0 and expected.scale == 0


@pytest.mark.parametrize("theta", [-20.0, -1.1, 0.0, 3.0, 30.0])
def test_usual_float32_formulas_of_the_bandit_stay_within_the_scale(theta: float) -> None:
    x, one = np.float32(theta), np.float32(1)
    p = one / (one + np.exp(-x))
    exponential = np.exp(np.minimum(x, 0)) / (np.exp(np.minimum(x, 0)) + np.exp(-np.maximum(x, 0)))
    for probability in (p, exponential):
        for action, value in ((0, np.float32(0.5) * (one - probability)), (1, np.float32(0.5) * probability)):
            expected = bandit_gradient(float(x), action, 0.5)
            assert abs(value - expected.value) <= 16 * FLOAT32_EPS * expected.scale


def test_the_optimal_baseline_minimises_the_total_variance() -> None:
    rng = np.random.default_rng(1)
    probabilities, scores, rewards = rng.dirichlet(np.ones(5)), rng.normal(size=(5, 3)), rng.normal(size=5)
    scores -= probabilities @ scores

    def total_variance(baseline: float) -> float:
        estimates = (rewards - baseline)[:, None] * scores
        mean = probabilities @ estimates
        return float((probabilities[:, None] * (estimates - mean) ** 2).sum())

    found = minimize_scalar(total_variance, tol=1e-12).x
    assert optimal_baseline(probabilities, scores, rewards).value == pytest.approx(found, abs=1e-6)


def test_the_bandits_optimal_baseline_is_three_quarters() -> None:
    assert optimal_baseline([0.25, 0.75], [[0.75], [-0.25]], [1.0, 0.0]).value == 0.75


def test_scores_of_zero_have_the_baseline_zero() -> None:
    expected = optimal_baseline([0.5, 0.5], np.zeros((2, 3)), [1.0, 2.0])
    assert expected.value == 0 and expected.scale == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expected_return([[1.0]], [1.0]), "probabilities: has shape [1, 1], expected [K]"),
        (lambda: expected_return([1.0], [1.0, 2.0]), "returns: has shape [2], expected [K] = [1]"),
        (lambda: bandit_gradient(0.0, 2, 0.0), "action: is 2, expected 0 or 1"),
        (lambda: optimal_baseline([[1.0]], [[1.0]], [1.0]), "probabilities: has shape [1, 1], expected [K]"),
        (lambda: optimal_baseline([1.0], [1.0], [1.0]), "scores: has shape [1], expected [K, D]"),
        (
            lambda: optimal_baseline([1.0], [[1.0], [2.0]], [1.0]),
            "scores: has shape [2, 1], expected [K, D] with K = 1",
        ),
        (lambda: optimal_baseline([1.0], [[1.0]], [1.0, 2.0]), "rewards: has shape [2], expected [K] = [1]"),
        (lambda: optimal_baseline([1.0], [[1.0]], [1]), "rewards: has dtype int64, expected a floating dtype"),
    ],
)
def test_a_wrong_argument_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
