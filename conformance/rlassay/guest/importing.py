"""Importing what a target names; whatever goes wrong becomes a TargetError with its place."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Callable, Collection
from difflib import get_close_matches
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import TargetError

HOUSE = str(Path(__file__).parents[1])
INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")} | {HOUSE})
"""Folders in which no target's own code lies, beside every site-packages."""


def import_file(path: Path, loader: type[SourceFileLoader] = SourceFileLoader) -> ModuleType:
    """The module that a file is, under another name where that is taken.

    Raises:
        TargetError: it does not import.
    """
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = path.stem
    taken = sys.modules.get(name)
    if taken is not None:
        if getattr(taken, "__file__", None) == str(path.resolve()):
            return taken
        name = f"rlassay_target_{name}"
    executor = loader(name, str(path.resolve()))
    spec = importlib.util.spec_from_file_location(name, path.resolve(), loader=executor)
    if spec is None:
        raise TargetError(f"{path}: cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    importing(str(path), lambda: executor.exec_module(module))
    return module


def import_module(name: str) -> ModuleType:
    """The module of a dotted name, which may lie in the current folder.

    Raises:
        TargetError: it does not import.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    module: ModuleType = importing(name, lambda: importlib.import_module(name))
    return module


def importing(name: str, action: Callable[[], Any]) -> Any:
    """Run an import.

    Raises:
        TargetError: it raised, SystemExit included.
    """
    try:
        return action()
    except SyntaxError as error:
        place = f" in {error.filename}, line {error.lineno}" if error.lineno is not None else ""
        raise TargetError(f"{name}: syntax error{place}: {error.msg}") from error
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            hint = similar(Path(*name.split(".")))
            question = f"{hint} Is" if hint else "; is"
            raise TargetError(
                f"{name}: there is no such module here{question} it installed, or is the path misspelt?"
            ) from error
        raise TargetError(f"{name}: does not import: it needs {error.name}, which is not installed here") from error
    except BaseException as error:
        what = traceback.format_exception_only(error)[-1].strip()
        raise TargetError(f"{name}: does not import: {what}{_place(error)}{_advice(error, what)}") from error


def similar(path: Path) -> str:
    """`; did you mean …?` with a Python file or folder beside it that has nearly its name, or nothing."""
    try:
        beside = {
            entry.stem: str(entry)
            for entry in sorted(path.parent.iterdir())
            if entry.suffix == ".py" or (entry.is_dir() and entry.name.isidentifier())
        }
    except OSError:
        return ""
    begun = [name for name in beside if path.stem and name.startswith(path.stem)]
    if begun:
        return f"; did you mean {beside[begun[0]]}?"
    close = get_close_matches(path.stem, beside, n=1)
    return f"; did you mean {beside[close[0]]}?" if close else ""


def did_you_mean(word: str, words: Collection[str]) -> str:
    """`; did you mean …?` with the closest word, or nothing."""
    close = get_close_matches(word, words, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def split_name(name: str) -> tuple[str, str]:
    """`module:object` or `file.py:object` in its two parts; the second is empty where there is none."""
    if Path(name).is_file():
        return name, ""
    origin, colon, attribute = name.rpartition(":")
    return (origin, attribute) if colon and all(part.isidentifier() for part in attribute.split(".")) else (name, "")


def _place(error: BaseException) -> str:
    """The innermost line of the target's own files that an exception came through."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def _is_own(filename: str) -> bool:
    return not filename.startswith(("<", *INSTALLED)) and "site-packages" not in filename


def _advice(error: BaseException, what: str) -> str:
    if isinstance(error, SystemExit):
        return "; put the script part under `if __name__ == '__main__':`"
    return device_hint(what)


def device_hint(text: str) -> str:
    """What to do about an error that says there is no GPU, or nothing."""
    if any(sign in text for sign in ("not compiled with CUDA", "No CUDA GPUs", "Found no NVIDIA driver")):
        return "; rlassay judges on the CPU: take the device from the arguments"
    return ""
