"""Arguments of a call as plain data, independent of the tensor library that will receive them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

UNIT = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""Spacing of the numbers just above 1, by dtype."""

LAYOUTS = ("contiguous", "strided", "transposed", "expanded")


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor argument: numbers, the dtype and the memory layout it is handed over with.

    The numbers are rounded to the dtype here, so the oracle and the subject see the same ones. Layouts: `strided` is
    every second column of a wider buffer, `transposed` has its last two axes swapped in memory, `expanded` repeats
    its first row without storing it again (all rows are then equal). One `Tensor` object passed twice becomes one
    tensor.
    """

    array: np.ndarray
    dtype: str = "float32"
    layout: str = "contiguous"

    def __post_init__(self) -> None:
        array = np.asarray(self.array)
        if self.layout == "expanded" and array.ndim and len(array):
            array = np.broadcast_to(array[:1], array.shape)
        object.__setattr__(self, "array", rounded(array, self.dtype))

    def with_array(self, array: np.ndarray) -> Tensor:
        """The same kind of tensor with other numbers."""
        return replace(self, array=array)


Arguments = dict[str, Any]
"""Argument name → `Tensor` or plain Python value, in the order of the operation's parameters."""


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers as the dtype holds them: floats in float64, integers in int64, booleans as they are."""
    if dtype == "bool":
        return array.astype(bool)
    if dtype.startswith("int"):
        return array.astype(np.int64)
    if dtype == "bfloat16":
        return _round_bfloat16(array)
    with np.errstate(over="ignore"):
        return array.astype(dtype).astype(np.float64)


def _round_bfloat16(array: np.ndarray) -> np.ndarray:
    single = np.ascontiguousarray(array, dtype=np.float32)
    bits = single.view(np.uint32)
    nearest_even = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    nearest = np.where(np.isfinite(single), nearest_even.view(np.float32), single)
    return nearest.astype(np.float64).reshape(array.shape)


def unwrap(arguments: Arguments) -> Arguments:
    """The arguments as the oracles take them: arrays instead of `Tensor`."""
    return {name: value.array if isinstance(value, Tensor) else value for name, value in arguments.items()}


def replaced(arguments: Arguments, **arrays: np.ndarray) -> Arguments:
    """The arguments with other numbers in the named tensors."""
    return {name: value.with_array(arrays[name]) if name in arrays else value for name, value in arguments.items()}
