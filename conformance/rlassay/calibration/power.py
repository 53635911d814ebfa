"""Power: how often the statistical checks see an effect of the size that their design states, and how often they see
one where there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlassay.engine import run_check
from rlassay.faults import Function
from rlassay.matrix.run import Matrix
from rlassay.statistics import DESIGNS
from rlassay.suite import all_checks
from rlassay.suite.claims.policy_gradient import TRUTH
from rlassay.torch_subject import TorchSubject

LOST = 5
"""Hidden numbers that never win: uniform play wins 0.58 of the games, so it loses about 5/16 of that, 0.18."""


@dataclass(frozen=True)
class Planted:
    """An effect of about the size that a design states: in words, and what it makes of the right operation."""

    title: str
    plant: Callable[[Function], Function]


def _never_won(right: Function) -> Function:
    def wrong(hidden: int, guesses: Any) -> tuple[list[str], float]:
        feedback, reward = right(hidden, guesses)
        return feedback, 0.0 if hidden <= LOST else reward

    return wrong


def _larger(factor: float) -> Callable[[Function], Function]:
    return lambda right: lambda *arguments: (1 + factor) * right(*arguments)


def _shifted(shift: float) -> Callable[[Function], Function]:
    return lambda right: lambda *arguments: right(*arguments) + shift


def _designed(check: str) -> float:
    return DESIGNS[check].effect


PLANTED: Mapping[str, Planted] = {
    "number_search/B2.8-sampled": Planted("5 of the 16 numbers never win", _never_won),
    "masked_log_probs/B6.2-sampled": Planted(
        "log-probs too large by a factor that moves the largest entry of ∇J by the effect",
        _larger(_designed("masked_log_probs/B6.2-sampled") / float(np.abs(TRUTH).max())),
    ),
    "bandit_gradient/B8.8-sampled": Planted("estimates 0.05 too large", _shifted(0.05)),
    "bandit_gradient/B8.9-sampled": Planted(
        "estimates too large by the effect", _shifted(_designed("bandit_gradient/B8.9-sampled"))
    ),
}


def detects(matrix: Matrix, task: tuple[str, bool, int]) -> tuple[str, bool, bool]:
    """Whether a statistical check fails under a seed, on the reference with its effect planted or without: the check,
    whether planted, whether it failed."""
    identity, planted, seed = task
    check = all_checks()[identity]
    functions = dict(matrix.entries["reference"].make().functions)
    if planted:
        functions[check.operation] = PLANTED[identity].plant(functions[check.operation])
    outcome = run_check(check, TorchSubject(functions), "quick", seed).outcome
    return identity, planted, outcome == "fail"
