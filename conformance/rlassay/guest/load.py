"""Opening what a target names (a file, a folder, a dotted module, `module:object`) and finding operations in it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import TargetError
from .importing import did_you_mean, import_file, import_module, importing, similar, split_name
from .interfaces import INTERFACES

SKIPPED_FILES = ("setup.py", "conftest.py", "noxfile.py")


@dataclass(frozen=True)
class Source:
    """Something that is searched for operations: a module, an object or a mapping, and the target that names it.

    `made` tells that the target names a class and the content is an instance.
    """

    name: str
    content: Any
    made: bool = False

    @property
    def namespace(self) -> Mapping[str, Any]:
        """Its names, as they are found by reading attributes."""
        if isinstance(self.content, Mapping):
            return self.content
        if isinstance(self.content, ModuleType):
            return vars(self.content)
        found: dict[str, Any] = {}
        for name in dir(self.content):
            with suppress(Exception):
                found[name] = getattr(self.content, name)
        return found


@dataclass(frozen=True)
class Found:
    """The operations in what was opened: the function of each and what it was found in, and what CONVENTION says."""

    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    declared: Any = None


def find_operations(name: str, opened: Iterable[Source], interface: str, operations: Iterable[str]) -> Found:
    """Those of the operations that the target called `name` provides.

    Raises:
        TargetError: two of its files define one of them.
    """
    functions: dict[str, Callable[..., Any]] = {}
    sources: dict[str, Source] = {}
    declared: Any = None
    names = tuple(operations)
    for source in opened:
        namespace = source.namespace
        declared = namespace.get("CONVENTION", declared)
        for operation, function in INTERFACES[interface].find(namespace, names).items():
            first = sources.setdefault(operation, source)
            if functions.setdefault(operation, function) is not function:
                where = f"is defined in {first.name} and in {source.name}; keep one of them"
                raise TargetError(f"{name}: {operation} {where}")
    return Found(functions, sources, declared)


def open_target(name: str, loader: type[SourceFileLoader] = SourceFileLoader) -> tuple[list[Source], list[Path]]:
    """What to search for operations, and the source files behind it; `loader` executes the files.

    Raises:
        TargetError: it does not exist or does not import.
    """
    if not name:
        raise TargetError("the target's name is empty")
    if Path(name).is_dir():
        return _open_folder(Path(name), loader)
    origin, attribute = split_name(name)
    if _is_path(origin):
        module, files = import_file(Path(origin), loader), [Path(origin)]
    elif all(part.isidentifier() for part in origin.split(".")):
        module = import_module(origin)
        files = _source_files(module)
    else:
        hint = similar(Path(name))
        raise TargetError(f"{name}: is neither an existing file or folder nor a module name{hint}")
    if not attribute:
        return [Source(name, module)], files
    target = _attribute(name, module, attribute)
    instance = _instance(name, target)
    return [Source(name, instance, made=instance is not target)], files


def _is_path(origin: str) -> bool:
    return origin.endswith(".py") or Path(origin).is_file()


def require_source(name: str) -> None:
    """A target that names a file names one that exists and is Python; nothing is run to find out.

    Raises:
        TargetError: it does not.
    """
    origin = split_name(name)[0]
    if Path(name).is_dir() or not _is_path(origin):
        return
    path = Path(origin)
    if not path.is_file():
        raise TargetError(f"{path}: there is no such file{similar(path)}")
    if path.suffix != ".py":
        raise TargetError(f"{path}: is not a Python file; give a .py file, a folder, a module or module:object")
    importing(origin, lambda: compile(path.read_bytes(), path.resolve(), "exec", dont_inherit=True))


def _attribute(name: str, module: ModuleType, path: str) -> Any:
    target: Any = module
    for part in path.split("."):
        if not hasattr(target, part):
            raise TargetError(f"{name}: {module.__name__} has no attribute {path!r}{did_you_mean(part, dir(target))}")
        target = getattr(target, part)
    return target


def _instance(name: str, target: Any) -> Any:
    """An instance of a class that has operations as methods; anything else as it is.

    Raises:
        TargetError: it cannot be made without arguments.
    """
    if not isinstance(target, type) or not any(_is_method(target, key) for key in dir(target)):
        return target
    try:
        return importing(name, target)
    except TargetError as error:
        why = str(error).removeprefix(f"{name}: does not import: ")
        raise TargetError(
            f"{name}: is a class that cannot be made without arguments ({why}); give an instance"
        ) from error


def _is_method(owner: type, key: str) -> bool:
    """Whether an attribute of a class is a public function that is called on an instance."""
    function = inspect.getattr_static(owner, key)
    if key.startswith("_") or not inspect.isfunction(function):
        return False
    return next(iter(inspect.signature(function).parameters), "") == "self"


def _open_folder(folder: Path, loader: type[SourceFileLoader]) -> tuple[list[Source], list[Path]]:
    sources = sorted(folder.rglob("*.py"))
    if (folder / "__init__.py").is_file():
        sys.path.insert(0, str(folder.resolve().parent))
        return [Source(str(folder), import_module(folder.resolve().name))], sources
    files = [p for p in sorted(folder.glob("*.py")) if p.name not in SKIPPED_FILES and not p.name.startswith("test_")]
    if not files:
        raise TargetError(f"{folder}: holds no Python file; give a package, or a folder with .py files at its top")
    return [Source(str(file), import_file(file, loader)) for file in files], sources


def _source_files(module: ModuleType) -> list[Path]:
    origin = getattr(module, "__file__", None)
    if origin is None:
        return []
    path = Path(origin)
    return sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
