"""The game of four guesses against the lecture's episodes and a count over all of them."""

from itertools import permutations
from typing import Any

import pytest

from rlassay_spec.oracles.number_search import number_search


@pytest.mark.parametrize(
    ("guesses", "feedback", "reward"),
    [
        ((8, 12, 10, 11), "hlhc", 1.0),
        ((4, 8, 12, 11), "hhlc", 1.0),
        ((16, 8, 9, 10), "lhhh", 0.0),
        ((1, 2, 3, 4), "hhhh", 0.0),
    ],
)
def test_the_lectures_episodes(guesses: tuple[int, ...], feedback: str, reward: float) -> None:
    words = {"h": "higher", "l": "lower", "c": "correct"}
    assert number_search(11, guesses) == ([words[letter] for letter in feedback], reward)


def test_distinct_guesses_hit_one_hidden_number_each() -> None:
    for guesses in permutations((1, 7, 11, 16)):
        assert sum(number_search(hidden, guesses)[1] for hidden in range(1, 17)) == 4


def test_feedback_narrows_down_to_the_hidden_number() -> None:
    for hidden in range(1, 17):
        low, high, guesses = 1, 16, []
        for _ in range(4):
            guesses.append((low + high) // 2)
            answer = number_search(hidden, guesses)[0][-1]
            low, high = (guesses[-1] + 1, high) if answer == "higher" else (low, guesses[-1] - 1)
            if answer == "correct":
                break
        assert number_search(hidden, guesses)[1] == (hidden != 16)


def test_guesses_after_the_end_are_ignored() -> None:
    assert number_search(3, [3, 4, 99]) == (["correct"], 1.0)
    assert number_search(3, [1, 1, 1, 1, 3]) == (["higher"] * 4, 0.0)


def test_too_few_guesses_earn_nothing() -> None:
    assert number_search(3, []) == ([], 0.0)
    assert number_search(3, [5]) == (["lower"], 0.0)


@pytest.mark.parametrize(
    ("hidden", "guesses", "message"),
    [
        (0, [1], "hidden: has 0, expected 1..16"),
        (17, [1], "hidden: has 17, expected 1..16"),
        (5, [0], "guesses: has 0, expected 1..16"),
        (5, [1, 17], "guesses: has 17, expected 1..16"),
    ],
)
def test_a_wrong_argument_is_named(hidden: int, guesses: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        number_search(hidden, guesses)
    assert message in str(error.value)
