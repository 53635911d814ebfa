"""Losses in exact arithmetic against differences."""

from fractions import Fraction
from itertools import product
from math import exp, log

import pytest

from rlassay_spec.exact import loss

POLICY = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))


def test_the_logit_gradient_is_the_slope_of_the_loss() -> None:
    actions, weights, h = (0, 2, 1, 2), (Fraction(1), Fraction(-2), Fraction(0), Fraction(5)), 1e-5

    def value(k: int, step: float) -> float:
        logits = [log(p) + step * (i == k) for i, p in enumerate(POLICY)]
        total = log(sum(map(exp, logits)))
        return -sum(float(w) * (logits[a] - total) for a, w in zip(actions, weights, strict=True)) / 4

    slopes = [(value(k, h) - value(k, -h)) / (2 * h) for k in range(3)]
    assert [float(g) for g in loss.logit_gradient(POLICY, actions, weights)] == pytest.approx(slopes, rel=1e-7)


def test_the_gradient_is_linear_in_the_weights() -> None:
    actions, first, second = (0, 1, 2), (1, 0, 2), (3, -1, 0)
    both = loss.logit_gradient(POLICY, actions, tuple(2 * a + b for a, b in zip(first, second, strict=True)))
    parts = zip(loss.logit_gradient(POLICY, actions, first), loss.logit_gradient(POLICY, actions, second), strict=True)
    assert both == tuple(2 * a + b for a, b in parts)


@pytest.mark.parametrize("rewards", list(product((0, 1), repeat=3)))
def test_rest_and_reinforce_have_the_same_weights_for_a_binary_reward(rewards: tuple[int, ...]) -> None:
    assert loss.weights("rest", rewards) == loss.weights("reinforce", rewards)


def test_rest_and_reinforce_part_ways_for_other_rewards() -> None:
    assert loss.weights("rest", (2, 1, Fraction(1, 2))) == (0, 1, 0)
    assert loss.weights("reinforce", (2, 1, Fraction(1, 2))) == (2, 1, Fraction(1, 2))


@pytest.mark.parametrize("advantage_value", [-2, 1])
@pytest.mark.parametrize("ratio", [0.3, 0.79, 0.81, 1.0, 1.15, 1.29, 1.31, 4.0])
def test_the_clipped_slope_is_the_slope_in_the_log_probability(ratio: float, advantage_value: int) -> None:
    h = 1e-6
    after, before = (loss.clipped(ratio * exp(step), advantage_value, 0.2, 0.3) for step in (h, -h))
    slope = float(after - before) / (2 * h)
    assert float(loss.clipped_slope(ratio, advantage_value, 0.2, 0.3)) == pytest.approx(slope, rel=1e-8, abs=1e-9)


def test_the_unclipped_surrogate_has_opposite_slopes_in_both_log_probabilities() -> None:
    ratio, advantage_value, h = 1.5, 2.0, 1e-6
    slopes = [-advantage_value * ratio * (exp(sign * h) - exp(-sign * h)) / (2 * h) for sign in (1, -1)]
    assert [float(s) for s in loss.surrogate_slopes(ratio, advantage_value)] == pytest.approx(slopes, rel=1e-9)


def test_the_mean_step_on_the_surrogate_is_the_policy_gradient_while_nothing_is_clipped() -> None:
    learner, sampler = (Fraction(11, 20), Fraction(9, 20)), (Fraction(1, 2), Fraction(1, 2))
    assert loss.clipped_mean_step(learner, sampler, (1, 0)) == (Fraction(99, 400), Fraction(-99, 400))


def test_an_entry_that_is_masked_out_is_not_touched() -> None:
    assert loss.masked_total((1, float("inf"), 2, float("nan")), (1, 0, 1, 0)) == 3
    assert loss.masked_total((float("nan"),), (0,)) == 0


def test_the_divisor_of_a_token_weight_goes_by_its_name() -> None:
    assert [loss.token_weight(6, 3, kind, 2) for kind in ("none", "length", "constant")] == [6, 2, 3]
