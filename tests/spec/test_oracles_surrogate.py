"""The other surrogates, the entropy bonus and importance weights against fifty digits, other operations and float32."""

import math
from collections.abc import Callable
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from rlassay_spec.convention import Convention
from rlassay_spec.oracles.expected import Expected, FloatArray
from rlassay_spec.oracles.log_prob import entropy
from rlassay_spec.oracles.loss import aggregate, clipped_loss
from rlassay_spec.oracles.surrogate import dual_clip_loss, entropy_bonus, gspo_loss, importance_weights
from tests.spec.support import CONVENTIONS_OF_MEANS, assert_pullback, log_probs_like, ragged_mask

FLOAT32_EPS = float(np.finfo(np.float32).eps)
LOW, HIGH, DUAL = 0.2, 0.28, 1.7
CLAMPED = Convention(log_ratio_clamp=0.4)

every_mean = pytest.mark.parametrize("convention", CONVENTIONS_OF_MEANS, ids=lambda c: c.name)
every_clamp = pytest.mark.parametrize("clamp", [None, 0.4, 0.1])


def batch(seed: int, spread: float = 0.8) -> tuple[Any, ...]:
    """Log-probs, old ones at ratios on all sides of the bounds, a ragged mask and advantages of both signs."""
    rng = np.random.default_rng(seed)
    mask = ragged_mask(rng, 5, 6)
    log_probs = log_probs_like(rng, mask.shape)
    old = log_probs - rng.normal(scale=spread, size=(5, 1)) - rng.normal(scale=spread, size=mask.shape)
    return log_probs, old, mask, np.array([1.3, -0.7, -2.0, 0.4, -1.0])


def fifty_digits(log_ratio: Any, advantage: float, clamp: float | None, dual: float | None) -> Any:
    """The surrogate as the papers write it."""
    bound = mpmath.inf if clamp is None else mpmath.mpf(clamp)
    ratio = mpmath.exp(min(max(log_ratio, -bound), bound))
    a = mpmath.mpf(float(advantage))
    held = min(max(ratio, 1 - mpmath.mpf(LOW)), 1 + mpmath.mpf(HIGH))
    surrogate = min(ratio * a, held * a)
    return max(surrogate, mpmath.mpf(dual) * a) if dual is not None and a < 0 else surrogate


@every_clamp
def test_the_dual_clip_agrees_with_fifty_digits(clamp: float | None) -> None:
    log_probs, old, mask, a = batch(0)
    with mpmath.workdps(50):
        terms = [
            fifty_digits(mpmath.mpf(log_probs[b, t]) - mpmath.mpf(old[b, t]), a[b], clamp, DUAL)
            for b, t in np.argwhere(mask)
        ]
        want = float(-sum(terms) / len(mask))
    got = dual_clip_loss(log_probs, old, mask, a, LOW, HIGH, DUAL, convention=Convention(log_ratio_clamp=clamp))
    assert got.value == pytest.approx(want, rel=1e-13)


@every_clamp
def test_the_sequence_surrogate_agrees_with_fifty_digits(clamp: float | None) -> None:
    log_probs, old, mask, a = batch(1)
    with mpmath.workdps(50):
        want = mpmath.mpf(0)
        for new, before, shown, advantage in zip(log_probs, old, mask, a, strict=True):
            if shown.any():
                ratios = [
                    mpmath.exp(mpmath.mpf(x) - mpmath.mpf(y)) for x, y in zip(new[shown], before[shown], strict=True)
                ]
                geometric = mpmath.root(mpmath.fprod(ratios), len(ratios))
                want -= fifty_digits(mpmath.log(geometric), advantage, clamp, None) / len(mask)
        want = float(want)
    got = gspo_loss(log_probs, old, mask, a, LOW, HIGH, convention=Convention(log_ratio_clamp=clamp))
    assert got.value == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("loss", [dual_clip_loss, gspo_loss])
