"""The two-armed bandit of lecture rl-basics, section 8.1, in exact numbers.

One decision, p = σ(θ) for arm A with reward 1, 1 − p for arm B with reward 0; the scores are ∇_θ log p = 1 − p and
∇_θ log (1 − p) = −p. An estimate of ∇J is weight × score of the arm that was drawn.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import comb

from rlassay_spec.exact.moments import Distribution, Real, fraction, mean, sqrt, variance


def scores(p: Real) -> tuple[Fraction, Fraction]:
    """(∇_θ log p, ∇_θ log (1 − p)) = (1 − p, −p)."""
    p = fraction(p)
    return 1 - p, -p


def true_gradient(p: Real) -> Fraction:
    """∇_θ J = p(1 − p), because J = p."""
    p = fraction(p)
    return p * (1 - p)


def weighted_scores(p: Real, weights: tuple[Real, Real]) -> list[tuple[Fraction, Real]]:
    """Distribution of weight × score, with one weight per arm: pairs (probability, estimate)."""
    p = fraction(p)
    return [(chance, weight * score) for chance, weight, score in zip((p, 1 - p), weights, scores(p), strict=True)]


def estimates(p: Real, baseline: Real = 0) -> list[tuple[Fraction, Real]]:
    """Distribution of the REINFORCE estimate (R − b)·∇_θ log π(a)."""
    return weighted_scores(p, (1 - baseline, 0 - baseline))


def relative_variance(p: Real) -> Real:
    """Var ĝ/(∇J)² of one REINFORCE estimate without a baseline: (1 − p)/p."""
    return variance(estimates(p)) / true_gradient(p) ** 2


def optimal_baseline(probabilities: Sequence[Real], squared_scores: Sequence[Real], rewards: Sequence[Real]) -> Real:
    """b* = E[‖∇log π‖²·R]/E[‖∇log π‖²], the constant that minimises the trace of the estimate's covariance.

    Source: lecture rl-in-practice, section 3.
    """
    top: Real = Fraction(0)
    bottom: Real = Fraction(0)
    for chance, square, reward in zip(probabilities, squared_scores, rewards, strict=True):
        top = top + chance * square * reward
        bottom = bottom + chance * square
    return top / bottom


def running_mean_sd(p: Real, baseline: Real, samples: int) -> Real:
    """Standard deviation of the mean of n independent estimates, sd/√n."""
    return sqrt(variance(estimates(p, baseline)) / Fraction(samples))


def band_probability(p: Real, baseline: Real, samples: int, width: Real) -> Fraction:
    """P(∣mean of n estimates − ∇J∣ ≤ width), summed over the binomial number of draws of arm A."""
    (chance, hit), (_, miss) = estimates(p, fraction(baseline))
    inside = Fraction(0)
    for k in range(samples + 1):
        average = (k * hit + (samples - k) * miss) / samples
        if abs(average - true_gradient(p)) <= fraction(width):
            inside += comb(samples, k) * chance**k * (1 - chance) ** (samples - k)
    return inside


def moving_average_gradient(p: Real, rate: Real, earlier: int, include_current: bool) -> Real:
    """E[(R − b)·score] with b an exponential moving average of rewards, by enumeration of all reward histories.

    b starts at 0 and takes b ← (1 − rate)·b + rate·R for each of `earlier` independent rewards; the current reward
    enters it before the estimate is formed when `include_current` is set (which costs the factor 1 − rate).
    """
    p, rate = fraction(p), fraction(rate)
    outcomes: list[tuple[Fraction, Real]] = []
    for history in product((1, 0), repeat=earlier):
        chance, baseline = Fraction(1), Fraction(0)
        for reward in history:
            chance *= p if reward else 1 - p
            baseline = (1 - rate) * baseline + rate * reward
        for (arm, score), reward in zip(zip((p, 1 - p), scores(p), strict=True), (1, 0), strict=True):
            used = (1 - rate) * baseline + rate * reward if include_current else baseline
            outcomes.append((chance * arm, (reward - used) * score))
    return mean(outcomes)


def group_estimates(p: Real, size: int, advantages: Callable[[Sequence[Real]], Sequence[Real]]) -> Distribution:
    """Distribution of (1/G) Σ_j Â_j·score_j over all groups of G draws; `advantages` turns rewards into weights."""
    p = fraction(p)
    score = dict(zip((1, 0), scores(p), strict=True))
    outcomes: list[tuple[Fraction, Real]] = []
    for rewards in product((1, 0), repeat=size):
        chance = p ** sum(rewards) * (1 - p) ** (size - sum(rewards))
        total: Real = Fraction(0)
        for weight, reward in zip(advantages(rewards), rewards, strict=True):
            total = total + weight * score[reward]
        outcomes.append((chance, total / size))
    return outcomes


def group_factor(p: Real, size: int, advantages: Callable[[Sequence[Real]], Sequence[Real]]) -> Real:
    """E[ĝ]/∇J of the group estimate: 1 means unbiased."""
    return mean(group_estimates(p, size, advantages)) / true_gradient(p)
