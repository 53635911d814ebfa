"""Checks of the claims about gradient estimates over whole trajectories, through the losses.

Every trajectory of a small stochastic environment is one sequence of the batch, one token per action. Its step in the
logits of the policy is the loss's gradient at its tokens, chained with the exact ∇ log π; weighted with the exact
probabilities, steps become means. ∇J comes from backward induction, without scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from rlassay.check import Trial
from rlassay.suite.claims.estimates import floats, weighted
from rlassay.suite.claims.loss import GRADIENT, REINFORCE
from rlassay.suite.claims.reading import Reading
from rlassay.suite.claims.weights import arguments, path_steps
from rlassay.suite.loss import TOPIC
from rlassay_spec.exact import environment, trajectory
from rlassay_spec.exact.environment import FEE_AND_REFUND, LEARNER, NOISY_DOOR, SAMPLER, Environment, Policy
from rlassay_spec.exact.trajectory import Trajectory, enumerate_all

Weight = Callable[[Trajectory, int], float]


def episode_steps(
    trial: Trial,
    operation: str,
    task: Environment,
    weight: Weight,
    learner: Policy = LEARNER,
    sampler: Policy | None = None,
    baseline: Weight | None = None,
) -> tuple[np.ndarray, Reading]:
    """Probability of every trajectory under the sampler, and its step in the learner's logits."""
    paths = enumerate_all(task, sampler or learner)
    scores = floats([[trajectory.score(learner, o, a) for o, a in path.decisions] for path in paths])
    log_probs = np.log(floats([[learner[o][a] for o, a in path.decisions] for path in paths]))
    weights = floats([[weight(path, t) for t in range(task.horizon)] for path in paths])
    others = weighted(operation, weights)
    if baseline is not None:
        others["baselines"] = floats([baseline(path, 0) for path in paths])
    steps = path_steps(trial, operation, arguments(log_probs, **others), scores)
    return floats([path.probability for path in paths]), steps


def total(path: Trajectory, step: int) -> float:
    """R(τ)."""
    return float(path.total)


def to_go(path: Trajectory, step: int) -> float:
    """Σ of the rewards from this action on."""
    return float(path.to_go[step])


def truth() -> np.ndarray:
    """∇J of the learner in the stochastic environment, by backward induction."""
    return floats(trajectory.true_gradient(NOISY_DOOR, LEARNER))


@TOPIC.claim("B4.2", GRADIENT, title="the gradient of a trajectory with weight 1 is ∇ log p, without the environment")
def environment_drops_out(trial: Trial) -> None:
    """∇p/p by the product rule for all 37 trajectories of a stochastic environment."""
    _, steps = episode_steps(trial, GRADIENT, NOISY_DOOR, lambda path, step: 1.0)
    paths = enumerate_all(NOISY_DOOR, LEARNER)
    slopes = [[g / path.probability for g in trajectory.probability_gradient(LEARNER, path)] for path in paths]
    steps.require("∇ log p of each trajectory", floats(slopes))


def _declare_mean(operation: str) -> None:
    @TOPIC.claim("B6.2", operation, title=f"the mean step of {operation} with weight R is ∇J")
    def policy_gradient(trial: Trial) -> None:
        """All trajectories of a stochastic environment, against backward induction."""
        chances, steps = episode_steps(trial, operation, NOISY_DOOR, total)
        steps.combined(chances).require(f"mean step of {operation}", truth())


_declare_mean(GRADIENT)
_declare_mean(REINFORCE)


def _require_off_policy(trial: Trial, ratio: str) -> None:
    def weight(path: Trajectory, step: int) -> float:
        ratios = [float(LEARNER[o][a] / SAMPLER[o][a]) for o, a in path.decisions]
        return float(path.total) * {"none": 1.0, "token": ratios[step], "trajectory": float(np.prod(ratios))}[ratio]

    chances, steps = episode_steps(trial, GRADIENT, NOISY_DOOR, weight, sampler=SAMPLER)
    want = trajectory.off_policy_estimate(NOISY_DOOR, LEARNER, SAMPLER, lambda path, t: path.total, ratio)
    steps.combined(chances).require(f"mean step on another policy's samples, ratio: {ratio}", floats(want))


