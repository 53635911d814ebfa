"""The losses against array formulas, differences, fractions and other formulas in float32."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention
from rlassay_spec.operations import OPERATIONS
from rlassay_spec.oracles.advantage import grpo_advantages
from rlassay_spec.oracles.expected import Expected, FloatArray
from rlassay_spec.oracles.kl import kl_k3
from rlassay_spec.oracles.loss import (
    aggregate,
    clipped_loss,
    dr_grpo_loss,
    grpo_loss,
    grpo_objective,
    microbatch_loss,
    policy_gradient_loss,
    reinforce_loss,
    rest_loss,
    sft_loss,
    value_loss,
)
from tests.spec.support import CONVENTIONS_OF_MEANS, answer, assert_pullback, example, log_probs_like, ragged_mask

FLOAT32_EPS = float(np.finfo(np.float32).eps)
LOSSES = [operation.name for operation in OPERATIONS.values() if operation.topic == "loss"]
TOKEN_ARGUMENTS = ("values", "log_probs", "old_log_probs", "ref_log_probs", "weights", "old_values", "returns")

every_loss = pytest.mark.parametrize("name", LOSSES)
every_mean = pytest.mark.parametrize("convention", CONVENTIONS_OF_MEANS, ids=lambda c: c.name.replace(" ", "-"))


def mean_by_arrays(x: Any, mask: Any, convention: Convention, mode: str | None = None, constant: Any = None) -> Any:
    """The mean of the masked-in entries, written with whole arrays, in the precision of x."""
    mode, constant = mode or convention.aggregation, constant or convention.aggregation_constant
    kept = np.where(mask, x, np.zeros((), x.dtype))
    rows = len(mask) if convention.empty_rows == "counted" else mask.any(axis=1).sum()
    if mode == "token_mean":
        return kept.sum() / max(mask.sum(), 1)
    per_row = kept.sum(axis=1)
    if mode == "sequence_mean":
        per_row = per_row / np.maximum(mask.sum(axis=1), 1).astype(x.dtype)
    if mode == "constant":
        per_row = per_row / x.dtype.type(constant)
    return per_row.sum() / max(rows, 1)


def surrogate_by_arrays(ratio: Any, advantages: Any, low: float, high: float) -> Any:
    """The piecewise form of the clipped surrogate, negated."""
    a = advantages[:, None]
    return -np.where(a >= 0, np.minimum(ratio, 1 + high), np.maximum(ratio, 1 - low)) * a


def by_arrays(name: str, arguments: tuple[Any, ...], convention: Convention) -> Any:
    """Every loss once more, from whole arrays."""
    x = arguments[0]
    if name == "aggregate":
        return mean_by_arrays(x, arguments[1], convention, arguments[2])
    if name == "sft_loss":
        return mean_by_arrays(-x, arguments[1], convention)
    if name == "rest_loss":
        return mean_by_arrays(np.where(arguments[2] == 1, 1.0, 0.0)[:, None] * -x, arguments[1], convention)
    if name == "reinforce_loss":
        return mean_by_arrays(-(arguments[2] - arguments[3])[:, None] * x, arguments[1], convention)
    if name == "policy_gradient_loss":
        return mean_by_arrays(-arguments[2] * x, arguments[1], convention)
    if name == "grpo_loss":
        return mean_by_arrays(-arguments[2][:, None] * x, arguments[1], convention)
    if name == "dr_grpo_loss":
        return mean_by_arrays(-arguments[2][:, None] * x, arguments[1], convention, "constant", arguments[3])
    if name == "clipped_loss":
        _, old, mask, advantages, low, high = arguments
        return mean_by_arrays(surrogate_by_arrays(np.exp(x - old), advantages, low, high), mask, convention)
    if name == "grpo_objective":
        _, old, ref, mask, rewards, beta, low, high = arguments
        advantages = grpo_advantages(rewards, convention=convention).value.ravel()
        k3 = np.exp(ref - x) - (ref - x) - 1
        return mean_by_arrays(surrogate_by_arrays(np.exp(x - old), advantages, low, high) + beta * k3, mask, convention)
    if name == "microbatch_loss":
        _, mask, advantages, sequences, tokens = arguments
        loss = -advantages[:, None] * x
        if convention.aggregation == "token_mean":
            return mean_by_arrays(loss, mask, convention) * mask.sum() / tokens
        counted = replace(convention, empty_rows="counted")
        return mean_by_arrays(loss, mask, counted) * len(mask) / sequences
    _, old, returns, mask, clip = arguments
    clipped = np.clip(x, old - clip, old + clip)
    return mean_by_arrays(np.maximum((x - returns) ** 2, (clipped - returns) ** 2) / 2, mask, convention)


def with_first(name: str, arguments: tuple[Any, ...], convention: Convention) -> Callable[[FloatArray], Expected]:
    return lambda x: answer(name, (x, *arguments[1:]), convention)


@every_loss
@every_mean
@pytest.mark.parametrize("seed", range(2))
def test_a_loss_agrees_with_its_array_formula(name: str, convention: Convention, seed: int) -> None:
    arguments = example(name, seed)
    expected = answer(name, arguments, convention)
    assert expected.value.shape == ()
    assert expected.value == pytest.approx(by_arrays(name, arguments, convention), rel=1e-12, abs=1e-14)
    assert expected.scale >= abs(expected.value)


@every_loss
@every_mean
def test_the_gradient_of_a_loss_agrees_with_differences(name: str, convention: Convention) -> None:
    arguments = example(name, 3)
    assert_pullback(with_first(name, arguments, convention), arguments[0], 3)


@pytest.mark.parametrize("mode", ["sequence_sum", "sequence_mean", "token_mean", "constant"])
@pytest.mark.parametrize("rows", ["counted", "dropped"])
def test_the_mode_of_aggregate_takes_the_place_of_the_convention(mode: str, rows: str) -> None:
    values, mask, _ = example("aggregate", 4)
    convention = Convention(empty_rows=rows, aggregation="constant", aggregation_constant=3.0)
    expected = aggregate(values, mask, mode, 5.0, convention=convention)
    assert expected.value == pytest.approx(mean_by_arrays(values, mask, convention, mode, 5.0), rel=1e-13)
    assert_pullback(lambda x: aggregate(x, mask, mode, 5.0, convention=convention), values, 4)


def test_the_modes_on_a_ragged_batch_in_fractions() -> None:
    values = [[1.0, 2.0, 4.0], [8.0, 0.0, 0.0], [16.0, 16.0, 16.0]]
    mask = [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
    for mode, counted, dropped in (
        ("sequence_sum", Fraction(15, 3), Fraction(15, 2)),
        ("sequence_mean", (Fraction(7, 3) + 8) / 3, (Fraction(7, 3) + 8) / 2),
        ("token_mean", Fraction(15, 4), Fraction(15, 4)),
        ("constant", Fraction(15, 3 * 10), Fraction(15, 2 * 10)),
    ):
        assert aggregate(values, mask, mode, 10.0).value == pytest.approx(float(counted), rel=1e-15)
        expected = aggregate(values, mask, mode, 10.0, convention=Convention(empty_rows="dropped"))
        assert expected.value == pytest.approx(float(dropped), rel=1e-15)


@every_loss
@every_mean
def test_what_stands_at_masked_places_reaches_nothing(name: str, convention: Convention) -> None:
    arguments, dirty_arguments = example(name, 5), example(name, 5)
    names = OPERATIONS[name].parameters
    mask = arguments[names.index("mask")]
    assert (~mask).any()
    for argument, dirt in zip(TOKEN_ARGUMENTS, (np.nan, np.inf, -np.inf, np.nan, np.inf, np.nan, -np.inf), strict=True):
        if argument in names:
            dirty_arguments[names.index(argument)][~mask] = dirt
    clean, dirty = answer(name, arguments, convention), answer(name, dirty_arguments, convention)
    np.testing.assert_array_equal(dirty.value, clean.value)
    np.testing.assert_array_equal(dirty.scale, clean.scale)
    assert clean.pullback is not None and dirty.pullback is not None
    gradient, clean_gradient = dirty.pullback(-2.0), clean.pullback(-2.0)
    np.testing.assert_array_equal(gradient.value, clean_gradient.value)
    np.testing.assert_array_equal(gradient.scale, clean_gradient.scale)
    np.testing.assert_array_equal(gradient.kink, clean_gradient.kink)
    assert not gradient.value[~mask].any() and not gradient.scale[~mask].any() and np.isinf(gradient.kink[~mask]).all()


@every_loss
@every_mean
def test_nothing_masked_in_gives_zero_with_zero_gradient(name: str, convention: Convention) -> None:
    arguments = example(name, 6)
    arguments[OPERATIONS[name].parameters.index("mask")][:] = False
    if name == "microbatch_loss":
        arguments = (*arguments[:3], 0, 0)
    expected = answer(name, arguments, convention)
    assert expected.value == 0 and expected.scale == 0
    assert expected.pullback is not None
    gradient = expected.pullback(1.0)
    assert not gradient.value.any() and not gradient.scale.any()


@pytest.mark.parametrize(
    ("convention", "lengths", "free"),
    [
        (CONVENTIONS["cs336"], (2, 0), True),
        (CONVENTIONS["cs336"], (2, 1), False),
        (Convention(aggregation="token_mean", empty_mean="free"), (2, 0), False),
        (Convention(aggregation="token_mean", empty_mean="free"), (0, 0), True),
        (Convention(aggregation="sequence_mean", empty_rows="dropped", empty_mean="free"), (2, 0), False),
        (Convention(aggregation="sequence_sum", empty_rows="dropped", empty_mean="free"), (0, 0), True),
        (Convention(aggregation="sequence_sum", empty_mean="free"), (0, 0), False),
        (Convention(aggregation="token_mean"), (0, 0), False),
    ],
)
def test_the_mean_over_no_token_may_be_free(convention: Convention, lengths: tuple[int, int], free: bool) -> None:
    mask = [[t < length for t in range(3)] for length in lengths]
    expected = sft_loss(-np.ones((2, 3)), mask, convention=convention)
    assert np.isnan(expected.value) == np.isinf(expected.scale) == free
    assert expected.pullback is not None
    gradient = expected.pullback(1.0)
    assert np.isnan(gradient.value).all() == np.isinf(gradient.scale).all() == free


def test_rest_is_reinforce_for_binary_rewards() -> None:
    rng = np.random.default_rng(7)
    log_probs, mask = log_probs_like(rng, (4, 5)), ragged_mask(rng, 4, 5)
    rewards = np.array([1.0, 0.0, 1.0, 0.0])
    for convention in CONVENTIONS_OF_MEANS:
        rest = rest_loss(log_probs, mask, rewards, convention=convention)
        reinforce = reinforce_loss(log_probs, mask, rewards, np.zeros(4), convention=convention)
        assert rest.value == reinforce.value
        assert rest.pullback is not None and reinforce.pullback is not None
        np.testing.assert_array_equal(rest.pullback(1.0).value, reinforce.pullback(1.0).value)
    assert not rest_loss(log_probs, mask, np.full(4, 1 + 1e-15)).value.any()


def test_every_loss_is_the_weighted_one() -> None:
    rng = np.random.default_rng(8)
    log_probs, mask = log_probs_like(rng, (4, 5)), ragged_mask(rng, 4, 5)
    rewards, baselines = rng.normal(size=4), rng.normal(size=4)
    weights = np.repeat((rewards - baselines)[:, None], 5, axis=1)
    for convention in CONVENTIONS_OF_MEANS:
        weighted = policy_gradient_loss(log_probs, mask, weights, convention=convention).value
        assert weighted == pytest.approx(float(grpo_loss(log_probs, mask, weights[:, 0], convention=convention).value))
        reinforce = reinforce_loss(log_probs, mask, rewards, baselines, convention=convention)
        assert weighted == pytest.approx(float(reinforce.value))
        ones = policy_gradient_loss(log_probs, mask, np.ones((4, 5)), convention=convention)
        assert ones.value == pytest.approx(float(sft_loss(log_probs, mask, convention=convention).value))


def test_dr_grpo_follows_empty_rows_only() -> None:
    log_probs, mask, advantages, constant = example("dr_grpo_loss", 9)
    values = {
        rows: {
            float(dr_grpo_loss(log_probs, mask, advantages, constant, convention=convention).value)
            for convention in CONVENTIONS_OF_MEANS
            if convention.empty_rows == rows
        }
        for rows in ("counted", "dropped")
    }
    assert len(values["counted"]) == len(values["dropped"]) == 1
    assert values["dropped"].pop() == pytest.approx(values["counted"].pop() * 4 / mask.any(axis=1).sum())


@every_mean
def test_the_shares_of_microbatches_add_up_to_the_loss(convention: Convention) -> None:
    log_probs, mask, advantages = example("grpo_loss", 10)
    rows = len(mask) if convention.empty_rows == "counted" else int(mask.any(axis=1).sum())
    parts = [
        microbatch_loss(log_probs[part], mask[part], advantages[part], rows, int(mask.sum()), convention=convention)
        for part in (slice(0, 1), slice(1, 4))
    ]
    whole = grpo_loss(log_probs, mask, advantages, convention=convention)
    assert sum(float(part.value) for part in parts) == pytest.approx(float(whole.value), rel=1e-13)
    gradients = [part.pullback(1.0).value for part in parts if part.pullback is not None]
    assert whole.pullback is not None
    np.testing.assert_allclose(np.concatenate(gradients), whole.pullback(1.0).value, rtol=1e-13)


def one_token(advantage: float, log_ratio: float, convention: Convention = LECTURE) -> tuple[float, float, float]:
    """Value, gradient and kink of the clipped loss of one token, with the bounds 0.8 and 1.28."""
    expected = clipped_loss([[log_ratio - 2.0]], [[-2.0]], [[1]], [advantage], 0.2, 0.28, convention=convention)
    assert expected.pullback is not None
    gradient = expected.pullback(1.0)
    return float(expected.value), float(gradient.value[0, 0]), float(gradient.kink[0, 0])


def test_the_gradient_dies_only_beyond_the_bound_that_the_sign_heads_for() -> None:
    below, inside, above = math.log(0.5), math.log(1.1), math.log(2.0)
    for advantage, log_ratio, value, gradient in (
        (2.0, below, -1.0, -1.0),
        (2.0, inside, -2.2, -2.2),
        (2.0, above, -2.56, 0.0),
        (-2.0, below, 1.6, 0.0),
        (-2.0, inside, 2.2, 2.2),
        (-2.0, above, 4.0, 4.0),
        (0.0, inside, 0.0, 0.0),
    ):
        assert one_token(advantage, log_ratio)[:2] == pytest.approx((value, gradient), rel=1e-14)


@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_the_kink_is_the_distance_to_the_nearest_clip_bound(advantage: float) -> None:
    for log_ratio in (-1.0, math.log(0.8), 0.0, math.log(1.28), 1.0):
        distance = min(abs(log_ratio - math.log(0.8)), abs(log_ratio - math.log(1.28)))
        assert one_token(advantage, log_ratio)[2] == pytest.approx(distance, abs=1e-15)


def test_without_advantage_there_is_no_kink() -> None:
    assert one_token(0.0, math.log(1.28)) == (0.0, 0.0, math.inf)


def test_a_lower_clip_of_one_or_more_bounds_nothing() -> None:
    expected = clipped_loss([[-9.0]], [[-2.0]], [[1]], [-1.0], 1.0, 0.2)
    assert expected.value == pytest.approx(math.exp(-7.0))
    assert expected.pullback is not None
    assert expected.pullback(1.0).value[0, 0] == pytest.approx(math.exp(-7.0))


def test_the_log_ratio_clamp_bounds_the_ratio_and_stops_the_gradient() -> None:
    clamped = Convention(log_ratio_clamp=0.1)
    assert one_token(-1.0, 0.5, clamped)[:2] == pytest.approx((math.exp(0.1), 0.0))
    assert one_token(1.0, -0.5, clamped)[:2] == pytest.approx((-math.exp(-0.1), 0.0))
    assert one_token(-1.0, -0.15, clamped) == pytest.approx((math.exp(-0.1), 0.0, 0.05))
    assert one_token(1.0, 0.15, clamped) == pytest.approx((-math.exp(0.1), 0.0, 0.05))
    assert one_token(1.0, 0.05, clamped) == pytest.approx((-math.exp(0.05), -math.exp(0.05), 0.05))
    assert one_token(1.0, 0.1, clamped)[2] == pytest.approx(0.0, abs=1e-15)
    assert one_token(1.0, 0.5, Convention(log_ratio_clamp=20.0))[:2] == one_token(1.0, 0.5)[:2]
    arguments = example("clipped_loss", 11)
    assert_pullback(with_first("clipped_loss", arguments, clamped), arguments[0], 11)


@pytest.mark.parametrize(
    "convention",
    [
        Convention(std_ddof=1, std_eps=1e-4, aggregation="token_mean"),
        Convention(std_eps=0.1, std_eps_place="inside", aggregation="sequence_mean", empty_rows="dropped"),
        Convention(std_eps=0.7, std_eps_place="floor", aggregation="constant", aggregation_constant=9.0),
    ],
)
def test_the_whole_objective_follows_the_statistics_of_the_convention(convention: Convention) -> None:
    arguments = example("grpo_objective", 12)
    expected = grpo_objective(*arguments, convention=convention)
    assert expected.value == pytest.approx(by_arrays("grpo_objective", arguments, convention), rel=1e-12)
    assert_pullback(with_first("grpo_objective", arguments, convention), arguments[0], 12)


def test_the_whole_objective_clamps_k3_but_not_its_log_ratio() -> None:
    arguments = example("grpo_objective", 13)
    x, _, ref, mask, rewards, beta, *_ = arguments
    convention = Convention(k3_clamp=0.03, log_ratio_clamp=1e-9)
    k3 = np.minimum(np.exp(ref - x) - (ref - x) - 1, 0.03)
    advantages = grpo_advantages(rewards).value.ravel()
    expected = mean_by_arrays(surrogate_by_arrays(np.ones_like(x), advantages, 0.2, 0.28) + beta * k3, mask, LECTURE)
    assert grpo_objective(*arguments, convention=convention).value == pytest.approx(expected, rel=1e-7)
    clamped = Convention(k3_clamp=0.03)
    assert_pullback(with_first("grpo_objective", arguments, clamped), arguments[0], 13)


def test_without_kl_the_whole_objective_is_the_clipped_loss() -> None:
    x, old, ref, mask, rewards, _, low, high = example("grpo_objective", 14)
    whole = grpo_objective(x, old, ref, mask, rewards, 0.0, low, high)
    clipped = clipped_loss(x, old, mask, grpo_advantages(rewards).value.ravel(), low, high)
    assert whole.value == clipped.value
    assert whole.pullback is not None and clipped.pullback is not None
    np.testing.assert_array_equal(whole.pullback(1.0).value, clipped.pullback(1.0).value)


def test_a_group_without_contrast_adds_its_kl_only() -> None:
    x, old, ref, mask, _, beta, low, high = example("grpo_objective", 15)
    nothing = grpo_objective(x, old, ref, mask, np.full((2, 2), 0.1), 0.0, low, high)
    assert nothing.value == 0 and nothing.scale == 0
    assert nothing.pullback is not None
    assert not nothing.pullback(1.0).scale.any()
    k3 = np.exp(ref - x) - (ref - x) - 1
    whole = grpo_objective(x, old, ref, mask, np.full((2, 2), 0.1), beta, low, high)
    assert whole.value == pytest.approx(beta * mean_by_arrays(k3, mask, LECTURE), rel=1e-12)


def test_the_kl_of_the_whole_objective_brings_its_scale_and_its_kink() -> None:
    x, old, ref, mask, _, *_ = example("grpo_objective", 19)
    for beta in (0.01, -2.0):
        whole = grpo_objective(x, old, ref, mask, np.ones((2, 2)), beta, convention=Convention(k3_clamp=0.03))
        kl = kl_k3(x, ref, convention=Convention(k3_clamp=0.03))
        assert whole.scale == pytest.approx(abs(beta) * mean_by_arrays(kl.scale, mask, LECTURE), rel=1e-14)
        assert whole.pullback is not None and kl.pullback is not None
        gradient, of_kl = whole.pullback(4.0), kl.pullback(np.ones_like(x))
        np.testing.assert_allclose(gradient.scale[mask], abs(beta) * of_kl.scale[mask], rtol=1e-14)
        np.testing.assert_array_equal(gradient.kink[mask], of_kl.kink[mask])
    rewards = np.array([[0.0, 1.0], [1.0, 1.0]])
    clipped = clipped_loss(x, old, mask, grpo_advantages(rewards).value.ravel())
    whole = grpo_objective(x, old, ref, mask, rewards, 0.01, convention=Convention(k3_clamp=0.03))
    assert whole.pullback is not None and clipped.pullback is not None and kl.pullback is not None
    nearest = np.minimum(clipped.pullback(1.0).kink, kl.pullback(np.ones_like(x)).kink)
    np.testing.assert_array_equal(whole.pullback(1.0).kink[mask], nearest[mask])


def test_what_overflows_is_no_error() -> None:
    assert np.isnan(aggregate([[np.inf, -np.inf]], [[1, 1]], "sequence_sum").value)
    assert np.isinf(aggregate([[1.5e308, 1.5e308]], [[1, 1]], "sequence_sum").value)
    assert np.isinf(clipped_loss([[0.0]], [[-1000.0]], [[1]], [-1.0]).value)
    assert clipped_loss([[0.0]], [[-1000.0]], [[1]], [1.0]).value == -1.2


def test_free_singletons_make_the_whole_objective_free() -> None:
    x, old, ref, mask, rewards, *_ = example("grpo_objective", 16)
    expected = grpo_objective(
        x, old, ref, mask, rewards.reshape(4, 1), 0.1, convention=Convention(singleton_group="free")
    )
    assert np.isnan(expected.value) and np.isinf(expected.scale)
    assert expected.pullback is not None
    gradient = expected.pullback(1.0)
    assert np.isnan(gradient.value[mask]).all() and np.isinf(gradient.scale[mask]).all()
    assert not gradient.value[~mask].any() and not gradient.scale[~mask].any()


def one_value(value: float, target: float, clip: float | None = 0.5) -> tuple[float, float, float]:
    """Value, gradient and kink of the value loss of one step whose old value is 0."""
    expected = value_loss([[value]], [[0.0]], [[target]], [[1]], clip)
    assert expected.pullback is not None
    gradient = expected.pullback(1.0)
    return float(expected.value), float(gradient.value[0, 0]), float(gradient.kink[0, 0])


def test_the_larger_error_counts_and_only_its_gradient() -> None:
    assert one_value(2.0, 0.0) == (2.0, 2.0, 1.5)
    assert one_value(2.0, 1.5) == (0.5, 0.0, 0.5)
    assert one_value(3.0, 1.5) == (1.125, 1.5, 0.5)
    assert one_value(-2.0, -1.5) == (0.5, 0.0, 0.5)
    assert one_value(0.25, 2.0) == (1.53125, -1.75, 0.25)
    assert one_value(0.5, 0.0)[2] == 0.0
    assert one_value(2.5, 1.5)[2] == 0.0
    assert one_value(2.0, 1.5, None) == (0.125, 0.5, math.inf)


def test_without_clip_the_old_values_reach_nothing() -> None:
    values, old, returns, mask, _ = example("value_loss", 17)
    expected = value_loss(values, old, returns, mask)
    assert expected.value == value_loss(values, np.full_like(old, np.nan), returns, mask).value
    assert expected.value == pytest.approx(mean_by_arrays((values - returns) ** 2 / 2, mask, LECTURE))
    assert_pullback(lambda x: value_loss(x, old, returns, mask), values, 17)


def float32_formulas(seed: int, batch: int, steps: int, convention: Convention) -> list[tuple[str, Any, Expected]]:
    rng = np.random.default_rng(seed)
    mask = ragged_mask(rng, batch, steps)
    x, old, ref = (log_probs_like(rng, mask.shape).astype(np.float32) for _ in range(3))
    old, ref = x + np.float32(0.3) * (old - x), x + np.float32(0.3) * (ref - x)
    a = rng.normal(size=batch).astype(np.float32)
    rewards = (rng.normal(size=(2, batch // 2)) + 10).astype(np.float32)
    values, returns = (rng.normal(size=mask.shape).astype(np.float32) for _ in range(2))
    old_values = values + np.float32(0.2) * returns
    half, one, low, high = np.float32(0.5), np.float32(1), np.float32(0.8), np.float32(1.28)
    clip_low, clip_high = 1 - float(low), float(high) - 1
    ratio, quotient, negated = np.exp(x - old), np.exp(x) / np.exp(old), np.exp(old - x) ** np.float32(-1)
    normalised = ((rewards - rewards.mean(1, keepdims=True)) / rewards.std(1, keepdims=True)).ravel()[:, None]
    k3 = np.exp(ref - x) - (ref - x) - one
    clipped_value = old_values + np.clip(values - old_values, -half, half)
    wide = [array.astype(np.float64) for array in (x, old, ref, a, rewards, values, old_values, returns)]
    x64, old64, ref64, a64, rewards64, values64, old_values64, returns64 = wide
    clipped = clipped_loss(x64, old64, mask, a64, clip_low, clip_high, convention=convention)
    objective = grpo_objective(x64, old64, ref64, mask, rewards64, 0.25, clip_low, clip_high, convention=convention)
    loss_of_values = value_loss(values64, old_values64, returns64, mask, 0.5, convention=convention)

    def surrogate(r: Any, weights: Any) -> Any:
        return -np.minimum(r * weights, np.clip(r, low, high) * weights)

    def mean(per_token: Any) -> Any:
        return mean_by_arrays(per_token, mask, convention)

    column = a[:, None]
    return [
        ("mask times", (np.where(mask, -x, 0 * x)).sum() / np.float32(mask.sum()), token_mean(x64, mask)),
        ("weighted", mean(-column * x), grpo_loss(x64, mask, a64, convention=convention)),
        ("split", mean(x * old) - mean(x * ref), policy_gradient_loss(x64, mask, ref64 - old64, convention=convention)),
        ("difference", mean(surrogate(ratio, column)), clipped),
        ("quotient", mean(surrogate(quotient, column)), clipped),
        ("reciprocal", mean(surrogate(negated, column)), clipped),
        ("max of negated", mean(np.maximum(-ratio * column, -np.clip(ratio, low, high) * column)), clipped),
        ("whole", mean(surrogate(ratio, normalised) + np.float32(0.25) * k3), objective),
        ("in two parts", mean(surrogate(ratio, normalised)) + np.float32(0.25) * mean(k3), objective),
        ("max", mean(half * np.maximum((values - returns) ** 2, (clipped_value - returns) ** 2)), loss_of_values),
    ]


def token_mean(log_probs: FloatArray, mask: Any) -> Expected:
    return sft_loss(log_probs, mask, convention=Convention(aggregation="token_mean"))


@every_mean
@pytest.mark.parametrize(("batch", "steps"), [(4, 3), (6, 40)])
def test_usual_float32_formulas_stay_within_the_scale(convention: Convention, batch: int, steps: int) -> None:
    for seed in range(5):
        for formula, value, expected in float32_formulas(seed, batch, steps, convention):
            assert np.asarray(value, dtype=np.float64).shape == ()
            bound = 16 * FLOAT32_EPS * expected.scale * (1 + expected.terms / 1024)
            assert abs(float(value) - float(expected.value)) <= bound, formula


def test_a_value_that_meets_its_return_has_the_rounding_of_the_clip_only() -> None:
    rng = np.random.default_rng(18)
    values, old = rng.normal(size=(2, 200)).astype(np.float32)
    again = old + np.clip(values - old, np.float32(-9), np.float32(9))
    errors = np.float32(0.5) * np.maximum((values - values) ** 2, (again - values) ** 2)
    assert errors.any()
    for value, before, error in zip(values.tolist(), old.tolist(), errors.tolist(), strict=True):
        expected = value_loss([[value]], [[before]], [[value]], [[1]], 9.0)
        assert abs(error - float(expected.value)) <= 16 * FLOAT32_EPS * expected.scale


PAIR, ONES, ROW = np.full((1, 2), -1.0), np.ones((1, 2)), np.ones(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aggregate(ROW, ONES, "token_mean"), "values: has shape [1], expected [B, T]"),
        (lambda: aggregate(PAIR, ROW, "token_mean"), "mask: has shape [1], expected [B, T] = [1, 2]"),
        (lambda: aggregate(PAIR, 2 * ONES, "token_mean"), "mask: has the entry 2.0, expected 0 or 1"),
        (lambda: aggregate(PAIR, ONES, "mean"), "mode: is 'mean', expected one of 'sequence_sum', 'sequence_mean'"),
        (lambda: aggregate(PAIR, ONES, "constant"), "constant: is None, expected a number > 0"),
        (lambda: aggregate(PAIR, ONES, "constant", 0.0), "constant: is 0.0, expected a number > 0"),
        (lambda: sft_loss(ROW, ROW), "log_probs: has shape [1], expected [B, T]"),
        (lambda: sft_loss(PAIR, ONES[:, :1]), "mask: has shape [1, 1], expected [B, T] = [1, 2]"),
        (lambda: sft_loss(PAIR, [[1, -1]]), "mask: has the entry -1, expected 0 or 1"),
        (lambda: rest_loss(ROW, ROW, ROW), "log_probs: has shape [1]"),
        (lambda: rest_loss(PAIR, [[1, 2]], ROW), "mask: has the entry 2"),
        (lambda: rest_loss(PAIR, ONES, np.ones(2)), "rewards: has shape [2], expected [B] = [1]"),
        (lambda: rest_loss(PAIR, ONES, [1]), "rewards: has dtype int64, expected a floating dtype"),
        (lambda: reinforce_loss(ROW, ROW, ROW, ROW), "log_probs: has shape [1]"),
        (lambda: reinforce_loss(PAIR, [[np.nan, 1]], ROW, ROW), "mask: has the entry nan"),
        (lambda: reinforce_loss(PAIR, ONES, [[1.0]], ROW), "rewards: has shape [1, 1], expected [B] = [1]"),
        (lambda: reinforce_loss(PAIR, ONES, [1], ROW), "rewards: has dtype int64, expected a floating dtype"),
        (lambda: reinforce_loss(PAIR, ONES, ROW, np.ones(2)), "baselines: has shape [2], expected [B] = [1]"),
        (lambda: policy_gradient_loss(ROW, ROW, ROW), "log_probs: has shape [1]"),
        (lambda: policy_gradient_loss(PAIR, [[0.5, 1]], ONES), "mask: has the entry 0.5"),
        (lambda: policy_gradient_loss(PAIR, ONES, ROW), "weights: has shape [1], expected [B, T] = [1, 2]"),
        (lambda: grpo_loss(ROW, ROW, ROW), "log_probs: has shape [1]"),
        (lambda: grpo_loss(PAIR, [[3, 1]], ROW), "mask: has the entry 3"),
        (lambda: grpo_loss(PAIR, ONES, np.ones(2)), "advantages: has shape [2], expected [B] = [1]"),
        (lambda: dr_grpo_loss(ROW, ROW, ROW, 1.0), "log_probs: has shape [1]"),
        (lambda: dr_grpo_loss(PAIR, [[3, 1]], ROW, 1.0), "mask: has the entry 3"),
        (lambda: dr_grpo_loss(PAIR, ONES, PAIR, 1.0), "advantages: has shape [1, 2], expected [B] = [1]"),
        (lambda: dr_grpo_loss(PAIR, ONES, ROW, -1.0), "constant: is -1.0, expected a number > 0"),
        (lambda: dr_grpo_loss(PAIR, ONES, ROW, None), "constant: is None, expected a number > 0"),  # type: ignore[arg-type]
        (lambda: clipped_loss(ROW, ROW, ROW, ROW), "log_probs: has shape [1]"),
        (lambda: clipped_loss(PAIR, ROW, ONES, ROW), "old_log_probs: has shape [1], expected [B, T] = [1, 2]"),
        (lambda: clipped_loss(PAIR, PAIR, [[3, 1]], ROW), "mask: has the entry 3"),
        (lambda: clipped_loss(PAIR, PAIR, ONES, PAIR), "advantages: has shape [1, 2], expected [B] = [1]"),
        (lambda: grpo_objective(ROW, ROW, ROW, ROW, [[1.0]], 0.1), "log_probs: has shape [1]"),
        (lambda: grpo_objective(PAIR, ROW, PAIR, ONES, [[1.0]], 0.1), "old_log_probs: has shape [1]"),
        (lambda: grpo_objective(PAIR, PAIR, ROW, ONES, [[1.0]], 0.1), "ref_log_probs: has shape [1]"),
        (lambda: grpo_objective(PAIR, PAIR, PAIR, [[3, 1]], [[1.0]], 0.1), "mask: has the entry 3"),
        (lambda: grpo_objective(PAIR, PAIR, PAIR, ONES, [1.0], 0.1), "rewards: has shape [1], expected [N, G]"),
        (lambda: grpo_objective(PAIR, PAIR, PAIR, ONES, [[1]], 0.1), "rewards: has dtype int64"),
        (
            lambda: grpo_objective(PAIR, PAIR, PAIR, ONES, np.zeros((1, 0)), 0.1),
            "rewards: has shape [1, 0], expected [N, G] with G ≥ 1",
        ),
        (
            lambda: grpo_objective(PAIR, PAIR, PAIR, ONES, np.zeros((1, 2)), 0.1),
            "rewards: has shape [1, 2], expected [N, G] with N·G = 1",
        ),
        (
            lambda: grpo_objective(
                PAIR, PAIR, PAIR, ONES, [[1.0]], 0.1, convention=Convention(singleton_group="error")
            ),
            "rewards: has shape [1, 1], expected [N, G] with G ≥ 2",
        ),
        (lambda: microbatch_loss(ROW, ROW, ROW, 1, 1), "log_probs: has shape [1]"),
        (lambda: microbatch_loss(PAIR, [[3, 1]], ROW, 1, 2), "mask: has the entry 3"),
        (lambda: microbatch_loss(PAIR, ONES, PAIR, 1, 2), "advantages: has shape [1, 2], expected [B] = [1]"),
        (lambda: value_loss(ROW, ROW, ROW, ROW), "values: has shape [1], expected [B, T]"),
        (lambda: value_loss(PAIR, ROW, PAIR, ONES), "old_values: has shape [1], expected [B, T] = [1, 2]"),
        (lambda: value_loss(PAIR, PAIR, ROW, ONES), "returns: has shape [1], expected [B, T] = [1, 2]"),
        (lambda: value_loss(PAIR, PAIR, PAIR, [[3, 1]]), "mask: has the entry 3"),
    ],
)
def test_a_wrong_argument_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
