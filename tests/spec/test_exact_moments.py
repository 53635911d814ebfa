"""Moments of finite distributions against numpy and the identities they obey."""

from fractions import Fraction

import numpy as np
import pytest

from rlassay_spec.exact import moments

HALF, THIRD, SIXTH = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)
SAMPLE = [(HALF, Fraction(3)), (THIRD, Fraction(-1, 2)), (SIXTH, Fraction(4))]


def test_a_float_counts_for_the_decimal_that_prints_it() -> None:
    assert moments.fraction(0.1) == Fraction(1, 10)
    assert moments.fraction(3) == 3
    assert moments.fraction(1e-4) == Fraction(1, 10000)


def test_the_root_of_a_square_stays_a_fraction() -> None:
    assert moments.sqrt(Fraction(9, 4)) == Fraction(3, 2)
    assert isinstance(moments.sqrt(0), Fraction)
    assert moments.sqrt(Fraction(1, 2)) == pytest.approx(0.5**0.5, rel=1e-15)


def test_moments_agree_with_numpy_on_the_repeated_sample() -> None:
    values = np.repeat([3.0, -0.5, 4.0], [3, 2, 1])
    assert float(moments.mean(SAMPLE)) == pytest.approx(values.mean(), rel=1e-15)
    assert float(moments.variance(SAMPLE)) == pytest.approx(values.var(), rel=1e-14)
    assert float(moments.sd(SAMPLE)) == pytest.approx(values.std(), rel=1e-14)


def test_covariance_and_correlation_agree_with_numpy() -> None:
    x, y = np.repeat([3.0, -0.5, 4.0], [3, 2, 1]), np.repeat([1.0, 2.0, -1.0], [3, 2, 1])
    joint = [(p, value, Fraction(other)) for (p, value), other in zip(SAMPLE, (1, 2, -1), strict=True)]
    assert float(moments.covariance(joint)) == pytest.approx(np.cov(x, y, bias=True)[0, 1], rel=1e-14)
    assert float(moments.correlation(joint)) == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-14)


def test_a_constant_correlates_with_nothing() -> None:
    assert moments.correlation([(HALF, Fraction(1), Fraction(2)), (HALF, Fraction(1), Fraction(5))]) == 0


def test_the_variance_of_a_mixture_is_that_within_plus_that_between() -> None:
    other = [(HALF, Fraction(7)), (HALF, Fraction(1, 5))]
    whole = moments.variance(moments.mixture([(THIRD, SAMPLE), (1 - THIRD, other)]))
    within = THIRD * moments.variance(SAMPLE) + (1 - THIRD) * moments.variance(other)
    between = moments.variance([(THIRD, moments.mean(SAMPLE)), (1 - THIRD, moments.mean(other))])
    assert whole == within + between


def test_the_total_variance_is_the_trace_of_the_covariance() -> None:
    vectors = [(p, (value, value**2)) for p, value in SAMPLE]
    values = np.repeat([3.0, -0.5, 4.0], [3, 2, 1])
    trace = np.trace(np.cov(np.stack([values, values**2]), bias=True))
    assert float(moments.total_variance(vectors)) == pytest.approx(trace, rel=1e-14)
    assert moments.mean_vector(vectors)[0] == moments.mean(SAMPLE)
