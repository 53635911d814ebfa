"""Two rewards for the sorting task: the response should be the prompt's numbers in ascending order."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from torch import Tensor

from rlassay_impl.contract import require

Numbers: TypeAlias = Sequence[int] | Tensor


def position_reward(prompt: Numbers, response: Numbers) -> int:
    """One point per position where the response agrees with the sorted prompt: sparse.

        R = Σ_i 1[response_i = sorted(prompt)_i]

    Source: RL in Practice §8 (P8.1). The prompt (1, 0, 2) gives (0, 1, 2) → 3 and (0, 0, 0) → 1.
    Shapes: prompt, response [L] → points, 0..L.
    Raises: ValueError for unequal lengths or a tensor that is not 1-D.
    """
    given, answered = _numbers(prompt, response)

    return sum(right == answer for right, answer in zip(sorted(given), answered, strict=True))


def inclusion_order_reward(prompt: Numbers, response: Numbers) -> int:
    """One point per number of the prompt that occurs in the response, one per adjacent pair in order: dense.

        R = Σ_i 1[prompt_i ∈ response] + Σ_i 1[response_i ≤ response_{i+1}]

    Source: RL in Practice §8 (P8.2). Can be gamed (P8.4): the prompt (1, 1, 0) gives (0, 0, 1) all 5 points.
    Shapes: prompt, response [L] → points, 0..2L−1.
    Raises: ValueError for unequal lengths or a tensor that is not 1-D.
    """
    given, answered = _numbers(prompt, response)

    return sum(number in answered for number in given) + sum(a <= b for a, b in pairwise(answered))


def _numbers(prompt: Numbers, response: Numbers) -> tuple[list[int], list[int]]:
    for name, numbers in (("prompt", prompt), ("response", response)):
        if isinstance(numbers, Tensor):
            require(numbers.ndim == 1, f"{name}.shape", list(numbers.shape), "[L]")
    require(len(response) == len(prompt), "len(response)", len(response), f"{len(prompt)}, that of the prompt")
    return [int(number) for number in prompt], [int(number) for number in response]
