"""The sorting task of lecture rl-in-practice, section 8: both rewards and what they say about all responses."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import TypeAlias

from rlassay_spec.exact.log_prob import score
from rlassay_spec.exact.moments import Real

Reward: TypeAlias = Callable[[Sequence[int], Sequence[int]], int]


def position_reward(prompt: Sequence[int], response: Sequence[int]) -> int:
    """Number of positions where the response equals the sorted prompt."""
    return sum(got == want for got, want in zip(response, sorted(prompt), strict=True))


def inclusion_order_reward(prompt: Sequence[int], response: Sequence[int]) -> int:
    """Prompt tokens found in the response, plus adjacent response pairs that do not descend."""
    found = sum(token in response for token in prompt)
    return found + sum(a <= b for a, b in pairwise(response))


def responses(length: int = 3, values: int = 3) -> list[tuple[int, ...]]:
    """All sequences of that length over 0..values−1."""
    return list(product(range(values), repeat=length))


def rewarded(reward: Reward, prompt: Sequence[int]) -> int:
    """How many of the 27 responses to a prompt of length 3 over {0, 1, 2} get a reward that is not 0."""
    return sum(reward(prompt, response) != 0 for response in responses())


def best_responses(prompt: Sequence[int]) -> list[tuple[int, ...]]:
    """The responses with the largest inclusion + order reward."""
    top = max(inclusion_order_reward(prompt, response) for response in responses())
    return [response for response in responses() if inclusion_order_reward(prompt, response) == top]


def gameable_prompts() -> int:
    """How many of the 27 prompts have a best response that is wrong and made of the prompt's own numbers."""
    return sum(
        any(best != tuple(sorted(prompt)) and set(best) <= set(prompt) for best in best_responses(prompt))
        for prompt in responses()
    )


def mean_reward(reward: Reward, prompt: Sequence[int], rows: Sequence[Sequence[Real]]) -> Fraction:
    """E[R] when every position draws its number independently from its own row of probabilities."""
    return sum((chance * value for chance, value, _ in _all(reward, prompt, rows)), Fraction(0))


def squared_gradient(reward: Reward, prompt: Sequence[int], rows: Sequence[Sequence[Real]]) -> Fraction:
    """‖∇E[R]‖² in the logits of all positions, from E[R·∇ log π]."""
    size = sum(len(row) for row in rows)
    total = [Fraction(0)] * size
    for chance, value, response in _all(reward, prompt, rows):
        scores = [entry for row, token in zip(rows, response, strict=True) for entry in score(row, token)]
        total = [t + chance * value * s for t, s in zip(total, scores, strict=True)]
    return sum((t * t for t in total), Fraction(0))


def _all(
    reward: Reward, prompt: Sequence[int], rows: Sequence[Sequence[Real]]
) -> list[tuple[Fraction, int, tuple[int, ...]]]:
    found: list[tuple[Fraction, int, tuple[int, ...]]] = []
    for response in responses(len(rows), len(rows[0])):
        chance = Fraction(1)
        for row, token in zip(rows, response, strict=True):
            chance *= Fraction(row[token])
        found.append((chance, reward(prompt, response), response))
    return found
