"""Losses, their weights and their slopes in exact arithmetic (rl-basics 5–11, rl-in-practice 5 and 6).

All methods are −(1/G) Σ_j w_j log π(a_j); they differ in the weights w_j, which `weights` gives by name.
"""

from collections.abc import Sequence
from fractions import Fraction

from rlassay_spec.exact import advantage
from rlassay_spec.exact.log_prob import score
from rlassay_spec.exact.moments import Real, Vector, fraction


def weights(method: str, rewards: Sequence[Real]) -> tuple[Real, ...]:
    """The weight of each trajectory of a group.

    "sft" 1, "rest" 1[R = 1], "reinforce" R, "grpo" (R − R̄)/σ, "dr_grpo" R − R̄.
    """
    if method == "sft":
        return (Fraction(1),) * len(rewards)
    if method == "rest":
        return tuple(Fraction(int(reward == 1)) for reward in rewards)
    if method == "reinforce":
        return tuple(rewards)
    return advantage.normalized(rewards) if method == "grpo" else advantage.centered(rewards)


def logit_gradient(policy: Sequence[Real], actions: Sequence[int], weight: Sequence[Real]) -> Vector:
    """Gradient in the logits of −(1/G) Σ_j w_j log π(a_j): (1/G) Σ_j w_j (π − onehot(a_j))."""
    total: list[Real] = [Fraction(0)] * len(policy)
    for action, w in zip(actions, weight, strict=True):
        total = [t - w * s for t, s in zip(total, score(policy, action), strict=True)]
    return tuple(t / len(actions) for t in total)


def masked_total(values: Sequence[Real], mask: Sequence[int]) -> Real:
    """Σ_t m_t·x_t that never touches an entry whose mask is 0."""
    total: Real = Fraction(0)
    for value, sampled in zip(values, mask, strict=True):
        if sampled:
            total = total + value
    return total


def token_weight(advantage_value: Real, length: int, normalizer: str, constant: int = 1) -> Fraction:
    """Weight of each token of an answer: Â ("none"), Â/∣y∣ ("length") or Â/C ("constant")."""
    divisor = {"none": 1, "length": length, "constant": constant}[normalizer]
    return fraction(advantage_value) / divisor


def clipped(ratio: Real, advantage_value: Real, low: Real = 0.2, high: Real = 0.2) -> Fraction:
    """The clipped surrogate −min(ρA, clip(ρ, 1 − low, 1 + high)·A)."""
    rho, a = fraction(ratio), fraction(advantage_value)
    bounded = min(max(rho, 1 - fraction(low)), 1 + fraction(high))
    return -min(rho * a, bounded * a)


def clipped_slope(ratio: Real, advantage_value: Real, low: Real = 0.2, high: Real = 0.2) -> Fraction:
    """Slope of the clipped surrogate in log π, by cases; not defined exactly on a bound.

    0 when A > 0 and ρ > 1 + high or A < 0 and ρ < 1 − low, else −ρA.
    """
    rho, a = fraction(ratio), fraction(advantage_value)
    dead = (a > 0 and rho > 1 + fraction(high)) or (a < 0 and rho < 1 - fraction(low))
    return Fraction(0) if dead else -rho * a


def surrogate_slopes(ratio: Real, advantage_value: Real) -> tuple[Fraction, Fraction]:
    """Slopes of −ρA = −A·exp(log π − log π_old) in log π and in log π_old: (−ρA, +ρA)."""
    push = fraction(ratio) * fraction(advantage_value)
    return -push, push


def clipped_mean_step(learner: Sequence[Real], sampler: Sequence[Real], rewards: Sequence[Real]) -> Vector:
    """Mean over the sampler's actions of −slope·∇ log π with A = R: where a step on the clipped surrogate goes."""
    total: list[Real] = [Fraction(0)] * len(learner)
    for action, (new, old, reward) in enumerate(zip(learner, sampler, rewards, strict=True)):
        slope = -fraction(old) * clipped_slope(fraction(new) / fraction(old), reward)
        total = [t + slope * s for t, s in zip(total, score(learner, action), strict=True)]
    return tuple(total)
