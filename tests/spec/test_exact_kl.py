"""The KL estimators against mpmath, differences and the identities they rest on."""

from collections.abc import Callable
from fractions import Fraction
from math import exp, log
from typing import Any

import mpmath
import numpy as np
import pytest

from rlassay_spec.exact import kl

POLICY = (Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))
REFERENCE = (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
ESTIMATORS = (kl.k1, kl.k2, kl.k3)


def softmax(logits: list[float]) -> list[float]:
    powers = [exp(z) for z in logits]
    return [power / sum(powers) for power in powers]


def divergence(p: list[float], q: list[float]) -> float:
    return sum(a * log(a / b) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize("log_ratio", [-30.0, -1.0, -1e-3, -1e-9, 0.0, 1e-12, 1e-3, 2.0])
def test_the_estimators_agree_with_mpmath(log_ratio: float) -> None:
    with mpmath.workdps(60):
        x = mpmath.mpf(log_ratio)
        expected = [float(-x), float(x**2 / 2), float(mpmath.exp(x) - 1 - x)]
    got = [estimator(log_ratio) for estimator in ESTIMATORS]
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-16)
    assert got[2] >= 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_slope_in_the_log_probability_is_the_slope_of_the_estimator(estimator: kl.Estimator) -> None:
    h = 1e-6
    for log_ratio in (-1.5, -0.1, 0.7):
        slope = (estimator(log_ratio - h) - estimator(log_ratio + h)) / (2 * h)
        assert kl.SLOPES[estimator](log_ratio) == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize("estimator", [kl.k1, kl.k3])
def test_two_of_them_have_the_divergence_as_their_mean(estimator: kl.Estimator) -> None:
    expected = divergence([float(p) for p in POLICY], [float(q) for q in REFERENCE])
    assert kl.divergence(POLICY, REFERENCE) == pytest.approx(expected, rel=1e-14)
    assert kl.mean(POLICY, REFERENCE, estimator) == pytest.approx(expected, rel=1e-13)


def test_where_the_policy_covers_only_part_of_the_reference_k3_misses_the_uncovered_mass() -> None:
    policy = (Fraction(2, 3), Fraction(1, 3), 0)
    missing = 1 - float(kl.mean_ratio(policy, REFERENCE))
    assert missing == float(REFERENCE[2])
    biased = kl.mean(policy, REFERENCE, kl.k3)
    assert biased == pytest.approx(kl.divergence(policy, REFERENCE) - missing, rel=1e-13)
    assert kl.mean(policy, REFERENCE, kl.k1) == pytest.approx(kl.divergence(policy, REFERENCE), rel=1e-13)


def test_the_standard_deviation_is_that_of_numpy_on_the_repeated_sample() -> None:
    ratios = np.repeat([log(q / p) for p, q in zip(POLICY, REFERENCE, strict=True)], [5, 3, 2])
    for estimator in ESTIMATORS:
        expected = np.std([estimator(float(x)) for x in ratios])
        assert kl.sd(POLICY, REFERENCE, estimator) == pytest.approx(expected, rel=1e-12)


def test_k2_and_k3_have_the_gradients_of_both_divergences() -> None:
    h, logits, reference = 1e-5, [log(p) for p in POLICY], [float(q) for q in REFERENCE]
    forward, backward = [], []
    for k in range(3):
        after, before = (softmax([z + step * (i == k) for i, z in enumerate(logits)]) for step in (h, -h))
        forward.append((divergence(after, reference) - divergence(before, reference)) / (2 * h))
        backward.append((divergence(reference, after) - divergence(reference, before)) / (2 * h))
    assert kl.gradient(POLICY, REFERENCE) == pytest.approx(forward, rel=1e-7)
    assert kl.mean_gradient(POLICY, REFERENCE, kl.k2) == pytest.approx(forward, rel=1e-7)
    assert [float(g) for g in kl.reverse_gradient(POLICY, REFERENCE)] == pytest.approx(backward, rel=1e-7)
    assert kl.mean_gradient(POLICY, REFERENCE, kl.k3) == pytest.approx(backward, rel=1e-7)
    assert kl.mean_gradient(POLICY, REFERENCE, kl.k1) == pytest.approx([0, 0, 0], abs=1e-15)


@pytest.mark.parametrize("shift", [0.1, 1.0])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_gaussian_table_agrees_with_adaptive_quadrature(shift: float, estimator: kl.Estimator) -> None:
    forms: dict[kl.Estimator, Callable[[Any], Any]] = {
        kl.k1: lambda x: -x,
        kl.k2: lambda x: x**2 / 2,
        kl.k3: lambda x: mpmath.expm1(x) - x,
    }
    with mpmath.workdps(30):

        def moment(power: int) -> mpmath.mpf:
            def integrand(x: mpmath.mpf) -> mpmath.mpf:
                return forms[estimator](shift * x - mpmath.mpf(shift) ** 2 / 2) ** power * mpmath.npdf(x)

            return mpmath.quad(integrand, [-14, -4, 0, 4, 14])

        true = mpmath.mpf(shift) ** 2 / 2
        first, second = moment(1), moment(2)
        expected = (float((first - true) / true), float(mpmath.sqrt(second - first**2) / true))
    assert kl.gaussian_table(shift, estimator) == pytest.approx(expected, rel=1e-11, abs=1e-11)
