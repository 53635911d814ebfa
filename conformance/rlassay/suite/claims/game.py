"""Number Search as the subject plays it: single games, candidates, and what players find under the answers it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from rlassay.check import Trial, require
from rlassay.suite.number_search import play
from rlassay_spec.exact import number_search as exact

HIT = "correct"
ALL = tuple(range(1, 17))
Numbers: TypeAlias = tuple[int, ...]
Found: TypeAlias = Callable[[Numbers, int], Fraction]
"""Candidates, guesses left → how many of the candidates a player finds, in the mean."""


def outcome(trial: Trial, hidden: int, guesses: Sequence[int]) -> tuple[tuple[str, ...], int]:
    """One game of the subject's environment, its reward 0 or 1.

    Raises:
        Mismatch: the result is no pair of words and a number, or the reward is another one.
    """
    feedback, reward = play(trial, hidden, list(guesses))
    require(reward in (0.0, 1.0), f"number_search({hidden}, {list(guesses)}) pays {reward}, but should pay 0 or 1")
    return tuple(feedback), int(reward)


def require_game(trial: Trial, hidden: int, guesses: Sequence[int]) -> None:
    """The subject's environment plays this game as the rules say."""
    got, want = outcome(trial, hidden, guesses), exact.play(hidden, guesses)
    message = f"number_search({hidden}, {list(guesses)}) gives {got}, but should give {want}"
    require(got == want, message, got=str(got), expected=str(want))


def require_equal(what: str, got: object, want: object) -> None:
    """Two exact values are the same."""
    require(got == want, f"{what}: {got}, but should be {want}", got=str(got), expected=str(want))


def same_feedback(trial: Trial, hidden: int, guesses: Sequence[int]) -> Numbers:
    """The numbers that the subject's feedback to these guesses does not tell from the hidden one."""
    seen = outcome(trial, hidden, guesses)
    return tuple(number for number in ALL if outcome(trial, number, guesses) == seen)


def mean(values: Sequence[Fraction]) -> Fraction:
    """Their average."""
    return sum(values, Fraction(0)) / len(values)


class Rules:
    """What the subject's environment answers to each first guess, and how many wrong guesses it answers.

    Raises:
        Mismatch: a first guess is not answered by one word.
    """

    def __init__(self, trial: Trial) -> None:
        games = {(hidden, guess): outcome(trial, hidden, [guess])[0] for hidden in ALL for guess in ALL}
        for (hidden, guess), feedback in games.items():
            require(len(feedback) == 1, f"number_search({hidden}, [{guess}]) gives {len(feedback)} answers, not one")
        self.answers = {game: feedback[0] for game, feedback in games.items()}
        self.guesses = len(outcome(trial, 16, [1, 2, 3, 4, 5, 6])[0])

    def sides(self, numbers: Numbers, guess: int) -> list[Numbers]:
        """The groups into which the answer to a guess divides the numbers that it does not hit."""
        groups: dict[str, list[int]] = {}
        for number in numbers:
            groups.setdefault(self.answers[number, guess], []).append(number)
        return [tuple(group) for word, group in groups.items() if word != HIT]

    def found_by(self, player: Found, numbers: Numbers, guess: int, left: int) -> Fraction:
        """How many of the numbers are found by this guess and the player's later ones."""
        hits = sum(self.answers[number, guess] == HIT for number in numbers)
        return sum((player(side, left - 1) for side in self.sides(numbers, guess)), Fraction(hits))

    def player(self, choose: Callable[[Sequence[Fraction]], Fraction]) -> Found:
        """The player who guesses candidates only, by what `choose` makes of the finds of each: max, min or mean."""

        @cache
        def found(numbers: Numbers, left: int) -> Fraction:
            if not numbers or left <= 0:
                return Fraction(0)
            return choose([self.found_by(found, numbers, guess, left) for guess in numbers])

        return found

    def best_guess(self, best: Found, numbers: Numbers, left: int) -> int:
        """The first of the candidates from which the best player finds the most."""
        return max(numbers, key=lambda guess: self.found_by(best, numbers, guess, left))
