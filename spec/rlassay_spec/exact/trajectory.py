"""All trajectories of small stochastic environments, with exact probabilities, scores and gradients.

The parameters of a policy are the logits of all its rows, one row per observation, so the same row is used at every
step that shows the same observation. Everything is a fraction.

Source: lecture rl-basics, sections 4, 6 and 8.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TypeAlias

from rlassay_spec.exact.environment import Environment, Policy
from rlassay_spec.exact.log_prob import jacobian
from rlassay_spec.exact.moments import Real, Vector, mean_vector, total_variance
from rlassay_spec.exact.returns import reward_to_go


@dataclass(frozen=True)
class Trajectory:
    """One episode: `scores[t]` = ∇ log π(a_t∣o_t), `chances[t]` = π(a_t∣o_t), `probability` = p_θ(τ)."""

    observations: tuple[int, ...]
    actions: tuple[int, ...]
    rewards: tuple[Fraction, ...]
    chances: tuple[Fraction, ...]
    scores: tuple[Vector, ...]
    probability: Fraction

    @property
    def decisions(self) -> tuple[tuple[int, int], ...]:
        """(o_t, a_t) of every step."""
        return tuple(zip(self.observations[:-1], self.actions, strict=True))

    @property
    def total(self) -> Fraction:
        """R(τ) = Σ_t r_t."""
        return sum(self.rewards, Fraction(0))

    @property
    def to_go(self) -> tuple[Fraction, ...]:
        """Sum of the rewards from each action on."""
        return reward_to_go(self.rewards)


Weight: TypeAlias = Callable[[Trajectory, int], Real]
"""Weight of action t of a trajectory."""


def score(rows: Policy, observation: int, action: int) -> tuple[Fraction, ...]:
    """∇ log π(action∣observation) in the logits of all rows: onehot − π in its own row, 0 in the others."""
    return tuple(
        int(o == observation) * (int(a == action) - p) for o, row in enumerate(rows) for a, p in enumerate(row)
    )


def enumerate_all(environment: Environment, rows: Policy) -> list[Trajectory]:
    """Every trajectory of positive probability."""
    paths = [Trajectory((o,), (), (), (), (), chance) for o, chance in enumerate(environment.start) if chance]
    for _ in range(environment.horizon):
        paths = [
            Trajectory(
                (*path.observations, following),
                (*path.actions, action),
                (*path.rewards, reward),
                (*path.chances, p),
                (*path.scores, score(rows, path.observations[-1], action)),
                path.probability * p * chance,
            )
            for path in paths
            for action, p in enumerate(rows[path.observations[-1]])
            for chance, following, reward in environment.outcomes[path.observations[-1], action]
            if p and chance
        ]
    return paths


def probability_gradient(rows: Policy, path: Trajectory) -> Vector:
    """∇p_θ(τ) by the product rule, with each ∂π from the quotient rule on the softmax; no logarithm is used."""
    total = [Fraction(0)] * sum(map(len, rows))
    for t, (o, a) in enumerate(path.decisions):
        offset = sum(map(len, rows[:o]))
        for k, slope in enumerate(jacobian(rows[o])[a]):
            total[offset + k] += path.probability / path.chances[t] * slope
    return tuple(total)


def estimates(environment: Environment, rows: Policy, weight: Weight) -> list[tuple[Fraction, Vector]]:
    """Distribution of the gradient estimate Σ_t weight(τ, t)·∇ log π(a_t∣h_t)."""
    found: list[tuple[Fraction, Vector]] = []
    for path in enumerate_all(environment, rows):
        weights = [weight(path, t) for t in range(environment.horizon)]
        columns = zip(*path.scores, strict=True)
        found.append((path.probability, tuple(_dot(weights, column) for column in columns)))
    return found


def _dot(first: Sequence[Real], second: Sequence[Real]) -> Real:
    total: Real = Fraction(0)
    for x, y in zip(first, second, strict=True):
        total = total + x * y
    return total


def mean_estimate(environment: Environment, rows: Policy, weight: Weight) -> Vector:
    """E_τ[Σ_t weight(τ, t)·∇ log π(a_t∣h_t)]."""
    return mean_vector(estimates(environment, rows, weight))


def estimate_variance(environment: Environment, rows: Policy, weight: Weight) -> Real:
    """Trace of the covariance of the estimate."""
    return total_variance(estimates(environment, rows, weight))


def off_policy_estimate(
    environment: Environment, learner: Policy, sampler: Policy, weight: Weight, ratio: str = "none"
) -> Vector:
    """Mean of the learner's estimate over trajectories that another policy sampled.

    `ratio` "none" uses them as they are, "trajectory" weighs each by Π_t π/π_old, "token" weighs action t by its own
    π/π_old only.
    """
    found: list[tuple[Fraction, Vector]] = []
    for path in enumerate_all(environment, sampler):
        ratios = [learner[o][a] / sampler[o][a] for o, a in path.decisions]
        whole = prod(ratios, start=Fraction(1))
        factors = {"none": [Fraction(1)] * len(ratios), "trajectory": [whole] * len(ratios), "token": ratios}[ratio]
        weights = [factor * weight(path, t) for t, factor in enumerate(factors)]
        columns = zip(*(score(learner, o, a) for o, a in path.decisions), strict=True)
        found.append((path.probability, tuple(_dot(weights, column) for column in columns)))
    return mean_vector(found)


def expected_return(environment: Environment, rows: Policy) -> Fraction:
    """J(θ) = Σ_τ p_θ(τ)·R(τ)."""
    return sum((path.probability * path.total for path in enumerate_all(environment, rows)), Fraction(0))


def true_gradient(environment: Environment, rows: Policy) -> Vector:
    """∇J by backward induction with the product rule on V(o) = Σ_a π(a∣o) Σ P·(r + V(o′)); no score is used."""
    value = [Fraction(0) for _ in rows]
    slope = [_zero(rows) for _ in rows]
    for _ in range(environment.horizon):
        before = [_backward(environment, rows, o, value, slope) for o in range(len(rows))]
        value, slope = [v for v, _ in before], [g for _, g in before]
    return tuple(_mix(environment.start, slope))


def _backward(
    environment: Environment, rows: Policy, o: int, value: list[Fraction], slope: list[list[Fraction]]
) -> tuple[Fraction, list[Fraction]]:
    """V(o) and ∇V(o) from the values and slopes one step later."""
    offset = sum(map(len, rows[:o]))
    total, gradient = Fraction(0), _zero(rows)
    for action, chances in enumerate(jacobian(rows[o])):
        branches, p = environment.outcomes[o, action], rows[o][action]
        action_value = sum((chance * (reward + value[after]) for chance, after, reward in branches), Fraction(0))
        total += p * action_value
        later = _mix([p * chance for chance, _, _ in branches], [slope[after] for _, after, _ in branches])
        gradient = [g + s for g, s in zip(gradient, later, strict=True)]
        for k, change in enumerate(chances):
            gradient[offset + k] += change * action_value
    return total, gradient


def _zero(rows: Policy) -> list[Fraction]:
    return [Fraction(0)] * sum(map(len, rows))


def _mix(weights: Sequence[Fraction], vectors: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    columns = zip(*vectors, strict=True)
    return [sum((w * x for w, x in zip(weights, column, strict=True)), Fraction(0)) for column in columns]


def state_values(environment: Environment, rows: Policy) -> dict[tuple[int, int], Fraction]:
    """V(t, o): expected reward to go when o is seen before action t."""
    reach: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    earned: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for path in enumerate_all(environment, rows):
        for t, (o, _) in enumerate(path.decisions):
            reach[t, o] += path.probability
            earned[t, o] += path.probability * path.to_go[t]
    return {key: earned[key] / reach[key] for key in reach}


def response_mask(turns: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    """Mask of a conversation made of (role, number of content tokens), built turn by turn.

    Every turn is im_start, role, newline, content…, im_end; the policy samples the content and the im_end of an
    assistant turn, nothing else.
    """
    mask: list[int] = []
    for role, content in turns:
        sampled = int(role == "assistant")
        mask += [0, 0, 0] + [sampled] * content + [sampled]
    return tuple(mask)
