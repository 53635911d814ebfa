"""Whitening against the statistics module, KL rewards and the penalty for length against fractions."""

import math
import statistics
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rlassay_spec.convention import Convention
from rlassay_spec.oracles.shaping import kl_rewards, overlong_penalty, whiten
from tests.spec.support import log_probs_like, ragged_mask

FLOAT32_EPS = float(np.finfo(np.float32).eps)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("eps", [0.0, 1e-6, 0.3])
@pytest.mark.parametrize("place", ["added", "inside", "floor"])
def test_whitened_entries_agree_with_the_deviation_of_a_list(ddof: int, eps: float, place: str) -> None:
    rng = np.random.default_rng(0)
    values, mask = 0.4 * rng.normal(size=(4, 6)) + 1.0, ragged_mask(rng, 4, 6)
    chosen = values[mask].tolist()
    deviation = statistics.stdev(chosen) if ddof else statistics.pstdev(chosen)
    divisor = {"added": deviation + eps, "inside": math.hypot(deviation, eps**0.5), "floor": max(deviation, eps)}
    convention = Convention(std_ddof=ddof, std_eps=eps, std_eps_place=place)
    expected = whiten(values, mask, convention=convention)
    exact = [(entry - statistics.fmean(chosen)) / divisor[place] for entry in chosen]
    np.testing.assert_allclose(expected.value[mask], exact, rtol=1e-12)
    assert not expected.value[~mask].any()
    np.testing.assert_array_equal(expected.scale == 0, ~mask)


def test_whitened_entries_of_known_values() -> None:
    expected = whiten([[1.0, 9.0], [0.0, 2.0]], [[1, 0], [1, 1]])
    np.testing.assert_allclose(expected.value, [[0, 0], [-(1.5**0.5), 1.5**0.5]], rtol=1e-15)


def test_the_variance_between_rows_belongs_to_that_of_the_batch() -> None:
    """Rows (0, 2) and (10, 12): σ = √26 = 5.099, not the 1 that both rows have."""
    value = whiten([[0.0, 2.0], [10.0, 12.0]], np.ones((2, 2))).value
    np.testing.assert_allclose(value, np.array([[-6, -4], [4, 6]]) / math.sqrt(26), rtol=1e-15)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("eps", [0.0, 1e-4])
@pytest.mark.parametrize("mask", [[[1, 1, 1]], [[0, 1, 0]], [[0, 0, 0]]])
def test_entries_without_contrast_are_exactly_0(ddof: int, eps: float, mask: list[list[int]]) -> None:
    expected = whiten([[0.1, 0.1, 0.1]], mask, convention=Convention(std_ddof=ddof, std_eps=eps))
    assert not expected.value.any()
    assert not expected.scale.any()


def test_what_stands_at_masked_places_reaches_nothing() -> None:
    rng = np.random.default_rng(1)
    first, second, mask = rng.normal(size=(4, 5)), rng.normal(size=(4, 5)), ragged_mask(rng, 4, 5)
    rewards = rng.normal(size=4)
    clean = whiten(first, mask), kl_rewards(rewards, first, second, mask, 0.1)
    first[~mask], second[~mask] = np.nan, np.inf
    dirty = whiten(first, mask), kl_rewards(rewards, first, second, mask, 0.1)
    for before, after in zip(clean, dirty, strict=True):
        np.testing.assert_array_equal(before.value, after.value)
        np.testing.assert_array_equal(before.scale, after.scale)


def test_unmasked_values_that_are_not_finite_are_free() -> None:
    expected = whiten([[np.nan, 1.0, 2.0]], [[1, 1, 0]])
    np.testing.assert_array_equal(np.isnan(expected.value), [[True, True, False]])
    np.testing.assert_array_equal(expected.scale, [[np.inf, np.inf, 0.0]])


@pytest.mark.parametrize("beta", [0.0, 0.1, 2.0])
def test_kl_rewards_agree_with_exact_sums(beta: float) -> None:
    rng = np.random.default_rng(2)
    new, mask, rewards = log_probs_like(rng, (4, 6)), ragged_mask(rng, 4, 6), rng.normal(size=4)
    ref = log_probs_like(rng, (4, 6))
    expected = kl_rewards(rewards, new, ref, mask, beta)
    for b in range(4):
        last = max((t for t in range(6) if mask[b, t]), default=None)
        for t in range(6):
            exact = -Fraction(beta) * (Fraction(new[b, t]) - Fraction(ref[b, t])) if mask[b, t] else Fraction(0)
            exact += Fraction(rewards[b]) if t == last else 0
            assert expected.value[b, t] == pytest.approx(float(exact), rel=1e-13, abs=1e-15)
            assert (expected.scale[b, t] == 0) == (not mask[b, t] or (beta == 0 and t != last))


