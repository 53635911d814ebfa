"""The sorting rewards against the lecture's table and counts over all responses."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from rlassay_spec.oracles.sorting import inclusion_order_reward, position_reward

PROMPT = (1, 0, 2)
RESPONSES = list(product(range(3), repeat=3))


@pytest.mark.parametrize(
    ("response", "position", "inclusion_order"),
    [((0, 1, 2), 3, 5), ((1, 0, 2), 1, 4), ((2, 1, 0), 1, 3), ((0, 0, 0), 1, 3)],
)
def test_the_lectures_responses(response: tuple[int, ...], position: int, inclusion_order: int) -> None:
    assert position_reward(PROMPT, response).value == position
    assert inclusion_order_reward(PROMPT, response).value == inclusion_order


def test_the_second_reward_is_denser() -> None:
    assert sum(position_reward(PROMPT, response).value > 0 for response in RESPONSES) == 19
    assert sum(inclusion_order_reward(PROMPT, response).value > 0 for response in RESPONSES) == 27


def test_the_rewards_agree_with_counting_in_arrays() -> None:
    for prompt, response in product(RESPONSES, repeat=2):
        asked, answered = np.array(prompt), np.array(response)
        assert position_reward(prompt, response).value == (np.sort(asked) == answered).sum()
        ordered = (np.diff(answered) >= 0).sum()
        assert inclusion_order_reward(prompt, response).value == np.isin(asked, answered).sum() + ordered


def test_a_repeated_number_lets_wrong_responses_reach_the_maximum() -> None:
    best = [response for response in RESPONSES if inclusion_order_reward((1, 1, 0), response).value == 5]
    assert best == [(0, 0, 1), (0, 1, 1), (0, 1, 2)]


def test_rewards_are_exact_numbers_of_points() -> None:
    for reward in (position_reward(PROMPT, PROMPT), inclusion_order_reward(PROMPT, PROMPT)):
        assert reward.value.shape == () and reward.value.dtype == np.float64 and reward.scale == 0


@pytest.mark.parametrize("reward", [position_reward, inclusion_order_reward])
def test_a_wrong_argument_is_named(reward: Any) -> None:
    with pytest.raises(ValueError, match=r"^response: has shape \[2\], expected \[n\] = \[3\]"):
        reward(PROMPT, (1, 2))
    with pytest.raises(ValueError, match=r"^prompt: has shape \[1, 3\], expected \[n\]"):
        reward([PROMPT], [PROMPT])
