"""Oracles of whitening, of rewards with a KL penalty, and of the soft punishment of length."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.oracles.expected import Expected
from rlassay_spec.oracles.inputs import check_range, float_rewards, floats, ids_of, mask_of
from rlassay_spec.oracles.numeric import divisor


def whiten(values: npt.ArrayLike, mask: npt.ArrayLike, *, convention: Convention = LECTURE) -> Expected:
    """(x − μ) / s; rounding of the mean is divided by s too, and reaches s itself through σ."""
    x = floats("values", values, "BT")
    m = mask_of(mask, x.shape)
    value, scale = np.zeros(x.shape), np.zeros(x.shape)
    chosen = x[m].tolist()
    if not all(map(math.isfinite, chosen)):
        value[m], scale[m] = math.nan, math.inf
    elif chosen and max(chosen) > min(chosen):
        exact = [Fraction(entry) for entry in chosen]
        mean = sum(exact, Fraction(0)) / len(exact)
        squares = sum(((entry - mean) * (entry - mean) for entry in exact), Fraction(0))
        spread = divisor(squares / (len(exact) - convention.std_ddof), convention)
        whitened = np.array([float(entry - mean) / spread for entry in exact])
        size = np.abs(whitened)
        value[m], scale[m] = whitened, np.maximum(max(map(abs, chosen)) / spread * (1 + size), size)
    return Expected(value, scale, max(1, x.size))


def kl_rewards(
    rewards: npt.ArrayLike, log_probs: npt.ArrayLike, ref_log_probs: npt.ArrayLike, mask: npt.ArrayLike, beta: float
) -> Expected:
    """−β (log π − log π_ref) at the masked-in tokens, and the reward on top at the last of them."""
    new = floats("log_probs", log_probs, "BT")
    reward = float_rewards("rewards", rewards, "B", new.shape[:1])
    ref = floats("ref_log_probs", ref_log_probs, "BT", new.shape)
    m = mask_of(mask, new.shape)
    if not beta >= 0:
        raise ValueError(f"beta: is {beta}, expected a number ≥ 0")
    value, scale = np.zeros(new.shape), np.zeros(new.shape)
    for b in range(len(new)):
        tokens = np.flatnonzero(m[b]).tolist()
        for t in tokens:
            value[b, t] = -beta * (new[b, t] - ref[b, t])
            scale[b, t] = beta * (abs(new[b, t]) + abs(ref[b, t]))
        for t in tokens[-1:]:
            value[b, t] += reward[b]
            scale[b, t] += abs(reward[b])
    return Expected(value, scale)


def overlong_penalty(lengths: npt.ArrayLike, max_length: int, buffer: int) -> Expected:
    """Exactly 0, then a slope down to −1, which may be taken from quotients as large as max_length/buffer."""
    sizes = ids_of("lengths", lengths, "B")
    check_range("buffer", buffer, 1, max_length)
    value, scale = np.zeros(sizes.shape), np.zeros(sizes.shape)
    free = max_length - buffer
    for b, length in enumerate(sizes.tolist()):
        if length < 0:
            raise ValueError(f"lengths: has {length}, expected ≥ 0")
        if length > free:
            counted = min(length, max_length)
            value[b], scale[b] = (free - counted) / buffer, (max_length + counted) / buffer
    return Expected(value, scale)
