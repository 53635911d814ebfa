"""Stand-ins for modules that are not installed: they import, and whatever is taken from them does nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, Self


def install(names: Sequence[str]) -> None:
    """Let stand-ins be imported for these top-level modules, and for all below them, where the real ones are missing.

    A folder without `__init__.py` that has such a name, as run logs leave behind, is no real module.
    """
    sys.meta_path.insert(0, _Finder(frozenset(names)))


class StandIn:
    """Anything that a module may hold: it can be called, subclassed, indexed, entered, iterated and asked about types.

    Called with nothing but a function or class it gives that back, as a decorator would.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if len(arguments) == 1 and not keywords and isinstance(arguments[0], DECORATED):
            return arguments[0]
        return StandIn(f"{self.__name__}()")

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, self.__name__, name)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        others = any(isinstance(base, type) for base in bases)
        return () if others or self is not next(base for base in bases if isinstance(base, StandIn)) else (Base,)

    def __getitem__(self, key: Any) -> StandIn:
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        return None

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, subclass: Any) -> bool:
        return False

    def __or__(self, other: Any) -> StandIn:
        return self

    __ror__ = __or__


class Base:
    """What a class inherits from in place of a stand-in: it takes any arguments and has every attribute."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, type(self).__name__, name)


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _attribute(self, self.__name__, name)


DECORATED = (FunctionType, type, classmethod, staticmethod)


def _attribute(owner: Any, path: str, name: str) -> Any:
    """A stand-in, the same each time; nothing that Python itself or a library looks for to learn what an object is."""
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(f"{path}.{name}")
    made = type(name, (Exception,), {}) if name.endswith(("Error", "Exception")) else StandIn(f"{path}.{name}")
    vars(owner)[name] = made
    return made


class _Finder(MetaPathFinder, Loader):
    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, below = fullname.partition(".")
        if top not in self.names:
            return None
        if below:
            return self._spec(fullname) if isinstance(sys.modules.get(top), _Module) else None
        others = (finder for finder in sys.meta_path if not isinstance(finder, _Finder))
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        real = next((spec for spec in specs if spec is not None and spec.origin is not None), None)
        return real or self._spec(fullname)

    def _spec(self, fullname: str) -> ModuleSpec:
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__version__"] = "0"
