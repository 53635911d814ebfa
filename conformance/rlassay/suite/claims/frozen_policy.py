"""Checks of the claims about the frozen old policy and the ratio to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlassay.check import NotDeclared, Trial, require
from rlassay.guest.values import Arguments
from rlassay.suite.claims.clipping import (
    CLIP,
    CLIPPED,
    OBJECTIVE,
    WIDE,
    declare_alive,
    objective,
    require_token,
    slopes,
    surrogate,
)
from rlassay.suite.claims.reading import read
from rlassay.suite.claims.weights import doubles, require_no_gradient, shares
from rlassay.suite.loss import TOPIC

declare_alive("P6.4", "with normalised weights the value is 0 in a healthy first update; the gradient is not")


@TOPIC.claim(
    "P6.4", CLIPPED, title="with raw rewards a dead loss still moves with the batch, with centred ones it is 0"
)
def moving_value(trial: Trial) -> None:
    """Rewards 1, 0, 0, 0 and 1, 1, 0, 0 at ratio 1: −1/4 and −1/2 of the share, 0 once they are centred."""
    for rewards in (np.array([1.0, 0, 0, 0]), np.array([1.0, 1, 0, 0])):
        for weights, name in ((rewards, "raw"), (rewards - rewards.mean(), "centred")):
            case = surrogate([1.0] * 4, weights)
            want = -(shares(trial, case)[:, 0] * weights).sum()
            read(trial, CLIPPED, case).require(f"loss with {name} rewards {rewards.tolist()}", want)
            got, slope = slopes(trial, case)
            got.require(f"slopes with {name} rewards", slope)


def _declare_frozen(operation: str, case: Arguments) -> None:
    @TOPIC.claim("P6.1", operation, title=f"no gradient of {operation} flows into old_log_probs that carry a graph")
    def frozen(trial: Trial) -> None:
        """∂L/∂ log π_old = 0 on both sides of the bounds; the gradient in log π is what it was."""
        _require_detaching(trial)
        require_no_gradient(trial, operation, case, "old_log_probs")
        trial.agree(operation, case, gradient=True)

    @TOPIC.claim(
        "P6.2", operation, title=f"{operation} at ratio 1 is alive, with old and new from one forward pass too"
    )
    def one_forward_pass(trial: Trial) -> None:
        """The value is the same in a healthy and in a dead update; what tells them apart is the gradient.

        First with log π_old as equal numbers of their own, then as the very tensor whose graph is differentiated.
        """
        apart = case | {"old_log_probs": doubles(case["log_probs"].array)}
        trial.agree(operation, apart, gradient=True)
        _require_detaching(trial)
        trial.agree(operation, case | {"old_log_probs": case["log_probs"]}, gradient=True)

    @TOPIC.claim("P6.5", operation, title=f"{operation} reads the ratio off the old log-probs that it is given")
    def kept_log_probs(trial: Trial) -> None:
        """Kept ones give the true ratio; recomputed ones give ratio 1, so nothing is corrected and nothing clipped."""
        trial.agree(operation, case, gradient=True)
        trial.agree(operation, case | {"old_log_probs": doubles(case["log_probs"].array)}, gradient=True)


def _require_detaching(trial: Trial) -> None:
    if trial.convention.old_log_probs == "caller":
        raise NotDeclared("old_log_probs are detached by the caller, so the operation never sees them with a graph")


_declare_frozen(CLIPPED, surrogate([1.1, 1.5, 0.9, 0.5], [1, -1, -0.5, 2]))
_declare_frozen(OBJECTIVE, objective([1.1, 1.5, 0.5, 0.9], [(1, 0), (3, 1)]))


def _declare_ratio(operation: str, case: Callable[[dict[str, float]], Arguments]) -> None:
    @TOPIC.claim("P8.6", operation, title=f"{operation} takes exp(log π − log π_old) for the ratio, no quotient")
    def ratio_of_probabilities(trial: Trial) -> None:
        """3/2 and 2/3 at log π = −0.7, where log π/log π_old is 0.633 and 2.377; with wide bounds, then narrow ones."""
        for clip in (WIDE, CLIP):
            trial.agree(operation, case(clip), gradient=True)


_declare_ratio(CLIPPED, lambda clip: surrogate([1.5, 2 / 3], [1, -1], clip))
_declare_ratio(OBJECTIVE, lambda clip: objective([1.5, 2 / 3], [(1, 0)], clip))


@TOPIC.claim("P6.3", CLIPPED, title="the loss falls with log π_old, so a denominator that is not frozen is pushed down")
def live_denominator(trial: Trial) -> None:
    """ρA rises as log π_old falls: the value says so, but no gradient may follow it."""
    for shift in (-0.05, 0.0, 0.05):
        require_token(trial, float(np.exp(-shift)), 2.0, WIDE)
    _require_detaching(trial)
    case = surrogate([1.5], [2.0], WIDE)
    gradient = trial.call(CLIPPED, case, live=("log_probs", "old_log_probs")).gradients["old_log_probs"]
    if gradient is not None and gradient.any():
        rate = float(gradient[0, 0] / shares(trial, case)[0, 0])
        require(False, f"the loss pushes log π_old down at the rate {rate:.3g}, but should leave it")
