"""Group statistics of the reference: the lectures' numbers, and groups that invite rounding or NaN."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rlassay_impl import centered_advantages, grpo_advantages, keep_groups, max_advantages, rloo_advantages

Advantages = Callable[[Tensor], Tensor]
RELATIVE: list[Advantages] = [centered_advantages, grpo_advantages, rloo_advantages]


def test_the_three_groups_of_the_lecture_have_its_advantages() -> None:
    rewards = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]], dtype=torch.float64)
    a, b = math.sqrt(3), 1 / math.sqrt(3)
    want = torch.tensor([[1, 1, -1, -1], [a, -b, -b, -b], [b, b, b, -a]], dtype=torch.float64)
    torch.testing.assert_close(grpo_advantages(rewards), want, rtol=1e-15, atol=0)


def test_centring_and_leaving_one_out_differ_by_the_factor_g_over_g_minus_1() -> None:
    rewards = torch.tensor([[11.0, 9.0], [0.0, 2.0]])
    assert centered_advantages(rewards).tolist() == [[1, -1], [-1, 1]]
    assert rloo_advantages(rewards).tolist() == [[2, -2], [-2, 2]]


@pytest.mark.parametrize("advantages", RELATIVE)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_a_group_without_contrast_gives_exactly_0(advantages: Advantages, dtype: torch.dtype) -> None:
    for reward in (0.1, 0.7, 1 / 3, -2.0, 1e30):
        for size in (1, 3, 7, 10):
            assert not advantages(torch.full((2, size), reward, dtype=dtype)).any()


@pytest.mark.parametrize("advantages", RELATIVE)
def test_a_common_offset_costs_no_digits(advantages: Advantages) -> None:
    rewards = torch.tensor([[0.0, 1.0, 1.0, 4.0]])
    assert torch.equal(advantages(rewards + 2.0**21), advantages(rewards))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_normalised_advantages_do_not_depend_on_the_scale_of_the_rewards(scale: float) -> None:
    rewards = torch.tensor([[0.0, 1.0, 1.0, 4.0]])
    torch.testing.assert_close(grpo_advantages(scale * rewards), grpo_advantages(rewards), rtol=1e-6, atol=0)


@pytest.mark.parametrize("advantages", [*RELATIVE, max_advantages])
def test_a_nan_stays_in_its_group_and_no_advantage_carries_a_graph(advantages: Advantages) -> None:
    rewards = torch.tensor([[1.0, 0.0, 2.0], [float("nan"), 1.0, 0.0]], requires_grad=True)
    got = advantages(rewards)
    assert not got.requires_grad
    assert torch.equal(got[0], advantages(rewards[:1])[0])


def test_all_ties_of_the_best_keep_their_reward() -> None:
    rewards = torch.tensor([[3.0, 1.0, 3.0], [-2.0, -1.0, -1.0], [0.5, 0.5, 0.5]])
    assert max_advantages(rewards).tolist() == [[3, 0, 3], [0, -1, -1], [0.5, 0.5, 0.5]]


def test_groups_with_contrast_are_kept() -> None:
    next_up = torch.nextafter(torch.tensor(0.1), torch.tensor(1.0))
    rewards = torch.full((2, 7), 0.1)
    rewards[1, 3] = next_up
    assert keep_groups(rewards).tolist() == [False, True]
    assert grpo_advantages(rewards)[1, 3] == pytest.approx(math.sqrt(6), rel=1e-6)
