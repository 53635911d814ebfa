"""Checks of the claims about baselines: what they leave unbiased, what they do to the variance, which is best."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import exp, log
from typing import Final

import numpy as np

from rlassay.check import Trial
from rlassay.guest.values import Tensor
from rlassay.statistics import DESIGNS, mean_p, require_plausible
from rlassay.suite.bandit import TOPIC
from rlassay.suite.claims.bandit import HALF, QUARTER, chances, estimate, estimates, floats, spread
from rlassay.suite.claims.reading import Reading, read, stacked
from rlassay_spec.exact import bandit as exact
from rlassay_spec.exact import moments
from rlassay_spec.exact.log_prob import score, softmax

THETAS: Final = (0.0, -1.1, 2.0, -log(3))


@TOPIC.claim("B8.9", "bandit_gradient", examples="profile", title="no baseline changes the mean estimate p(1 − p)")
def any_baseline(trial: Trial) -> None:
    """Exact, for a random b at several θ."""
    theta = trial.draw.choice("theta", THETAS)
    baseline = float(np.round(trial.draw.uniform(-3, 7), 2))
    p = 1 / (1 + exp(-theta))
    got = stacked([estimate(trial, theta, arm, baseline) for arm in (0, 1)])
    got.combined([p, 1 - p]).require(f"mean estimate at b = {baseline:g}, p = {p:.4g}", p * (1 - p))


BASELINES: Final = (-1.0, 0.2, 0.5, 2.0)
"""Among these a history chooses before the arm is drawn."""


@TOPIC.check(
    "bandit_gradient",
    law="B8.9-sampled",
    claims=("B8.9",),
    examples=1,
    title="the mean of a million estimates with a baseline that history picks is 0.1875, within chance",
)
def sampled_baselines(trial: Trial) -> None:
    """Hoeffding's bound on the mean of estimates in [−0.75, 1.5], whose baseline is drawn before the arm."""
    got = stacked([estimates(trial, QUARTER, baseline) for baseline in BASELINES]).reshaped(-1)
    design = DESIGNS["bandit_gradient/B8.9-sampled"]
    counts = trial.draw.rng.multinomial(
        design.samples, [p / len(BASELINES) for _ in BASELINES for p in chances(QUARTER)]
    )
    mean = got.combined(counts / design.samples)
    off = abs(float(mean.value) - 0.1875) - float(mean.error)
    seen = f"a mean of {float(mean.value):.6g} over {design.samples} estimates, where 0.1875 is expected"
    require_plausible("bandit_gradient/B8.9-sampled", {seen: mean_p(off, design.samples, design.width)})


@TOPIC.claim("B8.10", "bandit_gradient", title="b(a) = Q(a), which uses the action, makes the mean estimate 0")
def baseline_of_the_action(trial: Trial) -> None:
    """Q(A) = 1 and Q(B) = 0 take all there is to learn."""
    got = estimates(trial, QUARTER, (1.0, 0.0)).combined(chances(QUARTER))
    got.require("mean estimate with b(a) = Q(a)", 0.0)


@TOPIC.claim(
    "B8.11", "bandit_gradient", title="a moving average with the current reward in it loses that reward's share"
)
def moving_average(trial: Trial) -> None:
    """E[ĝ] = ∇J with earlier rewards alone, (1 − rate)·∇J with the current one, over all histories of three rewards."""
    rate = 0.25
    for include in (False, True):
        parts, weights = [], []
        for history in product((1, 0), repeat=3):
            average = 0.0
            for reward in history:
                average = (1 - rate) * average + rate * reward
            used = tuple((1 - rate) * average + rate * reward if include else average for reward in (1, 0))
            parts.append(estimates(trial, QUARTER, (used[0], used[1])))
            chance = 0.25 ** sum(history) * 0.75 ** (3 - sum(history))
            weights += [chance * p for p in chances(QUARTER)]
        want = float(exact.moving_average_gradient(QUARTER, rate, 3, include_current=include))
        name = "with the current reward" if include else "of earlier rewards"
        stacked(parts).reshaped(-1).combined(weights).require(f"mean estimate under a moving average {name}", want)


@TOPIC.claim("B8.15", "bandit_gradient", title="a baseline lowers the variance between 0 and 2b*, and raises it beyond")
def parabola(trial: Trial) -> None:
    """sd = ∣3/4 − b∣·√3/4 at p = 1/4: less at 1/2, least at b* = 3/4, the same at 3/2, more at 2 and at −1/2."""
    for b in (Fraction(0), HALF, Fraction(3, 4), Fraction(3, 2), Fraction(2), -HALF):
        want = float(moments.sd(exact.estimates(QUARTER, b)))
        spread(trial, QUARTER, b).require(f"standard deviation at b = {float(b):g}", want)


