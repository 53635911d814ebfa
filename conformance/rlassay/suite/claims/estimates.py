"""Checks of the claims about gradient estimates of one decision, through the losses: the bandit, and small softmaxes.

Every action is one sequence of the batch. Its step in the parameters is the loss's gradient at its token, chained with
the exact ∇ log π; weighted with the exact probabilities, steps become means.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from rlassay.check import Trial, require
from rlassay.suite.claims.loss import GRADIENT, REINFORCE, SFT
from rlassay.suite.claims.reading import Reading, read
from rlassay.suite.claims.weights import path_steps, policy_case, policy_scores, require_weights
from rlassay.suite.loss import TOPIC
from rlassay_spec.exact import advantage, bandit, log_prob

P = 0.25
"""Success probability of the bandit."""


def floats(values: Any) -> np.ndarray:
    """Fractions as float64."""
    return np.array(values, dtype=np.float64)


def weighted(operation: str, weights: np.ndarray) -> dict[str, npt.ArrayLike]:
    """The arguments that give each sequence (reinforce_loss) or each token its weight."""
    if operation == REINFORCE:
        return {"rewards": weights[:, 0], "baselines": np.zeros(len(weights))}
    return {"weights": weights}


def bandit_steps(trial: Trial, operation: str, arms: Sequence[int], weights: Sequence[float]) -> Reading:
    """Step in θ of one pull each of the bandit with p = 1/4; arm 0 succeeds."""
    scores = np.where(np.array(arms) == 0, 1 - P, -P)[:, None, None]
    case = policy_case((P, 1 - P), arms, **weighted(operation, floats(weights)[:, None]))
    return path_steps(trial, operation, case, scores)[:, 0]


def softmax_steps(
    trial: Trial, operation: str, policy: Sequence[float], actions: Sequence[int], weights: Sequence[float]
) -> Reading:
    """Step in the logits of one sample of each of the actions."""
    case = policy_case(policy, actions, **weighted(operation, floats(weights)[:, None]))
    return path_steps(trial, operation, case, policy_scores(policy, actions))


@TOPIC.claim("B2.12", REINFORCE, title="a graded reward gives the gradient of its own expectation")
def graded_rewards(trial: Trial) -> None:
    """π = (1/2, 1/3, 1/6), rewards 0, 1/2, 1: ∇E[R] = (−1/6, 1/18, 1/9)."""
    policy, rewards = (1 / 2, 1 / 3, 1 / 6), (0, 0.5, 1)
    steps = softmax_steps(trial, REINFORCE, policy, (0, 1, 2), rewards)
    want = floats(log_prob.jacobian((3, 2, 1))).T @ rewards
    steps.combined(policy).require("E[R·∇ log π]", want)


@TOPIC.claim("P2.3", REINFORCE, title="the mean of R·∇ log π is the derivative of the expected reward")
def score_function(trial: Trial) -> None:
    """Bandit p = 1/4: 3/16."""
    bandit_steps(trial, REINFORCE, (0, 1), (1, 0)).combined((P, 1 - P)).require("mean step", P * (1 - P))


@TOPIC.claim("B3.7", REINFORCE, title="a failure teaches something once there is a baseline, and nothing before")
def failure_teaches(trial: Trial) -> None:
    """Arm B at p = 1/4: 1/8 with b = 1/2, 0 with b = 0."""
    case = policy_case((P, 1 - P), (1, 1), rewards=(0, 0), baselines=(0.5, 0))
    steps = path_steps(trial, REINFORCE, case, np.full((2, 1, 1), -P))
    steps[:, 0].require("step of the failing arm at b = 1/2 and at b = 0", (1 / 8, 0))


@TOPIC.claim("P3.4", REINFORCE, title="a mediocre answer is pushed up when it is sampled, but down in the mean")
def mediocre_answer(trial: Trial) -> None:
    """Rewards 11, 9, equally likely: 9/2 on its logit in the step that samples it, −1/2 in the mean."""
    steps = softmax_steps(trial, REINFORCE, (0.5, 0.5), (0, 1), (11, 9))
    steps[1, 1].require("push on the logit of the answer worth 9 when it is sampled", 9 / 2)
    steps.combined((0.5, 0.5))[1].require("mean push on it", -1 / 2)


def _declare_every_success(operation: str) -> None:
    @TOPIC.claim("B3.6", operation, title="a sampled success gains; a rare success can lose in the mean step")
    def every_success(trial: Trial) -> None:
        """First-order change of log π(0) for π = (0.01, 0.6, 0.39): +14.92 in its own step, −0.0438 in the mean."""
        policy, rewards = (0.01, 0.6, 0.39), (1, 1, 0)
        steps = softmax_steps(trial, operation, policy, (0, 1, 2), rewards)
        own = log_prob.log_prob_rates(policy, log_prob.score(policy, 0))
        rates(steps[0], policy).require("change of log π in the step that samples action 0", floats(own))
        mean = log_prob.log_prob_rates(policy, log_prob.return_gradient(policy, rewards))
        rates(steps.combined(policy), policy).require("change of log π in the mean step", floats(mean))


def rates(step: Reading, policy: Sequence[float]) -> Reading:
    """First-order change of every log π_a along a step of the logits: step_a − Σ_b π_b·step_b."""
    return step.combined(np.eye(len(policy)) - np.array(policy))


_declare_every_success(REINFORCE)
_declare_every_success(GRADIENT)


@TOPIC.claim("B3.5", SFT, title="SFT raises what was demonstrated; what was not can rise too")
def rising_along(trial: Trial) -> None:
    """(3/8, −3/8, −3/8) for π = (1/2, 1/4, 1/4); for π = (0.01, 0.01, 0.98) the second action rises by 0.9406."""
    for policy in ((0.5, 0.25, 0.25), (0.01, 0.01, 0.98)):
        step = path_steps(trial, SFT, policy_case(policy, (0,)), policy_scores(policy, (0,)))[0]
        want = log_prob.log_prob_rates(policy, log_prob.score(policy, 0))
        rates(step, policy).require(f"change of log π for π = {policy}", floats(want))


@TOPIC.claim("B3.4", SFT, title="the policy that imitates better can succeed less often")
def imitation_is_not_success(trial: Trial) -> None:
    """The demonstrated action has 1/2 under π₁ (J = 1/2), 2/5 under π₂ (J = 1): SFT prefers π₁."""
    losses = []
    for policy in ((0.5, 0.0, 0.5), (0.4, 0.6, 0.0)):
        case = policy_case(policy, (0,))
        require_weights(trial, SFT, case, [1])
        losses.append(float(read(trial, SFT, case).value))
    require(losses[0] < losses[1], "sft_loss should prefer the policy that imitates better, though it succeeds less")


@TOPIC.claim("B8.10", REINFORCE, title="a baseline that uses the action biases the mean step")
def action_baseline(trial: Trial) -> None:
    """b(a) = Q(a) leaves 0 instead of 3/16; b = 1/2 for both arms leaves 3/16."""
    for baselines, name, want in (((1, 0), "b(a) = Q(a)", 0.0), ((0.5, 0.5), "b = 1/2", P * (1 - P))):
        case = policy_case((P, 1 - P), (0, 1), rewards=(1, 0), baselines=baselines)
        steps = path_steps(trial, REINFORCE, case, np.array([1 - P, -P])[:, None, None])
        steps[:, 0].combined((P, 1 - P)).require(f"mean step with {name}", want)


@TOPIC.claim("B8.11", REINFORCE, title="a moving average with the current reward in it shrinks the mean step")
def moving_average(trial: Trial) -> None:
    """Rate 1/4, all histories of three rewards: 3/16 without the current reward, 9/64 with it."""
    for include in (False, True):
        chances, baselines = [], []
        for history in product((1, 0), repeat=4):
            seen = history if include else history[:3]
            average = 0.0
            for reward in seen:
                average += (reward - average) / 4
            baselines.append(average)
            chances.append(P ** sum(history) * (1 - P) ** (4 - sum(history)))
        rewards = [history[3] for history in product((1, 0), repeat=4)]
        arms = [1 - reward for reward in rewards]
        case = policy_case((P, 1 - P), arms, rewards=rewards, baselines=baselines)
        steps = path_steps(trial, REINFORCE, case, np.where(np.array(arms) == 0, 1 - P, -P)[:, None, None])
        want = bandit.moving_average_gradient(P, 0.25, 3, include_current=include)
        what = "with the current reward" if include else "of earlier rewards"
        steps[:, 0].combined(chances).require(f"mean step with a moving average {what}", float(want))


@TOPIC.claim("B11.2", GRADIENT, title="a weighted sum of scores is ∇J in the mean only, and not for group weights")
def estimate_of_the_gradient(trial: Trial) -> None:
    """Bandit p = 1/4, over ∇J: single samples 4 and 0, mean 1; groups of 4 with R − R̄ 3/4, with ÷σ 1.645."""
    single = bandit_steps(trial, GRADIENT, (0, 1), (1, 0)).scaled(1 / (P * (1 - P)))
    single.require("steps of single samples over ∇J", (4, 0))
    single.combined((P, 1 - P)).require("mean step over ∇J", 1.0)
    groups = list(product((1, 0), repeat=4))
    chances = [P ** sum(group) * (1 - P) ** (4 - sum(group)) / 4 for group in groups for _ in group]
    for rule, name in ((advantage.centered, "R − R̄"), (advantage.normalized, "(R − R̄)/σ")):
        weights = [float(weight) for group in groups for weight in rule(group)]
        steps = bandit_steps(trial, GRADIENT, [1 - reward for group in groups for reward in group], weights)
        want = float(bandit.group_factor(P, 4, rule))
        steps.combined(chances).scaled(1 / (P * (1 - P))).require(f"mean step over ∇J with {name}", want)
