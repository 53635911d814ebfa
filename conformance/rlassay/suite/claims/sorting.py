"""Checks of the claims about the two rewards of the sorting task."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from rlassay.check import Trial, require
from rlassay.suite.claims.reading import Reading, read
from rlassay.suite.sorting import TOPIC
from rlassay_spec.exact import sorting as exact

REWARDS = {
    "position_reward": exact.position_reward,
    "inclusion_order_reward": exact.inclusion_order_reward,
}
PROMPT = (1, 0, 2)


def reward(trial: Trial, operation: str, prompt: Sequence[int], response: Sequence[int]) -> float:
    """The subject's reward for three numbers, which is 0 to 5 points.

    Raises:
        Mismatch: it is anything else.
    """
    got = float(read(trial, operation, {"prompt": list(prompt), "response": list(response)}).value)
    require(0 <= got <= 5, f"{operation}({list(prompt)}, {list(response)}) is {got:g}, but should be 0 to 5")
    return got


def require_reward(trial: Trial, operation: str, prompt: Sequence[int], response: Sequence[int]) -> None:
    """The subject's reward is the right number of points."""
    got, want = reward(trial, operation, prompt, response), REWARDS[operation](prompt, response)
    call = f"{operation}({list(prompt)}, {list(response)})"
    require(got == want, f"{call} is {got:g}, but should be {want}", got=f"{got:g}", expected=str(want))


def _declare(claim: str, operation: str, title: str) -> None:
    @TOPIC.claim(claim, operation, title=title)
    def all_responses(trial: Trial) -> None:
        """The lecture's four responses to (1, 0, 2) first, then all 27."""
        for response in ((0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 0, 0), *exact.responses()):
            require_reward(trial, operation, PROMPT, response)


_declare("P8.1", "position_reward", "(1, 0, 2): the responses 012, 102, 210, 000 match 3, 1, 1, 1 sorted places")
_declare("P8.2", "inclusion_order_reward", "(1, 0, 2): the responses 012, 102, 210, 000 earn 5, 4, 3, 3 points")


def _declare_density(operation: str) -> None:
    @TOPIC.claim("P8.3", operation, title=f"of the 27 responses, {operation} rewards {density(operation)}")
    def rewarded(trial: Trial) -> None:
        """Responses to (1, 0, 2) with a reward other than 0."""
        got = sum(reward(trial, operation, PROMPT, response) != 0 for response in exact.responses())
        want = density(operation)
        require(got == want, f"{operation} rewards {got} of the 27 responses to {PROMPT}, but should reward {want}")


def density(operation: str) -> int:
    """How many of the 27 responses to (1, 0, 2) the reward does not leave at 0."""
    return exact.rewarded(REWARDS[operation], PROMPT)


for _operation in REWARDS:
    _declare_density(_operation)


@TOPIC.claim(
    "P8.4", "inclusion_order_reward", title="for 18 of 27 prompts a wrong response earns as much as the sorted one"
)
def gamed(trial: Trial) -> None:
    """Constant responses to (1, 0, 2) earn 3 of 5; (0, 0, 1), (0, 1, 1) and (0, 1, 2) all earn 5 on (1, 1, 0).

    Over all 27 prompts: those whose maximum is reached by a wrong response made of the prompt's own numbers.
    """
    for number in range(3):
        require_reward(trial, "inclusion_order_reward", PROMPT, (number,) * 3)
    for response in exact.best_responses((1, 1, 0)):
        require_reward(trial, "inclusion_order_reward", (1, 1, 0), response)
    gamed_prompts = sum(_is_gamed(trial, prompt) for prompt in exact.responses())
    message = f"a wrong response reaches the maximum for {gamed_prompts} prompts, but should for 18"
    require(gamed_prompts == exact.gameable_prompts(), message)


def _is_gamed(trial: Trial, prompt: tuple[int, ...]) -> bool:
    own = [response for response in product(sorted(set(prompt)), repeat=3) if response != tuple(sorted(prompt))]
    best = reward(trial, "inclusion_order_reward", prompt, sorted(prompt))
    return any(reward(trial, "inclusion_order_reward", prompt, response) >= best for response in own)


@TOPIC.claim("P8.5", "inclusion_order_reward", title="each prompt of the lecture's experiment allows a reward of 5")
def largest_rewards(trial: Trial) -> None:
    """(1, 0, 2), (3, 2, 4) and (1, 2, 3), each answered by its sorted numbers."""
    for prompt in (PROMPT, (3, 2, 4), (1, 2, 3)):
        require_reward(trial, "inclusion_order_reward", prompt, sorted(prompt))


UNIFORM = (Fraction(1, 3),) * 3
RARE, LIKELY = Fraction(5, 1000), Fraction(99, 100)
POLICIES = {
    "under the uniform policy": (UNIFORM,) * 3,
    "near the response (2, 2, 0)": ((RARE, RARE, LIKELY), (RARE, RARE, LIKELY), (LIKELY, RARE, RARE)),
}
"""Policies that draw the number at each position from a row of their own."""


def _declare_gradient(operation: str) -> None:
    @TOPIC.claim("P8.7", operation, title=f"{operation}: size of the mean gradient near an all-wrong response")
    def gradient_size(trial: Trial) -> None:
        """‖E[R·∇ log π]‖ in the logits of all positions, by enumeration of the 27 responses; and R of (2, 2, 0)."""
        require_reward(trial, operation, PROMPT, (2, 2, 0))
        rewards = {response: reward(trial, operation, PROMPT, response) for response in exact.responses()}
        for name, rows in POLICIES.items():
            policy = np.array(rows, dtype=np.float64)
            total = np.zeros((3, 3))
            for response, value in rewards.items():
                chosen = np.eye(3)[list(response)]
                total += float((policy * chosen).sum(axis=1).prod()) * value * (chosen - policy)
            want = float(exact.squared_gradient(REWARDS[operation], PROMPT, rows)) ** 0.5
            Reading(np.asarray(np.linalg.norm(total)), np.asarray(1e-9)).require(
                f"size of the mean gradient of {operation} {name}", want
            )


for _operation in REWARDS:
    _declare_gradient(_operation)


@TOPIC.claim("P9.3", "position_reward", title="uniform guessing has mean position reward 1 in the sorting task")
def uniform_guessing(trial: Trial) -> None:
    """So eight uniform responses all get 0 with probability (8/27)⁸ only."""
    got = [reward(trial, "position_reward", PROMPT, response) for response in exact.responses()]
    mean = float(exact.mean_reward(exact.position_reward, PROMPT, (UNIFORM,) * 3))
    require(
        abs(sum(got) / 27 - mean) < 1e-9, f"mean position reward of all responses is {sum(got) / 27:g}, not {mean:g}"
    )
    nothing = sum(value == 0 for value in got)
    want = 27 - exact.rewarded(exact.position_reward, PROMPT)
    require(nothing == want, f"position_reward gives nothing to {nothing} of 27 responses, but should to {want}")
