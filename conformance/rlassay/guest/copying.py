"""The guest's own copy of a submission, of which the harness keeps the original."""

from __future__ import annotations

import errno
import os
import shutil
import stat

from .syscalls import ConfinementError

DEEPEST = 100


def open_folder(path: str) -> int:
    """A descriptor of a folder that is no link.

    Raises:
        ConfinementError: it cannot be opened.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise ConfinementError(f"{path}: the submission's folder cannot be opened: {error.strerror}") from error


def copy_folder(source: int, target: str, owner: tuple[int, int], most: int) -> None:
    """Copy all files and folders below an open folder into a new one of a user and group, up to so many bytes.

    Links are copied as links and followed nowhere; whatever else there is, devices and pipes say, is left out.

    Raises:
        ConfinementError: it takes more than that, or cannot be read.
    """
    try:
        _copy(source, target, owner, most, DEEPEST)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG):
            raise ConfinementError(
                f"the submission takes more than the {most} bytes that it may use for files; raise that limit (tmp)"
            ) from error
        raise ConfinementError(f"the submission cannot be copied: {error}") from error


def _copy(source: int, target: str, owner: tuple[int, int], left: int, depth: int) -> int:
    """Copy; the bytes that are left."""
    if depth == 0:
        raise OSError(errno.ELOOP, f"folders lie more than {DEEPEST} deep in one another")
    os.mkdir(target, 0o700)
    os.chown(target, *owner)
    with os.scandir(source) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
        copy = os.path.join(target, name)
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(name, dir_fd=source), copy)
        elif stat.S_ISDIR(mode):
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
            try:
                left = _copy(folder, copy, owner, left, depth - 1)
            finally:
                os.close(folder)
        elif stat.S_ISREG(mode):
            left = _copy_file(source, name, copy, owner, left)
    return left


def _copy_file(source: int, name: str, copy: str, owner: tuple[int, int], left: int) -> int:
    original = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=source)
    with open(original, "rb") as reader, open(copy, "xb") as writer:
        left -= os.fstat(original).st_size
        if left < 0:
            raise OSError(errno.ENOSPC, "too large")
        shutil.copyfileobj(reader, writer)
        os.fchmod(writer.fileno(), 0o600)
        os.fchown(writer.fileno(), *owner)
    return left
