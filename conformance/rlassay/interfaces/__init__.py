"""Interfaces: under which names and signatures a target provides the operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rlassay.interfaces import cs336, own


class Interface(Protocol):
    """A naming scheme."""

    def find(self, namespace: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
        """The operations that a namespace provides, by our names."""
        ...


INTERFACES: dict[str, Interface] = {"own": own, "cs336": cs336}
