"""The two rewards of the sorting task."""

import itertools

import pytest
import torch

from rlassay_impl import inclusion_order_reward, position_reward

PROMPT = (1, 0, 2)
RESPONSES = list(itertools.product(range(3), repeat=3))


@pytest.mark.parametrize(
    ("response", "position", "inclusion_order"),
    [((0, 1, 2), 3, 5), ((1, 0, 2), 1, 4), ((2, 1, 0), 1, 3), ((0, 0, 0), 1, 3)],
)
def test_the_responses_of_the_lecture_get_its_rewards(
    response: tuple[int, ...], position: int, inclusion_order: int
) -> None:
    for kind in (list, torch.tensor):
        assert position_reward(kind(PROMPT), kind(response)) == position
        assert inclusion_order_reward(kind(PROMPT), kind(response)) == inclusion_order


def test_the_second_reward_is_denser() -> None:
    assert sum(position_reward(PROMPT, response) > 0 for response in RESPONSES) == 19
    assert sum(inclusion_order_reward(PROMPT, response) > 0 for response in RESPONSES) == 27


def test_a_repeated_number_in_the_prompt_lets_wrong_responses_reach_the_maximum() -> None:
    best = [response for response in RESPONSES if inclusion_order_reward((1, 1, 0), response) == 5]
    assert best == [(0, 0, 1), (0, 1, 1), (0, 1, 2)]
