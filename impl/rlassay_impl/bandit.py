"""The two-armed bandit and the baseline of least variance: policy gradients small enough to check by hand."""

import torch
from torch import Tensor

from rlassay_impl.contract import check_floats, frozen, require


def expected_return(probabilities: Tensor, returns: Tensor) -> Tensor:
    """Expected return over a complete list of trajectories.

        J = Σ_k p_k R_k

    Source: RL Basics §4 (B4.3).
    Shapes: probabilities, returns [K] → scalar, constant.
    Raises: ValueError for other shapes or integer dtypes.
    """
    check_floats("probabilities", probabilities, K=None)
    check_floats("returns", returns, K=probabilities.shape[0])

    return (frozen(probabilities) * frozen(returns)).sum().to(probabilities.dtype)


def bandit_gradient(theta: float | Tensor, action: int, baseline: float) -> float | Tensor:
    """One sample of the policy gradient of the bandit that picks A (reward 1) with probability σ(θ), else B (reward 0).

        ĝ = (R − b) ∇_θ log π(action),   ∇ log π(A) = 1 − p = σ(−θ),   ∇ log π(B) = −p = −σ(θ)

    Source: RL Basics §8.1 (B8.3–B8.6). Action 0 is A, action 1 is B.
    Shapes: theta is a float or a 0-d tensor, and so is the result, a constant.
    Raises: ValueError for a theta with axes, an integer tensor, an action other than 0 and 1.
    """
    if isinstance(theta, Tensor):
        check_floats("theta", theta)
    require(action in (0, 1), "action", action, "0 (A) or 1 (B)")

    logit = frozen(theta) if isinstance(theta, Tensor) else torch.tensor(theta, dtype=torch.float64)
    reward, score = (1.0, torch.sigmoid(-logit)) if action == 0 else (0.0, -torch.sigmoid(logit))
    gradient = (reward - float(baseline)) * score
    return gradient.to(theta.dtype) if isinstance(theta, Tensor) else gradient.item()


def optimal_baseline(probabilities: Tensor, scores: Tensor, rewards: Tensor) -> Tensor:
    """The constant baseline that minimises the variance of the policy gradient (trace of the covariance).

        b* = E[‖∇log π‖² R] / E[‖∇log π‖²]

    Source: RL in Practice §3 (P3.1); Greensmith et al., Variance Reduction Techniques for Gradient Estimates (2004).
    The bandit of RL Basics §8.1 has b* = 1 − p, with variance 0. Where every score is 0, b* is 0.
    Shapes: probabilities [K], scores [K, D] (row k is ∇log π of outcome k), rewards [K] → scalar, constant.
    Raises: ValueError for other shapes or integer dtypes.
    """
    check_floats("probabilities", probabilities, K=None)
    check_floats("scores", scores, K=probabilities.shape[0], D=None)
    check_floats("rewards", rewards, K=probabilities.shape[0])

    weights = frozen(probabilities) * frozen(scores).square().sum(dim=1)
    total = weights.sum()
    mean = (weights * frozen(rewards)).sum() / torch.where(total > 0, total, 1.0)
    return mean.to(probabilities.dtype)
