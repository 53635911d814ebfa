"""Number Search: the lecture's games, and the exact solver against brute force over hidden numbers."""

from fractions import Fraction
from functools import cache

import pytest
import torch

from rlassay_impl import number_search
from rlassay_impl.number_search import (
    NUMBERS,
    best_guesses,
    best_play,
    candidates,
    environment,
    most_hits,
    uniform_play,
)
from rlassay_impl.policy import (
    SoftmaxPolicy,
    action_advantage,
    action_value,
    in_floats,
    reachable_histories,
    state_value,
)
from rlassay_impl.trajectory import History, Policy

AFTER_8_AND_12: History = ((8, "higher"), (12, "lower"))


@pytest.mark.parametrize(
    ("guesses", "feedback", "reward"),
    [
        ((8, 12, 10, 11), "higher lower higher correct", 1),
        ((4, 8, 12, 11), "higher higher lower correct", 1),
        ((16, 8, 9, 10), "lower higher higher higher", 0),
        ((1, 2, 3, 4), "higher higher higher higher", 0),
        ((11, 99), "correct", 1),
        ((1, 2, 3, 4, 11), "higher higher higher higher", 0),
        ((8,), "higher", 0),
        ((), "", 0),
    ],
)
def test_games_with_11_hidden_go_as_in_the_lecture(guesses: tuple[int, ...], feedback: str, reward: float) -> None:
    assert number_search(11, guesses) == (feedback.split(), reward)


def test_feedback_narrows_the_candidates() -> None:
    history: History = ((4, "higher"), (8, "higher"), (12, "lower"))
    assert [len(candidates(history[:t])) for t in (1, 2, 3)] == [12, 8, 3]


def play(policy: Policy, hidden: int, history: History = ()) -> Fraction:
    """Chance that the policy hits this hidden number, by playing every game it may play."""
    total = Fraction(0)
    for guess, chance in policy(history).items():
        feedback, reward = number_search(hidden, [*(past for past, _ in history), guess])
        if reward == 0 and len(history) < 3:
            total += chance * play(policy, hidden, (*history, (guess, feedback[-1])))
        else:
            total += chance * Fraction(reward)
    return total


@pytest.mark.parametrize(
    ("policy", "success"), [(uniform_play, Fraction(9752459, 16816800)), (best_play, Fraction(15, 16))]
)
def test_the_solver_agrees_with_playing_every_game_against_every_hidden_number(
    policy: Policy, success: Fraction
) -> None:
    assert state_value(environment, policy) == success
    assert sum(play(policy, hidden) for hidden in NUMBERS) / 16 == success


def test_the_value_of_every_reachable_history_is_the_mean_over_its_candidates() -> None:
    for history in reachable_histories(environment, best_play):
        left = candidates(history)
        assert state_value(environment, best_play, history) == sum(play(best_play, n, history) for n in left) / len(
            left
        )


@cache
def most_hits_of_any_tree(numbers: frozenset[int], guesses: int) -> int:
    """Most numbers of a set that one plan of guesses can hit, over every guess of 1..16, candidate or not."""
    if not guesses or not numbers:
        return 0
    return max(
        (guess in numbers)
        + most_hits_of_any_tree(frozenset(n for n in numbers if n < guess), guesses - 1)
        + most_hits_of_any_tree(frozenset(n for n in numbers if n > guess), guesses - 1)
        for guess in NUMBERS
    )


def test_four_guesses_cover_15_numbers_and_five_cover_16() -> None:
    for guesses, hits in ((1, 1), (2, 3), (3, 7), (4, 15), (5, 16)):
        assert most_hits(16, guesses) == most_hits_of_any_tree(frozenset(NUMBERS), guesses) == hits
    assert best_guesses(()) == [8, 9]


def test_after_8_and_12_guessing_10_is_good_and_guessing_11_is_bad() -> None:
    values = [action_value(environment, uniform_play, AFTER_8_AND_12, guess) for guess in (9, 10, 11)]
    assert values == [Fraction(2, 3), 1, Fraction(2, 3)]
    advantages = [action_advantage(environment, uniform_play, AFTER_8_AND_12, guess) for guess in (9, 10, 11)]
    assert advantages == [Fraction(-1, 9), Fraction(2, 9), Fraction(-1, 9)]


def test_a_softmax_policy_is_solved_too_and_its_value_has_a_gradient() -> None:
    histories = list(reachable_histories(environment, lambda history: NUMBERS, AFTER_8_AND_12))
    theta = torch.zeros(len(histories), 16, dtype=torch.float64, requires_grad=True)
    policy = SoftmaxPolicy(histories, NUMBERS, theta)
    value = state_value(in_floats(environment), policy, AFTER_8_AND_12)
    exact = state_value(environment, lambda history: dict.fromkeys(NUMBERS, Fraction(1, 16)), AFTER_8_AND_12)
    assert value.item() == pytest.approx(float(exact), rel=1e-14)
    (gradient,) = torch.autograd.grad(value, theta)
    first = gradient[policy.rows[AFTER_8_AND_12]]
    assert [guess for guess, slope in zip(NUMBERS, first, strict=True) if slope > 0] == [9, 10, 11]
