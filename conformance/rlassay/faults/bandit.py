"""Known faults of the expected return, the bandit's gradient estimate and the variance-optimal baseline."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from rlassay.faults import Faults, Function

FAULTS = Faults()


def _return(identity: str, title: str, source: str, formula: Function) -> None:
    def expected_return(probabilities: Tensor, returns: Tensor) -> Tensor:
        return torch.as_tensor(formula(probabilities, returns))

    FAULTS.add(identity, "expected_return", title, source, expected_return)


_return("BAN-01", "the mean return: probabilities are ignored", "claim B4.3", lambda p, r: r.mean())
_return("BAN-26", "the plain sum of the returns", "claim B4.3", lambda p, r: r.sum())
_return("BAN-02", "the mean of p·R instead of the sum", "claim B4.3", lambda p, r: (p * r).mean())
_return("BAN-03", "the return of the likeliest trajectory", "claim B4.3", lambda p, r: r[p.argmax()])
_return("BAN-04", "log-probabilities in place of probabilities", "claim B4.3", lambda p, r: (p.log() * r).sum())
_return("BAN-05", "returns counted where they are 1", "claim B5.1", lambda p, r: (p * (r == 1)).sum())
_return(
    "BAN-06",
    "probabilities that pass through a softmax once more",
    "RL_course_2019 PR 6",
    lambda p, r: (torch.softmax(p, 0) * r).sum(),
)
_return("BAN-07", "a sum of the returns' sizes", "textbook", lambda p, r: (p * r.abs()).sum())


def _gradient(identity: str, title: str, source: str, formula: Function) -> None:
    """`formula(p, action, reward, score, b)` with p = σ(θ) and the right reward and score."""

    def bandit_gradient(theta: Any, action: int, baseline: float) -> Any:
        p = 1.0 / (1.0 + math.exp(-float(theta)))
        reward, score = (1.0, 1.0 - p) if action == 0 else (0.0, -p)
        estimate = float(formula(p, action, reward, score, float(baseline)))
        return torch.tensor(estimate, dtype=theta.dtype) if isinstance(theta, Tensor) else estimate

    FAULTS.add(identity, "bandit_gradient", title, source, bandit_gradient)


_gradient("BAN-08", "no baseline", "claim B8.5", lambda p, action, reward, score, b: reward * score)
_gradient("BAN-09", "the baseline added", "claim B8.6", lambda p, action, reward, score, b: (reward + b) * score)
_gradient(
    "BAN-10",
    "a baseline outside the bracket: R·∇log π − b",
    "claim B8.6",
    lambda p, action, reward, score, b: reward * score - b,
)
_gradient(
    "BAN-11",
    "the score of A for both actions",
    "claim B8.4",
    lambda p, action, reward, score, b: (reward - b) * (1 - p),
)
_gradient(
    "BAN-12",
    "the score of B without its sign",
    "claim B8.4",
    lambda p, action, reward, score, b: (reward - b) * abs(score),
)
_gradient(
    "BAN-13",
    "the actions exchanged",
    "claim B8.4",
    lambda p, action, reward, score, b: (1 - reward - b) * (-p if action == 0 else 1 - p),
)
_gradient(
    "BAN-14",
    "the gradient of the probability, not of its logarithm",
    "claim B6.1",
    lambda p, action, reward, score, b: (reward - b) * (1 if action == 0 else -1) * p * (1 - p),
)
_gradient(
    "BAN-15",
    "the expected gradient, whatever action was taken",
    "claim B8.5",
    lambda p, action, reward, score, b: p * (1 - p),
)
_gradient(
    "BAN-16",
    "the gradient of the loss: descent for ascent",
    "textbook",
    lambda p, action, reward, score, b: -(reward - b) * score,
)
_gradient("BAN-17", "the reward of A for both actions", "textbook", lambda p, action, reward, score, b: (1 - b) * score)
_gradient(
    "BAN-27", "the expected reward as baseline", "claim P3.2", lambda p, action, reward, score, b: (reward - p) * score
)
_gradient("BAN-28", "one half as baseline", "claim B8.6", lambda p, action, reward, score, b: (reward - 0.5) * score)
_gradient("BAN-29", "the action's own value as baseline", "claim B8.10", lambda p, action, reward, score, b: -b * score)
_gradient(
    "BAN-30",
    "the scores of the actions exchanged",
    "claim B8.4",
    lambda p, action, reward, score, b: (reward - b) * (p if action == 0 else p - 1),
)


def _baseline(identity: str, title: str, source: str, formula: Function) -> None:
    def optimal_baseline(probabilities: Tensor, scores: Tensor, rewards: Tensor) -> Tensor:
        return torch.as_tensor(formula(probabilities, scores, rewards))

    FAULTS.add(identity, "optimal_baseline", title, source, optimal_baseline)


def ratio(weights: Tensor, rewards: Tensor) -> Tensor:
    """The weighted mean of the rewards, 0 without weight."""
    total = weights.sum()
    return (weights * rewards).sum() / torch.where(total != 0, total, 1.0)


_baseline("BAN-18", "the expected reward", "claim P3.2", lambda p, s, r: (p * r).sum())
_baseline(
    "BAN-19", "the norm of the score in place of its square", "claim P3.1", lambda p, s, r: ratio(p * s.norm(dim=1), r)
)
_baseline(
    "BAN-20", "no probabilities: a mean over the outcomes", "claim P3.1", lambda p, s, r: ratio(s.square().sum(1), r)
)
_baseline("BAN-21", "the square of the summed score", "textbook", lambda p, s, r: ratio(p * s.sum(1).square(), r))
_baseline(
    "BAN-22",
    "0/0 = NaN where every score is 0",
    "claim P3.1",
    lambda p, s, r: (p * s.square().sum(1) * r).sum() / (p * s.square().sum(1)).sum(),
)
_baseline("BAN-23", "the numerator alone", "claim P3.1", lambda p, s, r: (p * s.square().sum(1) * r).sum())
_baseline("BAN-24", "squared rewards", "textbook", lambda p, s, r: ratio(p * s.square().sum(1), r.square()))
_baseline(
    "BAN-25",
    "the expected reward where every score is 0",
    "claim P3.1",
    lambda p, s, r: ratio(p * s.square().sum(1), r) if s.any() else (p * r).sum(),
)
