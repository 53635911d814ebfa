"""The log-prob oracles against mpmath, differences and other formulas in float32."""

from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from rlassay_spec.oracles.expected import Expected, FloatArray
from rlassay_spec.oracles.log_prob import action_log_probs, entropy, masked_log_probs, token_log_probs
from tests.spec.support import assert_pullback, log_probs_like

FLOAT32_EPS = float(np.finfo(np.float32).eps)


def logits_and_ids(seed: int, spread: float = 3.0, shape: tuple[int, int, int] = (2, 4, 5)) -> tuple[FloatArray, Any]:
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=shape), rng.integers(0, shape[2], shape[:2])


def log_softmax(row: Any, temperature: float = 1.0) -> list[Any]:
    with mpmath.workdps(50):
        x = [mpmath.mpf(float(logit)) / mpmath.mpf(temperature) for logit in row]
        normaliser = mpmath.log(mpmath.fsum(map(mpmath.exp, x)))
        return [logit - normaliser for logit in x]


@pytest.mark.parametrize("temperature", [1.0, 0.25, 3.0])
def test_token_log_probs_agree_with_fifty_digits(temperature: float) -> None:
    logits, ids = logits_and_ids(0)
    value = token_log_probs(logits, ids, temperature).value
    assert value.shape == (2, 3)
    for b, t in np.ndindex(value.shape):
        assert value[b, t] == pytest.approx(float(log_softmax(logits[b, t], temperature)[ids[b, t + 1]]), rel=1e-14)


def test_a_huge_offset_changes_nothing() -> None:
    logits, ids = logits_and_ids(1)
    dyadic = np.round(logits * 8) / 8
    np.testing.assert_allclose(
        token_log_probs(dyadic + 2.0**20, ids).value, token_log_probs(dyadic, ids).value, rtol=1e-14
    )
    np.testing.assert_allclose(entropy(dyadic + 2.0**20).value, entropy(dyadic).value, rtol=1e-14)


def test_the_first_id_and_the_last_logits_score_nothing() -> None:
    logits, ids = logits_and_ids(2)
    expected = token_log_probs(logits, ids)
    changed_logits, changed_ids = logits.copy(), ids.copy()
    changed_logits[:, -1], changed_ids[:, 0] = np.nan, -100
    changed = token_log_probs(changed_logits, changed_ids)
    np.testing.assert_array_equal(changed.value, expected.value)
    assert changed.pullback is not None
    gradient = changed.pullback(np.ones((2, 3)))
    assert not gradient.value[:, -1].any() and not gradient.scale[:, -1].any()


def test_one_token_predicts_nothing() -> None:
    expected = token_log_probs(np.zeros((2, 1, 3)), np.zeros((2, 1), dtype=int))
    assert expected.value.shape == (2, 0)
    assert expected.pullback is not None
    assert not expected.pullback(np.zeros((2, 0))).value.any()


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_gradient_of_token_log_probs_agrees_with_differences(temperature: float) -> None:
    logits, ids = logits_and_ids(3)
    assert_pullback(lambda x: token_log_probs(x, ids, temperature), logits, 3)


def test_the_gradient_of_a_log_prob_is_one_hot_minus_softmax() -> None:
    expected = token_log_probs(np.log([[[1.0, 2.0, 5.0], [1.0, 1.0, 1.0]]]), [[0, 1]])
    assert expected.pullback is not None
    exact = np.array([[[-1, 6, -5], [0, 0, 0]]]) / 8
    np.testing.assert_allclose(expected.pullback([[1.0]]).value, exact, rtol=1e-15)


def test_masked_places_are_exactly_zero_whatever_stands_there() -> None:
    logits, ids = logits_and_ids(4)
    mask = np.array([[1, 0, 1], [0, 0, 1]])
    clean = masked_log_probs(logits, ids, mask)
    dirty_logits, dirty_ids = logits.copy(), ids.copy()
    dirty_logits[0, 1], dirty_logits[1, 0], dirty_logits[1, 1] = np.nan, np.inf, -np.inf
    dirty_ids[0, 2], dirty_ids[1, 1], dirty_ids[1, 2] = -100, 99, -1
    dirty = masked_log_probs(dirty_logits, dirty_ids, mask)
    np.testing.assert_array_equal(dirty.value, clean.value)
    np.testing.assert_array_equal(dirty.value, np.where(mask, token_log_probs(logits, ids).value, 0.0))
    np.testing.assert_array_equal(dirty.scale == 0, mask == 0)
    assert dirty.pullback is not None
    gradient = dirty.pullback(np.ones((2, 3)))
    assert not gradient.value[0, 1].any() and not gradient.scale[0, 1].any()
    assert not gradient.value[1, :2].any() and not gradient.scale[1, :2].any()
    assert_pullback(lambda x: masked_log_probs(x, dirty_ids, mask), logits, 4)


