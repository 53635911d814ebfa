"""Landlock: which files a guest may read and write (landlock(7)), whatever its user may."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Iterator

from .syscalls import ConfinementError, call, step, within

READ_FILE, READ_DIR = 1 << 2, 1 << 3
EXECUTE, WRITE_FILE = 1 << 0, 1 << 1
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
MAKE_CHAR, MAKE_SOCK, MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
REFER = 1 << 13

RIGHTS = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
"""Rights to files that each version of the interface brought."""

LEAST_ABI = 3
"""Before it, a file could be truncated without the right to write it."""

NETWORK_ABI, BIND_AND_CONNECT = 4, 0b11
SCOPE_ABI, ABSTRACT_SOCKETS_AND_SIGNALS = 6, 0b11

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""Rights that mean something for what is no folder."""


def abi() -> int:
    """The version of the interface that the kernel has.

    Raises:
        ConfinementError: it has none that will do.
    """
    advice = "it needs Linux 6.2 with landlock among the security modules (lsm=landlock,… at boot)"
    with step("landlock is not to be had", advice):
        version = call("landlock_create_ruleset", 0, 0, 1)
    if version < LEAST_ABI:
        raise ConfinementError(f"landlock is of version {version}, but {LEAST_ABI} is needed: {advice}")
    return version


def is_available() -> bool:
    """Whether the kernel has a version of the interface that will do."""
    try:
        abi()
    except ConfinementError:
        return False
    return True


def restrict_files(readable: Iterable[str], hidden: Iterable[str], writable: Iterable[str]) -> None:
    """Leave this process these files and folders, for good; no_new_privs must be set.

    Folders' lists of names can be read everywhere below `readable`, files there only where nothing hides them.
    Where the kernel knows how, TCP, abstract sockets and signals to processes outside are taken away as well.

    Raises:
        ConfinementError: the kernel cannot, or does not.
    """
    version = abi()
    handled = sum(right for since, right in RIGHTS.items() if since <= version)
    network = BIND_AND_CONNECT if version >= NETWORK_ABI else 0
    scoped = ABSTRACT_SOCKETS_AND_SIGNALS if version >= SCOPE_ABI else 0
    size = 8 * (1 + (version >= NETWORK_ABI) + (version >= SCOPE_ABI))
    attributes = ctypes.create_string_buffer(struct.pack("=QQQ", handled, network, scoped)[:size], size)
    with step("landlock: no set of rules can be made"):
        rules = call("landlock_create_ruleset", attributes, size, 0)
    try:
        for path, right in _grants(readable, hidden, writable, handled):
            _allow(rules, path, right)
        with step("landlock: the rules cannot be put in force"):
            call("landlock_restrict_self", rules, 0)
    finally:
        os.close(rules)


def _grants(
    readable: Iterable[str], hidden: Iterable[str], writable: Iterable[str], handled: int
) -> Iterator[tuple[str, int]]:
    covered = sorted({os.path.realpath(path) for path in hidden})
    for path in readable:
        root = os.path.realpath(path)
        if not any(within(root, cover) for cover in covered):
            yield root, READ_DIR
            yield from ((part, READ_FILE) for part in _parts(root, covered))
    for path in writable:
        yield os.path.realpath(path), handled & ~(EXECUTE | MAKE_CHAR | MAKE_BLOCK | MAKE_SOCK | IOCTL_DEV)
    for path in DEVICES:
        yield path, READ_FILE | WRITE_FILE | TRUNCATE


def _parts(root: str, hidden: list[str]) -> Iterator[str]:
    """The largest files and folders that make up `root` without what is hidden.

    A link below is left out: a rule for it would be one for what it leads to.
    """
    inside = [path for path in hidden if within(path, root)]
    if root in inside:
        return
    if not inside:
        yield root
        return
    with step(f"{root}: cannot be listed"), os.scandir(root) as entries:
        names = [entry.path for entry in entries if not entry.is_symlink()]
    for path in names:
        yield from _parts(path, inside)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfinementError(f"{path}: should be readable, but is not: {error.strerror}") from error
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= OF_FILES
        if rights:
            rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
            with step(f"landlock: {path} cannot be allowed"):
                call("landlock_add_rule", rules, 1, rule, 0)
    finally:
        os.close(place)
