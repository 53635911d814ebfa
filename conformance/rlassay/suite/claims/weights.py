"""How the claims' checks read a loss: by what it weighs each token with, and by the step in the parameters it causes.

Every loss of the lectures is −Σ share·w·log π, where w is what the method gives a token and `share` what the declared
aggregation gives it. Dividing by the share leaves numbers that hold under every convention.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rlassay.check import Trial, require
from rlassay.guest.values import Arguments, Tensor
from rlassay.suite.claims.reading import Reading, read_gradient
from rlassay_spec.exact import loss as exact
from rlassay_spec.exact.log_prob import score
from rlassay_spec.oracles.tokens import aggregation_weights

LOG_PROBS = ((-0.3, -1.2, -2.0), (-0.7, -0.1, -1.6), (-2.3, -0.9, -0.4), (-1.1, -0.6, -0.2))
MASK = ((1, 1, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1))
"""Four sequences of different lengths, with masked-out tokens before and after."""


def doubles(array: npt.ArrayLike) -> Tensor:
    """A float64 tensor."""
    return Tensor(np.asarray(array, dtype=np.float64), "float64")


def batch(**others: npt.ArrayLike) -> Arguments:
    """The four sequences and what the loss takes besides; plain numbers stay plain."""
    return arguments(LOG_PROBS, MASK, **others)


def arguments(log_probs: npt.ArrayLike, mask: npt.ArrayLike | None = None, **others: npt.ArrayLike) -> Arguments:
    """Log-probs [B, T], a mask (of ones, if none is given) and the other arguments in their order."""
    policy = doubles(log_probs)
    chosen = np.ones(policy.array.shape) if mask is None else mask
    rest = {name: value if isinstance(value, float) else doubles(value) for name, value in others.items()}
    return {"log_probs": policy, "mask": doubles(chosen), **rest}


def shares(trial: Trial, case: Arguments) -> np.ndarray:
    """What each token weighs in the mean over the batch [B, T]: as declared, or by dr_grpo_loss's constant."""
    constant = case.get("constant")
    mode = None if constant is None else "constant"
    return np.asarray(aggregation_weights(case["mask"].array == 1, trial.convention, mode, constant))


def require_weights(trial: Trial, operation: str, case: Arguments, weights: npt.ArrayLike) -> None:
    """The loss is −Σ share·w·log π and its gradient −share·w, for weights [B] or [B, T].

    Raises:
        Mismatch: gradient or value is another one.
    """
    exact_weights = np.asarray(weights, dtype=np.float64)
    per_token = exact_weights[:, None] if exact_weights.ndim == 1 else exact_weights
    push = shares(trial, case) * per_token
    value, slope = read_gradient(trial, operation, case)
    slope.require(f"gradient of {operation} in log_probs", -push)
    value.require(operation, -(push * case["log_probs"].array).sum())


def require_no_gradient(trial: Trial, operation: str, case: Arguments, name: str) -> None:
    """No gradient of the loss reaches an argument, although it is part of the graph.

    Raises:
        Mismatch: one does.
    """
    gradient = trial.call(operation, case, live=("log_probs", name)).gradients[name]
    dead = gradient is None or not np.nan_to_num(gradient, nan=1.0).any()
    require(dead, f"a gradient of {operation} flows into {name}, but should not")


def path_steps(trial: Trial, operation: str, case: Arguments, scores: npt.ArrayLike) -> Reading:
    """−Σ_t (∂L/∂log π_t)/share·∇ log π_t of each sequence [B, K]: what it alone adds to the parameters.

    `scores` [B, T, K] are ∇ log π; all tokens are sampled ones.
    """
    _, slope = read_gradient(trial, operation, case)
    own = -np.asarray(scores, dtype=np.float64) / shares(trial, case)[..., None]
    with np.errstate(all="ignore"):
        value = (slope.value[..., None] * own).sum(axis=1)
    return Reading(value, (slope.error[..., None] * np.abs(own)).sum(axis=1))


def policy_case(policy: Sequence[float], actions: Sequence[int], **others: npt.ArrayLike) -> Arguments:
    """One token per sequence, drawn from one distribution."""
    log_probs = np.log([[float(policy[action])] for action in actions])
    return arguments(log_probs, **others)


def policy_scores(policy: Sequence[float], actions: Sequence[int]) -> np.ndarray:
    """∇_z log π(action) in the logits z, [B, 1, V]."""
    return np.array([[score(policy, action)] for action in actions], dtype=np.float64)


def require_logit_gradient(
    trial: Trial,
    operation: str,
    policy: Sequence[float],
    actions: Sequence[int],
    weights: Sequence[float],
    **others: npt.ArrayLike,
) -> None:
    """Chained to the logits, the mean gradient is (1/B) Σ_j w_j (π − onehot(a_j)).

    Raises:
        Mismatch: it is another one.
    """
    steps = path_steps(trial, operation, policy_case(policy, actions, **others), policy_scores(policy, actions))
    got = steps.combined(np.full(len(actions), -1 / len(actions)))
    want = [float(entry) for entry in exact.logit_gradient(policy, actions, weights)]
    got.require(f"logit gradient of {operation} for π = {tuple(policy)}, actions {tuple(actions)}", want)
