"""Generators of inputs that several topics share: shapes, masks, log-probs, advantages, rewards.

Every generator lists its regimes with the simplest first; together they avoid the inputs that hide faults (one shape
only, a mask of ones, ratio 1, advantages of one sign, a group σ of 1, rewards exact in binary, B = T, …).
"""

from __future__ import annotations

import numpy as np

from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor
from rlassay_spec.convention import Convention

BATCH_SHAPES = ((2, 3), (1, 2), (1, 1), (3, 1), (1, 5), (3, 3), (4, 2), (2, 6), (5, 4), (3, 33), (9, 3), (1, 130))
GROUP_SHAPES = ((1, 2), (2, 4), (1, 3), (3, 2), (4, 4), (2, 8), (3, 5), (2, 1), (1, 16), (7, 3), (1, 33))
MASK_KINDS = (
    "all",
    "prompt first",
    "padding last",
    "both",
    "holes",
    "one token a row",
    "an empty row",
    "last token out",
)
REWARD_KINDS = (
    "binary",
    "one success",
    "decimal",
    "real",
    "negative",
    "small spread",
    "offset",
    "no contrast",
    "ternary",
    "two values",
    "tiny spread",
)
ADVANTAGE_KINDS = ("both signs", "positive", "negative", "some zero", "large")


def batch_shape(draw: Draw) -> tuple[int, int]:
    """Batch size B and number of predicted tokens T."""
    return draw.choice("shape", BATCH_SHAPES)


def mask(draw: Draw, shape: tuple[int, int], convention: Convention, dtype: str = "float32") -> Tensor:
    """A mask [B, T] with at least one 1; rows of zeros only where the convention says what they count for."""
    rows, steps = shape
    kinds = MASK_KINDS if convention.empty_mean == "zero" else tuple(k for k in MASK_KINDS if k != "an empty row")
    kind = draw.choice("mask", kinds)
    array = np.ones(shape)
    starts = draw.integers(0, max(steps - 1, 0) // 2, rows)
    ends = draw.integers(steps - max(steps - 1, 0) // 2, steps, rows)
    for b in range(rows):
        if kind in ("prompt first", "both"):
            array[b, : starts[b]] = 0
        if kind in ("padding last", "both"):
            array[b, ends[b] :] = 0
        if kind == "holes":
            array[b] = draw.integers(0, 1, steps)
            array[b, draw.integers(0, steps - 1)] = 1
        if kind == "one token a row":
            array[b] = np.arange(steps) == draw.integers(0, steps - 1)
    if kind == "last token out" and steps > 1:
        array[:, -1] = 0
    if kind == "an empty row" and rows > 1:
        array[draw.integers(0, rows - 1)] = 0
    return Tensor(array, dtype)


def log_probs(draw: Draw, shape: tuple[int, int]) -> np.ndarray:
    """Log-probs of sampled tokens: negative, mostly between −4 and 0."""
    numbers: np.ndarray = -np.abs(draw.normal(*shape, scale=1.5)) - 0.01
    return numbers


def advantages(draw: Draw, rows: int) -> Tensor:
    """One advantage per sequence."""
    kind = draw.choice("advantages", ADVANTAGE_KINDS)
    array = draw.uniform(0.3, 2.0, rows)
    if kind == "both signs":
        array = array * np.where((np.arange(rows) + draw.integers(0, 1)) % 2 == 0, 1, -1)
    if kind == "negative":
        array = -array
    if kind == "some zero":
        array = array * draw.integers(-1, 1, rows)
    if kind == "large":
        array = 200 * array * draw.pick((-1, 1), rows)
    return Tensor(array)


def group_rewards(draw: Draw, convention: Convention, shape: tuple[int, int] | None = None) -> Tensor:
    """Rewards [N, G], row-major by instance; groups of one only where the convention says what they give."""
    shapes: tuple[tuple[int, int], ...] = GROUP_SHAPES
    if convention.singleton_group in ("free", "error"):
        shapes = tuple(s for s in shapes if s[1] > 1)
    groups, size = shape or draw.choice("groups", shapes)
    kind = draw.choice("rewards", REWARD_KINDS)
    return Tensor(np.stack([_group(draw, kind, size) for _ in range(groups)]))


def _group(draw: Draw, kind: str, size: int) -> np.ndarray:
    """One group; equal rewards are exact in binary, so that their mean is exact in any order."""
    if kind == "binary":
        return draw.integers(0, 1, size).astype(float)
    if kind == "one success":
        return np.asarray(np.arange(size) == draw.integers(0, size - 1), dtype=float)
    if kind == "decimal":
        return _with_contrast(draw.integers(0, 10, size) / 10.0, 0.3)
    if kind == "negative":
        return _with_contrast(-draw.uniform(0.5, 3.0, size), -0.25)
    if kind == "small spread":
        return 0.5 + _with_contrast(draw.uniform(-0.02, 0.02, size), 0.03)
    if kind == "offset":
        return 200.0 + _with_contrast(draw.integers(-3, 3, size).astype(float), 4.0)
    if kind == "no contrast":
        return np.full(size, draw.pick((1.0, 0.0, -2.0, 0.5)))
    if kind == "ternary":
        return draw.integers(-1, 1, size).astype(float)
    if kind == "tiny spread":
        return 1.0 + 2.0**-12 * draw.integers(0, 1, size)
    if kind == "two values":
        return np.where(np.arange(size) < max(1, size // 2), 3.0, 0.25)
    return _with_contrast(draw.normal(size, scale=2.0), 5.0)


def _with_contrast(group: np.ndarray, other: float) -> np.ndarray:
    """The group with its last reward replaced, so that inexact rewards are never all equal."""
    if len(group) > 1:
        group[-1] = other
    return group


def cast(arguments: Arguments, dtype: str) -> Arguments:
    """The arguments with every float tensor in another dtype."""
    return {
        name: Tensor(value.array, dtype, value.layout)
        if isinstance(value, Tensor) and value.dtype == "float32"
        else value
        for name, value in arguments.items()
    }
