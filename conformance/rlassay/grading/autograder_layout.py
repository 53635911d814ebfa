"""What an archive for Gradescope's autograder holds, as those who make it and those who run in it both know it."""

from __future__ import annotations

from typing import Any

import msgspec

from rlassay import __version__
from rlassay.grading.gradescope import FAILED

SETTINGS = "settings.json"
ASSIGNMENT = "assignment"
PACKAGES = "packages"


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How the archive grades: the name of the assignment's file in its folder, and the level of confinement."""

    assignment: str
    isolation: str


def failed_json(why: str = "") -> bytes:
    """Gradescope's results.json where there are no marks: it has no score, so that nothing is taken for a zero."""
    document: dict[str, Any] = {
        "output": f"{FAILED}\n{why}".strip(),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {"rlassay": __version__, "status": "failed"},
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