def test_entropy_agrees_with_fifty_digits() -> None:
    logits, _ = logits_and_ids(5)
    value = entropy(logits).value
    for b, t in np.ndindex(value.shape):
        with mpmath.workdps(50):
            exact = -mpmath.fsum(mpmath.exp(log_p) * log_p for log_p in log_softmax(logits[b, t]))
        assert value[b, t] == pytest.approx(float(exact), rel=1e-13)


def test_the_gradient_of_entropy_agrees_with_differences() -> None:
    assert_pullback(entropy, logits_and_ids(6)[0], 6)


def test_a_banned_token_adds_nothing_to_the_entropy() -> None:
    logits, _ = logits_and_ids(7)
    banned = np.concatenate([logits, np.full((2, 4, 2), -np.inf)], axis=2)
    expected = entropy(banned)
    np.testing.assert_allclose(expected.value, entropy(logits).value, rtol=1e-14)
    assert expected.pullback is not None
    gradient = expected.pullback(np.ones((2, 4)))
    assert not gradient.value[:, :, 5:].any() and not gradient.scale[:, :, 5:].any()
    assert np.isfinite(expected.scale).all()
    assert entropy([[[0.0, -np.inf]]]).value == 0


def test_equal_logits_have_the_largest_entropy() -> None:
    np.testing.assert_allclose(entropy(np.full((1, 1, 8), 40.0)).value, np.log(8), rtol=1e-15)


def test_a_banned_token_does_not_change_the_others_log_probs() -> None:
    logits, ids = logits_and_ids(8)
    banned = np.concatenate([logits, np.full((2, 4, 1), -np.inf)], axis=2)
    np.testing.assert_allclose(token_log_probs(banned, ids).value, token_log_probs(logits, ids).value, rtol=1e-14)
    assert np.isfinite(token_log_probs(banned, ids).scale).all()


def test_action_log_probs_agree_with_exact_sums() -> None:
    rng = np.random.default_rng(9)
    log_probs, actions = log_probs_like(rng, (3, 7)), rng.integers(-1, 3, (3, 7))
    value = action_log_probs(log_probs, actions, 4).value
    for b, a in np.ndindex(3, 4):
        exact = sum((Fraction(x) for x, owner in zip(log_probs[b], actions[b], strict=True) if owner == a), Fraction(0))
        assert value[b, a] == pytest.approx(float(exact), rel=1e-15, abs=0)
    assert not value[:, 3].any()
    assert_pullback(lambda x: action_log_probs(x, actions, 4), log_probs, 9)


def test_a_token_without_an_action_reaches_nothing() -> None:
    expected = action_log_probs([[-1.0, np.nan, -2.0]], [[1, -1, 1]], 2)
    np.testing.assert_array_equal(expected.value, [[0.0, -3.0]])
    np.testing.assert_array_equal(expected.scale, [[0.0, 3.0]])
    assert expected.pullback is not None
    gradient = expected.pullback([[5.0, 7.0]])
    np.testing.assert_array_equal(gradient.value, [[7.0, 0.0, 7.0]])
    np.testing.assert_array_equal(gradient.scale, [[7.0, 0.0, 7.0]])


