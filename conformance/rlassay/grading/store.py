"""The folder of results: each submission's files appear there all at once, and stay whatever happens afterwards."""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from rlassay.grading.grade import Grade

SCHEMA = 1

SAME = {
    "assignment": "another assignment",
    "secret": "another secret",
    "rlassay": "another version of rlassay",
    "level": "another level of confinement",
}
"""What all submissions of a run are graded with, and what to say where it differs."""

LEFT_OVER = re.compile(r"\..+\.([0-9a-f]{8}(\.old)?|part)")
"""Names of what a run that was killed had not finished."""

EXCHANGE, HERE = 2, -100
"""Of renameat2: let two folders change places; paths are relative to the working folder."""


class StoreError(Exception):
    """A folder of results that cannot be used; says why and what to do."""


class Run(msgspec.Struct, tag="run", tag_field="type", kw_only=True):
    """What a folder of results was graded with. `assignment` is the hash of the assignment without its secret, `secret`
    tells one secret from another."""

    schema: int
    rlassay: str
    assignment: str
    secret: str = ""
    title: str
    level: str
    layout: str
    submissions: int


class Store:
    """A folder of results.

    Raises:
        StoreError: it holds something else, or results that `resume` does not ask to go on with, or those of another
            assignment or version.
    """

    def __init__(self, folder: Path, run: Run, resume: bool) -> None:
        self.folder = folder
        self.submissions = folder / "submissions"
        known = folder / "run.json"
        if known.exists():
            _require_same(folder, read_run(folder), run, resume)
        elif folder.exists() and not (
            folder.is_dir() and all(LEFT_OVER.fullmatch(name) for name in os.listdir(folder))
        ):
            raise StoreError(f"{folder}: is not empty and holds no results; name another folder with --out")
        folder.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(folder)
        write(known, msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")
        self.submissions.mkdir(exist_ok=True)

    def save(self, key: str, files: Mapping[str, bytes]) -> None:
        """Put a submission's files where they belong, all of them or none."""
        place = self.submissions / key
        beside = self.submissions / f".{key}.{secrets.token_hex(4)}"
        beside.mkdir()
        for name, content in files.items():
            write(beside / name, content)
        put(beside, place)


def put(folder: Path, place: Path) -> None:
    """Move a folder to where it belongs, in one step; what is there goes.

    Where the file system cannot let two folders change places, there is a moment between two steps.
    """
    if not place.exists():
        folder.rename(place)
        return
    if not _exchange(folder, place):
        old = folder.with_name(f"{folder.name}.old")
        place.rename(old)
        folder.rename(place)
        folder = old
    shutil.rmtree(folder)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places, at once; False where the system or the file system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0


def _remove_leftovers(folder: Path) -> None:
    for parent in (folder, folder / "submissions"):
        for left in parent.glob(".*"):
            if LEFT_OVER.fullmatch(left.name):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _require_same(folder: Path, old: Run, new: Run, resume: bool) -> None:
    if not resume:
        raise StoreError(
            f"{folder}: holds the results of an earlier run; go on with --resume, or name another folder with --out"
        )
    for name, text in SAME.items():
        before, now = getattr(old, name), getattr(new, name)
        if before != now:
            what = f"{text} ({before}, now {now})" if name != "secret" else text
            raise StoreError(
                f"{folder}: was graded with {what}; marks must not mix: use another --out, or rlassay regrade"
            )


def read_run(folder: Path) -> Run:
    """What a folder of results was graded with.

    Raises:
        StoreError: it holds no results, or such as this version cannot read.
    """
    try:
        return msgspec.json.decode((folder / "run.json").read_bytes(), type=Run)
    except OSError as error:
        raise StoreError(f"{folder}: holds no results of rlassay grade ({error.strerror})") from error
    except msgspec.MsgspecError as error:
        raise StoreError(f"{folder / 'run.json'}: cannot be read: {error}") from error


def grades(folder: Path) -> Iterator[Grade]:
    """The grades in a folder of results, one after another, by key.

    Raises:
        StoreError: one cannot be read.
    """
    for path in sorted((folder / "submissions").glob("[!.]*/grade.json")):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=Grade)
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreError(f"{path}: cannot be read: {error}; grade it again") from error


def read_grade(folder: Path, key: str) -> Grade | None:
    """The grade of one submission; None where there is none, or none that can be read."""
    try:
        return msgspec.json.decode((folder / "submissions" / key / "grade.json").read_bytes(), type=Grade)
    except (OSError, msgspec.MsgspecError):
        return None


def write(path: Path, content: bytes) -> None:
    """Write a file that is there in full or not at all, even if the machine stops."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with beside.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    beside.rename(path)
