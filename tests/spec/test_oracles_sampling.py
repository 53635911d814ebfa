"""Truncated log-probs against sets built token by token in mpmath, and against central differences."""

from typing import Any

import mpmath
import numpy as np
import pytest

from rlassay_spec.oracles.log_prob import token_log_probs
from rlassay_spec.oracles.sampling import truncated_log_probs
from tests.spec.support import assert_pullback

FLOAT32_EPS = float(np.finfo(np.float32).eps)

METHODS = [
    (None, None),
    (1, None),
    (3, None),
    (50, None),
    (None, 0.05),
    (None, 0.55),
    (None, 0.9),
    (4, 0.6),
    (2, 0.95),
    (3, 0.3),
]


def in_mpmath(logits: Any, token: int, temperature: float, top_k: int | None, top_p: float | None) -> float:
    """The set grown token by token, then renormalised."""
    with mpmath.workdps(40):
        weights = [mpmath.exp(mpmath.mpf(float(z)) / mpmath.mpf(temperature)) for z in logits]
        order = sorted(range(len(weights)), key=lambda v: -weights[v])
        among = order if top_k is None else order[:top_k]
        total = mpmath.fsum(weights[v] for v in among)
        kept, mass = [], mpmath.mpf(0)
        for v in among:
            if top_p is not None and mass >= top_p:
                break
            kept.append(v)
            mass += weights[v] / total
        if token not in kept:
            return -np.inf
        return float(mpmath.log(weights[token] / mpmath.fsum(weights[v] for v in kept)))


@pytest.mark.parametrize(("top_k", "top_p"), METHODS)
@pytest.mark.parametrize("temperature", [1.0, 0.5, 1.7])
def test_the_value_agrees_with_a_set_that_grows_token_by_token(
    temperature: float, top_k: int | None, top_p: float | None
) -> None:
    rng = np.random.default_rng(0)
    logits, ids = 2 * rng.normal(size=(3, 5, 6)), rng.integers(0, 6, (3, 5))
    value = truncated_log_probs(logits, ids, temperature, top_k, top_p).value
    for b, t in np.ndindex(3, 4):
        exact = in_mpmath(logits[b, t], ids[b, t + 1], temperature, top_k, top_p)
        assert value[b, t] == pytest.approx(exact, rel=1e-12, abs=1e-14), (b, t)