@every_clamp
@every_mean
def test_the_gradient_agrees_with_differences(
    loss: Callable[..., Expected], clamp: float | None, convention: Convention
) -> None:
    declared = Convention(**{**vars(convention), "log_ratio_clamp": clamp})
    for seed in range(3):
        log_probs, *rest = batch(seed)
        assert_pullback(lambda x, rest=rest: loss(x, *rest, LOW, HIGH, convention=declared), log_probs, seed)  # type: ignore[misc]


@every_mean
def test_the_dual_clip_is_the_clipped_loss_but_for_bad_tokens_beyond_it(convention: Convention) -> None:
    log_probs, old, mask, a = batch(2)
    plain = clipped_loss(log_probs, old, mask, a, LOW, HIGH, convention=convention)
    far = dual_clip_loss(log_probs, old, mask, a, LOW, HIGH, 1e9, convention=convention)
    good = dual_clip_loss(log_probs, old, mask, abs(a), LOW, HIGH, DUAL, convention=convention)
    assert far.value == plain.value and far.scale == plain.scale
    assert good.value == clipped_loss(log_probs, old, mask, abs(a), LOW, HIGH, convention=convention).value
    beyond = mask & (np.exp(log_probs - old) > DUAL) & (a < 0)[:, None]
    near = dual_clip_loss(log_probs, old, mask, a, LOW, HIGH, DUAL, convention=convention)
    assert plain.pullback is not None and near.pullback is not None
    assert beyond.any() and near.value < plain.value
    alive = plain.pullback(1.0).value
    np.testing.assert_array_equal(near.pullback(1.0).value, np.where(beyond, 0.0, alive))


def test_a_bad_token_costs_no_more_than_the_dual_clip() -> None:
    costs = [dual_clip_loss([[0.0]], [[-math.log(r)]], [[1]], [-2.0]).value for r in (0.5, 1.0, 2.5, 3.5, 1e6)]
    np.testing.assert_allclose(costs, [1.6, 2.0, 5.0, 6.0, 6.0], rtol=1e-14)


def test_the_gradient_of_a_bad_token_jumps_at_the_dual_clip_that_of_a_good_one_does_not() -> None:
    for advantage, kink in ((-1.0, 0.25), (1.0, math.log(3) + 0.25 - math.log(1.2))):
        pullback = dual_clip_loss([[0.0]], [[-math.log(3) - 0.25]], [[1]], [advantage]).pullback
        assert pullback is not None
        assert pullback(1.0).kink.item() == pytest.approx(kink, rel=1e-12)


@pytest.mark.parametrize("rows", ["counted", "dropped"])
def test_rows_of_one_token_have_their_clipped_loss(rows: str) -> None:
    log_probs, old, mask, a = batch(3)
    mask = mask & (mask.cumsum(axis=1) == 1)
    convention = Convention(empty_rows=rows)
    got = gspo_loss(log_probs, old, mask, a, LOW, HIGH, convention=convention)
    want = clipped_loss(log_probs, old, mask, a, LOW, HIGH, convention=convention)
    assert got.pullback is not None and want.pullback is not None
    assert got.value == pytest.approx(want.value, rel=1e-14)
    np.testing.assert_allclose(got.pullback(1.0).value, want.pullback(1.0).value, rtol=1e-14)


def test_the_aggregation_does_not_matter_to_the_sequence_surrogate_but_the_count_of_rows_does() -> None:
    arguments = batch(4)
    values = {c.name: gspo_loss(*arguments, convention=c).value.item() for c in CONVENTIONS_OF_MEANS}
    counted = {value for name, value in values.items() if name.endswith("counted")}
    dropped = {value for name, value in values.items() if name.endswith("dropped")}
    assert len(counted) == len(dropped) == 1
    assert dropped.pop() == pytest.approx(counted.pop() * 5 / 4, rel=1e-14)


