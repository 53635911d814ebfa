"""`rlassay.toml`: what `rlassay check` asks of the files in its folder.

    interface = "own"                       # under which names they provide the operations
    checks = ["grpo_advantages/B9.1"]       # these checks alone

Both may be left out, and an option `--interface` comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlassay.check import Check
from rlassay.grading.fields import Table, TomlError, read_toml
from rlassay.guest.importing import did_you_mean, split_name
from rlassay.guest.interfaces import INTERFACES

NAME = "rlassay.toml"


class FolderError(TomlError):
    """A file `rlassay.toml` that cannot be used; says where and why."""


@dataclass(frozen=True)
class Folder:
    """What the file beside a target says; `table` is None where there is none."""

    interface: str = "own"
    checks: tuple[str, ...] | None = None
    table: Table | None = None

    def among(self, selected: Sequence[Check], known: Mapping[str, Check]) -> list[Check]:
        """Those of the selected checks that are listed; all where there is no list. `known` is the whole suite.

        Raises:
            FolderError: a listed check does not exist, or none of the selected ones is listed.
        """
        if self.table is None or self.checks is None:
            return list(selected)
        for index, identity in enumerate(self.checks):
            if identity not in known:
                hint = did_you_mean(identity, known)
                self.table.under("checks").fail(index, f"no check is called {identity!r}{hint}")
        found = [check for check in selected if check.id in self.checks]
        if not found:
            what = f"none of the selected checks is among the {len(self.checks)} that are listed"
            self.table.fail("checks", f"{what}; without this file all can be selected")
        return found

    def selection(self, expression: str) -> str:
        """What the checks were selected by, besides an expression, as a record tells it."""
        return expression if self.checks is None else ", ".join(filter(None, (expression, f"listed in {NAME}")))


def read_folder(target: str) -> Folder:
    """What the file in a target's folder says, where target is a file or a folder and has one.

    Raises:
        FolderError: it cannot be read, or says something else than it can.
    """
    place = Path(split_name(target)[0])
    path = (place if place.is_dir() else place.parent) / NAME
    if not place.exists() or not path.exists():
        return Folder()
    table = read_toml(path, FolderError)
    table.only("interface", "checks")
    interface = table.choice("interface", tuple(INTERFACES), "own")
    return Folder(interface, table.texts("checks") if "checks" in table.entries else None, table)
