"""Checks of the Number Search environment."""

from __future__ import annotations

from rlassay.check import Trial, require
from rlassay.comparison import Mismatch
from rlassay.draw import Draw
from rlassay.guest.values import Arguments
from rlassay.laws import require_refusal
from rlassay.topic import Topic
from rlassay_spec.convention import Convention
from rlassay_spec.oracles import ORACLES

TOPIC = Topic()


def game(draw: Draw, convention: Convention) -> Arguments:
    """A hidden number and 0 to 6 guesses, of which a hit may be any."""
    hidden = int(draw.integers(1, 16))
    guesses = draw.integers(1, 16, draw.integer("guesses", 0, 6)).tolist()
    if guesses and draw.choice("hit", (True, False)):
        guesses[int(draw.integers(0, len(guesses) - 1))] = hidden
    return {"hidden": hidden, "guesses": guesses}


def play(trial: Trial, hidden: int, guesses: list[int]) -> tuple[list[str], float]:
    """One game of the subject's environment, as plain values.

    Raises:
        Mismatch: the result is not a pair of a list of words and a number.
    """
    observed = trial.call("number_search", {"hidden": hidden, "guesses": guesses}).value
    try:
        feedback, reward = observed
        return [str(word) for word in feedback], float(reward)
    except (TypeError, ValueError) as error:
        raise Mismatch(f"number_search returned {observed!r}, but should return (feedback, reward)") from error


@TOPIC.check("number_search", law="value", title="number_search agrees with the oracle")
def value(trial: Trial) -> None:
    """Feedback and reward of random games."""
    arguments = game(trial.draw, trial.convention)
    want = ORACLES["number_search"](**arguments)
    got = play(trial, **arguments)
    require(
        got == (list(want[0]), float(want[1])),
        f"number_search({arguments['hidden']}, {arguments['guesses']}) is {got}, but should be {want}",
        got=str(got),
        expected=str(want),
    )


def _declare_refusal(law: str, argument: str, arguments: Arguments) -> None:
    @TOPIC.check(
        "number_search",
        law=f"refuses-{law}",
        kind="robustness",
        examples=1,
        title=f"number_search refuses {law.replace('-', ' ')} with a ValueError that names {argument}",
    )
    def refuses(trial: Trial) -> None:
        """Only 1..16 is hidden or guessed."""
        require_refusal("number_search", trial, arguments, argument)


for _law, _argument, _arguments in (
    ("a-hidden-number-of-0", "hidden", {"hidden": 0, "guesses": [8]}),
    ("a-hidden-number-of-17", "hidden", {"hidden": 17, "guesses": [8]}),
    ("a-guess-of-0", "guess", {"hidden": 3, "guesses": [0]}),
    ("a-guess-of-17", "guess", {"hidden": 3, "guesses": [8, 17]}),
):
    _declare_refusal(_law, _argument, _arguments)
