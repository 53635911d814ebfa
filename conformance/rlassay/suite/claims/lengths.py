"""Checks of the claims about length: what dividing by a response's length, or by a constant, does to its tokens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rlassay.check import Trial
from rlassay.guest.values import Arguments
from rlassay.suite.claims.loss import AGGREGATE, DR_GRPO, GRPO
from rlassay.suite.claims.reading import read, read_gradient
from rlassay.suite.claims.weights import arguments, doubles, require_weights, shares
from rlassay.suite.loss import TOPIC

LENGTHS = (100, 10)
"""Tokens of two wrong answers."""


def answers(**others: npt.ArrayLike) -> Arguments:
    """The two answers, padded to 100 tokens at −0.5 nats each."""
    mask = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    return arguments(np.full(mask.shape, -0.5), mask, **others)


def _declare_token_weight(claim: str, title: str) -> None:
    @TOPIC.claim(claim, AGGREGATE, title=title)
    def token_weight(trial: Trial) -> None:
        """Slope of the aggregate in one token: 1/(2·∣y∣) in the mode sequence_mean, 1/(2·50) in the mode constant."""
        case = answers()
        values: Arguments = {"values": case["log_probs"], "mask": case["mask"]}
        modes: tuple[tuple[str, Arguments, tuple[float, float]], ...] = (
            ("sequence_mean", {}, (1 / 200, 1 / 20)),
            ("constant", {"constant": 50.0}, (1 / 100, 1 / 100)),
            ("sequence_sum", {}, (1 / 2, 1 / 2)),
        )
        for mode, constant, want in modes:
            _, slope = read_gradient(trial, AGGREGATE, values | {"mode": mode} | constant)
            slope[:, 0].require(f"weight of a token of 100 and of a token of 10 in the mode {mode}", want)


_declare_token_weight("B10.4", "1/∣y∣ punishes a token of 100 ten times less than a token of 10, 1/C both alike")
_declare_token_weight("B10.7", "the paper's 1/∣y∣ is what depends on length; a sum or a constant does not")
_declare_token_weight("P8.8", "length normalisation alone brings in the length bias")


def _declare_wrong_answers(claim: str, operation: str, title: str) -> None:
    @TOPIC.claim(claim, operation, title=title)
    def wrong_answers(trial: Trial) -> None:
        """Â = −1 for both: each token weighs what the aggregation says, once for 100 and once for 10 tokens."""
        others = {"advantages": (-1.0, -1.0)} | ({"constant": 50.0} if operation == DR_GRPO else {})
        require_weights(trial, operation, answers(**others), (-1, -1))


_declare_wrong_answers("B10.4", DR_GRPO, "a token of a long wrong answer weighs as much as one of a short one")
_declare_wrong_answers("B10.4", GRPO, "a token of a wrong answer weighs what the declared aggregation gives it")
_declare_wrong_answers("B10.7", GRPO, "the lecture's loss has no 1/∣y∣: token weights are those that are declared")
_declare_wrong_answers("P8.8", DR_GRPO, "without 1/∣y∣ there is no length bias, with or without ÷σ")


@TOPIC.claim("B10.7", DR_GRPO, title="dr_grpo_loss is the lecture's GRPO sum, but for σ and the constant 1/C")
def constant_factor(trial: Trial) -> None:
    """C·L is −(1/B) Σ_b Â_b Σ_t log π for any C."""
    for constant in (1.0, 50.0):
        case = answers(advantages=(0.5, -0.5), constant=constant)
        got = read(trial, DR_GRPO, case).scaled(constant)
        got.require(f"{constant:g} times dr_grpo_loss", (0.5 * 0.5 * 100 - 0.5 * 0.5 * 10) / 2)


@TOPIC.claim("P8.8", GRPO, title="÷σ alone brings in no length bias: equal rewards weigh alike")
def deviation_has_no_length(trial: Trial) -> None:
    """Rewards 1, 1, 0, 0 for answers of 3, 1, 3, 1 tokens: the weights are Â, whatever the length."""
    advantages = trial.expect("grpo_advantages", {"rewards": doubles([(1, 1, 0, 0)])}).value[0]
    mask = np.arange(3) < np.array([3, 1, 3, 1])[:, None]
    case = arguments(np.full(mask.shape, -0.5), mask, advantages=advantages)
    require_weights(trial, GRPO, case, advantages)


def _responses(width: int, **others: npt.ArrayLike) -> Arguments:
    """Responses of 2 and 4 tokens at log-prob −1 each, padded to a width."""
    mask = np.arange(width) < np.array([2, 4])[:, None]
    return arguments(np.full(mask.shape, -1.0), mask, **others)


@TOPIC.claim("P5.5", GRPO, title="the loss is a mean over responses, which padding does not change")
def mean_over_responses(trial: Trial) -> None:
    """Advantages 1 and −1, padded to 4 and to 8 tokens: −1 in the lecture's convention both times."""
    for width in (4, 8):
        case = _responses(width, advantages=(1, -1))
        want = (shares(trial, case) * case["mask"].array * [[1], [-1]]).sum()
        read(trial, GRPO, case).require(f"grpo_loss padded to {width} tokens", want)


@TOPIC.claim("P5.5", DR_GRPO, title="a mean over all entries of the array is a constant C = T, and depends on T")
def mean_over_entries(trial: Trial) -> None:
    """Advantages 1 and −1: −1/4 at T = 4, −1/8 at T = 8."""
    for width, want in ((4, -1 / 4), (8, -1 / 8)):
        case = _responses(width, advantages=(1, -1), constant=float(width))
        read(trial, DR_GRPO, case).require(f"dr_grpo_loss with C = {width}", want)


@TOPIC.claim("P5.5", AGGREGATE, title="a mean over all entries is the mode constant with C = T")
def constant_mode(trial: Trial) -> None:
    """−Â·log π = 1 and −1 for 2 and 4 tokens: −1 summed per response, −1/4 and −1/8 over all entries."""
    for width in (4, 8):
        case = _responses(width)
        values: Arguments = {"values": case["log_probs"].with_array(np.array([[1.0], [-1.0]]) * np.ones((1, width)))}
        values["mask"] = case["mask"]
        got = read(trial, AGGREGATE, values | {"mode": "sequence_sum"})
        got.require(f"mean over responses, padded to {width} tokens", -1.0)
        got = read(trial, AGGREGATE, values | {"mode": "constant", "constant": float(width)})
        got.require(f"mean over all entries, padded to {width} tokens", -1 / width)
