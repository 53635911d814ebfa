"""The sorting rewards against the oracles, and their gradients against differences."""

from fractions import Fraction
from math import exp, log

import pytest

from rlassay_spec.exact import sorting
from rlassay_spec.exact.log_prob import softmax
from rlassay_spec.oracles import ORACLES

REWARDS = {
    "position_reward": sorting.position_reward,
    "inclusion_order_reward": sorting.inclusion_order_reward,
}


@pytest.mark.parametrize("name", REWARDS)
def test_both_rewards_agree_with_their_oracles_on_all_prompts_and_responses(name: str) -> None:
    for prompt in sorting.responses():
        for response in sorting.responses():
            assert REWARDS[name](prompt, response) == ORACLES[name](prompt, response).value


@pytest.mark.parametrize("prompt", sorting.responses())
def test_the_position_reward_leaves_eight_responses_with_nothing_and_the_other_none(prompt: tuple[int, ...]) -> None:
    assert sorting.rewarded(sorting.position_reward, prompt) == 27 - 2**3
    assert sorting.rewarded(sorting.inclusion_order_reward, prompt) == 27


@pytest.mark.parametrize("prompt", sorting.responses())
def test_a_prompt_can_be_gamed_exactly_when_it_holds_one_number_twice(prompt: tuple[int, ...]) -> None:
    best = sorting.best_responses(prompt)
    assert tuple(sorted(prompt)) in best
    rivals = [y for y in best if y != tuple(sorted(prompt)) and set(y) <= set(prompt)]
    assert bool(rivals) == (len(set(prompt)) == 2)


def test_eighteen_prompts_hold_one_number_twice() -> None:
    assert sorting.gameable_prompts() == sum(len(set(prompt)) == 2 for prompt in sorting.responses()) == 18


@pytest.mark.parametrize("name", REWARDS)
def test_the_gradient_of_the_mean_reward_agrees_with_differences(name: str) -> None:
    rows = [softmax(weights) for weights in ((1, 2, 3), (4, 1, 1), (2, 2, 5))]
    prompt, h, total = (1, 0, 2), 1e-5, 0.0
    for i in range(3):
        for k in range(3):
            means = []
            for step in (h, -h):
                moved = softmax([Fraction(exp(log(p) + step * (a == k))) for a, p in enumerate(rows[i])])
                means.append(sorting.mean_reward(REWARDS[name], prompt, [*rows[:i], moved, *rows[i + 1 :]]))
            total += (float(means[0] - means[1]) / (2 * h)) ** 2
    assert float(sorting.squared_gradient(REWARDS[name], prompt, rows)) == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("name", REWARDS)
def test_the_mean_gradient_vanishes_near_any_response_under_both_rewards(name: str) -> None:
    for wrong in ((2, 2, 0), (0, 1, 2)):
        norms = []
        for rest in (Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000)):
            rows = [[1 - rest if k == number else rest / 2 for k in range(3)] for number in wrong]
            norms.append(sorting.squared_gradient(REWARDS[name], (1, 0, 2), rows))
        assert norms[1] < norms[0] / 50
        assert norms[2] < norms[1] / 50