def test_log_ratio_moved_between_the_tokens_of_a_row_changes_nothing() -> None:
    log_probs, old, mask, a = batch(5)
    moved = old.copy()
    first, second = np.flatnonzero(mask[0])[:2]
    moved[0, first], moved[0, second] = moved[0, first] + 0.5, moved[0, second] - 0.5
    one, other = gspo_loss(log_probs, old, mask, a), gspo_loss(log_probs, moved, mask, a)
    assert one.value == pytest.approx(other.value, rel=1e-14)


@every_mean
def test_the_bonus_is_the_aggregated_entropy_of_the_logits_before_each_token(convention: Convention) -> None:
    rng = np.random.default_rng(6)
    logits, mask = 3 * rng.normal(size=(4, 6, 5)), ragged_mask(rng, 4, 5)
    entropies = entropy(logits).value[:, :-1]
    mode = convention.aggregation
    want = aggregate(entropies, mask, mode, convention.aggregation_constant, convention=convention)
    assert entropy_bonus(logits, mask, convention=convention).value == pytest.approx(want.value, rel=1e-14)
    assert_pullback(lambda x: entropy_bonus(x, mask, convention=convention), logits, 6)


def test_the_bonus_of_equal_logits_is_log_v_for_each_of_the_l_minus_1_places() -> None:
    assert entropy_bonus(np.full((2, 4, 7), 0.3), np.ones((2, 3))).value == pytest.approx(3 * math.log(7), rel=1e-15)


def test_nothing_masked_reaches_the_bonus_and_banned_tokens_add_nothing() -> None:
    logits, mask = np.random.default_rng(7).normal(size=(2, 4, 3)), np.array([[1, 0, 1], [0, 0, 0]])
    want = entropy_bonus(logits, mask)
    spoilt = logits.copy()
    spoilt[:, :-1][mask == 0] = np.nan
    spoilt[:, -1] = np.inf
    got = entropy_bonus(spoilt, mask)
    assert got.value == want.value and got.pullback is not None and want.pullback is not None
    np.testing.assert_array_equal(got.pullback(2.0).value, want.pullback(2.0).value)
    assert not got.pullback(2.0).scale[np.pad(mask, ((0, 0), (0, 1))) == 0].any()
    banned = entropy_bonus([[[0.0, -math.inf, 0.0], [0.0, 0.0, 0.0]]], [[1]])
    assert banned.value == pytest.approx(math.log(2), rel=1e-15) and banned.pullback is not None
    assert not banned.pullback(1.0).value.any()


def test_weights_agree_with_fifty_digits_and_are_constants() -> None:
    log_probs, sampler, mask, _ = batch(8)
    expected = importance_weights(log_probs, sampler, mask, 1.5)
    for b, t in np.ndindex(mask.shape):
        with mpmath.workdps(50):
            ratio = mpmath.exp(mpmath.mpf(log_probs[b, t]) - mpmath.mpf(sampler[b, t]))
            want = float(min(ratio, mpmath.mpf(1.5))) if mask[b, t] else 0.0
        assert expected.value[b, t] == pytest.approx(want, rel=1e-14)
    assert expected.pullback is None
    assert (expected.value == 1.5).any() and (expected.value[mask] < 1.5).any()
    assert not expected.scale[~mask].any()


def test_an_overflowing_ratio_has_the_weight_of_the_cap() -> None:
    assert importance_weights([[0.0, -1.0]], [[-5000.0, -1.0]], [[1, 1]]).value.tolist() == [[2.0, 1.0]]