def test_the_reward_is_added_at_the_last_token_and_never_on_padding() -> None:
    value = kl_rewards(
        [1.0, 5.0], [[-1.0, -2.0, -3.0]] * 2, [[-2.0, -2.5, -9.0]] * 2, [[1, 1, 0], [0, 0, 0]], 0.5
    ).value
    np.testing.assert_array_equal(value, [[-0.5, 0.75, 0.0], [0.0, 0.0, 0.0]])


def test_a_row_sums_to_the_reward_of_the_whole_sequence() -> None:
    rng = np.random.default_rng(3)
    new, ref, rewards = log_probs_like(rng, (3, 7)), log_probs_like(rng, (3, 7)), rng.normal(size=3)
    value = kl_rewards(rewards, new, ref, np.ones((3, 7)), 0.2).value
    np.testing.assert_allclose(value.sum(axis=1), rewards - 0.2 * (new.sum(axis=1) - ref.sum(axis=1)), rtol=1e-13)


@pytest.mark.parametrize(("max_length", "buffer"), [(16, 4), (10, 10), (7, 1), (9, 4), (20480, 4096)])
def test_the_penalty_agrees_with_the_line_through_its_ends(max_length: int, buffer: int) -> None:
    lengths = np.unique(np.linspace(0, 2 * max_length, 60, dtype=np.int64))
    expected = overlong_penalty(lengths, max_length, buffer)
    for length, value in zip(lengths.tolist(), expected.value, strict=True):
        share = min(max(Fraction(length - (max_length - buffer), buffer), Fraction(0)), Fraction(1))
        assert value == pytest.approx(-float(share), rel=1e-15)
    np.testing.assert_array_equal(expected.scale == 0, lengths <= max_length - buffer)


def test_the_penalty_starts_at_the_buffers_begin_not_at_its_length() -> None:
    np.testing.assert_array_equal(overlong_penalty([80, 90, 100, 101], 100, 20).value, [0.0, -0.5, -1.0, -1.0])


def test_usual_float32_formulas_stay_within_the_scale() -> None:
    rng = np.random.default_rng(4)
    values = (rng.normal(size=(3, 40)) + 20).astype(np.float32)
    expected = whiten(values.astype(np.float64), np.ones((3, 40)))
    two_pass = (values - values.mean()) / values.std()
    bound = 16 * FLOAT32_EPS * expected.scale * (1 + expected.terms / 64)
    assert (abs(two_pass - expected.value) <= bound).all()
    lengths = np.arange(0, 20500, 7)
    penalty = overlong_penalty(lengths, 20480, 4096)
    quotients = np.float32(20480 / 4096 - 1) - lengths.astype(np.float32) / np.float32(4096)
    quotients = np.clip(quotients, np.float32(-1), np.float32(0))
    assert quotients.dtype == np.float32
    assert (abs(quotients - penalty.value) <= 8 * FLOAT32_EPS * penalty.scale).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: whiten([1.0], [1]), "values: has shape [1], expected [B, T]"),
        (lambda: whiten([[1.0]], [[1, 1]]), "mask: has shape [1, 2], expected [B, T] = [1, 1]"),
        (lambda: whiten([[1.0]], [[0.5]]), "mask: has the entry 0.5, expected 0 or 1"),
        (lambda: kl_rewards([1], [[1.0]], [[1.0]], [[1]], 0.1), "rewards: has dtype int64, expected a floating dtype"),
        (lambda: kl_rewards([1.0, 2.0], [[1.0]], [[1.0]], [[1]], 0.1), "rewards: has shape [2], expected [B] = [1]"),
        (lambda: kl_rewards([1.0], [1.0], [[1.0]], [[1]], 0.1), "log_probs: has shape [1], expected [B, T]"),
        (lambda: kl_rewards([1.0], [[1.0]], [[1.0, 2.0]], [[1]], 0.1), "ref_log_probs: has shape [1, 2]"),
        (lambda: kl_rewards([1.0], [[1.0]], [[1.0]], [[2]], 0.1), "mask: has the entry 2, expected 0 or 1"),
        (lambda: kl_rewards([1.0], [[1.0]], [[1.0]], [[1]], -0.1), "beta: is -0.1, expected a number ≥ 0"),
        (lambda: kl_rewards([1.0], [[1.0]], [[1.0]], [[1]], math.nan), "beta: is nan, expected a number ≥ 0"),
        (lambda: overlong_penalty([[1]], 4, 2), "lengths: has shape [1, 1], expected [B]"),
        (lambda: overlong_penalty([3, -1], 4, 2), "lengths: has -1, expected ≥ 0"),
        (lambda: overlong_penalty([3], 4, 0), "buffer: has 0, expected 1..4"),
        (lambda: overlong_penalty([3], 4, 5), "buffer: has 5, expected 1..4"),
    ],
)
def test_a_wrong_argument_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