@TOPIC.claim("B6.7", GRADIENT, title="another policy's samples bias the mean step until π/π_old weighs them")
def off_policy(trial: Trial) -> None:
    """Uncorrected, then with the ratio of the whole trajectory: ∇J."""
    for ratio in ("none", "trajectory"):
        _require_off_policy(trial, ratio)


@TOPIC.claim("P5.6", GRADIENT, title="the ratio of the whole response is exact, a ratio per token is not")
def ratio_per_token(trial: Trial) -> None:
    """∇J with Π_t ρ_t; another vector with each token's own ρ_t."""
    for ratio in ("trajectory", "token"):
        _require_off_policy(trial, ratio)


@TOPIC.claim("B8.9", GRADIENT, title="a baseline of the history, earlier actions included, keeps the mean step")
def history_baseline(trial: Trial) -> None:
    """R − b with b = 5 or −2 by the observation, and 10 more at the second step if the first action was 1."""

    def weight(path: Trajectory, step: int) -> float:
        earlier = 10 * path.actions[0] if step == 1 else 0
        return float(path.total) - (5, -2)[path.observations[step]] - earlier

    chances, steps = episode_steps(trial, GRADIENT, NOISY_DOOR, weight)
    steps.combined(chances).require("mean step with a baseline of the history", truth())


@TOPIC.claim("B8.9", REINFORCE, title="a baseline of the first observation, however bad, keeps the mean step")
def instance_baseline(trial: Trial) -> None:
    """b = 5 where o_0 = 0 and −2 where o_0 = 1."""

    def baseline(path: Trajectory, step: int) -> float:
        return (5, -2)[path.observations[0]]

    chances, steps = episode_steps(trial, REINFORCE, NOISY_DOOR, total, baseline=baseline)
    steps.combined(chances).require("mean step with a baseline of the first observation", truth())


@TOPIC.claim("B8.12", GRADIENT, title="the reward to go keeps the mean step; its variance may fall or rise")
def rewards_that_follow(trial: Trial) -> None:
    """Falls with five independent subtasks, rises where a fee is refunded."""
    chances, steps = episode_steps(trial, GRADIENT, NOISY_DOOR, to_go)
    steps.combined(chances).require("mean step with the reward to go", truth())
    tasks = (
        ("five subtasks", environment.subtasks(5), environment.policy((0.75, 0.25))),
        ("a fee that is refunded", FEE_AND_REFUND, LEARNER),
    )
    for name, task, policy in tasks:
        for weight, text in ((total, "return"), (to_go, "reward to go")):
            chances, steps = episode_steps(trial, GRADIENT, task, weight, policy)
            want = float(trajectory.estimate_variance(task, policy, weight)) ** 0.5
            steps.spread(chances).require(f"standard deviation with the {text}, {name}", want)


def _declare_start(claim: str, title: str, weights: Sequence[tuple[str, Weight]]) -> None:
    @TOPIC.claim(claim, GRADIENT, title=title)
    def mean_step(trial: Trial) -> None:
        """The mean step over all trajectories of a stochastic environment, for each way to weigh an action."""
        for name, weight in weights:
            chances, steps = episode_steps(trial, GRADIENT, NOISY_DOOR, weight)
            want = floats(trajectory.mean_estimate(NOISY_DOOR, LEARNER, weight))
            steps.combined(chances).require(f"mean step with {name}", want)


def _value(path: Trajectory, step: int) -> float:
    return float(_values()[step, path.observations[step]])


@cache
def _values() -> dict[tuple[int, int], Fraction]:
    return trajectory.state_values(NOISY_DOOR, LEARNER)


_declare_start(
    "B8.17",
    "a reward to go that begins one later biases the mean step, one that begins earlier does not",
    (
        ("the rewards from r_{t+1} on", to_go),
        ("the rewards from r_{t+2} on", lambda path, step: to_go(path, step) - float(path.rewards[step])),
        ("all rewards", total),
    ),
)
_declare_start(
    "B8.18",
    "R(τ) − V holds earlier rewards too, which leave the mean step as it is",
    (
        ("R(τ) − V", lambda path, step: total(path, step) - _value(path, step)),
        ("R_t − V", lambda path, step: to_go(path, step) - _value(path, step)),
    ),
)
