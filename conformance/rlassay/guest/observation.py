"""What one call of a subject gave, as plain numpy data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

Cotangent: TypeAlias = np.ndarray | Mapping[str | int, np.ndarray]
"""What a result is differentiated against: an array, or one for each part, by key or place, that is differentiated."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What one call gave.

    `value` is a float64 (or bool, int64) array for tensors and numbers, else the Python value itself. `dtype` is the
    tensor's dtype name, or None for a Python value. `gradients` holds, for every live argument, the vector-Jacobian
    product with the cotangent, or None where no gradient arrives; if the call went `backward` itself, the gradient
    that it left behind. `connected` tells whether the result carries a graph. `parts` are the entries of a dictionary
    (by key) or of a tuple or list (by place), `parameters` those of every model among the arguments after the call. The
    parameters of a model, and gradients in them, are one row of numbers.
    """

    value: Any
    dtype: str | None = None
    connected: bool = False
    gradients: dict[str, np.ndarray | None] = field(default_factory=dict)
    side_effects: tuple[str, ...] = ()
    parts: Mapping[Any, Observation] = field(default_factory=dict)
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    backward: bool = False
