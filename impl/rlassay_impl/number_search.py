"""Number Search, the running example of RL Basics: a number of 1..16 is hidden, and four guesses are allowed."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from rlassay_impl.contract import require
from rlassay_impl.trajectory import History, Outcome

NUMBERS = range(1, 17)
MAX_GUESSES = 4
HIT = "correct"


def number_search(hidden: int, guesses: Sequence[int]) -> tuple[list[str], float]:
    """Play an episode: the feedback to each guess, and the reward.

        reward = 1 if one of the first four guesses is the hidden number, else 0

    Source: RL Basics §2 (B2.1, B2.2). "higher" means that the hidden number is higher. A hit or the fourth guess ends
    the episode: further guesses are ignored, too few give reward 0.
    Raises: ValueError for a hidden number, or a guess that is played, outside 1..16.
    """
    require(hidden in NUMBERS, "hidden", hidden, "one of 1..16")

    feedback: list[str] = []
    for guess in guesses[:MAX_GUESSES]:
        require(guess in NUMBERS, "guesses", list(guesses), "numbers of 1..16")
        feedback.append(_answer(hidden, guess))
        if guess == hidden:
            return feedback, 1.0
    return feedback, 0.0


def candidates(history: History) -> list[int]:
    """The numbers that agree with the feedback so far, equally likely each. (B2.3)"""
    return [hidden for hidden in NUMBERS if all(_answer(hidden, guess) == feedback for guess, feedback in history)]


def environment(history: History, guess: int) -> list[Outcome]:
    """The game as the policy meets it, the hidden number being uniform over the candidates.

        P(feedback ∣ h, guess) = share of the candidates that answer so

    Source: RL Basics §4 (B4.4). With `state_value` and kin of `rlassay_impl.policy` this is the exact solver.
    """
    counts = Counter(_answer(hidden, guess) for hidden in candidates(history))
    last = len(history) + 1 == MAX_GUESSES
    return [
        Outcome(Fraction(count, counts.total()), answer, reward=int(answer == HIT), done=last or answer == HIT)
        for answer, count in counts.items()
    ]


def uniform_play(history: History) -> dict[int, Fraction]:
    """The policy that guesses each candidate with the same probability; J = 9752459/16816800. (B2.8)"""
    left = candidates(history)
    return dict.fromkeys(left, Fraction(1, len(left)))


def best_play(history: History) -> dict[int, Fraction]:
    """The policy that takes the lowest of the best guesses; J = 15/16."""
    return {best_guesses(history)[0]: Fraction(1)}


def best_guesses(history: History) -> list[int]:
    """The candidates from which the most numbers can still be hit; 8 and 9 at the start. (B2.4)"""
    left = candidates(history)
    hits = [_hits(i, len(left), MAX_GUESSES - len(history)) for i in range(len(left))]
    return [guess for guess, n in zip(left, hits, strict=True) if n == max(hits)]


@cache
def most_hits(n_candidates: int, n_guesses: int) -> int:
    """How many of n adjacent candidates the best play of k guesses hits.

        hits(n, k) = max_i 1 + hits(i, k−1) + hits(n−1−i, k−1) = min(n, 2^k − 1)

    Source: RL Basics §2, corrected (B2.5): with feedback of three kinds, 4 guesses cover 15 numbers of 16.
    """
    return max((_hits(i, n_candidates, n_guesses) for i in range(n_candidates)), default=0) if n_guesses else 0


def _hits(below: int, n_candidates: int, n_guesses: int) -> int:
    above = n_candidates - 1 - below
    return 1 + most_hits(below, n_guesses - 1) + most_hits(above, n_guesses - 1)


def _answer(hidden: int, guess: int) -> str:
    if hidden == guess:
        return HIT
    return "higher" if hidden > guess else "lower"