INSTANCES: Final = (QUARTER, HALF)


@TOPIC.claim("B4.5", "bandit_gradient", title="over instances, variances within and between them add up")
def total_variance(trial: Trial) -> None:
    """Two instances, p = 1/4 and p = 1/2: 87/1024 = 86/1024 + 1/1024."""
    got = [estimates(trial, p, 0.0) for p in INSTANCES]
    within = stacked([g.spread(chances(p)).squared() for g, p in zip(got, INSTANCES, strict=True)]).combined([0.5, 0.5])
    parts = [(HALF, exact.estimates(p)) for p in INSTANCES]
    want = moments.mean([(HALF, moments.variance(part)) for _, part in parts])
    within.require("mean variance within an instance", float(want))
    want = moments.variance([(HALF, exact.true_gradient(p)) for p in INSTANCES])
    between(got).require("variance between the instances", float(want))
    weights = [chance / 2 for p in INSTANCES for chance in chances(p)]
    whole = stacked(got).reshaped(-1).spread(weights).squared()
    whole.require("variance over both instances", float(moments.variance(moments.mixture(parts))))


def between(got: Sequence[Reading]) -> Reading:
    """Variance of the mean estimates of the instances."""
    means = [g.combined(chances(p)) for g, p in zip(got, INSTANCES, strict=True)]
    return stacked(means).spread([0.5, 0.5]).squared()


@TOPIC.claim("P3.5", "bandit_gradient", title="b(s) = V(s) leaves the variance between the prompts' gradients as it is")
@TOPIC.claim("B7.6", "bandit_gradient", title="a baseline per instance leaves the variance between instances as it is")
def variance_that_stays(trial: Trial) -> None:
    """1/1024 without a baseline and with b = V(x) = p."""
    want = float(moments.variance([(HALF, exact.true_gradient(p)) for p in INSTANCES]))
    for share, name in ((0, "without a baseline"), (1, "with b = V(x)")):
        got = [estimates(trial, p, float(share * p)) for p in INSTANCES]
        between(got).require(f"variance between the instances {name}", want)


@TOPIC.claim(
    "B3.7", "bandit_gradient", title="a failure teaches something once there is a baseline, and nothing before"
)
def failure_teaches(trial: Trial) -> None:
    """Arm B at p = 1/4: 1/8 with b = 1/2, 0 with b = 0."""
    for baseline in (HALF, Fraction(0)):
        want = float(exact.estimates(QUARTER, baseline)[1][1])
        name = f"estimate from the failing arm at b = {float(baseline):g}"
        estimates(trial, QUARTER, float(baseline))[1].require(name, want)


@TOPIC.claim(
    "P2.3",
    "bandit_gradient",
    examples=len(THETAS),
    title="the mean of R·∇ log π is the derivative of the expected reward",
)
def score_function(trial: Trial) -> None:
    """J(θ) = σ(θ), differentiated by a central difference whose own error is below float32's rounding."""
    theta = trial.draw.choice("theta", THETAS)
    p, step = 1 / (1 + exp(-theta)), 1e-5
    slope = (1 / (1 + exp(-theta - step)) - 1 / (1 + exp(-theta + step))) / (2 * step)
    got = stacked([estimate(trial, theta, arm, 0.0) for arm in (0, 1)]).combined([p, 1 - p])
    got.require(f"E[R·∇ log π] at θ = {theta:.4g}", slope)


@TOPIC.claim(
    "P2.1", "bandit_gradient", examples=len(THETAS), title="with reward 0 and no baseline a wrong answer gives 0"
)
def wrong_answer(trial: Trial) -> None:
    """R·∇ log π = 0 at every θ."""
    theta = trial.draw.choice("theta", THETAS)
    estimate(trial, theta, 1, 0.0).require(f"estimate from a wrong answer at θ = {theta:.4g}", 0.0)


@TOPIC.claim("P2.2", "bandit_gradient", title="the plain estimate's relative variance is 19 at p = 0.05, 1/19 at 0.95")
def relative_variance(trial: Trial) -> None:
    """Var ĝ/(∇J)² = (1 − p)/p."""
    for p in (QUARTER, Fraction(1, 20), Fraction(19, 20)):
        size = float(moments.sqrt(exact.relative_variance(p)))
        got = spread(trial, p, Fraction(0)).scaled(1 / float(exact.true_gradient(p)))
        got.require(f"standard deviation over ∇J at p = {float(p):g}", size)


