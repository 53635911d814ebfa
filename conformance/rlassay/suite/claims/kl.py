"""Checks of the claims about the KL estimators, by enumeration of the samples or by quadrature.

k3 may be clamped by declaration; then the oracle's clamped numbers are expected, which without a clamp are the claim's.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np
import numpy.typing as npt

from rlassay.check import Trial, require
from rlassay.comparison import require_array
from rlassay.guest.values import Arguments, Tensor
from rlassay.suite.claims.reading import Reading, read, read_gradient
from rlassay.suite.kl import ESTIMATORS, TOPIC
from rlassay_spec.exact import kl as exact

K1, K2, K3 = ESTIMATORS
NEAR = ((0.6, 0.4), (0.5, 0.5))
FAR = ((0.99, 0.01), (0.5, 0.5))
THREE = ((1 / 2, 1 / 3, 1 / 6), (1 / 6, 1 / 2, 1 / 3))
PAIRS = (NEAR, FAR, THREE)
"""Policy and reference: near each other, far apart, of three outcomes."""

Pair = tuple[Sequence[float], Sequence[float]]


def samples(log_probs: npt.ArrayLike, ref_log_probs: npt.ArrayLike) -> Arguments:
    """One row of samples, in float64."""
    pair = {"log_probs": log_probs, "ref_log_probs": ref_log_probs}
    return {name: Tensor(np.array([value], dtype=np.float64), "float64") for name, value in pair.items()}


def outcomes(pair: Pair) -> Arguments:
    """Every outcome once."""
    return samples(*map(np.log, pair))


def readings(trial: Trial, operation: str, arguments: Arguments) -> tuple[Reading, np.ndarray]:
    """The estimator at each sample, by the subject and by the oracle."""
    return read(trial, operation, arguments)[0], trial.expect(operation, arguments).value[0]


def spread(values: np.ndarray, chances: npt.ArrayLike) -> float:
    """Standard deviation of exact values."""
    return float(Reading(values, np.zeros(values.shape)).spread(chances).value)


@TOPIC.claim("P7.1", K1, title="kl_k1 is unbiased, and of either sign")
def k1_is_unbiased(trial: Trial) -> None:
    """E_π[k1] = KL(π∥π_ref); for (0.6, 0.4) against (0.5, 0.5) the samples are 0.182 and −0.223."""
    for policy, reference in PAIRS:
        got = read(trial, K1, outcomes((policy, reference)))[0]
        got.combined(policy).require(f"E[k1] for π = {policy}", exact.divergence(policy, reference))
        got.require(f"k1 for π = {policy}", [exact.k1(np.log(q / p)) for p, q in zip(policy, reference, strict=True)])


@TOPIC.claim("P7.2", K3, title="kl_k3 is unbiased and never negative; a policy that cannot draw all underestimates")
def k3_is_unbiased(trial: Trial) -> None:
    """E_π[k3] = KL(π∥π_ref), E_π[r] = 1, k3 > 0 but at r = 1; π = (1, 0) against (1/2, 1/2) gives KL − 1/2."""
    for policy, reference in PAIRS:
        arguments = outcomes((policy, reference))
        got, want = readings(trial, K3, arguments)
        got.combined(policy).require(f"E[k3] for π = {policy}", np.dot(policy, want))
        log_ratio = np.log(reference) - np.log(policy)
        ratio = Reading(got.value + log_ratio + 1, got.error)
        mean_ratio = np.dot(policy, want + log_ratio + 1)
        ratio.combined(policy).require(f"E[r] = E[k3 + log r] + 1 for π = {policy}", mean_ratio)
        require(bool((got.value > 0).all()), f"k3 should be positive where r is not 1, but is {got.value.tolist()}")
    got, want = readings(trial, K3, samples(np.log([0.5, 1.0]), np.log([0.5, 0.5])))
    got.require("k3 at r = 1, and as the whole mean of a policy that draws half of the reference only", want)


@TOPIC.check(
    K3,
    law="P7.2-float32",
    claims=("P7.2",),
    kind="robustness",
    examples=1,
    title="kl_k3 is not negative in float32 near r = 1 either",
)
def never_negative(trial: Trial) -> None:
    """exp(d) − d − 1 rounds below 0 for ∣d∣ < 1e-3; expm1(d) − d does not.

    Log-probs near 0, whose spacing in float32 is fine enough for differences that 1 + d cannot hold.
    """
    steps = np.array([sign * 10.0**-k for k in range(1, 7) for sign in (1, -1)])
    policy = np.full((8, len(steps)), -0.12) - 0.013 * np.arange(8)[:, None]
    arguments = {"log_probs": Tensor(policy), "ref_log_probs": Tensor(policy + steps)}
    got = require_array(K3, trial.call(K3, arguments), policy.shape)
    require(bool((got >= 0).all()), f"kl_k3 gives {got.min():.3g}, but should never be negative")


def _declare_variance(operation: str, title: str) -> None:
    @TOPIC.claim("P7.3", operation, title=title)
    def variance(trial: Trial) -> None:
        """sd of k3 and k1: 0.005488 and 0.198637 for (0.6, 0.4), 4.467477 and 0.457209 for (0.99, 0.01)."""
        for pair, name in ((NEAR, "near the reference"), (FAR, "far from the reference")):
            got, want = readings(trial, operation, outcomes(pair))
            got.spread(pair[0]).require(f"standard deviation of {operation} {name}", spread(want, pair[0]))


_declare_variance(K1, "kl_k1 varies more than k3 near the reference and less far from it")
_declare_variance(K3, "kl_k3 varies less than k1 near the reference and far more off it")


NODES = 24
"""Points of the quadrature: log-probs down to −47, errors below 1e-12 for all entries of the table."""


def gaussian(shift: float) -> tuple[Arguments, np.ndarray]:
    """Samples of N(0, 1) against N(shift, 1) at the points of the quadrature, and the points' weights."""
    nodes, node_weights = np.polynomial.hermite.hermgauss(NODES)
    x, constant = np.sqrt(2.0) * nodes, -0.5 * np.log(2 * pi)
    return samples(constant - x**2 / 2, constant - (x - shift) ** 2 / 2), node_weights / np.sqrt(pi)


