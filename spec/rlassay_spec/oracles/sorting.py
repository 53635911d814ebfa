"""Oracles of the rewards of the sorting task."""

from itertools import pairwise

import numpy.typing as npt

from rlassay_spec.oracles.expected import Expected, exactly
from rlassay_spec.oracles.inputs import ids_of


def position_reward(prompt: npt.ArrayLike, response: npt.ArrayLike) -> Expected:
    """Matches with the sorted prompt."""
    asked, answered = _pair(prompt, response)
    return exactly(sum(want == got for want, got in zip(sorted(asked), answered, strict=True)), len(asked))


def inclusion_order_reward(prompt: npt.ArrayLike, response: npt.ArrayLike) -> Expected:
    """Prompt tokens that are in the response, and its adjacent pairs that are in order."""
    asked, answered = _pair(prompt, response)
    included = sum(number in answered for number in asked)
    ordered = sum(left <= right for left, right in pairwise(answered))
    return exactly(included + ordered, len(asked))


def _pair(prompt: npt.ArrayLike, response: npt.ArrayLike) -> tuple[list[int], list[int]]:
    asked = ids_of("prompt", prompt, "n")
    return asked.tolist(), ids_of("response", response, "n", asked.shape).tolist()
