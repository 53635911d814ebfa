"""Checks of the claims about what chance does to groups: every group that G rollouts can make, with its probability."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import comb, sqrt

import numpy as np

from rlassay.check import Trial
from rlassay.suite.advantage import TOPIC
from rlassay.suite.claims.advantage import CENTERED, GRPO, KEEP, RLOO, require_groups, rewards
from rlassay.suite.claims.reading import Reading, read
from rlassay_spec.exact import advantage as exact
from rlassay_spec.exact.log_prob import tempered

P = 0.25
"""Success probability of the bandit."""

SIZES = (2, 4, 8)


def every_group(size: int, outcomes: Sequence[float] = (1, 0)) -> np.ndarray:
    """All groups [K, G] of independent rewards."""
    return np.array(list(product(outcomes, repeat=size)), dtype=np.float64)


def chances(groups: np.ndarray, outcomes: Sequence[float], probabilities: Sequence[float]) -> np.ndarray:
    """Probability of each group."""
    chance = np.zeros(groups.shape)
    for outcome, probability in zip(outcomes, probabilities, strict=True):
        chance[groups == outcome] = probability
    return np.asarray(chance.prod(axis=1))


def binary_chances(groups: np.ndarray, p: float) -> np.ndarray:
    """Probability of each group of rewards 1 and 0."""
    return chances(groups, (1, 0), (p, 1 - p))


def step_weights(groups: np.ndarray, p: float) -> np.ndarray:
    """Σ_{n,j} w·Â_nj is E[(1/G) Σ_j Â_j ∇ log π(a_j)] of the bandit: probability of the group × score/G."""
    scores = np.where(groups == 1, 1 - p, -p)
    return np.asarray(binary_chances(groups, p)[:, None] * scores / groups.shape[1])


def mean_step(got: Reading, groups: np.ndarray, p: float) -> Reading:
    """E[ĝ] of the bandit's θ with the subject's advantages."""
    return got.reshaped(-1).combined(step_weights(groups, p).ravel())


@TOPIC.claim("B9.6", CENTERED, title="R − mean contains the own reward: E[ĝ] is (1 − 1/G) of the true gradient")
def group_mean_shrinks(trial: Trial) -> None:
    """Bandit p = 1/4, all groups of 2, 4, 8: E[ĝ]/∇J = 1/2, 3/4, 7/8."""
    for size in SIZES:
        groups = every_group(size)
        step = mean_step(read(trial, CENTERED, rewards(groups)), groups, P)
        step.scaled(1 / (P * (1 - P))).require(f"E[ĝ]/∇J with R − mean at G = {size}", 1 - 1 / size)


@TOPIC.claim("B9.6", RLOO, title="the mean of the others is an unbiased baseline, G/(G − 1) of R − mean")
def leave_one_out_is_unbiased(trial: Trial) -> None:
    """Bandit p = 1/4, all groups of 2, 4, 8: E[ĝ] = ∇J."""
    for size in SIZES:
        groups = every_group(size)
        got = read(trial, RLOO, rewards(groups))
        mean_step(got, groups, P).scaled(1 / (P * (1 - P))).require(f"E[ĝ]/∇J with leave-one-out at G = {size}", 1.0)
        want = (groups - groups.mean(axis=1, keepdims=True)) * size / (size - 1)
        got.require(f"{RLOO} against G/(G − 1)·(R − mean) at G = {size}", want)


@TOPIC.claim("B9.6", GRPO, title="÷σ changes the mean gradient once more, by a factor that depends on p and G")
def deviation_rescales(trial: Trial) -> None:
    """Bandit p = 1/4, all groups of 2, 4, 8: E[ĝ]/∇J = 1.000, 1.645, 2.026 under the lecture convention."""
    for size in SIZES:
        groups = every_group(size)
        step = mean_step(read(trial, GRPO, rewards(groups)), groups, P)
        step.scaled(1 / (P * (1 - P))).require(f"E[ĝ]/∇J with ÷σ at G = {size}", deviation_factor(trial, size))


def deviation_factor(trial: Trial, size: int) -> float:
    """E[ĝ]/∇J of the exact normalised advantages under the declared convention, from one group per success count."""
    table = trial.expect(GRPO, rewards([exact.binary_group(size, k) for k in range(size + 1)])).value
    total = 0.0
    for k in range(size + 1):
        chance = comb(size, k) * P**k * (1 - P) ** (size - k)
        total += chance * (k * table[k, 0] * (1 - P) - (size - k) * table[k, -1] * P) / size
    return total / (P * (1 - P))


@TOPIC.claim("B9.7", KEEP, title="a group of G lacks contrast with probability pᴳ + (1 − p)ᴳ")
def contrast(trial: Trial) -> None:
    """All groups of 4 and 8; of 16 one for each number of successes, with its binomial probability."""
    for size in (4, 8, 16):
        groups = every_group(size) if size < 16 else np.array([exact.binary_group(16, k) for k in range(17)], float)
        kept = read(trial, KEEP, rewards(groups))
        for p in (0.5, 0.05, 0.95):
            weights = binary_chances(groups, p)
            if size == 16:
                weights = weights * np.array([comb(16, k) for k in range(17)])
            alike = exact.equal_group_probability((p, 1 - p), size)
            kept.combined(weights).require(f"chance of contrast at p = {p}, G = {size}", float(1 - alike))


@TOPIC.claim("B9.7", CENTERED, title="the group mean has variance p(1 − p)/G")
def mean_noise(trial: Trial) -> None:
    """R_1 − Â_1 is the mean that the subject used."""
    for size in SIZES:
        want = sqrt(exact.mean_variance(P, size))
        _used_mean(trial, size, (1, 0), (P, 1 - P)).require(f"standard deviation of the mean of {size}", want)


@TOPIC.claim("P9.2", CENTERED, title="the mean of G rewards estimates V with variance σ²/G")
def mean_of_graded_rewards(trial: Trial) -> None:
    """Rewards 3, 1, 0 with probabilities 1/6, 1/3, 1/2: σ² = 41/36; G times the rollouts for 1/G of the variance."""
    for size in (2, 3, 4):
        got = _used_mean(trial, size, (3, 1, 0), (1 / 6, 1 / 3, 1 / 2))
        got.require(f"standard deviation of the mean of {size}", sqrt(41 / 36 / size))


def _used_mean(trial: Trial, size: int, outcomes: Sequence[float], probabilities: Sequence[float]) -> Reading:
    groups = every_group(size, outcomes)
    first = read(trial, CENTERED, rewards(groups))[:, 0]
    weights = chances(groups, outcomes, probabilities)
    return Reading(groups[:, 0] - first.value, first.error).spread(weights)


@TOPIC.claim("P9.4", CENTERED, title="the advantage varies more in a larger group; its distance from R − V varies less")
def advantage_noise(trial: Trial) -> None:
    """Var(R_1 − R̄) = p(1 − p)(1 − 1/G), Var(V − R̄) = p(1 − p)/G."""
    for size in SIZES:
        groups = every_group(size)
        first, weights = read(trial, CENTERED, rewards(groups))[:, 0], binary_chances(groups, P)
        own = sqrt(exact.advantage_variance(P, size))
        first.spread(weights).require(f"standard deviation of R − mean at G = {size}", own)
        distance = Reading(first.value - (groups[:, 0] - P), first.error).spread(weights)
        distance.require(f"standard deviation of V − mean at G = {size}", sqrt(exact.mean_variance(P, size)))


@TOPIC.claim("B9.11", CENTERED, title="R − mean correlates with R − V by √(1 − 1/G), 0.71 already at G = 2")
def signal_in_small_groups(trial: Trial) -> None:
    """Covariance p(1 − p)(1 − 1/G) over the standard deviations √(p(1 − p)(1 − 1/G)) and √(p(1 − p))."""
    for size in SIZES:
        groups = every_group(size)
        first, weights = read(trial, CENTERED, rewards(groups))[:, 0], binary_chances(groups, P)
        covariance = first.combined(weights * (groups[:, 0] - P))
        covariance.require(f"covariance of R − mean with R − V at G = {size}", P * (1 - P) * (1 - 1 / size))
        first.spread(weights).require(
            f"standard deviation of R − mean at G = {size}", sqrt(P * (1 - P) * (1 - 1 / size))
        )


@TOPIC.claim("B10.9", KEEP, title="chance alone makes groups of zeros: 81/256 of those of 4 at p = 1/4")
def all_zero_by_chance(trial: Trial) -> None:
    """All zeros and all ones are dropped alike; the flag says nothing about why."""
    groups = every_group(4)
    kept = read(trial, KEEP, rewards(groups))
    mixed = (groups != groups[:, :1]).any(axis=1)
    kept.require("keep_groups, for 4 successes and for 4 failures as for mixed groups,", mixed)
    weights = np.where(groups.any(axis=1), 0.0, binary_chances(groups, P))
    Reading(1 - kept.value, kept.error).combined(weights).require("chance of a dropped group of zeros", 81 / 256)


@TOPIC.claim("B10.10", KEEP, title="heat brings contrast only while it moves the success rate towards 1/2")
def heat(trial: Trial) -> None:
    """Two answers, 0.05: 0.814513 → 0.125 without contrast; ten answers, 1/2: 0.125 → 0.6562."""
    kept, groups = read(trial, KEEP, rewards(every_group(4))), every_group(4)
    for policy, name in (((0.05, 0.95), "two answers"), ((9,) + (1,) * 9, "ten answers")):
        for inverse, when in ((1, "before"), (0, "at infinite temperature")):
            p = tempered(policy, inverse)[0]
            want = float(1 - exact.equal_group_probability((p, 1 - p), 4))
            kept.combined(binary_chances(groups, float(p))).require(f"chance of contrast, {name}, {when}", want)


@TOPIC.claim("P9.1", KEEP, title="as the temperature falls groups agree, unless the best responses tie")
def cold(trial: Trial) -> None:
    """Two responses, rewards 1 and 0: groups of 4 agree by 41/128, 0.952105, 1 at T = 1, 1/4, 1/16; a tie by 1/8."""
    kept, groups = read(trial, KEEP, rewards(every_group(4))), every_group(4)
    for policy in ((0.75, 0.25), (0.5, 0.5)):
        for inverse in (1, 4, 16):
            cooled = tempered(policy, inverse)
            want = float(1 - exact.equal_group_probability(cooled, 4))
            got = kept.combined(chances(groups, (1, 0), [float(p) for p in cooled]))
            got.require(f"chance of contrast for π = {policy} at T = 1/{inverse}", want)


def _declare_difficulty(claim: str, shifted: tuple[float, ...], spread: tuple[float, ...]) -> None:
    @TOPIC.claim(
        claim, CENTERED, title="R − mean removes a constant difficulty, not how the instances differ otherwise"
    )
    def difficulty(trial: Trial) -> None:
        """A shift drops out, a spread stays; so do the instances' own mean gradients, (1 − 1/G)·p(1 − p)."""
        got = require_groups(trial, CENTERED, [(11, 9), shifted, spread])
        got[1].require(f"{CENTERED} of {shifted}, which is 11, 9 shifted", [1, -1])
        got[2].require(f"{CENTERED} of {spread}", np.array(spread) - np.mean(spread))
        groups = every_group(2)
        advantages = read(trial, CENTERED, rewards(groups))
        for p in (0.25, 0.5):
            mean_step(advantages, groups, p).require(f"mean gradient of the instance with p = {p}", p * (1 - p) / 2)


_declare_difficulty("B7.6", (1, -1), (20, 0))
_declare_difficulty("P3.5", (2, 0), (20, 0))
