"""Right ways to write the small environments: Number Search, the sorting rewards, the bandit."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlassay.variants import Variants

VARIANTS = Variants()

WORDS = {0: "correct", 1: "higher", -1: "lower"}


@VARIANTS.variant("number_search", "signs looked up, an integer reward")
def signs(hidden: int, guesses: Sequence[int]) -> tuple[list[str], int]:
    if not 1 <= hidden <= 16:
        raise ValueError(f"hidden: {hidden} is not in 1..16")
    feedback: list[str] = []
    for guess in guesses:
        if len(feedback) == 4 or "correct" in feedback:
            break
        if guess not in range(1, 17):
            raise ValueError(f"guesses: {guess} is not in 1..16")
        feedback.append(WORDS[int(np.sign(hidden - guess))])
    return feedback, int("correct" in feedback)


@VARIANTS.variant("number_search", "recursion")
def recursive(hidden: int, guesses: Sequence[int], left: int = 4) -> tuple[list[str], float]:
    if not guesses or left == 0:
        return [], 0.0
    first, *rest = guesses
    if not (1 <= first <= 16 and 1 <= hidden <= 16):
        raise ValueError(f"guesses or hidden: {first}, {hidden}; both should be in 1..16")
    if first == hidden:
        return ["correct"], 1.0
    words, reward = recursive(hidden, rest, left - 1)
    return ["higher" if hidden > first else "lower", *words], reward


@VARIANTS.variant("position_reward", "tensors, a 0-d tensor as result")
def as_tensors(prompt: Any, response: Any) -> Tensor:
    right = torch.as_tensor(prompt).sort().values
    return (right == torch.as_tensor(response)).sum()


@VARIANTS.variant("position_reward", "numpy, a float as result")
def as_arrays(prompt: Any, response: Any) -> float:
    return float(np.equal(np.sort(np.asarray(prompt)), np.asarray(response)).sum())


@VARIANTS.variant("inclusion_order_reward", "torch.isin and diff")
def isin(prompt: Any, response: Any) -> Tensor:
    p, r = torch.as_tensor(prompt), torch.as_tensor(response)
    return torch.isin(p, r).sum() + (torch.diff(r) >= 0).sum()


@VARIANTS.variant("inclusion_order_reward", "a sorted list searched by halves")
def bisected(prompt: Any, response: Any) -> int:
    p, r = [int(n) for n in prompt], [int(n) for n in response]
    ordered = sorted(r)
    found = sum(bisect.bisect_right(ordered, n) > bisect.bisect_left(ordered, n) for n in p)
    return found + sum(1 for i in range(1, len(r)) if not r[i] < r[i - 1])


@VARIANTS.variant("expected_return", "a dot product")
def dot(probabilities: Tensor, returns: Tensor) -> Tensor:
    return probabilities @ returns


@VARIANTS.variant("expected_return", "a Python sum")
def python_sum(probabilities: Tensor, returns: Tensor) -> float:
    return sum(p * r for p, r in zip(probabilities.tolist(), returns.tolist(), strict=True))


@VARIANTS.variant("bandit_gradient", "autograd of the log-probability")
def by_autograd(theta: float | Tensor, action: int, baseline: float) -> Tensor:
    parameter = torch.as_tensor(theta, dtype=torch.float32).detach().clone().requires_grad_()
    p = torch.sigmoid(parameter)
    log_prob = torch.log(p if action == 0 else 1 - p)
    (score,) = torch.autograd.grad(log_prob, parameter)
    return ((1.0 - action) - baseline) * score


@VARIANTS.variant("bandit_gradient", "numpy")
def in_numpy(theta: float | Tensor, action: int, baseline: float) -> float:
    p = 1 / (1 + np.exp(-float(theta)))
    return float(((action == 0) - baseline) * ((action == 0) - p))


@VARIANTS.variant("optimal_baseline", "loops over the outcomes")
def loops(probabilities: Tensor, scores: Tensor, rewards: Tensor) -> float:
    numerator = denominator = 0.0
    for p, score, reward in zip(probabilities.tolist(), scores.tolist(), rewards.tolist(), strict=True):
        weight = p * sum(s * s for s in score)
        numerator += weight * reward
        denominator += weight
    return numerator / denominator if denominator > 0 else 0.0


@VARIANTS.variant("optimal_baseline", "a weighted average of squared norms")
def squared_norms(probabilities: Tensor, scores: Tensor, rewards: Tensor) -> Tensor:
    weights = probabilities * torch.linalg.vector_norm(scores, dim=1) ** 2
    return torch.nan_to_num((weights * rewards).sum() / weights.sum(), nan=0.0)
