"""All trajectories of small stochastic environments, with exact probabilities, scores and gradients.

An environment draws an observation o_0; each action then draws, with known probabilities, a reward and the next
observation. A policy is one row of action probabilities per observation; its parameters are the logits of all rows, so
the same row is used at every step that shows the same observation. Everything is a fraction.

Source: lecture rl-basics, sections 4, 6 and 8.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from rlassay_spec.exact.log_prob import jacobian
from rlassay_spec.exact.moments import Real, Vector, fraction, mean_vector, total_variance
from rlassay_spec.exact.returns import reward_to_go

Policy: TypeAlias = tuple[tuple[Fraction, ...], ...]
Outcome: TypeAlias = tuple[Fraction, int, Fraction]
"""Probability, next observation, reward."""


@dataclass(frozen=True)
class Environment:
    """`horizon` actions; `start[o]` = P(o_0 = o); `outcomes[o, a]` = what action a may lead to at observation o."""

    horizon: int
    start: tuple[Fraction, ...]
    outcomes: Mapping[tuple[int, int], tuple[Outcome, ...]]


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
    def total(self) -> Fraction:
        """R(τ) = Σ_t r_t."""
        return sum(self.rewards, Fraction(0))

    @property
    def to_go(self) -> tuple[Fraction, ...]:
        """Sum of the rewards from each action on."""
        return reward_to_go(self.rewards)


Weight: TypeAlias = Callable[[Trajectory, int], Real]
"""Weight of action t of a trajectory."""


def policy(*rows: Sequence[Real]) -> Policy:
    """A policy from one row of probabilities per observation."""
    return tuple(tuple(fraction(p) for p in row) for row in rows)


def score(rows: Policy, observation: int, action: int) -> tuple[Fraction, ...]:
    """∇ log π(action∣observation) in the logits of all rows: onehot − π in its own row, 0 in the others."""
    return tuple(
        int(o == observation) * (int(a == action) - p) for o, row in enumerate(rows) for a, p in enumerate(row)
    )


def enumerate_all(environment: Environment, rows: Policy) -> list[Trajectory]:
    """Every trajectory of positive probability."""
    paths = [
        Trajectory((o,), (), (), (), (), chance) for o, chance in enumerate(environment.start) if chance
    ]
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
    for t, (o, a) in enumerate(zip(path.observations[:-1], path.actions, strict=True)):
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
        ratios = [
            learner[o][a] / sampler[o][a] for o, a in zip(path.observations[:-1], path.actions, strict=True)
        ]
        whole = Fraction(1)
        for factor in ratios:
            whole *= factor
        factors = {"none": [Fraction(1)] * len(ratios), "trajectory": [whole] * len(ratios), "token": ratios}[ratio]
        weights = [factor * weight(path, t) for t, factor in enumerate(factors)]
        own = [score(learner, o, a) for o, a in zip(path.observations[:-1], path.actions, strict=True)]
        found.append((path.probability, tuple(_dot(weights, column) for column in zip(*own, strict=True))))
    return mean_vector(found)


def expected_return(environment: Environment, rows: Policy) -> Fraction:
    """J(θ) = Σ_τ p_θ(τ)·R(τ)."""
    return sum((path.probability * path.total for path in enumerate_all(environment, rows)), Fraction(0))


def true_gradient(environment: Environment, rows: Policy) -> Vector:
    """∇J by backward induction with the product rule on V(o) = Σ_a π(a∣o) Σ P·(r + V(o′)); no score is used."""
    observations = range(len(environment.start))
    size = sum(map(len, rows))
    offset = [sum(map(len, rows[:o])) for o in observations]
    value: dict[int, Fraction] = dict.fromkeys(observations, Fraction(0))
    slope: dict[int, list[Fraction]] = {o: [Fraction(0)] * size for o in observations}
    for _ in range(environment.horizon):
        new_value, new_slope = {}, {}
        for o in observations:
            action_values, gradient = [], [Fraction(0)] * size
            for action, p in enumerate(rows[o]):
                branches = environment.outcomes[o, action]
                action_values.append(sum((c * (r + value[n]) for c, n, r in branches), Fraction(0)))
                for chance, following, _ in branches:
                    gradient = [g + p * chance * s for g, s in zip(gradient, slope[following], strict=True)]
            new_value[o] = sum((p * q for p, q in zip(rows[o], action_values, strict=True)), Fraction(0))
            for k, p in enumerate(rows[o]):
                gradient[offset[o] + k] += sum(
                    (q * pa * (int(a == k) - p) for a, (pa, q) in enumerate(zip(rows[o], action_values, strict=True))),
                    Fraction(0),
                )
            new_slope[o] = gradient
        value, slope = new_value, new_slope
    return tuple(
        sum((chance * slope[o][i] for o, chance in enumerate(environment.start)), Fraction(0)) for i in range(size)
    )


def state_values(environment: Environment, rows: Policy) -> dict[tuple[int, int], Fraction]:
    """V(t, o): expected reward to go when o is seen before action t."""
    values: dict[tuple[int, int], Fraction] = {}
    for path in enumerate_all(environment, rows):
        for t, o in enumerate(path.observations[:-1]):
            values.setdefault((t, o), Fraction(0))
    reach = dict.fromkeys(values, Fraction(0))
    for path in enumerate_all(environment, rows):
        for t, o in enumerate(path.observations[:-1]):
            reach[t, o] += path.probability
            values[t, o] += path.probability * path.to_go[t]
    return {key: values[key] / reach[key] for key in values}


_HALF, _THIRD, _QUARTER = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)

NOISY_DOOR = Environment(
    horizon=2,
    start=(2 * _THIRD, _THIRD),
    outcomes={
        (0, 0): ((_HALF, 0, Fraction(0)), (_HALF, 1, Fraction(1))),
        (0, 1): ((3 * _QUARTER, 1, -_HALF), (_QUARTER, 0, Fraction(2))),
        (1, 0): ((_THIRD, 0, Fraction(3)), (2 * _THIRD, 1, Fraction(0))),
        (1, 1): ((Fraction(1), 1, _THIRD),),
    },
)
"""Two steps, two observations; start, observations and rewards are random, the rewards of both signs."""

_FEE: tuple[Outcome, ...] = ((Fraction(1), 1, Fraction(-1)),)
_REFUND: tuple[Outcome, ...] = ((Fraction(1), 1, Fraction(1)),)
FEE_AND_REFUND = Environment(
    horizon=2,
    start=(Fraction(1), Fraction(0)),
    outcomes={(0, 0): _FEE, (0, 1): _FEE, (1, 0): _REFUND, (1, 1): _REFUND},
)
"""Two steps that cost 1 and pay 1 whatever is done: R(τ) is always 0, the reward to go is not."""

LEARNER: Policy = policy((0.3, 0.7), (0.6, 0.4))
SAMPLER: Policy = policy((0.5, 0.5), (0.2, 0.8))
"""Two policies for the environments above."""


def subtasks(count: int, reward: Real = 0.2) -> Environment:
    """`count` independent subtasks: action 1 completes one and earns `reward`, action 0 earns nothing."""
    nothing: tuple[Outcome, ...] = ((Fraction(1), 0, Fraction(0)),)
    return Environment(count, (Fraction(1),), {(0, 0): nothing, (0, 1): ((Fraction(1), 0, fraction(reward)),)})


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
