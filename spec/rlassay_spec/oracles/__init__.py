"""Exact answers: for every operation, the value, the reach of rounding and the gradient.

Oracles are simpler than what they judge: loops in float64 or fractions, no batching, no framework.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from rlassay_spec.operations import CS336_OPERATIONS, OPERATIONS
from rlassay_spec.oracles import (
    advantage,
    bandit,
    cs336,
    kl,
    log_prob,
    loss,
    number_search,
    returns,
    sampling,
    shaping,
    sorting,
    surrogate,
    trajectory,
)

_TOPICS = (
    advantage,
    bandit,
    kl,
    log_prob,
    loss,
    number_search,
    returns,
    sampling,
    shaping,
    sorting,
    surrogate,
    trajectory,
)
_BY_TOPIC = {module.__name__.rpartition(".")[2]: module for module in _TOPICS}

ORACLES: Final[dict[str, Callable[..., Any]]] = {
    operation.name: getattr(_BY_TOPIC[operation.topic], operation.name) for operation in OPERATIONS.values()
}
"""The oracle of every operation, in the order of the table."""

CS336_ORACLES: Final[dict[str, Callable[..., Any]]] = {name: getattr(cs336, name) for name in CS336_OPERATIONS}
"""The oracle of every function of the CS336 assignment."""


@cache
def takes_convention(name: str) -> bool:
    """Whether the answer depends on the convention, that is, whether the oracle takes `convention=`."""
    return "convention" in inspect.signature(ORACLES[name]).parameters
