"""The archive that Gradescope's autograder takes: setup.sh, run_autograder, and what they need.

    setup.sh           installs Python and packages, once
    run_autograder     grades one submission
    python-version     which Python
    torch.txt          the version of torch, and the index of CPU builds where one is named
    requirements.txt   the versions of all other packages
    settings.json      the level of confinement
    failed.json        results.json where there are no marks
    assignment/        the assignment and its secret
    packages/          rlassay as it is here

The same assignment and the same installation give the same bytes. Format: gradescope-autograders.readthedocs.io,
"Autograder Specifications".
"""

from __future__ import annotations

import io
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import msgspec

import rlassay
import rlassay_spec
from rlassay.grading.assignment import Assignment
from rlassay.grading.autograder_layout import ASSIGNMENT, PACKAGES, SETTINGS, Settings, failed_json
from rlassay.grading.pins import PinError, pins

FILES = Path(__file__).with_name("gradescope_files")

HOUSES = {"rlassay": rlassay, "rlassay_spec": rlassay_spec}
"""All that grading needs of rlassay; the reference implementation stays at home."""

EXECUTABLE = ("setup.sh", "run_autograder")
TIME = (1980, 1, 1, 0, 0, 0)


class AutograderError(Exception):
    """An assignment that no archive can be made of; says why and what to do."""


def autograder_zip(assignment: Assignment, level: str, torch_index: str = "") -> bytes:
    """The archive that grades an assignment's submissions at a level of confinement; `torch_index` is the address of a
    package index with CPU builds of torch, which are smaller by gigabytes.

    Raises:
        AutograderError: the assignment needs what the archive cannot take along, or it is not known what rlassay needs.
    """
    if assignment.python:
        raise AutograderError(
            f"{assignment.path}: python is {assignment.python}, which Gradescope's container does not have: it gets a "
            "Python of its own, of the version that makes the archive; leave python out"
        )
    files = {**_scripts(assignment, level, torch_index), **_assignment(assignment), **dict(_packages())}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, TIME)
            info.create_system = 3
            info.external_attr = (0o100000 | _mode(name)) << 16
            archive.writestr(info, files[name], zipfile.ZIP_DEFLATED, 9)
    return content.getvalue()


def _mode(name: str) -> int:
    if name in EXECUTABLE:
        return 0o755
    return 0o600 if name.startswith(f"{ASSIGNMENT}/") else 0o644


def _scripts(assignment: Assignment, level: str, torch_index: str) -> Mapping[str, bytes]:
    try:
        versions = pins()
    except PinError as error:
        raise AutograderError(str(error)) from error
    settings = Settings(assignment=assignment.path.name, isolation=level)
    torch = {"torch": versions.pop("torch")}
    return {
        **{name: (FILES / name).read_bytes() for name in EXECUTABLE},
        "python-version": f"{sys.version_info.major}.{sys.version_info.minor}\n".encode(),
        "torch.txt": (f"--index-url {torch_index}\n".encode() if torch_index else b"") + _requirements(torch),
        "requirements.txt": _requirements(versions),
        SETTINGS: msgspec.json.format(msgspec.json.encode(settings), indent=2) + b"\n",
        "failed.json": failed_json(),
    }


def _requirements(versions: Mapping[str, str]) -> bytes:
    return "".join(f"{name}=={version}\n" for name, version in versions.items()).encode()


def _assignment(assignment: Assignment) -> Mapping[str, bytes]:
    """The assignment's file, and that of its secret where it names one."""
    path = assignment.path
    content = path.read_bytes()
    files = {f"{ASSIGNMENT}/{path.name}": content}
    secret = tomllib.loads(content.decode()).get("secret_file")
    if secret is not None:
        place = PurePosixPath(secret)
        if place.is_absolute() or ".." in place.parts:
            raise AutograderError(
                f"{path}: secret_file names a file outside of the assignment's folder, which has no place in the "
                "archive; move it beside the assignment"
            )
        files[f"{ASSIGNMENT}/{place}"] = (path.parent / place).read_bytes()
    return files


def _packages() -> Iterator[tuple[str, bytes]]:
    """The source of rlassay, which is the same in a checkout and where it is installed."""
    for name, house in HOUSES.items():
        assert house.__file__ is not None
        root = Path(house.__file__).parent
        for path in root.rglob("*"):
            place = path.relative_to(root)
            if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in place.parts):
                yield f"{PACKAGES}/{name}/{place.as_posix()}", path.read_bytes()