def _declare_gaussian(operation: str) -> None:
    @TOPIC.claim("P7.4", operation, title=f"{operation} has the bias and the deviation of the Gaussian table")
    def gaussian_table(trial: Trial) -> None:
        """x ∼ N(0, 1), reference N(m, 1) for m = 0.1 and 1, by Gauss–Hermite quadrature; in units of KL = m²/2."""
        for shift in (0.1, 1.0):
            arguments, chances = gaussian(shift)
            got, want = readings(trial, operation, arguments)
            unit, name = 2 / shift**2, f"of {operation} over KL at m = {shift}"
            got.combined(chances).scaled(unit).require(f"mean {name}", np.dot(chances, want) * unit)
            got.spread(chances).scaled(unit).require(f"standard deviation {name}", spread(want, chances) * unit)


for _operation in ESTIMATORS:
    _declare_gaussian(_operation)


def _declare_gradient(operation: str, title: str) -> None:
    @TOPIC.claim("P7.5", operation, title=title)
    def mean_gradient(trial: Trial) -> None:
        """Σ_x π(x)·(dk/d log π)·(onehot(x) − π): the samples are fixed, only the estimator is differentiated."""
        for policy, reference in PAIRS:
            arguments, chances = outcomes((policy, reference)), np.array([policy])
            expected = trial.expect(operation, arguments)
            assert expected.pullback is not None
            _, slope = read_gradient(trial, operation, arguments, chances)
            chain = (np.eye(len(policy)) - np.array(policy)).T
            want = expected.pullback(chances).value[0]
            slope[0].combined(chain).require(f"mean gradient of {operation} for π = {policy}", chain @ want)
            slope[0].require(f"gradient of {operation} at each sample, times π = {policy}", want)


_declare_gradient(K1, "differentiated on fixed samples kl_k1 has mean gradient 0")
_declare_gradient(K2, "differentiated on fixed samples kl_k2 has the mean gradient of KL(π∥π_ref)")
_declare_gradient(K3, "differentiated on fixed samples kl_k3 has the mean gradient of KL(π_ref∥π)")
