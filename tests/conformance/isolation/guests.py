"""Guests for tests: code that runs confined, at each level, as the user who runs the tests and as an ordinary one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rlassay.guest import landlock
from rlassay.guest.confine import LEVELS, Confinement, best_level

DRIVER = Path(__file__).with_name("driver.py")
ORDINARY = 12345
SECONDS = 240

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes like this")

LEVEL, REASON = best_level()

USERS = [None, ORDINARY] if hasattr(os, "getuid") and os.getuid() == 0 else [None]


@dataclass(frozen=True)
class Place:
    """A confinement whose folders exist, for guests of a user."""

    confinement: Confinement
    user: int | None

    def run(self, code: str, *, torch: bool = False, confined: bool = True, **job: Any) -> dict[str, Any]:
        """What a guest that runs this code tells, and how it ended.

        `leaves` tells that processes may stay behind that keep its pipe open: its end is not waited for then.
        """
        request = {"confinement": asdict(self.confinement) if confined else None, "user": self.user, "code": code}
        defaults: dict[str, Any] = {"torch": torch, "targets": {}, "how": "enter", "end": 0, "leaves": False}
        done = subprocess.run(
            [sys.executable, "-B", "-W", "ignore", str(DRIVER)],
            input=json.dumps({**defaults, **request, **job}),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "2"},
        )
        assert done.returncode == 0, done.stderr
        outcome: dict[str, Any] = json.loads(done.stdout)
        return outcome

    def attempts(self, confinement: Confinement, targets: dict[str, Any]) -> dict[str, str]:
        """The answers of a guest that makes the self-test's attempts."""
        place = replace(self, confinement=confinement)
        outcome = place.run("tell(probe.attempts(targets))", targets=targets, leaves=True)
        assert "answer" in outcome, outcome
        answer: dict[str, str] = outcome["answer"]
        return answer


@contextmanager
def place(level: str, user: int | None, **changes: Any) -> Iterator[Place]:
    """Folders that the user may use, and a confinement with them."""
    folder = Path(tempfile.mkdtemp(prefix="rlassay-test-"))
    source, scratch, library = folder / "source", folder / "scratch", folder / "library"
    try:
        for made in (source, scratch, library, library / "open", library / "hidden"):
            made.mkdir()
        Path(source, "submission.py").write_text("ANSWER = 42\n", encoding="utf-8")
        for part in ("open", "hidden"):
            Path(library, part, "module.py").write_text("CONTENT = 1\n", encoding="utf-8")
        Path(library, "secret.py").write_text("SECRET = 1\n", encoding="utf-8")
        folder.chmod(0o755)
        if user is not None:
            for path in (source, scratch, library):
                os.chown(path, user, user)
        fields: dict[str, Any] = {
            "level": level,
            "source": str(source),
            "readable": (str(library), "/usr", "/lib", "/lib64", *_interpreter(level, user)),
            "hidden": (str(library / "hidden"), str(library / "secret.py")),
            "scratch": str(scratch),
            "memory": 512 * 2**20,
            "cpu": 60,
            "tmp": 8 * 2**20,
            "threads": 8,
        }
        yield Place(Confinement(**(fields | changes)), user)
    finally:
        shutil.rmtree(folder)


def _interpreter(level: str, user: int | None) -> tuple[str, ...]:
    """The interpreter's own folders, unless they may lie where the guest's user cannot read them."""
    own = user is None and (level == "namespaces" or os.getuid() != 0)
    return (sys.prefix, sys.base_prefix) if own else ()


@cache
def _refusal(level: str, user: int | None) -> str:
    """Why the machine gives a user no guests of a level; nothing where it does."""
    if level == "filtered":
        return "" if landlock.is_available() else REASON or "the kernel has no landlock"
    if level == "limits":
        return ""
    if LEVEL != "namespaces" or user is None:
        return REASON
    with place(level, user) as guests:  # root may have them where ordinary users may not
        refused: str = guests.run("tell('ran')").get("unconfined", "")
    return refused if refused.startswith("no namespaces are to be had") else ""


def case(level: str, user: int | None, *values: Any) -> Any:
    """Parameters of a test that needs guests of a level for a user: skipped where there are none, with the reason."""
    refusal = _refusal(level, user) if sys.platform == "linux" else "only Linux confines processes like this"
    name = f"{level}-{'as-it-is' if user is None else 'ordinary'}"
    return pytest.param(*values, marks=pytest.mark.skipif(refusal != "", reason=refusal or "it can be had"), id=name)


CASES = {(level, user): case(level, user, level, user) for level in LEVELS for user in USERS}
"""Levels and users. Guests of root read /usr alone at the lower levels: the interpreter may lie in root's home."""

ALL = list(CASES.values())
FILTERED = [parameters for (level, _), parameters in CASES.items() if level != "limits"]
NAMESPACES = [case("namespaces", user, user) for user in USERS]
