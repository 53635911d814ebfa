"""Archives, notebooks and submissions made for the tests of intake."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlassay.grading.submissions import HandedIn, Submission, Unpacked, unpack

CODE = "def kl_k1(log_probs, ref_log_probs):\n    return log_probs - ref_log_probs\n"


@dataclass(frozen=True)
class Most:
    """Limits that tests can afford to reach."""

    unpacked: int = 1 << 20
    files: int = 100


def zip_of(path: Path, *members: tuple[str | zipfile.ZipInfo, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def tar_of(path: Path, *members: tuple[str | tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            if info.isreg():
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def tar_member(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def notebook_of(*cells: str | tuple[str, str]) -> str:
    """A notebook's JSON; a cell is code, or (kind, source)."""
    kinds = [("code", cell) if isinstance(cell, str) else cell for cell in cells]
    return json.dumps(
        {"cells": [{"cell_type": kind, "source": source.splitlines(keepends=True)} for kind, source in kinds]}
    )


def files_below(folder: Path) -> dict[str, str]:
    """Path and content of every file."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def unpacked(handed_in: Path | Sequence[Path], into: Path, limits: Most = Most()) -> Unpacked:
    paths = [handed_in] if isinstance(handed_in, Path) else handed_in
    files = tuple(HandedIn(path, path.name) for path in paths)
    return unpack(Submission("key", "id", "", files), into, limits)
