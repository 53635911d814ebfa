"""Group advantages against numpy in extended precision, known numbers, and other formulas in float32."""

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.oracles.advantage import (
    centered_advantages,
    grpo_advantages,
    keep_groups,
    max_advantages,
    rloo_advantages,
)
from rlassay_spec.oracles.expected import Expected

FLOAT32_EPS = float(np.finfo(np.float32).eps)
ALL = (centered_advantages, grpo_advantages, rloo_advantages, max_advantages, keep_groups)
WITH_SINGLETONS = (centered_advantages, grpo_advantages, rloo_advantages)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_centred_and_leave_one_out_agree_with_the_mean_of_a_list(size: int) -> None:
    rewards = np.random.default_rng(size).normal(size=(3, size))
    for n, group in enumerate(rewards.tolist()):
        others = [group[:j] + group[j + 1 :] for j in range(size)]
        mean = statistics.fmean(group)
        np.testing.assert_allclose(centered_advantages(rewards).value[n], [r - mean for r in group], atol=1e-15)
        left_out = [r - statistics.fmean(rest) for r, rest in zip(group, others, strict=True)]
        np.testing.assert_allclose(rloo_advantages(rewards).value[n], left_out, atol=1e-15)
    np.testing.assert_allclose(
        rloo_advantages(rewards).value, size / (size - 1) * centered_advantages(rewards).value, rtol=1e-13
    )


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("eps", [0.0, 1e-6, 0.3])
@pytest.mark.parametrize("place", ["added", "inside", "floor"])
def test_normalised_advantages_agree_with_the_deviation_of_a_list(ddof: int, eps: float, place: str) -> None:
    convention = Convention(std_ddof=ddof, std_eps=eps, std_eps_place=place)
    rewards = 0.5 * np.random.default_rng(1).normal(size=(4, 5))
    rewards[1] *= 1e-3
    for n, group in enumerate(rewards.tolist()):
        deviation = statistics.stdev(group) if ddof else statistics.pstdev(group)
        divisor = {"added": deviation + eps, "inside": math.hypot(deviation, eps**0.5), "floor": max(deviation, eps)}
        expected = [(r - statistics.fmean(group)) / divisor[place] for r in group]
        np.testing.assert_allclose(grpo_advantages(rewards, convention=convention).value[n], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("rewards", "advantages"),
    [
        ([1.0, 1.0, 0.0, 0.0], [1, 1, -1, -1]),
        ([1.0, 0.0, 0.0, 0.0], [3**0.5, -(3**-0.5), -(3**-0.5), -(3**-0.5)]),
        ([1.0, 1.0, 1.0, 0.0], [3**-0.5, 3**-0.5, 3**-0.5, -(3**0.5)]),
    ],
)
def test_the_lectures_groups_have_the_lectures_advantages(rewards: list[float], advantages: list[float]) -> None:
    np.testing.assert_allclose(grpo_advantages([rewards]).value, [advantages], rtol=1e-15)


def test_the_conventions_of_the_other_lecture_give_its_numbers() -> None:
    sample = Convention(std_ddof=1, std_eps=1e-4)
    population = Convention(std_ddof=0, std_eps=1e-4)
    assert grpo_advantages([[1.0, 1.0, 0.0, 0.0]], convention=sample).value[0, 0] == pytest.approx(0.865875, abs=5e-7)
    assert grpo_advantages([[1.0, 1.0, 0.0, 0.0]], convention=population).value[0, 0] == pytest.approx(0.9998, abs=5e-7)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, 0.7, -1e30])
@pytest.mark.parametrize("size", [2, 7])
@pytest.mark.parametrize("operation", WITH_SINGLETONS)
def test_a_group_without_contrast_is_zero(operation: Callable[..., Expected], size: int, constant: float) -> None:
    rewards = np.full((2, size), constant)
    rewards[1, 0] = 5.0
    expected = operation(rewards, convention=Convention(std_eps=1e-6))
    assert not expected.value[0].any() and not expected.scale[0].any()
    assert expected.value[1].all() and expected.scale[1].all()
    assert keep_groups(rewards).value.tolist() == [False, True]


