"""Oracle of the game of four guesses."""

from collections.abc import Sequence

from rlassay_spec.oracles.inputs import check_range


def number_search(hidden: int, guesses: Sequence[int]) -> tuple[list[str], float]:
    """Feedback to the guesses that are played, and 1 if one of them hits."""
    check_range("hidden", hidden, 1, 16)
    feedback: list[str] = []
    for guess in list(guesses)[:4]:
        check_range("guesses", guess, 1, 16)
        feedback.append("correct" if guess == hidden else "higher" if guess < hidden else "lower")
        if guess == hidden:
            return feedback, 1.0
    return feedback, 0.0
