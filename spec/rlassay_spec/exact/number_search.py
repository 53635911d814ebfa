"""Number Search solved exactly: play, candidates, best play, the value of a policy (rl-basics, sections 2 and 8).

The environment hides a number of 1..16 and answers each wrong guess with "higher" or "lower"; four guesses at most.
What a player can know is the set of candidates, the numbers that agree with all feedback so far.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import TypeAlias

NUMBERS = 16
GUESSES = 4
TAUS = ((8, 12, 10, 11), (4, 8, 12, 11), (16, 8, 9, 10), (1, 2, 3, 4))
"""The guesses of the lecture's trajectories τ₁..τ₄, played against the hidden number 11."""

Candidates: TypeAlias = tuple[int, ...]
Policy: TypeAlias = Mapping[Candidates, Mapping[int, Fraction | int]]
"""Candidates → probability of each guess. Where a policy says nothing, it plays uniformly over the candidates."""


def play(hidden: int, guesses: Sequence[int]) -> tuple[tuple[str, ...], int]:
    """Feedback and reward of a sequence of guesses; what follows a hit or the fourth guess does not count."""
    feedback: list[str] = []
    for guess in guesses[:GUESSES]:
        feedback.append("correct" if guess == hidden else "higher" if guess < hidden else "lower")
        if guess == hidden:
            return tuple(feedback), 1
    return tuple(feedback), 0


def candidates(hidden: int, guesses: Sequence[int]) -> Candidates:
    """The numbers that the feedback to these guesses does not tell from the hidden one."""
    seen = play(hidden, guesses)
    return tuple(number for number in range(1, NUMBERS + 1) if play(number, guesses) == seen)


def capacity(guesses: int) -> int:
    """The most numbers among which k guesses find every one: c(0) = 0, c(k) = 1 + 2·c(k−1), hence 2ᵏ − 1."""
    return 1 + 2 * capacity(guesses - 1) if guesses else 0


@cache
def most_hits(count: int, guesses: int) -> int:
    """How many of `count` neighbouring candidates the best play finds: max over i of 1 + h(i−1, k−1) + h(n−i, k−1)."""
    if not count or not guesses:
        return 0
    return max(1 + most_hits(i, guesses - 1) + most_hits(count - 1 - i, guesses - 1) for i in range(count))


@cache
def fewest_hits(count: int, guesses: int) -> int:
    """How many candidates the worst play finds that still guesses candidates only."""
    if not count or not guesses:
        return 0
    return min(1 + fewest_hits(i, guesses - 1) + fewest_hits(count - 1 - i, guesses - 1) for i in range(count))


def best_success(numbers: int = NUMBERS, guesses: int = GUESSES) -> Fraction:
    """Largest success probability of any strategy when the hidden number is uniform over 1..numbers."""
    return Fraction(most_hits(numbers, guesses), numbers)


def best_success_after(open_numbers: Candidates, guess: int, left: int) -> Fraction:
    """Success probability of the best play that guesses `guess` now, with `left` guesses, this one included."""
    below = sum(number < guess for number in open_numbers)
    above = sum(number > guess for number in open_numbers)
    hits = int(guess in open_numbers) + most_hits(below, left - 1) + most_hits(above, left - 1)
    return Fraction(hits, len(open_numbers))


def losses(hidden: int, guesses: Sequence[int]) -> tuple[Fraction, ...]:
    """What each guess costs: best success probability before it minus best success probability once it is made."""
    cost: list[Fraction] = []
    for t, guess in enumerate(guesses):
        open_numbers, left = candidates(hidden, guesses[:t]), GUESSES - t
        best = best_success(len(open_numbers), left)
        cost.append(best - best_success_after(open_numbers, guess, left))
    return tuple(cost)


def worst_side(guess: int, numbers: int = NUMBERS) -> int:
    """Candidates left after a first guess that misses, in the worse of the two cases."""
    return max(guess - 1, numbers - guess)


def best_first_guesses(numbers: int = NUMBERS) -> tuple[int, ...]:
    """The first guesses whose worse side is smallest."""
    smallest = min(worst_side(guess, numbers) for guess in range(1, numbers + 1))
    return tuple(guess for guess in range(1, numbers + 1) if worst_side(guess, numbers) == smallest)


def fixed_success(guesses: Sequence[int]) -> Fraction:
    """Success probability, over a uniform hidden number, of guesses that ignore all feedback."""
    return Fraction(sum(play(hidden, guesses)[1] for hidden in range(1, NUMBERS + 1)), NUMBERS)


def trajectories(numbers: int = NUMBERS, guesses: int = GUESSES) -> int:
    """How many different episodes one hidden number allows: Σ_{k<T} (n−1)ᵏ that end with a hit, (n−1)ᵀ that do not."""
    return sum((numbers - 1) ** k for k in range(guesses + 1))


def _distribution(open_numbers: Candidates, policy: Policy) -> Mapping[int, Fraction | int]:
    uniform = Fraction(1, len(open_numbers))
    return policy.get(open_numbers, {number: uniform for number in open_numbers})


def action_value(open_numbers: Candidates, guess: int, left: int, policy: Policy | None = None) -> Fraction:
    """Q(h, a): success probability of guessing `guess` now and following the policy afterwards.

    `left` counts the guesses that remain, this one included; the hidden number is uniform over the candidates.
    """
    below = tuple(number for number in open_numbers if number < guess)
    above = tuple(number for number in open_numbers if number > guess)
    hits = Fraction(int(guess in open_numbers))
    for side in (below, above):
        if side and left > 1:
            hits += len(side) * state_value(side, left - 1, policy)
    return hits / len(open_numbers)


def state_value(open_numbers: Candidates, left: int, policy: Policy | None = None) -> Fraction:
    """V(h) = Σ_a π(a∣h)·Q(h, a)."""
    chances = _distribution(open_numbers, policy or {})
    terms = (chance * action_value(open_numbers, guess, left, policy) for guess, chance in chances.items())
    return sum(terms, Fraction(0))


def advantage(open_numbers: Candidates, guess: int, left: int, policy: Policy | None = None) -> Fraction:
    """A(h, a) = Q(h, a) − V(h)."""
    return action_value(open_numbers, guess, left, policy) - state_value(open_numbers, left, policy)


def uniform_success(numbers: int = NUMBERS, guesses: int = GUESSES) -> Fraction:
    """J of the player that picks uniformly among the candidates, for a uniform hidden number."""
    return _uniform_hits(numbers, guesses) / numbers


@cache
def _uniform_hits(count: int, guesses: int) -> Fraction:
    if not count or not guesses:
        return Fraction(0)
    sides = (1 + _uniform_hits(i, guesses - 1) + _uniform_hits(count - 1 - i, guesses - 1) for i in range(count))
    return sum(sides, Fraction(0)) / count
