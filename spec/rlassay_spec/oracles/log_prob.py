"""Oracles of the log-probabilities and the entropy."""

import math

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.expected import (
    BoolArray,
    Expected,
    FloatArray,
    Gradient,
    Pullback,
    cotangent_like,
    linear_pullback,
)
from rlassay_spec.oracles.inputs import check_range, floats, ids_of, mask_of
from rlassay_spec.oracles.numeric import total


def token_log_probs(logits: npt.ArrayLike, token_ids: npt.ArrayLike, temperature: float = 1.0) -> Expected:
    """Logits at t, divided by the temperature, score the token at t+1."""
    x = floats("logits", logits, "BLV")
    ids = ids_of("token_ids", token_ids, "BL", x.shape[:2])
    if not temperature > 0:
        raise ValueError(f"temperature: is {temperature}, expected a number > 0")
    batch, length, _ = x.shape
    return scored(x, ids, np.ones((batch, max(length - 1, 0)), dtype=np.bool_), temperature)


def masked_log_probs(logits: npt.ArrayLike, token_ids: npt.ArrayLike, mask: npt.ArrayLike) -> Expected:
    """The same where the mask is 1, exactly 0 elsewhere."""
    x = floats("logits", logits, "BLV")
    ids = ids_of("token_ids", token_ids, "BL", x.shape[:2])
    batch, length, _ = x.shape
    return scored(x, ids, mask_of(mask, (batch, max(length - 1, 0))), 1.0)


def entropy(logits: npt.ArrayLike) -> Expected:
    """−Σ p log p of each row, with gradient −p (log p + H)."""
    x = floats("logits", logits, "BLV")
    value, scale = np.zeros(x.shape[:2]), np.zeros(x.shape[:2])
    slope, slope_scale = np.zeros(x.shape), np.zeros(x.shape)
    for b, t in np.ndindex(x.shape[:2]):
        row = _Softmax(x[b, t])
        information = np.where(row.p > 0, -row.log_p, 0.0)
        value[b, t] = total(row.p * information)
        scale[b, t] = 1 + abs(row.log_sum) + row.mean_size + row.largest_size
        slope[b, t] = row.p * (information - value[b, t])
        slope_scale[b, t] = row.p_scale * (1 + information + value[b, t])
    return Expected(value, scale, x.shape[2], linear_pullback(value.shape, slope, slope_scale))


def action_log_probs(log_probs: npt.ArrayLike, action_ids: npt.ArrayLike, n_actions: int) -> Expected:
    """Sum of the token log-probs of each action; −1 belongs to none."""
    x = floats("log_probs", log_probs, "BT")
    ids = ids_of("action_ids", action_ids, "BT", x.shape)
    if n_actions < 1:
        raise ValueError(f"n_actions: is {n_actions}, expected ≥ 1")
    value, scale = np.zeros((len(x), n_actions)), np.zeros((len(x), n_actions))
    for (b, t), action in np.ndenumerate(ids):
        check_range("action_ids", int(action), -1, n_actions - 1)
        if action >= 0:
            value[b, action] += x[b, t]
            scale[b, action] += abs(x[b, t])

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        weight = cotangent_like(cotangent, value.shape)
        gradient = np.zeros(x.shape)
        for (b, t), action in np.ndenumerate(ids):
            if action >= 0:
                gradient[b, t] = weight[b, action]
        return Gradient(gradient, np.abs(gradient), np.full(x.shape, np.inf))

    return Expected(value, scale, max(1, x.shape[1]), pullback)


class _Softmax:
    """One row of logits: probabilities, their logarithms, and the sizes that rounding depends on."""

    def __init__(self, logits: FloatArray) -> None:
        shift = logits.max()
        shifted = np.exp(logits - shift)
        self.log_sum = float(shift + math.log(shifted.sum()))
        self.log_p = (logits - shift) - math.log(shifted.sum())
        self.p = shifted / shifted.sum()
        size = np.where(np.isfinite(logits), np.abs(logits), 0.0)
        self.size = size
        self.mean_size = float(self.p @ size)
        self.largest_size = float(size.max())
        self.p_scale = self.p * (1 + size + abs(self.log_sum) + self.mean_size)


def scored(x: FloatArray, ids: npt.NDArray[np.int64], mask: BoolArray, temperature: float) -> Expected:
    """Log-probs of the next tokens where the mask is 1; a logit of −∞ is a token of probability 0."""
    value, scale = np.zeros(mask.shape), np.zeros(mask.shape)
    slope, slope_scale = np.zeros((*mask.shape, x.shape[2])), np.zeros((*mask.shape, x.shape[2]))
    for b, t in np.argwhere(mask).tolist():
        token = int(ids[b, t + 1])
        check_range("token_ids", token, 0, x.shape[2] - 1)
        row = _Softmax(x[b, t] / temperature)
        value[b, t] = row.log_p[token]
        scale[b, t] = 1 + row.size[token] + abs(row.log_sum) + row.largest_size
        slope[b, t] = -row.p / temperature
        slope[b, t, token] += 1 / temperature
        slope_scale[b, t] = row.p_scale / temperature
        slope_scale[b, t, token] += 1 / temperature
    return Expected(value, scale, x.shape[2], _into_logits(x.shape, mask.shape, slope, slope_scale))


def _into_logits(
    shape: tuple[int, ...], result_shape: tuple[int, ...], slope: FloatArray, slope_scale: FloatArray
) -> Pullback:
    of_scored = linear_pullback(result_shape, slope, slope_scale)

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        part = of_scored(cotangent)
        gradient = Gradient(np.zeros(shape), np.zeros(shape), np.full(shape, np.inf))
        gradient.value[:, : result_shape[1]] = part.value
        gradient.scale[:, : result_shape[1]] = part.scale
        return gradient

    return pullback
