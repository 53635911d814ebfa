"""Returns and generalised advantages against sums in fractions, and against other formulas in float32."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rlassay_spec.oracles.returns import gae, reward_to_go
from tests.spec.support import ragged_mask

FLOAT32_EPS = float(np.finfo(np.float32).eps)


@pytest.mark.parametrize("gamma", [1.0, 0.9, 0.0])
def test_reward_to_go_agrees_with_exact_sums(gamma: float) -> None:
    rewards = np.random.default_rng(0).normal(size=(3, 6))
    value = reward_to_go(rewards, gamma).value
    for b, t in np.ndindex(value.shape):
        exact = sum(Fraction(gamma) ** (k - t) * Fraction(rewards[b, k]) for k in range(t, 6))
        assert value[b, t] == pytest.approx(float(exact), rel=1e-13)


def test_an_actions_own_reward_belongs_to_its_return() -> None:
    np.testing.assert_array_equal(reward_to_go([[1.0, 2.0, 4.0]]).value, [[7.0, 6.0, 4.0]])
    np.testing.assert_array_equal(reward_to_go([[1.0, 2.0, 4.0]], 0.5).value, [[3.0, 4.0, 4.0]])


def test_a_terminal_reward_is_every_actions_return() -> None:
    np.testing.assert_array_equal(reward_to_go([[0.0, 0.0, 0.7]]).value, [[0.7, 0.7, 0.7]])


def test_a_sum_is_rounded_once() -> None:
    np.testing.assert_array_equal(reward_to_go([[1e16, 1.0, -1e16]]).value, [[1.0, -1e16, -1e16]])


def gae_by_double_sum(rewards: Any, values: Any, gamma: float, lam: float) -> list[Fraction]:
    r, v = [Fraction(x) for x in rewards], [Fraction(x) for x in values] + [Fraction(0)]
    g, decay = Fraction(gamma), Fraction(gamma) * Fraction(lam)
    deltas = [r[i] + g * v[i + 1] - v[i] for i in range(len(r))]
    return [sum((decay ** (j - i) * deltas[j] for j in range(i, len(r))), Fraction(0)) for i in range(len(r))]


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.9, 0.8), (1.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("seed", range(3))
def test_gae_agrees_with_the_double_sum_over_the_steps_that_are_there(gamma: float, lam: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewards, values, mask = rng.normal(size=(4, 7)), rng.normal(size=(4, 7)), ragged_mask(rng, 4, 7)
    expected = gae(rewards, values, mask, gamma, lam)
    for b in range(4):
        exact = gae_by_double_sum(rewards[b, mask[b]], values[b, mask[b]], gamma, lam)
        np.testing.assert_allclose(expected.value[b, mask[b]], [float(x) for x in exact], rtol=1e-13, atol=1e-14)
    assert not expected.value[~mask].any()
    np.testing.assert_array_equal(expected.scale == 0, ~mask)


def test_what_stands_at_masked_steps_reaches_nothing() -> None:
    rng = np.random.default_rng(3)
    rewards, values, mask = rng.normal(size=(4, 7)), rng.normal(size=(4, 7)), ragged_mask(rng, 4, 7)
    clean = gae(rewards, values, mask, 0.9, 0.8)
    rewards[~mask], values[~mask] = np.nan, np.inf
    dirty = gae(rewards, values, mask, 0.9, 0.8)
    np.testing.assert_array_equal(dirty.value, clean.value)
    np.testing.assert_array_equal(dirty.scale, clean.scale)


def test_usual_float32_formulas_stay_within_the_scale() -> None:
    rng = np.random.default_rng(4)
    for steps in (1, 8, 200):
        rewards = rng.normal(size=(5, steps)).astype(np.float32)
        values = rng.normal(size=(5, steps)).astype(np.float32)
        to_go = reward_to_go(rewards.astype(np.float64))
        backwards = np.cumsum(rewards[:, ::-1], axis=1)[:, ::-1]
        forwards = rewards.sum(1, keepdims=True) - np.cumsum(rewards, axis=1) + rewards
        advantages = gae(rewards.astype(np.float64), values.astype(np.float64), np.ones((5, steps)), 1.0, 1.0)
        gammas = np.float32(0.95) ** np.arange(steps, dtype=np.float32)
        discounted = reward_to_go(rewards.astype(np.float64), float(np.float32(0.95)))
        powers = np.stack([(rewards[:, t:] * gammas[: steps - t]).sum(1) for t in range(steps)], axis=1)
        for formula, value, expected in (
            ("backwards cumulative sum", backwards, to_go),
            ("total minus prefix sum", forwards, to_go),
            ("powers of gamma", powers, discounted),
            ("return minus value", backwards - values, advantages),
        ):
            assert value.dtype == np.float32
            bound = 16 * FLOAT32_EPS * expected.scale * (1 + expected.terms / 64)
            assert (abs(value - expected.value) <= bound).all(), formula


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reward_to_go([1.0]), "rewards: has shape [1], expected [B, T]"),
        (lambda: reward_to_go([[1, 0]]), "rewards: has dtype int64, expected a floating dtype"),
        (lambda: gae([[1, 0]], [[0.0, 0.0]], [[1, 1]], 1.0, 1.0), "rewards: has dtype int64"),
        (lambda: gae([1.0], [1.0], [1], 1.0, 1.0), "rewards: has shape [1], expected [B, T]"),
        (lambda: gae([[1.0]], [[1.0, 2.0]], [[1]], 1.0, 1.0), "values: has shape [1, 2], expected [B, T] = [1, 1]"),
        (lambda: gae([[1.0]], [[1.0]], [1], 1.0, 1.0), "mask: has shape [1], expected [B, T] = [1, 1]"),
        (lambda: gae([[1.0]], [[1.0]], [[0.5]], 1.0, 1.0), "mask: has the entry 0.5, expected 0 or 1"),
    ],
)
def test_a_wrong_argument_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
