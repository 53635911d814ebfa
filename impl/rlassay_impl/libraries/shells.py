"""Loading a library's submodules without running the packages around them.

Some libraries import their whole training stack (deepspeed, ray, vllm) in the `__init__` of every package, although the
module with the mathematics needs none of it. Here such a package becomes a bare shell: a module that has the package's
folder as its path and nothing else, so that Python finds the submodules, which then run from the library's own files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any


class Stub(ModuleType):
    """A module of which only the name is used while another is loaded; what it hands out is `Placeholder`s."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Placeholder,), {})


class Placeholder:
    """What a stub hands out: may be an annotation, a base, a decorator, may be called, and is always false."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """A decorator gives back what it decorates."""
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else super().__new__(cls)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def __bool__(self) -> bool:
        """Nothing that is asked of a stub holds (`ray.is_initialized()`)."""
        return False

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """What a decorator with options gives: the function as it is."""
        return arguments[0] if arguments else self


@contextmanager
def shells(*packages: str, stubs: Sequence[str] = ()) -> Iterator[None]:
    """Make the packages shells, and the named modules stubs while the block imports what it needs.

    A stub of something that is installed is not made, unless it lies in one of the packages. Parents come before their
    children in both lists. Stubs are gone after the block, shells stay.

    Raises:
        ModuleNotFoundError: the library is not installed.
    """
    for name in packages:
        if name not in sys.modules:
            _register(_shell(name))
    made = [name for name in stubs if name not in sys.modules and _is_wanted(name, packages)]
    for name in made:
        _register(Stub(name))
    try:
        yield
    finally:
        for name in made:
            del sys.modules[name]


def _shell(name: str) -> ModuleType:
    parent, _, child = name.rpartition(".")
    folder = Path(sys.modules[parent].__path__[0]) / child if parent else _folder(name)
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__path__ = [str(folder)]
    return module


def _folder(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return Path(spec.submodule_search_locations[0])


def _is_wanted(name: str, packages: Sequence[str]) -> bool:
    root = name.partition(".")[0]
    return root in {package.partition(".")[0] for package in packages} or _is_missing(root)


def _is_missing(root: str) -> bool:
    known = sys.modules.get(root)
    return isinstance(known, Stub) or (known is None and find_spec(root) is None)


def _register(module: ModuleType) -> None:
    sys.modules[module.__name__] = module
    parent, _, child = module.__name__.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
