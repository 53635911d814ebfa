"""A submission as a guest loads it: as the modules that it is, or from its definitions alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from .definitions import build, run
from .load import Source, find_operations, open_target

MOST_NAMES, LONGEST_NAME = 2000, 100
"""So many names of functions, none of them longer, are told to the harness, which looks for misspelt ones."""

MOST_NOTES = 100
"""So many notes are told."""

MOST_TEXT = 20_000
"""So many characters of what a submission says, when it raises for instance, are told."""


@dataclass(frozen=True)
class Submission:
    """What to load: the target, the interface, the operations it may provide, and how ("modules" or "definitions")."""

    target: str
    interface: str
    operations: tuple[str, ...]
    how: str


@dataclass(frozen=True)
class Loaded:
    """What was found: functions by operation, what CONVENTION says, names of functions, and notes for the report."""

    functions: Mapping[str, Callable[..., Any]]
    declared: Any
    names: list[str]
    notes: list[str] = field(default_factory=list)


def load_submission(submission: Submission) -> Loaded:
    """Load a submission.

    Raises:
        TargetError: it cannot be loaded in this way.
    """
    notes: list[str] = []
    loader: type[SourceFileLoader] = SourceFileLoader
    if submission.how == "definitions":
        loader = _definitions_loader(notes)
        _load_all_below(_folder(submission.target), loader)
    opened, _ = open_target(submission.target, loader)
    found = find_operations(submission.target, opened, submission.interface, submission.operations)
    return Loaded(found.functions, found.declared, list(_names(opened))[:MOST_NAMES], notes[:MOST_NOTES])


def _definitions_loader(notes: list[str]) -> type[SourceFileLoader]:
    """A loader that executes a file's imports, constants and definitions, and nothing else of it."""

    class DefinitionsLoader(SourceFileLoader):
        def exec_module(self, module: ModuleType) -> None:
            path = Path(self.path)
            definitions = build(path.read_bytes(), str(path))
            notes.extend(f"{path.name}: {note}" for note in run(definitions, vars(module)))

    return DefinitionsLoader


def _folder(target: str) -> Path:
    path = Path(target).resolve()
    return path if path.is_dir() else path.parent


def _load_all_below(folder: Path, loader: type[SourceFileLoader]) -> None:
    """What the files of a folder import from one another comes through the same loader."""
    of_files = FileFinder.path_hook((loader, [".py"]))

    def hook(path: str) -> Any:
        if not Path(path).is_relative_to(folder.parent):
            raise ImportError(path)
        return of_files(path)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


def _names(opened: list[Source]) -> Iterator[str]:
    for source in opened:
        for name, value in source.namespace.items():
            if type(name) is str and len(name) <= LONGEST_NAME and callable(value):
                yield name