@pytest.mark.parametrize("operation", WITH_SINGLETONS)
def test_a_group_of_one_follows_the_convention(operation: Callable[..., Expected]) -> None:
    rewards = [[0.7], [-2.0]]

    def under(choice: str) -> Expected:
        return operation(rewards, convention=Convention(singleton_group=choice))

    assert not under("zero").value.any() and not under("zero").scale.any()
    np.testing.assert_array_equal(under("reward").value, rewards)
    assert np.isnan(under("free").value).all() and np.isinf(under("free").scale).all()
    with pytest.raises(ValueError, match=r"rewards: has shape \[2, 1\], expected \[N, G\] with G ≥ 2"):
        under("error")


def test_all_ties_of_the_best_keep_their_reward() -> None:
    rewards = [[1.0, 3.0, 3.0], [-2.0, -5.0, -2.0], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(max_advantages(rewards).value, [[0, 3, 3], [-2, 0, -2], [0, 0, 0]])
    np.testing.assert_array_equal(max_advantages([[4.0]]).value, [[4.0]])


def test_only_groups_with_contrast_are_kept() -> None:
    rewards = [[0.1, 0.1, 0.1], [0.1, 0.1, math.nextafter(0.1, 1.0)]]
    assert keep_groups(rewards).value.tolist() == [False, True]
    assert keep_groups([[4.0]]).value.tolist() == [False]


@pytest.mark.parametrize("operation", ALL)
def test_a_reward_that_is_not_a_number_stays_in_its_group(operation: Callable[..., Expected]) -> None:
    rewards = np.random.default_rng(2).normal(size=(3, 4))
    clean = operation(rewards)
    rewards[1, 2] = np.nan
    dirty = operation(rewards)
    np.testing.assert_array_equal(dirty.value[[0, 2]], clean.value[[0, 2]])
    assert np.isinf(dirty.scale[1]).all()


def float32_formulas(r: Any) -> list[tuple[str, Any, Expected]]:
    exact = r.astype(np.float64)
    size = r.shape[1]
    mean = r.mean(1, keepdims=True)
    centred = r - mean
    sample, population = Convention(std_ddof=1, std_eps=1e-4), LECTURE
    inside = Convention(std_eps=1e-4, std_eps_place="inside")
    total = r.sum(1, keepdims=True)
    return [
        ("mean", centred, centered_advantages(exact)),
        ("sum", r - total / np.float32(size), centered_advantages(exact)),
        ("shifted by the first", (r - r[:, :1]) - (r - r[:, :1]).mean(1, keepdims=True), centered_advantages(exact)),
        ("sum minus own", r - (total - r) / np.float32(size - 1), rloo_advantages(exact)),
        ("scaled centred", np.float32(size / (size - 1)) * centred, rloo_advantages(exact)),
        ("numpy's deviation", centred / r.std(1, keepdims=True), grpo_advantages(exact, convention=population)),
        (
            "deviation of the centred",
            centred / np.sqrt((centred**2).mean(1, keepdims=True)),
            grpo_advantages(exact, convention=population),
        ),
        (
            "sample deviation",
            centred / (r.std(1, ddof=1, keepdims=True) + np.float32(1e-4)),
            grpo_advantages(exact, convention=sample),
        ),
        (
            "inside the root",
            centred / np.sqrt(r.var(1, keepdims=True) + np.float32(1e-4)),
            grpo_advantages(exact, convention=inside),
        ),
    ]


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e6])
@pytest.mark.parametrize("size", [2, 8, 64])
def test_usual_float32_formulas_stay_within_the_scale(offset: float, size: int) -> None:
    rewards = (np.random.default_rng(3).normal(size=(6, size)) + offset).astype(np.float32)
    for formula, value, expected in float32_formulas(rewards):
        assert value.dtype == np.float32
        assert (abs(value - expected.value) <= 16 * FLOAT32_EPS * expected.scale).all(), formula


@pytest.mark.parametrize("operation", ALL)
def test_a_wrong_argument_is_named(operation: Callable[..., Expected]) -> None:
    for rewards, message in (
        ([1.0, 0.0], "rewards: has shape [2], expected [N, G]"),
        (np.zeros((2, 0)), "rewards: has shape [2, 0], expected [N, G] with G ≥ 1"),
        ([[1, 0]], "rewards: has dtype int64, expected a floating dtype"),
        ([[True, False]], "rewards: has dtype bool, expected a floating dtype"),
    ):
        with pytest.raises(ValueError) as error:
            operation(rewards)
        assert message in str(error.value)
