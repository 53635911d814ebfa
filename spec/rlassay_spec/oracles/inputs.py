"""Arguments as float64, integer and boolean arrays, or the ValueError that the contracts promise.

A message names the argument, what it had and what was expected.
"""

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.expected import BoolArray, FloatArray


def floats(name: str, value: npt.ArrayLike, axes: str, shape: tuple[int, ...] | None = None) -> FloatArray:
    """The argument in float64, with one axis per letter of `axes`, and of that shape where one is given.

    Raises:
        ValueError: the shape does not fit.
    """
    array = np.asarray(value, dtype=np.float64)
    _check_shape(name, array.shape, axes, shape)
    return array


def float_rewards(name: str, value: npt.ArrayLike, axes: str, shape: tuple[int, ...] | None = None) -> FloatArray:
    """Rewards in float64.

    Raises:
        ValueError: the shape does not fit, or the dtype is not a floating one.
    """
    dtype = np.asarray(value).dtype
    if dtype.kind != "f":
        raise ValueError(f"{name}: has dtype {dtype}, expected a floating dtype")
    return floats(name, value, axes, shape)


def group_rewards(value: npt.ArrayLike) -> FloatArray:
    """Rewards [N, G] in float64.

    Raises:
        ValueError: the shape does not fit, the dtype is not a floating one, or the groups are empty.
    """
    rewards = float_rewards("rewards", value, "NG")
    if rewards.shape[1] == 0:
        raise ValueError(f"rewards: has shape {list(rewards.shape)}, expected [N, G] with G ≥ 1")
    return rewards


def mask_of(value: npt.ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    """The mask as booleans.

    Raises:
        ValueError: the shape does not fit, or an entry is neither 0 nor 1.
    """
    mask = np.asarray(value)
    _check_shape("mask", mask.shape, "BT", shape)
    wrong = mask[(mask != 0) & (mask != 1)]
    if wrong.size:
        raise ValueError(f"mask: has the entry {wrong[0]}, expected 0 or 1")
    return mask.astype(np.bool_)


def ids_of(name: str, value: npt.ArrayLike, axes: str, shape: tuple[int, ...] | None = None) -> npt.NDArray[np.int64]:
    """Token or action ids; their range is the caller's business, as a mask may excuse them.

    Raises:
        ValueError: the shape does not fit.
    """
    ids = np.asarray(value, dtype=np.int64)
    _check_shape(name, ids.shape, axes, shape)
    return ids


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Raises a ValueError unless low ≤ value ≤ high."""
    if not low <= value <= high:
        raise ValueError(f"{name}: has {value}, expected {low}..{high}")


def _check_shape(name: str, got: tuple[int, ...], axes: str, shape: tuple[int, ...] | None) -> None:
    if len(got) != len(axes) or (shape is not None and got != shape):
        expected = f"[{', '.join(axes)}]" if shape is None else f"[{', '.join(axes)}] = {list(shape)}"
        raise ValueError(f"{name}: has shape {list(got)}, expected {expected}")
