"""Known faults of the Number Search environment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from rlassay.faults import Faults, Function

FAULTS = Faults()


def answer(hidden: int, guess: int) -> str:
    """What the environment says: where the hidden number lies."""
    if guess == hidden:
        return "correct"
    return "higher" if hidden > guess else "lower"


def number_search(
    hidden: int,
    guesses: Sequence[int],
    *,
    allowed: int = 4,
    reply: Function = answer,
    ends: bool = True,
    reward: Function = lambda feedback: float("correct" in feedback),
) -> tuple[list[str], float]:
    """Right, unless a part is exchanged."""
    for name, number in [("hidden", hidden), *(("guesses", guess) for guess in guesses[:allowed])]:
        if not 1 <= number <= 16:
            raise ValueError(f"{name}: has {number}, expected 1..16")
    feedback: list[str] = []
    for guess in guesses[:allowed]:
        feedback.append(reply(hidden, guess))
        if ends and guess == hidden:
            break
    return feedback, reward(feedback)


def _fault(identity: str, title: str, source: str, **parts: Any) -> None:
    FAULTS.add(identity, "number_search", title, source, partial(number_search, **parts))


def turned_round(hidden: int, guess: int) -> str:
    """Where the guess lies."""
    return answer(guess, hidden)


_fault("NUM-01", "higher and lower exchanged: what the guess is", "claim B2.1", reply=turned_round)
_fault("NUM-02", "a game of five guesses", "claim B2.1", allowed=5)
_fault("NUM-03", "a game of three guesses", "claim B2.1", allowed=3)
_fault("NUM-04", "a game that goes on after a hit", "claim B2.1", ends=False)
_fault(
    "NUM-05",
    "the reward of the last guess alone, in a game that goes on",
    "claim B2.1",
    ends=False,
    reward=lambda feedback: float(feedback[-1:] == ["correct"]),
)
_fault("NUM-06", "no reward", "claim B2.1", reward=lambda feedback: 0.0)
_fault("NUM-07", "−1 for a miss", "claim B2.1", reward=lambda feedback: 1.0 if "correct" in feedback else -1.0)
_fault(
    "NUM-08",
    "a smaller reward for a later hit",
    "claim B7.3",
    reward=lambda feedback: 1.0 / len(feedback) if "correct" in feedback else 0.0,
)
_fault(
    "NUM-09",
    "'hit' for 'correct'",
    "claim B2.1",
    reply=lambda h, g: "hit" if h == g else answer(h, g),
    reward=lambda feedback: float("hit" in feedback),
)


@FAULTS.fault("NUM-10", "number_search", "no feedback to a hit", "claim B2.1")
def _silent_hit(hidden: int, guesses: Sequence[int]) -> tuple[list[str], float]:
    feedback, reward = number_search(hidden, guesses)
    return [word for word in feedback if word != "correct"], reward


@FAULTS.fault("NUM-11", "number_search", "numbers of any size taken", "claim B2.1", kind="robustness", validates=True)
def _any_number(hidden: int, guesses: Sequence[int]) -> tuple[list[str], float]:
    return number_search(min(max(hidden, 1), 16), [min(max(guess, 1), 16) for guess in guesses])
