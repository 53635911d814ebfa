"""The Stanford CS336 alignment assignment: placeholder until its operations exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def find(namespace: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Nothing yet."""
    return {}
