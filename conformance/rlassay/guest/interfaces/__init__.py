"""Interfaces: under which names and signatures a target provides the operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from . import cs336, own


class Interface(Protocol):
    """A naming scheme."""

    def find(self, namespace: Mapping[str, Any], names: Iterable[str]) -> dict[str, Callable[..., Any]]:
        """Those of the named operations that a namespace provides."""
        ...


INTERFACES: dict[str, Interface] = {"own": own, "cs336": cs336}
