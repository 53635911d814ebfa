"""Checks of the claims about the two-armed bandit of section 8.1 and about the expected return."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb, exp, log
from typing import Final

import numpy as np

from rlassay.check import Trial
from rlassay.guest.values import Tensor
from rlassay.statistics import DESIGNS, binomial_p, require_plausible
from rlassay.suite.bandit import TOPIC
from rlassay.suite.claims.reading import Reading, read, stacked
from rlassay_spec.exact import bandit as exact
from rlassay_spec.exact import moments

QUARTER = Fraction(1, 4)
HALF = Fraction(1, 2)


def estimates(trial: Trial, p: Fraction, baselines: tuple[float, float] | float) -> Reading:
    """The subject's estimates from arm A and from arm B at θ = log(p/(1 − p)), each with its own baseline."""
    theta = log(p / (1 - p))
    own = baselines if isinstance(baselines, tuple) else (baselines, baselines)
    return stacked([estimate(trial, theta, arm, baseline) for arm, baseline in enumerate(own)])


def estimate(trial: Trial, theta: float, action: int, baseline: float) -> Reading:
    """One estimate of the subject."""
    return read(trial, "bandit_gradient", {"theta": theta, "action": action, "baseline": float(baseline)})


def chances(p: Fraction) -> list[float]:
    """Probabilities of the arms."""
    return [float(p), float(1 - p)]


def floats(values: Sequence[moments.Real]) -> list[float]:
    """Exact values as floats."""
    return [float(value) for value in values]


@TOPIC.claim("B8.3", "bandit_gradient", title="θ = −1.1 makes p = 0.249740, and θ = −ln 3 makes it 1/4")
def probability(trial: Trial) -> None:
    """p is the estimate of arm B at b = 1, and 1 − p that of arm A at b = 0."""
    for name, theta, p in (("−1.1", -1.1, 1 / (1 + exp(1.1))), ("−ln 3", -log(3), 0.25)):
        estimate(trial, theta, 1, 1.0).require(f"p at θ = {name}", p)
        estimate(trial, theta, 0, 0.0).require(f"1 − p at θ = {name}", 1 - p)


@TOPIC.claim("B8.4", "bandit_gradient", title="the scores at p = 1/4 are 0.75 and −0.25")
def scores(trial: Trial) -> None:
    """The weight R − b is 1 at b = 0 for arm A and at b = −1 for arm B."""
    estimates(trial, QUARTER, (0.0, -1.0)).require("scores of A and B", floats(exact.scores(QUARTER)))


def require_estimates(trial: Trial, baseline: Fraction) -> None:
    """Both estimates at p = 1/4 and their mean."""
    got, want = estimates(trial, QUARTER, float(baseline)), exact.estimates(QUARTER, baseline)
    got.require(f"estimates from A and B at b = {float(baseline):g}", floats([value for _, value in want]))
    got.combined(chances(QUARTER)).require(f"their mean at b = {float(baseline):g}", 3 / 16)


@TOPIC.claim("B8.5", "bandit_gradient", title="without a baseline the estimates are 0.75 and 0, their mean 0.1875")
def without_baseline(trial: Trial) -> None:
    """0.75 is four times the true gradient."""
    require_estimates(trial, Fraction(0))


@TOPIC.claim("B8.6", "bandit_gradient", title="with b = 0.5 the estimates are 0.375 and 0.125, their mean 0.1875")
def with_baseline(trial: Trial) -> None:
    """Arm B teaches something too."""
    require_estimates(trial, HALF)


def spread(trial: Trial, p: Fraction, baseline: Fraction) -> Reading:
    """Standard deviation of the subject's estimate."""
    return estimates(trial, p, float(baseline)).spread(chances(p))


@TOPIC.claim("B8.7", "bandit_gradient", title="b = 0.5 cuts the standard deviation from 0.324760 to 0.108253")
def standard_deviations(trial: Trial) -> None:
    """3√3/16 and √3/16."""
    for baseline in (Fraction(0), HALF):
        want = float(moments.sd(exact.estimates(QUARTER, baseline)))
        spread(trial, QUARTER, baseline).require(f"standard deviation at b = {float(baseline):g}", want)


SAMPLES: Final = 20
BAND: Final = 0.05
"""Length of the lecture's running mean, and how close to 0.1875 it should come."""


def inside(got: Reading, draws: np.ndarray) -> np.ndarray:
    """Whether the mean of 20 estimates, of which so many come from arm A, lies within the band."""
    with np.errstate(all="ignore"):
        average = (draws * got.value[0] + (SAMPLES - draws) * got.value[1]) / SAMPLES
        return np.asarray(np.abs(average - 0.1875) <= BAND + got.error.max())


