"""The solver of Number Search against players that only see feedback."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from rlassay_spec.exact import number_search as game
from rlassay_spec.oracles.number_search import number_search

EVERYTHING = tuple(range(1, 17))


@cache
def hits(candidates: tuple[int, ...], left: int, choose: Callable[[list[int]], int], consistent: bool) -> int:
    """Numbers found among the candidates by a player who tries every guess, and picks with max or min."""
    if not candidates or not left:
        return 0
    guesses = candidates if consistent else EVERYTHING
    return choose(
        [
            sum(guess == n for n in candidates)
            + hits(tuple(n for n in candidates if n < guess), left - 1, choose, consistent)
            + hits(tuple(n for n in candidates if n > guess), left - 1, choose, consistent)
            for guess in guesses
        ]
    )


def test_play_agrees_with_the_oracle_for_every_hidden_number_and_a_grid_of_guesses() -> None:
    grid = (1, 4, 8, 9, 11, 12, 16)
    for hidden in EVERYTHING:
        for guesses in product(grid, repeat=4):
            feedback, reward = number_search(hidden, guesses)
            assert game.play(hidden, guesses) == (tuple(feedback), reward)


@pytest.mark.parametrize("guesses", [1, 2, 3, 4, 5])
def test_best_play_finds_what_an_exhaustive_player_finds(guesses: int) -> None:
    for count in range(1, 17):
        assert game.most_hits(count, guesses) == hits(EVERYTHING[:count], guesses, max, consistent=False)
        assert game.most_hits(count, guesses) == min(count, game.capacity(guesses))


def test_no_consistent_player_finds_fewer_than_the_scan() -> None:
    for count, guesses in product(range(1, 17), range(1, 5)):
        assert game.fewest_hits(count, guesses) == hits(EVERYTHING[:count], guesses, min, consistent=True)
        assert game.fewest_hits(count, guesses) == min(count, guesses)


def test_capacity_is_two_to_the_k_minus_one() -> None:
    assert [game.capacity(k) for k in range(8)] == [2**k - 1 for k in range(8)]


def test_best_success_is_certain_exactly_up_to_the_capacity() -> None:
    for numbers, guesses in product(range(1, 40), range(1, 6)):
        assert (game.best_success(numbers, guesses) == 1) == (numbers <= game.capacity(guesses))


def uniform_play(hidden: int, history: tuple[int, ...]) -> Fraction:
    """Success probability against one hidden number; candidates are found anew from the feedback at every step."""
    if game.play(hidden, history)[1]:
        return Fraction(1)
    if len(history) == 4:
        return Fraction(0)
    open_numbers = game.candidates(hidden, history)
    return sum((uniform_play(hidden, (*history, guess)) for guess in open_numbers), Fraction(0)) / len(open_numbers)


def test_uniform_play_succeeds_as_often_as_play_by_play_enumeration_says() -> None:
    success = sum((uniform_play(hidden, ()) for hidden in EVERYTHING), Fraction(0)) / 16
    assert success == game.uniform_success() == game.state_value(EVERYTHING, 4)


def test_the_value_after_two_guesses_agrees_with_play_by_play_enumeration() -> None:
    success = sum((uniform_play(hidden, (8, 12)) for hidden in (9, 10, 11)), Fraction(0)) / 3
    assert success == game.state_value((9, 10, 11), 2) == Fraction(7, 9)


def test_the_policy_average_of_the_advantages_is_0_for_any_policy() -> None:
    policy: dict[tuple[int, ...], dict[int, Fraction]] = {
        EVERYTHING: {3: Fraction(1, 3), 9: Fraction(2, 3)},
        (1, 2): {16: Fraction(1)},
        EVERYTHING[9:]: {13: Fraction(1)},
    }
    terms = (chance * game.advantage(EVERYTHING, guess, 4, policy) for guess, chance in policy[EVERYTHING].items())
    assert sum(terms) == 0


def test_a_policy_that_plays_best_reaches_the_best_success_probability() -> None:
    policy = {EVERYTHING[a:b]: {EVERYTHING[(a + b) // 2]: 1} for b in range(17) for a in range(b)}
    assert game.state_value(EVERYTHING, 4, policy) == game.best_success() == Fraction(15, 16)


def test_a_fixed_sequence_finds_its_distinct_numbers_or_feedback_would_be_needed() -> None:
    for guesses in ((1, 2, 3, 4), (5, 5, 5, 5), (16, 8, 9, 10)):
        assert game.fixed_success(guesses) == Fraction(len(set(guesses)), 16)


def test_what_the_guesses_cost_adds_up_to_what_is_lost_against_best_play() -> None:
    best_left = game.best_success_after(EVERYTHING, 4, 4)
    assert game.losses(11, (4,)) == (game.best_success() - best_left,)
    assert best_left == Fraction(hits((1, 2, 3), 3, max, False) + 1 + hits(EVERYTHING[4:], 3, max, False), 16)


def test_the_number_of_episodes_agrees_with_enumeration() -> None:
    for guesses in (1, 2, 3):
        sequences = product(range(1, 6), repeat=guesses)
        episodes = {s[: s.index(2) + 1] if 2 in s else s for s in sequences}
        assert game.trajectories(5, guesses) == len(episodes)