def float32_formulas(x: Any, ids: Any) -> list[tuple[str, Any, Expected]]:
    """Usual ways of writing the same quantities, in float32."""
    exact = x.astype(np.float64)
    shifted = x - x.max(-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    log_sum = (x.max(-1) + np.log(np.exp(shifted).sum(-1))).astype(np.float32)
    p = np.exp(shifted) / np.exp(shifted).sum(-1, keepdims=True)
    chosen = ids[:, 1:, None]
    tokens = token_log_probs(exact, ids)
    entropies = entropy(exact)
    return [
        ("gather of log-softmax", np.take_along_axis(log_p[:, :-1], chosen, -1)[..., 0], tokens),
        ("logit minus logsumexp", np.take_along_axis(x[:, :-1], chosen, -1)[..., 0] - log_sum[:, :-1], tokens),
        ("log of softmax", np.log(np.take_along_axis(p[:, :-1], chosen, -1)[..., 0]), tokens),
        ("minus p log p", -(p * log_p).sum(-1), entropies),
        ("exp of log p times log p", -(np.exp(log_p) * log_p).sum(-1), entropies),
        ("logsumexp minus mean logit", log_sum - (p * x).sum(-1), entropies),
    ]


def float32_gradients(x: Any, ids: Any) -> list[tuple[str, Any, Any]]:
    exact = x.astype(np.float64)
    shifted = x - x.max(-1, keepdims=True)
    log_sum = (x.max(-1) + np.log(np.exp(shifted).sum(-1)))[..., None]
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    p = np.exp(x - log_sum)
    softmax = np.exp(shifted) / np.exp(shifted).sum(-1, keepdims=True)
    entropies = entropy(exact)
    tokens = token_log_probs(exact, ids)
    assert entropies.pullback is not None and tokens.pullback is not None
    of_entropy = entropies.pullback(np.ones(x.shape[:2]))
    of_tokens = tokens.pullback(np.ones((x.shape[0], x.shape[1] - 1)))
    one_hot = np.zeros_like(x)
    np.put_along_axis(one_hot[:, :-1], ids[:, 1:, None], 1, -1)
    scored = np.ones_like(x)
    scored[:, -1] = 0
    return [
        ("one-hot minus exp of log p", one_hot - scored * np.exp(log_p), of_tokens),
        ("one-hot minus exp of logit minus logsumexp", one_hot - scored * p, of_tokens),
        ("−p (log p + H)", -p * (log_p - (p * log_p).sum(-1, keepdims=True)), of_entropy),
        ("−p (x − mean x)", -softmax * (x - (softmax * x).sum(-1, keepdims=True)), of_entropy),
    ]


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("spread", [1.0, 10.0])
@pytest.mark.parametrize("vocabulary", [2, 7, 300])
def test_usual_float32_formulas_stay_within_the_scale(offset: float, spread: float, vocabulary: int) -> None:
    logits, ids = logits_and_ids(10, spread, (3, 4, vocabulary))
    x = (logits + offset).astype(np.float32)
    for formula, value, expected in float32_formulas(x, ids):
        assert value.dtype == np.float32
        error = abs(value.astype(np.float64) - expected.value)
        assert (error <= 16 * FLOAT32_EPS * expected.scale).all(), formula
    for formula, value, gradient in float32_gradients(x, ids):
        assert value.dtype == np.float32
        error = abs(value.astype(np.float64) - gradient.value)
        assert (error <= 16 * FLOAT32_EPS * gradient.scale).all(), formula


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: token_log_probs(np.zeros((2, 3)), [[0]]), "logits: has shape [2, 3], expected [B, L, V]"),
        (
            lambda: token_log_probs(np.zeros((1, 3, 2)), [[0, 1]]),
            "token_ids: has shape [1, 2], expected [B, L] = [1, 3]",
        ),
        (lambda: token_log_probs(np.zeros((1, 2, 2)), [[0, 2]]), "token_ids: has 2, expected 0..1"),
        (lambda: token_log_probs(np.zeros((1, 2, 2)), [[0, -100]]), "token_ids: has -100, expected 0..1"),
        (lambda: token_log_probs(np.zeros((1, 2, 2)), [[0, 1]], 0.0), "temperature: is 0.0, expected a number > 0"),
        (lambda: token_log_probs(np.zeros((1, 2, 2)), [[0, 1]], -1.0), "temperature: is -1.0, expected a number > 0"),
        (lambda: masked_log_probs(np.zeros((2, 3)), [[0]], [[1]]), "logits: has shape [2, 3]"),
        (lambda: masked_log_probs(np.zeros((1, 2, 2)), [0, 1], [[1]]), "token_ids: has shape [2]"),
        (
            lambda: masked_log_probs(np.zeros((1, 3, 2)), [[0, 1, 0]], [[1, 1, 1]]),
            "mask: has shape [1, 3], expected [B, T] = [1, 2]",
        ),
        (lambda: masked_log_probs(np.zeros((1, 2, 2)), [[0, 1]], [[2]]), "mask: has the entry 2, expected 0 or 1"),
        (lambda: masked_log_probs(np.zeros((1, 2, 2)), [[0, 5]], [[True]]), "token_ids: has 5, expected 0..1"),
        (lambda: entropy(np.zeros(3)), "logits: has shape [3], expected [B, L, V]"),
        (lambda: action_log_probs(np.zeros(3), [[0]], 1), "log_probs: has shape [3], expected [B, T]"),
        (
            lambda: action_log_probs(np.zeros((1, 2)), [[0]], 1),
            "action_ids: has shape [1, 1], expected [B, T] = [1, 2]",
        ),
        (lambda: action_log_probs(np.zeros((1, 1)), [[2]], 2), "action_ids: has 2, expected -1..1"),
        (lambda: action_log_probs(np.zeros((1, 1)), [[-2]], 2), "action_ids: has -2, expected -1..1"),
        (lambda: action_log_probs(np.zeros((1, 1)), [[0]], 0), "n_actions: is 0, expected ≥ 1"),
    ],
)
def test_a_wrong_argument_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
