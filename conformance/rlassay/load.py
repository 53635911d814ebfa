"""Loading a target: a .py file, a folder, a dotted module or `module:object`, as a subject with an identity."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlassay.guest.errors import TargetError
from rlassay.guest.interfaces import INTERFACES
from rlassay.guest.load import Source, find_operations, open_target, require_source
from rlassay.notes import near_convention, near_operations
from rlassay.source import import_code
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention, convention_from
from rlassay_spec.operations import CS336_OPERATIONS, OPERATIONS

NAMES: Mapping[str, tuple[str, ...]] = {"own": tuple(OPERATIONS), "cs336": tuple(CS336_OPERATIONS)}
"""The operations of each interface."""


@dataclass(frozen=True)
class Target:
    """A loaded target: its functions by operation name, what it declares, and the hash of its source.

    `notes` are about names that are nearly an operation's or CONVENTION, `sources` what each operation was found in.
    """

    name: str
    functions: Mapping[str, Callable[..., Any]]
    convention: Convention
    sha256: str
    interface: str = "own"
    notes: list[str] = field(default_factory=list)
    sources: Mapping[str, Source] = field(default_factory=dict)

    def code(self, operation: str) -> str:
        """Python lines after which `subject` has the operation."""
        source = self.sources[operation]
        return import_code(source.name, self.interface, operation, source.content, source.made)


def load_target(name: str, interface: str = "own", convention: str | None = None) -> Target:
    """Load what `name` names and find the operations in it.

    Raises:
        TargetError: it does not exist, does not import, declares an unknown convention, or provides no operation.
    """
    require_source(name)
    opened, files = open_target(name)
    found = find_operations(name, opened, interface, NAMES[interface])
    namespaces = [source.namespace for source in opened]
    if not found.functions:
        raise TargetError(_nothing_provided(name, namespaces, interface))
    notes = [note for namespace in namespaces for note in near_operations(namespace, found.functions, interface)]
    if found.declared is None:
        notes += [note for namespace in namespaces for note in near_convention(namespace)]
    agreed = _convention(name, found.declared, interface, convention)
    return Target(name, found.functions, agreed, _digest(files), interface, notes, found.sources)


def _convention(name: str, declared: Any, interface: str, asked: str | None) -> Convention:
    try:
        if asked is not None:
            return convention_from(asked)
        if declared is not None:
            return convention_from(declared, CONVENTIONS.get(interface, LECTURE))
    except (TypeError, ValueError) as error:
        where = "--convention" if asked is not None else f"CONVENTION in {name}"
        raise TargetError(f"{where}: {error}") from error
    return CONVENTIONS.get(interface, LECTURE)


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _nothing_provided(name: str, namespaces: list[Mapping[str, Any]], interface: str) -> str:
    found = [key for namespace in namespaces for key, value in namespace.items() if callable(value)]
    message = f"{name}: provides none of the operations; nothing to check"
    ours = [key for key in found if key in OPERATIONS]
    if ours and interface == "own":
        return f"{message}. Not written yet, they only raise NotImplementedError: {', '.join(ours)}"
    if ours:
        return f"{message}. Its names are rlassay's own: leave out --interface {interface}"
    for namespace in namespaces:
        for note in near_operations(namespace, (), interface):
            return f"{message}. {note[0].upper()}{note[1:]}"
    if interface == "own" and INTERFACES["cs336"].find(dict.fromkeys(found, print), NAMES["cs336"]):
        return f"{message}. Its names are those of the CS336 assignment: try --interface cs336"
    return f"{message}. `rlassay operations` lists their names"
