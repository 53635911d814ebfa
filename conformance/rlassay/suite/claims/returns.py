"""Checks of the claims about returns, the reward to go and advantages along a trajectory."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial
from rlassay.guest.values import Arguments, Tensor
from rlassay.inputs import batch_shape
from rlassay.suite.claims.reading import Reading, read
from rlassay.suite.returns import TOPIC, gae_case, step_rewards
from rlassay_spec.exact import environment as task
from rlassay_spec.exact import number_search
from rlassay_spec.exact import returns as exact_returns
from rlassay_spec.exact import trajectory as exact
from rlassay_spec.exact.moments import Real


@TOPIC.claim("B4.1", "reward_to_go", examples=4, title="the return of a trajectory is the sum of its rewards")
def total_return(trial: Trial) -> None:
    """R(τ) = Σ_t r_t is what is still to come at the first step."""
    rewards = step_rewards(trial.draw, batch_shape(trial.draw))
    got = read(trial, "reward_to_go", {"rewards": rewards})
    got[:, 0].require("reward_to_go at the first step", rewards.array.sum(axis=1))


@TOPIC.claim(
    "P1.1", "reward_to_go", examples=4, title="with a terminal reward and γ = 1 every token has the whole return"
)
def nothing_is_lost(trial: Trial) -> None:
    """γ = 1 gives R at every step, by default too; a smaller γ gives γ^{T−1−t}·R."""
    rows, steps = batch_shape(trial.draw)
    reward = np.round(trial.draw.uniform(0.5, 2.0, rows), 2)
    rewards = np.zeros((rows, steps))
    rewards[:, -1] = reward
    for gamma in (None, 1.0, 0.9):
        arguments: Arguments = {"rewards": Tensor(rewards, "float64")}
        got = read(trial, "reward_to_go", arguments if gamma is None else arguments | {"gamma": gamma})
        factor = [float(exact_returns.reward_to_go([0] * t + [1], gamma or 1)[0]) for t in reversed(range(steps))]
        name = "by default" if gamma is None else f"at γ = {gamma}"
        got.require(f"reward_to_go of a terminal reward {name}", np.outer(reward, factor))


def _estimates(paths: list[exact.Trajectory], to_go: Reading) -> tuple[Reading, Reading]:
    """Σ_t w_t·∇ log π_t of each trajectory with w_t the reward to go, and with w_t the whole return."""
    scores = np.array([path.scores for path in paths], dtype=np.float64)
    whole = to_go[:, [0] * to_go.value.shape[1]]
    return _weighted(to_go, scores), _weighted(whole, scores)


def _weighted(weights: Reading, scores: np.ndarray) -> Reading:
    error = np.einsum("nt,ntk->nk", weights.error, np.abs(scores))
    with np.errstate(all="ignore"):
        return Reading(np.einsum("nt,ntk->nk", weights.value, scores), error)


def _environment(environment: task.Environment, rows: task.Policy) -> tuple[list[exact.Trajectory], np.ndarray, Tensor]:
    """All trajectories, their probabilities and their rewards."""
    paths = exact.enumerate_all(environment, rows)
    probabilities = np.array([path.probability for path in paths], dtype=np.float64)
    return paths, probabilities, Tensor(np.array([path.rewards for path in paths], dtype=np.float64), "float64")


@TOPIC.claim("B8.12", "reward_to_go", title="the reward to go keeps the mean gradient; its variance may fall or rise")
def rewards_that_follow(trial: Trial) -> None:
    """E Σ_t R_t·∇ log π_t = ∇J; sd falls with independent subtasks, rises where later rewards cancel earlier ones."""
    terminal: Arguments = {"rewards": Tensor(np.array([[0.0, 0.0, 0.0, 1.0]]))}
    read(trial, "reward_to_go", terminal).require("reward_to_go of a terminal reward of 1", 1.0)
    paths, probabilities, rewards = _environment(task.NOISY_DOOR, task.LEARNER)
    to_go, _ = _estimates(paths, read(trial, "reward_to_go", {"rewards": rewards}))
    truth = np.array(exact.true_gradient(task.NOISY_DOOR, task.LEARNER), dtype=np.float64)
    to_go.combined(probabilities).require("mean gradient with the reward to go", truth)
    cases = (
        ("five subtasks", task.subtasks(5), task.policy((0.75, 0.25))),
        ("a fee that is refunded", task.FEE_AND_REFUND, task.LEARNER),
    )
    for name, environment, rows in cases:
        paths, probabilities, rewards = _environment(environment, rows)
        to_go, whole = _estimates(paths, read(trial, "reward_to_go", {"rewards": rewards}))
        for reading, weight, text in ((whole, _whole, "whole return"), (to_go, _to_go, "reward to go")):
            want = float(exact.estimate_variance(environment, rows, weight)) ** 0.5
            reading.spread(probabilities).require(f"standard deviation with the {text}, {name}", want)


def _whole(path: exact.Trajectory, step: int) -> Real:
    return path.total


def _to_go(path: exact.Trajectory, step: int) -> Real:
    return path.to_go[step]


@TOPIC.claim("B8.17", "reward_to_go", examples=4, title="the reward to go begins with the action's own reward")
def own_reward(trial: Trial) -> None:
    """R_t − R_{t+1} = r_{t+1}; without it the mean gradient of a stochastic environment is another vector."""
    rewards = step_rewards(trial.draw, batch_shape(trial.draw))
    got = read(trial, "reward_to_go", {"rewards": rewards})
    own = Reading(got.value[:, :-1] - got.value[:, 1:], got.error[:, :-1] + got.error[:, 1:])
    own.require("reward_to_go minus that of the next step", rewards.array[:, :-1])
    got[:, -1].require("reward_to_go at the last step", rewards.array[:, -1])
    paths, probabilities, rewards = _environment(task.NOISY_DOOR, task.LEARNER)
    got = read(trial, "reward_to_go", {"rewards": rewards})
    for name, reading, weight in (
        ("with the own reward", got, _to_go),
        ("without it", Reading(got.value - rewards.array, got.error), _later),
    ):
        want = np.array(exact.mean_estimate(task.NOISY_DOOR, task.LEARNER, weight), dtype=np.float64)
        _estimates(paths, reading)[0].combined(probabilities).require(f"mean gradient {name}", want)


def _later(path: exact.Trajectory, step: int) -> Real:
    return path.to_go[step] - path.rewards[step]


@TOPIC.claim(
    "B8.18", "reward_to_go", title="R_t − V estimates the advantage; R(τ) − V does too while nothing is earned"
)
def estimate_of_the_advantage(trial: Trial) -> None:
    """Two subtasks at 0.2, p = 1/4, the first done: 3/20 against 7/20. A game that pays at its end: both 2/9."""
    value = float(exact.state_values(task.subtasks(2), task.policy((0.75, 0.25)))[1, 0])
    got = read(trial, "reward_to_go", {"rewards": Tensor(np.array([[0.2, 0.2]]), "float64")})
    Reading(got.value - value, got.error).require("R(τ) − V and R_t − V at the second subtask", [[7 / 20, 3 / 20]])
    games = [(*answers, reward) for answers, reward in (((0, 0, 0), 1), ((0, 0, 1), 0), ((0, 0, 0), 1))]
    value = float(number_search.state_value((9, 10, 11), 2))
    got = read(trial, "reward_to_go", {"rewards": Tensor(np.array(games, dtype=np.float64), "float64")})
    for step, name in ((0, "R(τ) − V"), (2, "R_t − V")):
        mean = got[:, step].combined(np.full(3, 1 / 3))
        Reading(mean.value - value, mean.error).require(
            f"mean of {name} when 10, then the number left is guessed", 2 / 9
        )


@TOPIC.claim(
    "B8.1", "gae", examples=3, title="with true values gae gives A = Q − V in the mean, and 0 over the actions"
)
def true_values(trial: Trial) -> None:
    """E[Â_t∣o_t, a_t] = Q(o_t, a_t) − V(o_t) for every λ, by enumeration of a stochastic environment."""
    paths, probabilities, rewards = _environment(task.NOISY_DOOR, task.LEARNER)
    state_values = exact.state_values(task.NOISY_DOOR, task.LEARNER)
    values = np.array([[state_values[t, path.observations[t]] for t in (0, 1)] for path in paths], dtype=np.float64)
    arguments: Arguments = {
        "rewards": rewards,
        "values": Tensor(values, "float64"),
        "mask": Tensor(np.ones(values.shape)),
        "gamma": 1.0,
        "lam": trial.draw.choice("lam", (0.0, 1.0, 0.5)),
    }
    got = read(trial, "gae", arguments)
    for (t, observation), value in state_values.items():
        seen = np.array([path.observations[t] == observation for path in paths])
        for action in (0, 1):
            here = seen & np.array([path.actions[t] == action for path in paths])
            weights = np.where(here, probabilities, 0) / probabilities[here].sum()
            worth = sum(float(w) * float(path.to_go[t]) for w, path in zip(weights, paths, strict=True))
            name = f"mean advantage of action {action} at observation {observation}, step {t}"
            got[:, t].combined(weights).require(name, worth - float(value))
        weights = np.where(seen, probabilities, 0) / probabilities[seen].sum()
        got[:, t].combined(weights).require(f"mean advantage at observation {observation}, step {t}", 0.0)


@TOPIC.check("gae", law="lambda-one", title="gae at λ = 1 is the reward to go minus the value")
def lambda_one(trial: Trial) -> None:
    """Â_t = Σ_{k≥t} γ^{k−t} r_k − V_t over the masked-in steps."""
    arguments: Arguments = gae_case(trial.draw, trial.convention) | {"lam": 1.0}
    want = np.zeros(arguments["mask"].array.shape)
    for row, steps in enumerate(arguments["mask"].array == 1):
        rewards, values = arguments["rewards"].array[row, steps], arguments["values"].array[row, steps]
        discounts = arguments["gamma"] ** np.arange(len(rewards))
        to_go = [float(rewards[t:] @ discounts[: len(rewards) - t]) for t in range(len(rewards))]
        want[row, steps] = to_go - values
    read(trial, "gae", arguments).require("gae at λ = 1", want)


@TOPIC.check("gae", law="lambda-zero", title="gae at λ = 0 is the one-step error of the values")
def lambda_zero(trial: Trial) -> None:
    """Â_t = r_t + γ·V_{t+1} − V_t over the masked-in steps, V = 0 after the last one."""
    arguments: Arguments = gae_case(trial.draw, trial.convention) | {"lam": 0.0}
    want = np.zeros(arguments["mask"].array.shape)
    for row, steps in enumerate(arguments["mask"].array == 1):
        rewards, values = arguments["rewards"].array[row, steps], arguments["values"].array[row, steps]
        want[row, steps] = rewards + arguments["gamma"] * np.append(values[1:], 0.0)[: len(values)] - values
    read(trial, "gae", arguments).require("gae at λ = 0", want)
