"""Loading a target: a .py file, a folder, a dotted module or `module:object`, as a subject with an identity."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rlassay.describe import did_you_mean
from rlassay.interfaces import INTERFACES
from rlassay.subject import TargetError
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention, convention_from
from rlassay_spec.operations import CS336_OPERATIONS, OPERATIONS

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
    require_source(name)
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
    if not name:
        raise TargetError("the target's name is empty")
    if Path(name).is_dir():
        return _open_folder(Path(name))
    origin, attribute = _split(name)
    if _is_path(origin):
        module, files = _import_file(Path(origin)), [Path(origin)]
    elif all(part.isidentifier() for part in origin.split(".")):
        module = _import_module(origin)
        files = _source_files(module)
    else:
        raise TargetError(f"{name}: is neither an existing file or folder nor a module name")
    return [_namespace(_attribute(name, module, attribute)) if attribute else vars(module)], files


def _split(name: str) -> tuple[str, str]:
    """`module:object` or `file.py:object` in its two parts; the second is empty where there is none."""
    if Path(name).is_file():
        return name, ""
    origin, colon, attribute = name.rpartition(":")
    return (origin, attribute) if colon and all(part.isidentifier() for part in attribute.split(".")) else (name, "")


def _is_path(origin: str) -> bool:
    return origin.endswith(".py") or Path(origin).is_file()


def require_source(name: str) -> None:
    """A target that names a file names one that exists and is Python; nothing is run to find out.

    Raises:
        TargetError: it does not.
    """
    origin = _split(name)[0]
    if Path(name).is_dir() or not _is_path(origin):
        return
    path = Path(origin)
    if not path.is_file():
        raise TargetError(f"{path}: there is no such file")
    if path.suffix != ".py":
        raise TargetError(f"{path}: is not a Python file; give a .py file, a folder, a module or module:object")
    _importing(origin, lambda: compile(path.read_bytes(), path.resolve(), "exec", dont_inherit=True))


def _attribute(name: str, module: ModuleType, path: str) -> Any:
    target: Any = module
    for part in path.split("."):
        if not hasattr(target, part):
            raise TargetError(f"{name}: {module.__name__} has no attribute {path!r}{did_you_mean(part, dir(target))}")
        target = getattr(target, part)
    return target


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
        place = f" in {error.filename}, line {error.lineno}" if error.lineno is not None else ""
        raise TargetError(f"{name}: syntax error{place}: {error.msg}") from error
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            message = f"{name}: there is no such module here; is it installed, or is the path misspelt?"
            raise TargetError(message) from error
        raise TargetError(f"{name}: does not import: it needs {error.name}, which is not installed here") from error
    except BaseException as error:
        what = traceback.format_exception_only(error)[-1].strip()
        raise TargetError(f"{name}: does not import: {what}{_place(error)}") from error


def _place(error: BaseException) -> str:
    """The innermost line outside of installed packages that an exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and frame.filename[0] != "<"]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own and own[-1].filename != __file__ else ""


def _namespace(target: Any) -> Mapping[str, Any]:
    if isinstance(target, Mapping):
        return target
    found: dict[str, Any] = {}
    for name in dir(target):
        with suppress(Exception):
            found[name] = getattr(target, name)
    return found


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
    for key in found:
        close = difflib.get_close_matches(key, OPERATIONS if interface == "own" else CS336_OPERATIONS, n=1, cutoff=0.85)
        if close:
            return f"{message}. It has {key}: did you mean {close[0]}?"
    if interface == "own" and INTERFACES["cs336"].find(dict.fromkeys(found, print)):
        return f"{message}. Its names are those of the CS336 assignment: try --interface cs336"
    return f"{message}. `rlassay operations` lists their names"