@TOPIC.claim(
    "B8.8",
    "bandit_gradient",
    title="the mean of 20 samples is within 0.05 of 0.1875 in 98 % at b = 0.5, in 56 % at b = 0",
)
def running_mean(trial: Trial) -> None:
    """sd/√20, and the binomial probability of the band."""
    draws = np.arange(SAMPLES + 1)
    weights = [comb(SAMPLES, k) * 0.25**k * 0.75 ** (SAMPLES - k) for k in range(SAMPLES + 1)]
    for baseline in (Fraction(0), HALF):
        got = estimates(trial, QUARTER, float(baseline))
        name = f"of the mean of 20 at b = {float(baseline):g}"
        want = float(exact.running_mean_sd(QUARTER, baseline, SAMPLES))
        got.spread(chances(QUARTER)).scaled(SAMPLES**-0.5).require(f"standard deviation {name}", want)
        within = Reading(inside(got, draws).astype(float), np.zeros(len(draws)))
        want = float(exact.band_probability(QUARTER, baseline, SAMPLES, BAND))
        within.combined(weights).require(f"probability of the band {name}", want)


@TOPIC.check(
    "bandit_gradient",
    law="B8.8-sampled",
    claims=("B8.8",),
    examples=1,
    title="of 100,000 sampled means of 20 as many lie within 0.05 of 0.1875 as chance allows",
)
def sampled_running_means(trial: Trial) -> None:
    """The number of runs that end inside the band is binomial."""
    runs, p_values = DESIGNS["bandit_gradient/B8.8-sampled"].samples, {}
    for baseline in (Fraction(0), HALF):
        got = estimates(trial, QUARTER, float(baseline))
        close = int(inside(got, trial.draw.rng.binomial(SAMPLES, 0.25, size=runs)).sum())
        want = float(exact.band_probability(QUARTER, baseline, SAMPLES, BAND))
        seen = f"{close} of {runs} means inside the band at b = {float(baseline):g}, where {want * runs:.0f} should be"
        p_values[seen] = binomial_p(close, runs, want)
    require_plausible("bandit_gradient/B8.8-sampled", p_values)


@TOPIC.claim("B8.14", "bandit_gradient", title="b = 0.5 brings both estimates three times closer to 0.1875")
def closer(trial: Trial) -> None:
    """Distances 9/16 and 3/16 without a baseline, 3/16 and 1/16 with it."""
    for baseline in (Fraction(0), HALF):
        got = estimates(trial, QUARTER, float(baseline))
        want = [abs(float(value) - 0.1875) for _, value in exact.estimates(QUARTER, baseline)]
        distance = Reading(np.abs(got.value - 0.1875), got.error)
        distance.require(f"distances from the true gradient at b = {float(baseline):g}", want)


def expected(trial: Trial, probabilities: Sequence[float], returns: Sequence[float]) -> Reading:
    """The subject's expected return."""
    arguments = {"probabilities": Tensor(np.array(probabilities)), "returns": Tensor(np.array(returns, dtype=float))}
    return read(trial, "expected_return", arguments)


@TOPIC.claim(
    "B4.3", "expected_return", title="probabilities 0.30, 0.20, 0.25, 0.25 and returns 1, 1, 0, 0 make J = 0.50"
)
def four_trajectories(trial: Trial) -> None:
    """0.30 + 0.20."""
    expected(trial, (0.30, 0.20, 0.25, 0.25), (1, 1, 0, 0)).require("expected return", 0.5)


@TOPIC.claim("B3.4", "expected_return", title="the policy that imitates better can succeed less often")
def imitation_is_not_success(trial: Trial) -> None:
    """π₁ gives the demonstrated first action 1/2 and π₂ 2/5, but J(π₁) = 1/2 and J(π₂) = 1: two actions succeed."""
    for name, policy, want in (("π₁", (0.5, 0.0, 0.5), 0.5), ("π₂", (0.4, 0.6, 0.0), 1.0)):
        expected(trial, policy, (1, 1, 0)).require(f"success probability of {name}", want)


@TOPIC.claim("P3.3", "expected_return", title="rewards 11, 9 and 0, 2 have means 10 and 1, hence δ = +1, −1 and −1, +1")
def two_prompts(trial: Trial) -> None:
    """Raw, the worse answer to the easy prompt (9) outweighs the better one to the hard prompt (2)."""
    for rewards, want in (((11.0, 9.0), (1.0, -1.0)), ((0.0, 2.0), (-1.0, 1.0))):
        mean = expected(trial, (0.5, 0.5), rewards)
        delta = Reading(np.array(rewards) - mean.value, np.full(2, float(mean.error)))
        delta.require(f"rewards {rewards} minus their mean", want)


@TOPIC.claim(
    "P4.3", "expected_return", title="under a noisy judge Q is the mean reward of an answer, not one reward of it"
)
def noisy_judge(trial: Trial) -> None:
    """A right answer whose judge says 1 in four cases of five has Q = 4/5."""
    expected(trial, (0.8, 0.2), (1, 0)).require("Q of the right answer", 0.8)
