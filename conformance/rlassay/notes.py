"""Names in a target that are nearly those that are looked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from rlassay_spec.convention import CONVENTIONS
from rlassay_spec.operations import CS336_OPERATIONS, OPERATIONS

CUTOFF = 0.85
"""Names that are at least this similar (`difflib`) are taken for misspellings."""


def near_operations(namespace: Mapping[str, Any], provided: Collection[str], interface: str) -> Iterator[str]:
    """`it has …: did you mean …?` for each callable whose name is nearly an operation's that is not provided."""
    yield from near_names([name for name, value in namespace.items() if callable(value)], provided, interface)


def near_names(names: Iterable[str], provided: Collection[str], interface: str) -> Iterator[str]:
    """The same for the names of callables."""
    operations = OPERATIONS if interface == "own" else CS336_OPERATIONS
    known = dict.fromkeys(name.removesuffix("_2026") for name in operations)
    taken = {name.removesuffix("_2026") for name in provided}
    for key in names:
        if key.removeprefix("run_") not in known:
            for close in get_close_matches(key, known, n=1, cutoff=CUTOFF):
                if close not in taken:
                    yield f"it has {key}, which is no operation: did you mean {close}?"


def near_convention(namespace: Mapping[str, Any]) -> Iterator[str]:
    """`it has …: did you mean CONVENTION?` for each variable that looks like a declaration nobody reads."""
    if "CONVENTION" in namespace:
        return
    for key, value in namespace.items():
        if callable(value) or isinstance(value, ModuleType) or value is CONVENTIONS:
            continue
        if get_close_matches(key.strip("_").upper(), ["CONVENTION"], cutoff=CUTOFF):
            yield f"it has {key}, which is not read: did you mean CONVENTION?"
