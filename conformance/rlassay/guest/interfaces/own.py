"""The operations under their own names."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def find(namespace: Mapping[str, Any], names: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """Every callable that has one of the operations' names and is more than a stub."""
    return {name: namespace[name] for name in names if callable(namespace.get(name)) and not is_stub(namespace[name])}


def is_stub(function: Callable[..., Any]) -> bool:
    """Whether a function does nothing but raise NotImplementedError: such a one is not provided."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_names != ("NotImplementedError",):
        return False
    return not any(instruction.opname.startswith("RETURN") for instruction in dis.get_instructions(code))
