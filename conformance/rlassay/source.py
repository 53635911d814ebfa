"""How code gets hold of a target: the lines at the beginning of a snippet that define `subject`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlassay.guest.importing import split_name


def import_code(name: str, interface: str, operation: str, target: Any, made: bool = False) -> str:
    """Python lines after which `subject` has the operation; `target` is what was found under the name, or (`made`) an
    instance of it.

    Where no import statement reaches it under the operation's own name, rlassay loads it.
    """
    return _statement(name, operation, target, made) or "\n".join(
        (
            "from types import SimpleNamespace",
            "from rlassay.load import load_target",
            "",
            f"subject = SimpleNamespace({operation}=load_target({name!r}, {interface!r}).functions[{operation!r}])",
        )
    )


def _statement(name: str, operation: str, target: Any, made: bool) -> str:
    """The import statement, or nothing where there is none."""
    if isinstance(target, Mapping) or not hasattr(target, operation.removesuffix("_2026")):
        return ""
    origin, attribute = split_name(name)
    path, place = Path(origin), ""
    if path.is_dir():
        origin, place = path.resolve().name, _run_in(path.resolve().parent)
    elif path.suffix == ".py":
        origin, place = path.stem, _run_in(path.parent)
    first, _, _ = origin.partition(".")
    if not all(part.isidentifier() for part in origin.split(".")) or first in sys.stdlib_module_names:
        return ""
    if not attribute:
        return f"import {origin} as subject{place}"
    if made and "." not in attribute:
        return f"from {origin} import {attribute}{place}\n\nsubject = {attribute}()"
    return "" if "." in attribute else f"from {origin} import {attribute} as subject{place}"


def _run_in(folder: Path) -> str:
    return f"  # the file lies in {folder.resolve()}"
