"""The game that rl-basics plays throughout: find a hidden number with four guesses."""

from collections.abc import Sequence


def number_search(hidden: int, guesses: Sequence[int]) -> tuple[list[str], float]:
    """Feedback to each guess that is played, and the reward of the episode.

    feedback = "higher" if hidden > guess, "lower" if hidden < guess, "correct" if equal;  reward = 1[some guess hits]

    Source: rl-basics §2 (claims B2.1, B2.2).

    Special cases: a hit ends the episode, and so does the fourth guess; guesses after the end are ignored and get no
    feedback. Fewer guesses without a hit, or none, give reward 0.

    Units: hidden and guesses are integers in 1..16; the reward is 0 or 1, the feedback one string per guess played.

    Free: whether an ignored guess outside 1..16 raises.

    Raises:
        ValueError: hidden, or a guess that is played, lies outside 1..16.
    """
    raise NotImplementedError