@pytest.mark.parametrize("clamp", [None, 0.4])
@pytest.mark.parametrize("spread", [0.05, 0.8, 2.0])
def test_usual_float32_formulas_stay_within_the_scale(spread: float, clamp: float | None) -> None:
    log_probs, old, mask, a = batch(9, spread)
    log_probs, old, a = (x.astype(np.float32) for x in (log_probs, old, a))
    convention = Convention(log_ratio_clamp=clamp)
    bound = np.float32(np.inf if clamp is None else clamp)
    low, high, dual = np.float32(1 - LOW), np.float32(1 + HIGH), np.float32(DUAL)
    advantage = a[:, None]

    def surrogate(ratio: FloatArray, weight: FloatArray) -> FloatArray:
        return np.minimum(ratio * weight, np.clip(ratio, low, high) * weight)

    ratio = np.exp(np.clip(log_probs - old, -bound, bound))
    plain = surrogate(ratio, advantage)
    dual_terms = np.where(advantage < 0, np.maximum(plain, dual * advantage), plain)
    count = np.maximum(mask.sum(axis=1), 1).astype(np.float32)
    apart = (log_probs * mask).sum(axis=1) / count - (old * mask).sum(axis=1) / count
    of_rows = surrogate(np.exp(np.clip(apart, -bound, bound)), a) * mask.any(axis=1)
    exact = log_probs.astype(np.float64), old.astype(np.float64), mask, a.astype(np.float64)
    for value, expected in (
        (-(dual_terms * mask).sum() / np.float32(5), dual_clip_loss(*exact, LOW, HIGH, DUAL, convention=convention)),
        (-of_rows.sum() / np.float32(5), gspo_loss(*exact, LOW, HIGH, convention=convention)),
    ):
        assert value.dtype == np.float32
        assert abs(value - expected.value) <= 8 * FLOAT32_EPS * expected.scale
    weights = np.minimum(np.exp(log_probs) / np.exp(old), dual) * mask.astype(np.float32)
    want = importance_weights(*exact[:3], DUAL)
    assert (abs(weights - want.value) <= 8 * FLOAT32_EPS * want.scale).all()


def test_a_batch_without_a_masked_in_token_gives_nothing() -> None:
    log_probs, old, mask, a = batch(10)
    nothing = np.zeros_like(mask)
    for expected in (
        dual_clip_loss(log_probs, old, nothing, a),
        gspo_loss(log_probs, old, nothing, a),
        gspo_loss(log_probs, old, nothing, a, convention=Convention(empty_rows="dropped")),
        entropy_bonus(np.zeros((5, 7, 3)), nothing),
    ):
        assert expected.value == expected.scale == 0 and expected.pullback is not None
        assert not expected.pullback(1.0).value.any()
    free = gspo_loss(log_probs, old, mask, a, convention=Convention(empty_mean="free"))
    assert np.isnan(free.value) and np.isinf(free.scale)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dual_clip_loss([[0.0]], [[0.0]], [[1]], [1.0], 0.2, 0.2, 1.0), "dual_clip: is 1.0, expected a number"),
        (lambda: dual_clip_loss([[0.0]], [[0.0]], [[2]], [1.0]), "mask: has the entry 2, expected 0 or 1"),
        (lambda: dual_clip_loss([[0.0]], [[0.0]], [[1]], [1.0, 1.0]), r"advantages: has shape \[2\], expected \[B\]"),
        (lambda: gspo_loss([[0.0]], [[0.0, 0.0]], [[1]], [1.0]), r"old_log_probs: has shape \[1, 2\]"),
        (lambda: gspo_loss([[0.0]], [[0.0]], [[1]], 1.0), r"advantages: has shape \[\], expected \[B\] = \[1\]"),
        (lambda: entropy_bonus([[0.0]], [[1]]), r"logits: has shape \[1, 1\], expected \[B, L, V\]"),
        (lambda: entropy_bonus([[[0.0], [0.0]]], [[1, 1]]), r"mask: has shape \[1, 2\], expected \[B, T\] = \[1, 1\]"),
        (lambda: importance_weights([[0.0]], [[0.0]], [[1]], 0.0), "cap: is 0.0, expected a number > 0"),
        (lambda: importance_weights([[0.0]], [[0.0]], [[1]], math.nan), "cap: is nan, expected a number > 0"),
        (lambda: importance_weights([[0.0]], [0.0], [[1]]), r"sampler_log_probs: has shape \[1\]"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(call: Callable[[], Expected], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        call()