def test_the_order_of_the_steps_shows_in_known_numbers() -> None:
    """p = (½, ¼, ⅛, ⅛): within the top 2 the first has ⅔ ≥ 0.6, in all of them the first two are needed."""
    logits = np.log([[[4.0, 2.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]] * 2)
    ids = [[0, 0], [0, 1]]
    np.testing.assert_allclose(truncated_log_probs(logits, ids, top_p=0.6).value, np.log([[2 / 3], [1 / 3]]))
    np.testing.assert_array_equal(truncated_log_probs(logits, ids, top_k=2, top_p=0.6).value, [[0.0], [-np.inf]])


def test_the_token_that_reaches_top_p_stays_and_so_does_at_least_one() -> None:
    logits = np.log([[[0.5, 0.3, 0.2], [1.0, 1.0, 1.0]]] * 3)
    ids = [[0, 0], [0, 1], [0, 2]]
    np.testing.assert_allclose(truncated_log_probs(logits, ids, top_p=0.7).value[:2], np.log([[0.625], [0.375]]))
    np.testing.assert_array_equal(truncated_log_probs(logits, ids, top_p=0.01).value, [[0.0], [-np.inf], [-np.inf]])


@pytest.mark.parametrize("asked", [{}, {"top_k": 6}, {"top_k": 99}, {"top_p": 1.0}])
def test_without_a_cut_it_is_the_models_own_distribution(asked: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    logits, ids = rng.normal(size=(2, 4, 6)), rng.integers(0, 6, (2, 4))
    truncated, plain = truncated_log_probs(logits, ids, 0.7, **asked), token_log_probs(logits, ids, 0.7)
    np.testing.assert_array_equal(truncated.value, plain.value)
    assert truncated.pullback is not None and plain.pullback is not None
    cotangent = rng.normal(size=(2, 3))
    np.testing.assert_array_equal(truncated.pullback(cotangent).value, plain.pullback(cotangent).value)


@pytest.mark.parametrize(("top_k", "top_p"), METHODS)
def test_the_pullback_agrees_with_central_differences(top_k: int | None, top_p: float | None) -> None:
    """The likeliest tokens are scored, so that none of them is cut."""
    rng = np.random.default_rng(2)
    logits = 2 * rng.normal(size=(2, 4, 5))
    ids = np.concatenate([np.zeros((2, 1), dtype=int), logits[:, :-1].argmax(axis=-1)], axis=1)
    assert_pullback(lambda x: truncated_log_probs(x, ids, 0.8, top_k, top_p), logits, 3)


def test_the_gradient_is_0_at_cut_tokens_and_free_in_rows_whose_token_is_cut() -> None:
    logits = np.array([[[3.0, 2.0, 1.0, 0.0], [3.0, 2.0, 1.0, 0.0], [9.0, 9.0, 9.0, 9.0]]])
    expected = truncated_log_probs(logits, [[0, 1, 3]], top_k=2)
    np.testing.assert_array_equal(np.isneginf(expected.value), [[False, True]])
    assert expected.pullback is not None
    gradient = expected.pullback(np.ones((1, 2))).value
    assert gradient[0, 0, :2].all() and not gradient[0, 0, 2:].any()
    assert np.isnan(gradient[0, 1]).all()
    assert not gradient[0, 2].any()


def test_usual_float32_formulas_stay_within_the_scale() -> None:
    rng = np.random.default_rng(5)
    logits = (5 * rng.normal(size=(20, 2, 30))).astype(np.float32)
    kept = np.argsort(-logits[:, 0], axis=-1)[:, :7]
    ids = np.stack([np.zeros(20, dtype=int), kept[:, 3]], axis=1)
    expected = truncated_log_probs(logits.astype(np.float64), ids, top_k=7)
    z = logits[:, 0]
    token = np.take_along_axis(z, ids[:, 1:], axis=1)[:, 0]
    inside = np.take_along_axis(z, kept, axis=1)
    whole = z - np.log(np.exp(z - z.max(1, keepdims=True)).sum(1, keepdims=True)) - z.max(1, keepdims=True)
    of_set = np.log(np.exp(np.take_along_axis(whole, kept, axis=1)).sum(1))
    for formula, value in (
        ("logit minus logsumexp", token - np.log(np.exp(inside).sum(1))),
        ("log-prob minus that of the set", np.take_along_axis(whole, ids[:, 1:], axis=1)[:, 0] - of_set),
    ):
        assert value.dtype == np.float32
        bound = 16 * FLOAT32_EPS * expected.scale[:, 0] * (1 + expected.terms / 64)
        assert (abs(value - expected.value[:, 0]) <= bound).all(), formula


LOGITS, IDS = np.zeros((1, 2, 3)), np.zeros((1, 2), dtype=int)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: truncated_log_probs(LOGITS[0], IDS), "logits: has shape [2, 3], expected [B, L, V]"),
        (lambda: truncated_log_probs(LOGITS, IDS[:, :1]), "token_ids: has shape [1, 1], expected [B, L] = [1, 2]"),
        (lambda: truncated_log_probs(LOGITS, IDS + 3), "token_ids: has 3, expected 0..2"),
        (lambda: truncated_log_probs(LOGITS, IDS, 0.0), "temperature: is 0.0, expected a number > 0"),
        (lambda: truncated_log_probs(LOGITS, IDS, 1.0, 0), "top_k: is 0, expected None or ≥ 1"),
        (
            lambda: truncated_log_probs(LOGITS, IDS, 1.0, None, 0.0),
            "top_p: is 0.0, expected None or a number in (0, 1]",
        ),
        (
            lambda: truncated_log_probs(LOGITS, IDS, 1.0, None, 1.1),
            "top_p: is 1.1, expected None or a number in (0, 1]",
        ),
    ],
)
def test_a_wrong_argument_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
