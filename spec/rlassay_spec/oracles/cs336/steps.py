"""Oracles of the microbatch steps: the loss they return, and as pullback the gradient they leave behind."""

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.cs336.losses import compute_policy_gradient_loss
from rlassay_spec.oracles.cs336.means import mask_like, mean_of_row_means, weighted_sum
from rlassay_spec.oracles.expected import Expected, Gradient
from rlassay_spec.oracles.inputs import floats


def sft_microbatch_train_step(
    policy_log_probs: npt.ArrayLike,
    response_mask: npt.ArrayLike,
    gradient_accumulation_steps: int,
    normalize_constant: float = 1.0,
) -> Expected:
    """−Σ m log π / (B · constant · steps)."""
    x = floats("policy_log_probs", policy_log_probs, "BT")
    m = mask_like(response_mask, x.shape)
    return times(-1 / (len(x) * normalize_constant * gradient_accumulation_steps), weighted_sum(x, m, m.astype(float)))


def grpo_microbatch_train_step(
    policy_log_probs: npt.ArrayLike,
    response_mask: npt.ArrayLike,
    gradient_accumulation_steps: int,
    loss_type: str,
    raw_rewards: npt.ArrayLike | None = None,
    advantages: npt.ArrayLike | None = None,
    old_log_probs: npt.ArrayLike | None = None,
    cliprange: float | None = None,
) -> Expected:
    """Mean over rows of the row's masked mean, divided by the number of steps."""
    x = floats("policy_log_probs", policy_log_probs, "BT")
    m = mask_like(response_mask, x.shape)
    loss = compute_policy_gradient_loss(x, loss_type, raw_rewards, advantages, old_log_probs, cliprange)
    return times(1 / gradient_accumulation_steps, composed(loss, mean_of_row_means(loss.value, m)))


def composed(inner: Expected, outer: Expected) -> Expected:
    """outer(inner(x)), where outer is linear and its answer was made from inner's value."""
    into_inner, into_x = outer.pullback, inner.pullback
    assert into_inner is not None and into_x is not None
    weights = into_inner(np.ones(outer.value.shape))
    seen = weights.value != 0
    scale = outer.scale + np.sum(np.abs(weights.value[seen]) * inner.scale[seen])

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        middle = into_inner(cotangent)
        exact, rounding = into_x(middle.value), into_x(middle.scale)
        return Gradient(exact.value, exact.scale + rounding.scale, exact.kink)

    return Expected(outer.value, scale, max(inner.terms, outer.terms), pullback)


def times(factor: float, expected: Expected) -> Expected:
    """The answer times a number."""
    inner = expected.pullback
    assert inner is not None

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        return inner(factor * np.asarray(cotangent, dtype=np.float64))

    return Expected(factor * expected.value, abs(factor) * expected.scale, expected.terms, pullback)
