"""Trajectories of stochastic environments against differences, and the policy gradient against both."""

from fractions import Fraction
from math import log1p

import numpy as np
import pytest

from rlassay_spec.exact import environment, log_prob, trajectory
from rlassay_spec.exact.environment import LEARNER, NOISY_DOOR, SAMPLER, Environment, Policy
from rlassay_spec.exact.moments import Real, Vector
from rlassay_spec.exact.returns import reward_to_go
from rlassay_spec.exact.trajectory import Trajectory
from rlassay_spec.oracles import ORACLES


def random_case(seed: int) -> tuple[Environment, Policy, Policy]:
    """An environment of two or three steps, three observations and two actions, and two policies for it."""
    rng = np.random.default_rng(seed)

    def chances(count: int) -> tuple[Fraction, ...]:
        return log_prob.softmax([Fraction(int(w)) for w in rng.integers(1, 9, count)])

    outcomes = {
        (o, a): tuple((p, int(rng.integers(3)), Fraction(int(rng.integers(-4, 5)), 2)) for p in chances(2))
        for o in range(3)
        for a in range(2)
    }
    rows = [tuple(chances(2) for _ in range(3)) for _ in range(2)]
    return Environment(2 + seed % 2, chances(3), outcomes), rows[0], rows[1]


CASES = [(NOISY_DOOR, LEARNER, SAMPLER), *map(random_case, range(4))]


def total(tau: Trajectory, t: int) -> Real:
    return tau.total


def to_go(tau: Trajectory, t: int) -> Real:
    return tau.to_go[t]


def differences(world: Environment, rows: Policy) -> list[float]:
    """∂J/∂logit by central differences: the weight of one action is scaled by 1 ± h, exactly."""
    h = Fraction(1, 10**6)
    slopes = []
    for o, row in enumerate(rows):
        for a in range(len(row)):
            values = []
            for factor in (1 + h, 1 - h):
                changed = log_prob.softmax([p * factor if k == a else p for k, p in enumerate(row)])
                values.append(trajectory.expected_return(world, (*rows[:o], changed, *rows[o + 1 :])))
            slopes.append(float(values[0] - values[1]) / (log1p(h) - log1p(-h)))
    return slopes


