"""Fingerprints: when a known fault has changed and has to be run again, and when everything has.

A function's fingerprint covers its bytecode and constants, its defaults, what it closes over, and whatever it calls in
the packages of faults and variants, followed as far as it goes. So a fault changes when a part that it is made of does,
and not when another one in its file does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import rlassay
import rlassay_spec

OWN = ("rlassay.faults", "rlassay.variants")
"""The packages into which a function is followed; the rest of the suite has a fingerprint of its own."""


APART = (
    *("faults", "variants", "matrix"),
    *("calibration", "identify", "cli", "explain.py", "search.py", "likeness.py"),
    *("terminal.py", "junit.py", "ranking.py", "findings.py", "worker.py", "process.py", "runner.py", "judge.py"),
)
"""Parts of the suite's package that have fingerprints of their own, and parts on which no row depends."""


def fingerprint(*things: Any) -> str:
    """A hash of functions and values that is the same in every process."""
    seen: set[int] = set()
    digest = hashlib.sha256()
    for text in _texts(things, seen):
        digest.update(text.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def suite_fingerprint() -> str:
    """A hash of the specification and of the suite, without the faults and variants that it is tried on."""
    digest = hashlib.sha256()
    for package in (rlassay_spec, rlassay):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*")):
            place = path.relative_to(root)
            if path.suffix in (".py", ".toml") and place.parts[0] not in APART:
                digest.update(str(place).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _texts(thing: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(thing, partial):
        yield from _texts(("partial", thing.func, thing.args, thing.keywords), seen)
    elif isinstance(thing, FunctionType):
        yield from _function(thing, seen)
    elif isinstance(thing, CodeType):
        yield from (thing.co_code.hex(), repr(thing.co_names), repr(thing.co_varnames))
        yield from _texts(thing.co_consts, seen)
    elif isinstance(thing, Mapping):
        yield from _texts(sorted(thing.items(), key=lambda item: str(item[0])), seen)
    elif isinstance(thing, tuple | list):
        yield f"{len(thing)} items"
        for item in thing:
            yield from _texts(item, seen)
    elif isinstance(thing, frozenset | set):
        yield from _texts(sorted(thing, key=repr), seen)
    elif isinstance(thing, type):
        yield thing.__qualname__
        if thing.__module__.startswith(OWN) and id(thing) not in seen:
            seen.add(id(thing))
            yield from _texts({name: value for name, value in vars(thing).items() if _is_code(value)}, seen)
    elif isinstance(thing, staticmethod | classmethod):
        yield from _texts(thing.__func__, seen)
    else:
        yield re.sub(r" at 0x[0-9a-f]+", "", repr(thing))


def _function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    yield from _texts((function.__code__, function.__defaults__, function.__kwdefaults__), seen)
    for cell in function.__closure__ or ():
        yield from _texts(cell.cell_contents, seen)
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        own = _is_code(value) and str(getattr(value, "__module__", "")).startswith(OWN)
        if own or isinstance(value, str | int | float | tuple):
            yield from _texts((name, value), seen)


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function may look up in its module, in the functions that it contains too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_code(value: Any) -> bool:
    return isinstance(value, FunctionType | type | partial | staticmethod | classmethod)
