"""Loading a target: a .py file, a folder, a dotted module or `module:object`, as a subject with an identity."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rlassay.interfaces import INTERFACES
from rlassay.subject import TargetError
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention, convention_from
from rlassay_spec.operations import OPERATIONS

SKIPPED_FILES = ("setup.py", "conftest.py", "noxfile.py")


@dataclass(frozen=True)
class Target:
    """A loaded target: its functions by operation name, what it declares, and the hash of its source."""

    name: str
    functions: Mapping[str, Callable[..., Any]]
    convention: Convention
    sha256: str


def load_target(name: str, interface: str = "own", convention: str | None = None) -> Target:
    """Load what `name` names and find the operations in it.

    Raises:
        TargetError: it does not exist, does not import, declares an unknown convention, or provides no operation.
    """
    namespaces, files = _open(name)
    declared: Any = None
    functions: dict[str, Callable[..., Any]] = {}
    for namespace in namespaces:
        declared = namespace.get("CONVENTION", declared)
        for operation, function in INTERFACES[interface].find(namespace).items():
            if functions.setdefault(operation, function) is not function:
                raise TargetError(f"{name}: {operation} is defined in more than one file; keep one of them")
    if not functions:
        raise TargetError(_nothing_provided(name, namespaces, interface))
    return Target(name, functions, _convention(name, declared, interface, convention), _digest(files))


def _convention(name: str, declared: Any, interface: str, asked: str | None) -> Convention:
    try:
        if asked is not None:
            return convention_from(asked)
        if declared is not None:
            return convention_from(declared)
    except (TypeError, ValueError) as error:
        where = "--convention" if asked is not None else f"CONVENTION in {name}"
        raise TargetError(f"{where}: {error}") from error
    return CONVENTIONS.get(interface, LECTURE)


def _open(name: str) -> tuple[list[Mapping[str, Any]], list[Path]]:
    """The namespaces to search and the source files behind them."""
    path = Path(name)
    if path.is_dir():
        return _open_folder(path)
    if name.endswith(".py") or path.is_file():
        if not path.is_file():
            raise TargetError(f"{name}: there is no such file")
        if path.suffix != ".py":
            raise TargetError(f"{name}: is not a Python file; give a .py file, a folder, a module or module:object")
        return [vars(_import_file(path))], [path]
    module_name, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise TargetError(f"{name}: is neither an existing file or folder nor a module name")
    module = _import_module(module_name)
    files = _source_files(module)
    if not attribute:
        return [vars(module)], files
    target: Any = module
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise TargetError(f"{name}: {module_name} has no attribute {attribute!r}")
        target = getattr(target, part)
    return [_namespace(target)], files


def _open_folder(folder: Path) -> tuple[list[Mapping[str, Any]], list[Path]]:
    sources = sorted(folder.rglob("*.py"))
    if (folder / "__init__.py").is_file():
        sys.path.insert(0, str(folder.resolve().parent))
        return [vars(_import_module(folder.resolve().name))], sources
    files = [p for p in sorted(folder.glob("*.py")) if p.name not in SKIPPED_FILES and not p.name.startswith("test_")]
    if not files:
        raise TargetError(f"{folder}: holds no Python file; give a package, or a folder with .py files at its top")
    return [vars(_import_file(file)) for file in files], sources


def _import_file(path: Path) -> ModuleType:
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = path.stem
    taken = sys.modules.get(name)
    if taken is not None:
        if getattr(taken, "__file__", None) == str(path.resolve()):
            return taken
        name = f"rlassay_target_{name}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise TargetError(f"{path}: cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader = spec.loader
    _importing(str(path), lambda: loader.exec_module(module))
    return module


def _import_module(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")
    module: ModuleType = _importing(name, lambda: importlib.import_module(name))
    return module


def _importing(name: str, action: Callable[[], Any]) -> Any:
    """Run an import; whatever goes wrong in it, SystemExit included, becomes a TargetError."""
    try:
        return action()
    except SyntaxError as error:
        raise TargetError(f"{name}: syntax error in {error.filename}, line {error.lineno}: {error.msg}") from error
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            message = f"{name}: there is no such module here; is it installed, or is the path misspelt?"
            raise TargetError(message) from error
        raise TargetError(f"{name}: does not import: it needs {error.name}, which is not installed here") from error
    except BaseException as error:
        lines = traceback.extract_tb(error.__traceback__)
        place = f" ({lines[-1].filename}, line {lines[-1].lineno})" if lines else ""
        raise TargetError(f"{name}: does not import: {type(error).__name__}: {error}{place}") from error


def _namespace(target: Any) -> Mapping[str, Any]:
    if isinstance(target, Mapping):
        return target
    return {name: getattr(target, name) for name in dir(target) if not name.startswith("__")}


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
    for key in found:
        close = difflib.get_close_matches(key, OPERATIONS, n=1, cutoff=0.85)
        if close:
            return f"{message}. It has {key}: did you mean {close[0]}?"
    if interface == "own" and INTERFACES["cs336"].find(dict.fromkeys(found, print)):
        return f"{message}. Its names are those of the CS336 assignment: try --interface cs336"
    return f"{message}. `rlassay operations` lists their names"
