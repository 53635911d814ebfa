"""Groups in exact arithmetic against numpy, the oracles and closed forms."""

from fractions import Fraction
from itertools import product
from math import ceil, log

import numpy as np
import pytest

from rlassay_spec.exact import advantage, moments
from rlassay_spec.oracles import ORACLES

GROUPS = [(1, 1, 0, 0), (1, 0, 0, 0), (3, -2, 5, 5, 0), (0.1, 0.7, 0.7)]


@pytest.mark.parametrize("rewards", GROUPS)
@pytest.mark.parametrize("ddof", [0, 1])
def test_mean_and_standard_deviation_agree_with_numpy(rewards: tuple[float, ...], ddof: int) -> None:
    assert float(advantage.group_mean(rewards)) == pytest.approx(np.mean(rewards), rel=1e-14)
    assert float(advantage.group_std(rewards, ddof)) == pytest.approx(np.std(rewards, ddof=ddof), rel=1e-14)


@pytest.mark.parametrize("rewards", [*GROUPS, (2, 2, 2)])
@pytest.mark.parametrize(
    ("operation", "own"),
    [
        ("centered_advantages", advantage.centered),
        ("grpo_advantages", advantage.normalized),
        ("rloo_advantages", advantage.leave_one_out),
        ("max_advantages", advantage.best_only),
    ],
)
def test_every_kind_of_advantage_agrees_with_its_oracle(
    rewards: tuple[float, ...], operation: str, own: object
) -> None:
    assert callable(own)
    expected = ORACLES[operation](np.array([rewards], dtype=np.float64)).value[0]
    assert [float(value) for value in own(rewards)] == pytest.approx(expected.tolist(), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("rewards", GROUPS)
def test_the_advantages_of_a_group_add_up_to_0(rewards: tuple[float, ...]) -> None:
    assert sum(advantage.centered(rewards)) == sum(advantage.leave_one_out(rewards)) == 0
    assert sum(advantage.normalized(rewards)) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("rewards", GROUPS)
def test_leave_one_out_is_the_centred_value_times_g_over_g_minus_1(rewards: tuple[float, ...]) -> None:
    factor = Fraction(len(rewards), len(rewards) - 1)
    assert advantage.leave_one_out(rewards) == tuple(factor * value for value in advantage.centered(rewards))


@pytest.mark.parametrize("size", [2, 5, 8])
def test_the_squared_advantages_of_a_group_with_contrast_add_up_to_its_size(size: int) -> None:
    for k in range(1, size):
        p = Fraction(k, size)
        rewards = advantage.binary_group(size, k)
        assert sum(value**2 for value in advantage.normalized(rewards)) == pytest.approx(size, rel=1e-12)
        closed = 2 * size * moments.sqrt(p * (1 - p))
        assert float(advantage.absolute_total(rewards)) == pytest.approx(float(closed), rel=1e-12)


@pytest.mark.parametrize("size", [1, 2, 4, 6])
@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 2), Fraction(1, 3)])
def test_the_chance_of_no_contrast_agrees_with_enumeration(p: Fraction, size: int) -> None:
    total = Fraction(0)
    for rewards in product((1, 0), repeat=size):
        if len(set(rewards)) == 1:
            total += p ** sum(rewards) * (1 - p) ** (size - sum(rewards))
    assert advantage.equal_group_probability((p, 1 - p), size) == total


def test_the_smallest_group_agrees_with_the_logarithm_where_the_other_term_is_negligible() -> None:
    assert advantage.smallest_group(0.001, 0.5) == ceil(log(0.5) / log(0.999))
    assert advantage.smallest_group(0.5, 0.5) == 2


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 2), Fraction(3, 4)])
def test_what_a_group_knows_follows_the_closed_forms(p: Fraction, size: int) -> None:
    noise, kept = p * (1 - p), 1 - Fraction(1, size)
    assert advantage.mean_variance(p, size) == noise / size
    assert advantage.advantage_variance(p, size) == noise * kept
    correlation = advantage.advantage_correlation(p, size)
    assert float(correlation) == pytest.approx(float(moments.sqrt(kept)), rel=1e-12)


def test_two_rollouts_covary_by_the_variance_of_the_instances_values() -> None:
    rates = (Fraction(1, 20), Fraction(1, 2), Fraction(9, 10))
    spread = moments.variance([(Fraction(1, 3), rate) for rate in rates])
    assert advantage.rollout_covariance(rates) == spread
    assert advantage.rollout_covariance(rates[:1]) == 0
