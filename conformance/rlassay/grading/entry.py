"""Which file or folder of an unpacked submission is loaded.

The first of these that there is: `solution.py`, or what CS336 names `adapters.py`, at the top or one folder down; the
package that the folder is; the Python files at its top, all of them where there are several; what `src` holds, the one
package at its top, or what the one folder at its top holds that has Python in it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlassay.grading.tree import SubmissionError, shown
from rlassay.guest.load import SKIPPED_FILES

PREFERRED = ("solution.py", "adapters.py")
"""File names that say where the operations are."""

PACKAGE = "submission"
"""The name of a package whose own is taken or cannot be imported."""

TAKEN = frozenset({*sys.stdlib_module_names, "torch", "numpy", "rlassay_guest"})
"""Names of modules that a guest may have loaded already."""

BESIDE = ("test", "tests", "doc", "docs", "example", "examples", "script", "scripts", "notebooks", "benchmarks")
"""Folders of a repository that are not what is handed in."""


@dataclass(frozen=True)
class Entry:
    """The folder that is a submission's root, what of it to load, and where its imports start, both as paths in it.

    The target is a path or, inside of a package, a dotted module.
    """

    root: Path
    target: str
    imports: tuple[str, ...]


def find_entry(folder: Path, name: str) -> Entry:
    """What to load of a folder; a package that is the folder itself is moved into one that can be imported.

    Args:
        folder: holds the unpacked submission.
        name: what the folder was called, which the package's own files may import it by.

    Raises:
        SubmissionError: it holds no Python, or more than one thing that could be meant.
    """
    root = _only_folder(folder)
    if _is_package(root):
        own = name if root == folder else root.name
        root = _as_package(root, own if own.isidentifier() and own not in TAKEN else PACKAGE)
    imports = (".", "src") if (root / "src").is_dir() and not _is_package(root / "src") else (".",)
    target = _preferred(root) or _target(root, root)
    return Entry(root, target.as_posix() if isinstance(target, Path) else target, imports)


def _only_folder(folder: Path) -> Path:
    """The folder, or the one folder in it that holds everything, as archives of repositories have it."""
    entries = list(folder.iterdir())
    while len(entries) == 1 and entries[0].is_dir() and not _is_package(folder):
        folder = entries[0]
        entries = list(folder.iterdir())
    return folder


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _as_package(root: Path, name: str) -> Path:
    """Move what a package holds into a folder of this name inside of it."""
    entries = list(root.iterdir())
    beside = Path(tempfile.mkdtemp(dir=root))
    beside.chmod(0o755)
    for entry in entries:
        entry.rename(beside / entry.name)
    beside.rename(root / name)
    return root


def _preferred(root: Path) -> Path | str | None:
    for name in PREFERRED:
        if (root / name).is_file():
            return Path(name)
        below = [path for path in sorted(root.glob(f"*/{name}")) if path.is_file()]
        if len(below) == 1:
            package = below[0].parent
            importable = _is_package(package) and package.name.isidentifier() and package.name not in TAKEN
            return f"{package.name}.{below[0].stem}" if importable else below[0].relative_to(root)
    return None


def _target(place: Path, root: Path) -> Path:
    files = [path for path in sorted(place.glob("*.py")) if _is_handed_in(path)]
    if files:
        return (files[0] if len(files) == 1 else place).relative_to(root)
    folders = [
        path for path in sorted(place.iterdir()) if path.is_dir() and any(map(_is_handed_in, path.rglob("*.py")))
    ]
    source = [path for path in folders if path.name == "src"]
    packages = [path for path in folders if _is_package(path) and path.name not in BESIDE]
    found = source or packages or [path for path in folders if path.name not in BESIDE] or folders
    if not found:
        raise SubmissionError(_nothing(root))
    if len(found) > 1:
        names = ", ".join(shown(path.relative_to(root).as_posix()) for path in found[:5])
        raise SubmissionError(f"it holds several folders of Python: {names}; put what is to be graded into solution.py")
    if _is_package(found[0]):
        return _importable(found[0]).relative_to(root)
    return _target(found[0], root)


def _importable(package: Path) -> Path:
    if package.name.isidentifier() and package.name not in TAKEN:
        return package
    return package.rename(package.with_name(re.sub(r"\W", "_", f"{PACKAGE}_{package.name}")))


def _is_handed_in(path: Path) -> bool:
    return path.is_file() and path.name not in SKIPPED_FILES and not path.name.startswith("test_")


def _nothing(root: Path) -> str:
    def names() -> Iterator[str]:
        entries = sorted(path.name for path in root.iterdir())
        yield from map(shown, entries[:5])
        if len(entries) > 5:
            yield f"and {len(entries) - 5} more"

    held = ", ".join(names())
    return f"it holds no Python{f', only {held}' if held else ': it is empty'}; hand in a .py file, or a .zip with one"
