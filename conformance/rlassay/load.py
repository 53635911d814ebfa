"""Loading a target: a .py file, a folder, a dotted module or `module:object`, as a subject with an identity."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from rlassay.describe import did_you_mean
from rlassay.importing import import_file, import_module, importing, similar, split_name
from rlassay.interfaces import INTERFACES
from rlassay.notes import near_convention, near_operations
from rlassay.source import import_code
from rlassay.subject import TargetError
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention, convention_from
from rlassay_spec.operations import OPERATIONS

SKIPPED_FILES = ("setup.py", "conftest.py", "noxfile.py")


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


def load_target(name: str, interface: str = "own", convention: str | None = None) -> Target:
    """Load what `name` names and find the operations in it.

    Raises:
        TargetError: it does not exist, does not import, declares an unknown convention, or provides no operation.
    """
    require_source(name)
    opened, files = _open(name)
    namespaces = [source.namespace for source in opened]
    declared: Any = None
    functions: dict[str, Callable[..., Any]] = {}
    sources: dict[str, Source] = {}
    for source, namespace in zip(opened, namespaces, strict=True):
        declared = namespace.get("CONVENTION", declared)
        for operation, function in INTERFACES[interface].find(namespace).items():
            first = sources.setdefault(operation, source)
            if functions.setdefault(operation, function) is not function:
                where = f"is defined in {first.name} and in {source.name}; keep one of them"
                raise TargetError(f"{name}: {operation} {where}")
    if not functions:
        raise TargetError(_nothing_provided(name, namespaces, interface))
    notes = [note for namespace in namespaces for note in near_operations(namespace, functions, interface)]
    if declared is None:
        notes += [note for namespace in namespaces for note in near_convention(namespace)]
    agreed = _convention(name, declared, interface, convention)
    return Target(name, functions, agreed, _digest(files), interface, notes, sources)


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


def _open(name: str) -> tuple[list[Source], list[Path]]:
    """What to search and the source files behind it."""
    if not name:
        raise TargetError("the target's name is empty")
    if Path(name).is_dir():
        return _open_folder(Path(name))
    origin, attribute = split_name(name)
    if _is_path(origin):
        module, files = import_file(Path(origin)), [Path(origin)]
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


def _open_folder(folder: Path) -> tuple[list[Source], list[Path]]:
    sources = sorted(folder.rglob("*.py"))
    if (folder / "__init__.py").is_file():
        sys.path.insert(0, str(folder.resolve().parent))
        return [Source(str(folder), import_module(folder.resolve().name))], sources
    files = [p for p in sorted(folder.glob("*.py")) if p.name not in SKIPPED_FILES and not p.name.startswith("test_")]
    if not files:
        raise TargetError(f"{folder}: holds no Python file; give a package, or a folder with .py files at its top")
    return [Source(str(file), import_file(file)) for file in files], sources


def _source_files(module: ModuleType) -> list[Path]:
    origin = getattr(module, "__file__", None)
    if origin is None:
        return []
    path = Path(origin)
    return sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]


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
    if interface == "own" and INTERFACES["cs336"].find(dict.fromkeys(found, print)):
        return f"{message}. Its names are those of the CS336 assignment: try --interface cs336"
    return f"{message}. `rlassay operations` lists their names"
