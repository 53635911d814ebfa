"""The KL estimators against fifty digits, enumeration, and other formulas in float32."""

from collections.abc import Callable
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from rlassay_spec.convention import Convention
from rlassay_spec.oracles.expected import Expected
from rlassay_spec.oracles.kl import kl_k1, kl_k2, kl_k3
from tests.spec.support import assert_pullback, log_probs_like

FLOAT32_EPS = float(np.finfo(np.float32).eps)
ESTIMATORS = (kl_k1, kl_k2, kl_k3)


def pair(seed: int, distance: float = 1.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    log_probs = log_probs_like(rng, (3, 5))
    return log_probs, log_probs + distance * rng.normal(size=(3, 5))


@pytest.mark.parametrize("distance", [1e-6, 0.1, 3.0])
def test_the_estimators_agree_with_fifty_digits(distance: float) -> None:
    log_probs, ref = pair(0, distance)
    for b, t in np.ndindex(log_probs.shape):
        with mpmath.workdps(50):
            log_ratio = mpmath.mpf(float(log_probs[b, t])) - mpmath.mpf(float(ref[b, t]))
            k3 = mpmath.exp(-log_ratio) + log_ratio - 1
        assert kl_k1(log_probs, ref).value[b, t] == pytest.approx(float(log_ratio), rel=1e-14)
        assert kl_k2(log_probs, ref).value[b, t] == pytest.approx(float(log_ratio**2 / 2), rel=1e-14)
        assert kl_k3(log_probs, ref).value[b, t] == pytest.approx(float(k3), rel=1e-13, abs=1e-16 * distance)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_gradient_agrees_with_differences(estimator: Callable[..., Expected]) -> None:
    log_probs, ref = pair(1)
    assert_pullback(lambda x: estimator(x, ref), log_probs, 1)


def test_the_expectation_of_k1_and_k3_is_the_kl() -> None:
    p, q = np.random.default_rng(2).dirichlet(np.ones(5), size=2)
    exact = float((p * np.log(p / q)).sum())
    for estimator in (kl_k1, kl_k3):
        assert (p * estimator(np.log([p]), np.log([q])).value[0]).sum() == pytest.approx(exact, rel=1e-13)


def test_k3_is_never_negative_and_zero_only_at_equality() -> None:
    log_probs, ref = pair(3, 1e-7)
    assert (kl_k3(log_probs, ref).value > 0).all()
    for estimator in ESTIMATORS:
        assert not estimator(log_probs, log_probs).value.any()


def test_the_clamp_bounds_k3_and_stops_its_gradient() -> None:
    clamped = Convention(k3_clamp=0.5)
    log_probs, ref = pair(4)
    free, bounded = kl_k3(log_probs, ref), kl_k3(log_probs, ref, convention=clamped)
    above = free.value > 0.5
    assert above.any() and not above.all()
    np.testing.assert_array_equal(bounded.value, np.minimum(free.value, 0.5))
    assert (bounded.scale >= bounded.value).all()
    assert free.pullback is not None and bounded.pullback is not None
    gradient, unclamped = bounded.pullback(np.ones((3, 5))), free.pullback(np.ones((3, 5)))
    np.testing.assert_array_equal(gradient.value, np.where(above, 0.0, unclamped.value))
    assert not gradient.scale[above].any()
    np.testing.assert_array_equal(gradient.kink, abs(free.value - 0.5))
    assert np.isinf(unclamped.kink).all()
    assert_pullback(lambda x: kl_k3(x, ref, convention=clamped), log_probs, 4)


def test_a_clamped_overflow_is_the_clamp() -> None:
    expected = kl_k3([[-2000.0]], [[0.0]], convention=Convention(k3_clamp=10.0))
    assert expected.value == 10.0 and np.isfinite(expected.scale)


@pytest.mark.parametrize("distance", [0.0, 1e-4, 0.1, 3.0])
def test_usual_float32_formulas_stay_within_the_scale(distance: float) -> None:
    log_probs, ref = (x.astype(np.float32) for x in pair(5, distance))
    exact = log_probs.astype(np.float64), ref.astype(np.float64)
    log_ratio = ref - log_probs
    quotient = np.exp(ref) / np.exp(log_probs)
    of_k3 = kl_k3(*exact)
    assert of_k3.pullback is not None
    gradient = of_k3.pullback(np.ones((3, 5)))
    for formula, value, target, scale in (
        ("k2", np.float32(0.5) * log_ratio**2, kl_k2(*exact).value, kl_k2(*exact).scale),
        ("expm1", np.expm1(log_ratio) - log_ratio, of_k3.value, of_k3.scale),
        ("exp", np.exp(log_ratio) - log_ratio - np.float32(1), of_k3.value, of_k3.scale),
        ("quotient", quotient - np.log(quotient) - np.float32(1), of_k3.value, of_k3.scale),
        ("one minus exp", np.float32(1) - np.exp(log_ratio), gradient.value, gradient.scale),
        ("one minus quotient", np.float32(1) - quotient, gradient.value, gradient.scale),
    ):
        assert value.dtype == np.float32
        assert (abs(value - target) <= 16 * FLOAT32_EPS * scale).all(), formula


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_wrong_argument_is_named(estimator: Callable[..., Expected]) -> None:
    with pytest.raises(ValueError, match=r"^log_probs: has shape \[2\], expected \[B, T\]"):
        estimator([0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ValueError, match=r"^ref_log_probs: has shape \[1, 1\], expected \[B, T\] = \[1, 2\]"):
        estimator([[0.0, 0.0]], [[0.0]])