@pytest.mark.parametrize(("world", "learner", "sampler"), CASES)
def test_the_true_gradient_is_the_slope_of_the_expected_return(
    world: Environment, learner: Policy, sampler: Policy
) -> None:
    expected = differences(world, learner)
    assert [float(g) for g in trajectory.true_gradient(world, learner)] == pytest.approx(expected, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize(("world", "learner", "sampler"), CASES)
def test_probabilities_add_up_to_1_and_scores_to_0(world: Environment, learner: Policy, sampler: Policy) -> None:
    assert sum(tau.probability for tau in trajectory.enumerate_all(world, learner)) == 1
    assert not any(trajectory.mean_estimate(world, learner, lambda tau, t: 1))


@pytest.mark.parametrize(("world", "learner", "sampler"), CASES)
def test_the_score_of_a_trajectory_is_its_gradient_over_its_probability(
    world: Environment, learner: Policy, sampler: Policy
) -> None:
    for tau in trajectory.enumerate_all(world, learner):
        scores = tuple(tau.probability * sum(column) for column in zip(*tau.scores, strict=True))
        assert trajectory.probability_gradient(learner, tau) == scores


@pytest.mark.parametrize(("world", "learner", "sampler"), CASES)
def test_return_and_reward_to_go_both_give_the_gradient(world: Environment, learner: Policy, sampler: Policy) -> None:
    expected = trajectory.true_gradient(world, learner)
    assert trajectory.mean_estimate(world, learner, total) == expected
    assert trajectory.mean_estimate(world, learner, to_go) == expected


@pytest.mark.parametrize(("world", "learner", "sampler"), CASES)
def test_leaving_out_the_actions_own_reward_loses_exactly_its_part(
    world: Environment, learner: Policy, sampler: Policy
) -> None:
    late = trajectory.mean_estimate(world, learner, lambda tau, t: tau.to_go[t] - tau.rewards[t])
    own = trajectory.mean_estimate(world, learner, lambda tau, t: tau.rewards[t])
    assert tuple(a + b for a, b in zip(late, own, strict=True)) == trajectory.true_gradient(world, learner)
    assert any(own)


@pytest.mark.parametrize(("world", "learner", "sampler"), CASES)
def test_a_baseline_on_the_history_keeps_the_gradient_and_one_that_sees_further_does_not(
    world: Environment, learner: Policy, sampler: Policy
) -> None:
    expected = trajectory.true_gradient(world, learner)
    values = trajectory.state_values(world, learner)

    def history(tau: Trajectory, t: int) -> Real:
        return tau.total - values[t, tau.observations[t]] - 7 * sum(tau.actions[:t]) - sum(tau.rewards[:t])

    def action(tau: Trajectory, t: int) -> Real:
        return tau.total - tau.actions[t]

    def future(tau: Trajectory, t: int) -> Real:
        return tau.total - tau.observations[t + 1] ** 2

    assert trajectory.mean_estimate(world, learner, history) == expected
    assert trajectory.mean_estimate(world, learner, action) != expected
    assert trajectory.mean_estimate(world, learner, future) != expected


@pytest.mark.parametrize(("world", "learner", "sampler"), CASES)
def test_only_the_ratio_of_the_whole_trajectory_repairs_another_policys_data(
    world: Environment, learner: Policy, sampler: Policy
) -> None:
    expected = trajectory.true_gradient(world, learner)
    repaired = trajectory.off_policy_estimate(world, learner, sampler, total, "trajectory")
    assert repaired == expected
    assert trajectory.off_policy_estimate(world, learner, sampler, total) != expected
    assert trajectory.off_policy_estimate(world, learner, sampler, total, "token") != expected
    assert trajectory.off_policy_estimate(world, learner, learner, total) == expected


def test_one_step_needs_no_more_than_the_tokens_own_ratio() -> None:
    world = Environment(1, NOISY_DOOR.start, NOISY_DOOR.outcomes)
    expected = trajectory.true_gradient(world, LEARNER)
    assert trajectory.off_policy_estimate(world, LEARNER, SAMPLER, total, "token") == expected


@pytest.mark.parametrize(("world", "learner", "sampler"), CASES)
def test_the_values_average_to_the_expected_return(world: Environment, learner: Policy, sampler: Policy) -> None:
    values = trajectory.state_values(world, learner)
    start = sum(chance * values[0, o] for o, chance in enumerate(world.start) if chance)
    assert start == trajectory.expected_return(world, learner)


@pytest.mark.parametrize("p", [Fraction(1, 4), Fraction(2, 3)])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_variance_with_subtasks_follows_the_closed_form(count: int, p: Fraction) -> None:
    """With B Bernoulli(p), W = Σ later rewards and s = B − p, each logit's estimate is Σ ±(…)·s."""
    rows, reward = ((1 - p, p),), Fraction(1, 5)
    world = environment.subtasks(count, reward)
    expected: Vector = (-count * reward * p * (1 - p), count * reward * p * (1 - p))
    assert trajectory.mean_estimate(world, rows, to_go) == trajectory.true_gradient(world, rows) == expected
    noise = p * (1 - p)
    own = reward**2 * (p * (1 - p) ** 2 - noise**2)
    later = [reward**2 * (k * noise + k**2 * p**2) for k in range(count)]
    cross = [reward**2 * k * p * p * (1 - p) * (1 - p) for k in range(count)]
    per_logit = sum(own + noise * later[k] + 2 * cross[k] for k in range(count))
    assert trajectory.estimate_variance(world, rows, to_go) == 2 * per_logit


def test_the_mask_built_turn_by_turn_agrees_with_the_oracle_on_tokens() -> None:
    start, end, newline, roles = 90, 91, 92, {"user": 1, "assistant": 2, "tool": 3}
    turns = (("user", 2), ("assistant", 3), ("tool", 0), ("assistant", 0), ("user", 1))
    tokens: list[int] = []
    for role, content in turns:
        tokens += [start, roles[role], newline, *range(10, 10 + content), end]
    expected = ORACLES["response_mask"]([tokens], start, end, 2, newline).value[0]
    assert trajectory.response_mask(turns) == tuple(expected.astype(int).tolist())


def test_the_reward_to_go_obeys_its_recursion() -> None:
    rewards, gamma = (Fraction(1), Fraction(-2), Fraction(1, 3), Fraction(5)), Fraction(9, 10)
    result = reward_to_go(rewards, gamma)
    later = (*result[1:], Fraction(0))
    assert result == tuple(r + gamma * follows for r, follows in zip(rewards, later, strict=True))
    assert reward_to_go(rewards)[0] == sum(rewards)
