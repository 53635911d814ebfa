"""Puts new results in the place of old ones, but never so that a grade is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rlassay.grading.store import grades, put, read_grade


def lost(old: Path, new: Path) -> list[str]:
    """The keys of those who have a grade in the old results and none, or one that needs a review, in the new ones.

    Raises:
        StoreError: one of the old grades cannot be read.
    """
    graded = [grade.key for grade in grades(old) if grade.status == "graded"]
    found = ((key, read_grade(new, key)) for key in graded)
    return [key for key, grade in found if grade is None or grade.status != "graded"]


def replace_results(old: Path, new: Path) -> None:
    """Put the new results in the place of the old ones, in one step, with what else people keep beside those."""
    for name in os.listdir(old):
        kept, place = old / name, new / name
        if place.exists() or place.is_symlink():
            continue
        if kept.is_dir() and not kept.is_symlink():
            shutil.copytree(kept, place, symlinks=True)
        else:
            shutil.copy2(kept, place, follow_symlinks=False)
    shutil.copymode(old, new)
    put(new, old)
