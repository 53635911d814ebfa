"""Softmax policies with rational probabilities: scores, derivatives, first-order effects, temperature.

A policy is given by positive weights w_a = exp(z_a), so that π_a = w_a/Σw and all derivatives with respect to the
logits z are fractions.
"""

from collections.abc import Sequence
from fractions import Fraction

from rlassay_spec.exact.moments import Real, Vector, fraction


def softmax(weights: Sequence[Real]) -> tuple[Fraction, ...]:
    """π_a = w_a/Σ_b w_b."""
    total = sum(map(fraction, weights), Fraction(0))
    return tuple(fraction(weight) / total for weight in weights)


def score(policy: Sequence[Real], action: int) -> tuple[Fraction, ...]:
    """∇_z log π(action) = onehot(action) − π."""
    return tuple(int(k == action) - fraction(p) for k, p in enumerate(policy))


def jacobian(weights: Sequence[Real]) -> tuple[tuple[Fraction, ...], ...]:
    """∂π_a/∂z_k by the quotient rule on w_a/Σw, with ∂w_a/∂z_k = w_a·1[a = k]."""
    exact = [fraction(weight) for weight in weights]
    total = sum(exact, Fraction(0))
    return tuple(
        tuple((int(a == k) * exact[a] * total - exact[a] * exact[k]) / total**2 for k in range(len(exact)))
        for a in range(len(exact))
    )


def sft_gradient(policy: Sequence[Real], action: int) -> tuple[Fraction, ...]:
    """Gradient of −log π(action) in the logits, π − onehot(action)."""
    return tuple(-value for value in score(policy, action))


def log_prob_rates(policy: Sequence[Real], step: Vector) -> tuple[Fraction, ...]:
    """First-order change of every log π_a when the logits move along `step`: step_a − Σ_b π_b·step_b."""
    drift = sum((fraction(p) * move for p, move in zip(policy, step, strict=True)), Fraction(0))
    return tuple(move - drift for move in step)


def return_gradient(policy: Sequence[Real], rewards: Sequence[Real]) -> tuple[Fraction, ...]:
    """∇_z Σ_a π_a R_a = π_a (R_a − J), the exact policy gradient of a one-step task."""
    exact = [fraction(p) for p in policy]
    expected = sum((p * fraction(reward) for p, reward in zip(exact, rewards, strict=True)), Fraction(0))
    return tuple(p * (fraction(reward) - expected) for p, reward in zip(exact, rewards, strict=True))


def tempered(policy: Sequence[Real], inverse_temperature: int) -> tuple[Fraction, ...]:
    """The policy at temperature 1/n: π_aⁿ/Σ_b π_bⁿ (n = 0 is infinite temperature, uniform)."""
    return softmax([fraction(p) ** inverse_temperature for p in policy])