@TOPIC.claim(
    "P3.2", "bandit_gradient", title="b = E[R] is better than none at p = 1/4, best at 1/2, worse than none at 0.9"
)
def mean_reward_as_baseline(trial: Trial) -> None:
    """b* = 1 − p, so b = p lies beyond 2b* for p > 2/3: at p = 0.9 the standard deviation is 8 times larger."""
    for p, baselines in (
        (QUARTER, (Fraction(0), QUARTER, HALF)),
        (HALF, (Fraction(0), HALF)),
        (Fraction(9, 10), (Fraction(0), Fraction(9, 10))),
    ):
        for b in baselines:
            want = float(moments.sd(exact.estimates(p, b)))
            spread(trial, p, b).require(f"standard deviation at p = {float(p):g}, b = {float(b):g}", want)


@TOPIC.claim("P3.1", "bandit_gradient", title="at p = 1/4 the baseline 0.75 leaves no variance at all")
def no_variance(trial: Trial) -> None:
    """Both estimates are the true gradient."""
    want = float(exact.true_gradient(QUARTER))
    estimates(trial, QUARTER, 0.75).require("estimates at b = 0.75", [want, want])


@TOPIC.claim("P3.1", "optimal_baseline", examples="profile", title="optimal_baseline minimises the total variance")
def least_variance(trial: Trial) -> None:
    """Σ_i Var ĝ_i is a parabola in b; its lowest point follows from three values of it, each by enumeration.

    The lecture's bandit first (b* = 3/4), then softmax policies of 3 or 4 actions with rewards of both signs.
    """
    kind = trial.draw.choice("policy", ("bandit", "three actions", "four actions"))
    policy: tuple[Fraction, ...]
    scores: list[tuple[Fraction, ...]]
    if kind == "bandit":
        policy, rewards = (QUARTER, 1 - QUARTER), [1, 0]
        scores = [(value,) for value in exact.scores(QUARTER)]
    else:
        size = 3 if kind == "three actions" else 4
        policy = softmax(trial.draw.integers(1, 9, size).tolist())
        rewards = trial.draw.integers(-3, 5, size).tolist()
        scores = [score(policy, action) for action in range(size)]

    def variance(b: int) -> Fraction:
        outcomes = [(p, tuple((r - b) * s for s in row)) for p, r, row in zip(policy, rewards, scores, strict=True)]
        return Fraction(moments.total_variance(outcomes))

    left, middle, right = variance(-1), variance(0), variance(1)
    best = (left - right) / (2 * (left + right - 2 * middle))
    arguments = {
        "probabilities": Tensor(np.array(floats(policy)), "float64"),
        "scores": Tensor(np.array([floats(row) for row in scores]), "float64"),
        "rewards": Tensor(np.array(floats(rewards)), "float64"),
    }
    read(trial, "optimal_baseline", arguments).require("the baseline of least variance", float(best))


def bandit_optimum(trial: Trial, p: Fraction) -> Reading:
    """The subject's optimal baseline of the bandit."""
    arguments = {
        "probabilities": Tensor(np.array(chances(p)), "float64"),
        "scores": Tensor(np.array(floats(exact.scores(p)))[:, None], "float64"),
        "rewards": Tensor(np.array([1.0, 0.0]), "float64"),
    }
    return read(trial, "optimal_baseline", arguments)


@TOPIC.claim("P3.2", "optimal_baseline", title="in the bandit b* = 1 − p, which is E[R] = p at p = 1/2 only")
def optimum_and_mean_reward(trial: Trial) -> None:
    """At p = 0.9 the mean reward 0.9 lies beyond 2b* = 0.2."""
    for p in (QUARTER, HALF, Fraction(9, 10)):
        bandit_optimum(trial, p).require(f"b* at p = {float(p):g}", float(1 - p))


@TOPIC.claim("B8.15", "optimal_baseline", title="at p = 1/4 baselines between 0 and 2b* = 1.5 lower the variance")
def useful_baselines(trial: Trial) -> None:
    """The variance is a parabola around b* = 3/4, so 2b* is as bad as no baseline."""
    bandit_optimum(trial, QUARTER).scaled(2.0).require("2b* at p = 1/4", 1.5)
