"""What a guest sees of the machine: an interpreter with its packages and the system's libraries, nothing of rlassay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/localtime")
"""Files and folders of the system that programs need, as far as they exist."""

OURS = ("rlassay", "rlassay_spec", "rlassay_impl")
"""Packages that no guest may see."""


@dataclass(frozen=True)
class View:
    """Files and folders that are readable, and those inside of them that are not to be seen."""

    readable: tuple[str, ...]
    hidden: tuple[str, ...]


def view_of(prefixes: Sequence[str], path: Sequence[str]) -> View:
    """The view that an interpreter needs, from its prefixes and its path."""
    found = [place for place in (*prefixes, *path, *SYSTEM) if place and Path(place).exists()]
    readable = tuple(dict.fromkeys(str(Path(place).absolute()) for place in found))
    real = [Path(place).resolve() for place in readable]
    checkout = [str(folder) for folder in _own_folders() if any(folder.is_relative_to(place) for place in real)]
    return View(
        tuple(place for place in readable if not _holds_ours(Path(place))),
        tuple(dict.fromkeys([*_installed(path), *checkout])),
    )


def _own_folders() -> Iterator[Path]:
    """The folders of this package and its siblings, wherever they are."""
    here = Path(__file__).resolve().parents[1]
    yield here
    for house in ("spec", "impl"):
        sibling = here.parents[1] / house / f"rlassay_{house}"
        if sibling.is_dir():
            yield sibling


def _holds_ours(folder: Path) -> bool:
    """Whether a folder is on the path for a package of ours alone: the source root of a checkout."""
    here = any(own.parent == folder.resolve() for own in _own_folders())
    return here and not any(folder.glob("*.dist-info"))


def _installed(path: Iterable[str]) -> Iterator[str]:
    """All of ours that is installed in the folders of an interpreter's path."""
    for folder in path:
        if not folder or not Path(folder).is_dir():
            continue
        for entry in sorted(Path(folder).iterdir()):
            name = entry.name.lower().removeprefix("__editable___").removeprefix("__editable__.").lstrip("_")
            if name.partition("-")[0].partition(".")[0] in OURS or name.startswith(tuple(f"{ours}_" for ours in OURS)):
                yield str(entry)
