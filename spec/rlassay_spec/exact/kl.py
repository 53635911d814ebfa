"""The KL estimators k1, k2, k3: moments and mean gradients by enumeration, and by quadrature for Gaussians.

x ∼ π and r = π_ref(x)/π(x): k1 = −log r, k2 = (log r)²/2, k3 = r − log r − 1, in nats.

Source: lecture rl-in-practice, section 7; Schulman, Approximating KL Divergence.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import expm1, log, pi, sqrt

import numpy as np

from rlassay_spec.exact.moments import Real, fraction


def k1(log_ratio: float) -> float:
    """−log r, of either sign."""
    return -log_ratio


def k2(log_ratio: float) -> float:
    """(log r)²/2."""
    return log_ratio**2 / 2


def k3(log_ratio: float) -> float:
    """r − log r − 1, never negative."""
    return expm1(log_ratio) - log_ratio


Estimator = Callable[[float], float]

SLOPES: dict[Estimator, Callable[[float], float]] = {
    k1: lambda log_ratio: 1.0,
    k2: lambda log_ratio: -log_ratio,
    k3: lambda log_ratio: -expm1(log_ratio),
}
"""d k/d log π at a sample, the reference held fixed; as a function of log r."""


def divergence(policy: Sequence[Real], reference: Sequence[Real]) -> float:
    """KL(π∥π_ref) = Σ_x π(x)·log(π(x)/π_ref(x)), nats."""
    return sum(float(p) * log(fraction(p) / fraction(q)) for p, q in zip(policy, reference, strict=True) if p)


def mean_ratio(policy: Sequence[Real], reference: Sequence[Real]) -> Fraction:
    """E_π[r] = Σ of π_ref over the outcomes that π can draw: 1 exactly when π covers the reference."""
    return sum((fraction(q) for p, q in zip(policy, reference, strict=True) if p), Fraction(0))


def _samples(policy: Sequence[Real], reference: Sequence[Real], estimator: Estimator) -> list[tuple[float, float]]:
    pairs = [(fraction(p), fraction(q)) for p, q in zip(policy, reference, strict=True) if p]
    return [(float(p), estimator(log(q / p))) for p, q in pairs]


def mean(policy: Sequence[Real], reference: Sequence[Real], estimator: Estimator) -> float:
    """E_π[k]."""
    return sum(p * k for p, k in _samples(policy, reference, estimator))


def sd(policy: Sequence[Real], reference: Sequence[Real], estimator: Estimator) -> float:
    """Standard deviation of k under π."""
    centre = mean(policy, reference, estimator)
    return sqrt(sum(p * (k - centre) ** 2 for p, k in _samples(policy, reference, estimator)))


def mean_gradient(policy: Sequence[Real], reference: Sequence[Real], estimator: Estimator) -> tuple[float, ...]:
    """E_π[∇_z k] in the logits z of π, with the samples fixed: Σ_x π(x)·(dk/d log π)·(onehot(x) − π)."""
    slopes = [p * s for p, s in _samples(policy, reference, SLOPES[estimator])]
    return tuple(slope - float(p) * sum(slopes) for slope, p in zip(slopes, policy, strict=True))


def gradient(policy: Sequence[Real], reference: Sequence[Real]) -> tuple[float, ...]:
    """∇_z KL(π∥π_ref) = π_x (log(π_x/π_ref,x) − KL)."""
    whole = divergence(policy, reference)
    return tuple(float(p) * (log(fraction(p) / fraction(q)) - whole) for p, q in zip(policy, reference, strict=True))


def reverse_gradient(policy: Sequence[Real], reference: Sequence[Real]) -> tuple[Fraction, ...]:
    """∇_z KL(π_ref∥π) = π − π_ref."""
    return tuple(fraction(p) - fraction(q) for p, q in zip(policy, reference, strict=True))


def gaussian_table(shift: float, estimator: Estimator) -> tuple[float, float]:
    """(bias/KL, sd/KL) for x ∼ N(0, 1) and the reference N(shift, 1), by Gauss–Hermite quadrature.

    log r = shift·x − shift²/2 and KL = shift²/2.
    """
    nodes, node_weights = np.polynomial.hermite.hermgauss(80)
    x, w = np.sqrt(2.0) * nodes, node_weights / sqrt(pi)
    values = np.array([estimator(float(shift * point - shift**2 / 2)) for point in x])
    centre, true = float(w @ values), shift**2 / 2
    return (centre - true) / true, sqrt(float(w @ (values - centre) ** 2)) / true
