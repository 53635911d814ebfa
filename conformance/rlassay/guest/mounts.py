"""The file system that a guest sees: a new root into which only what it needs is mounted, for reading."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .copying import copy_folder, open_folder
from .landlock import DEVICES
from .syscalls import call, step, within

if TYPE_CHECKING:
    from .confine import Confinement

AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
TREE_CLONE, MOVE_FROM_DESCRIPTOR = 1, 4
SET_FLAG, SET_STRING, CREATE = 0, 1, 6
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXECUTION = 1, 2, 4, 8
REC, PRIVATE, DETACH = 0x4000, 0x40000, 2

SKELETON_BYTES = 2**20
"""What the new root itself may take: empty folders and files on which others are mounted."""

LEAST_FILES, BYTES_PER_FILE = 4096, 4096
"""Files and folders in /tmp take memory that its size does not count: so many of them, at least, and per byte of it."""

SUBMISSION = "/tmp/submission"
NOTHING = "/.nothing"

ADVICE = "the kernel must be Linux 5.14 or newer, and nothing around rlassay may forbid mounts"


def make_view(confinement: Confinement, user: int, group: int) -> str:
    """Make the view and enter it, as process 1 of the new namespaces; where in it the submission lies.

    Raises:
        ConfinementError: something cannot be mounted, or the submission does not fit into /tmp.
    """
    source = open_folder(confinement.source)
    umask = os.umask(0o022)
    try:
        with step("the view of the file system cannot be made", ADVICE):
            call("mount", b"none", b"/", None, REC | PRIVATE, None)
            places = list(_places(confinement.readable, confinement.hidden))
            trees = [(path, _copy_of(real)) for path, real in places]
            devices = [(path, _copy_of(path)) for path in DEVICES]
            covers = list(_covers(places, confinement.hidden))
            processes = _new_processes()
            _enter_new_root(confinement.scratch)
            _mount(_new_scratch(confinement.tmp, user, group), "/tmp", NO_SUID | NO_DEVICES | NO_EXECUTION)
            for path, tree in trees:
                _mount(tree, path, READ_ONLY | NO_SUID | NO_DEVICES)
            for path, tree in devices:
                _mount(tree, path, NO_SUID | NO_EXECUTION)
            _hide(covers)
            os.mkdir("/proc")
            if processes is not None:
                _mount(processes, "/proc", READ_ONLY | NO_SUID | NO_DEVICES | NO_EXECUTION)
        copy_folder(source, SUBMISSION, (user, group), confinement.tmp)
        with step("the new root cannot be made read-only"):
            _set(AT_FDCWD, b"/", READ_ONLY, 0)
    finally:
        os.umask(umask)
        os.close(source)
    return SUBMISSION


def _places(readable: Iterable[str], hidden: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Where something is shown, and what: under its own name, and under the name that links lead to."""
    covered = [os.path.realpath(path) for path in hidden]
    real = {os.path.abspath(path): os.path.realpath(path) for path in readable if os.path.exists(path)}
    shown: list[str] = []
    for path, place in sorted((real | {place: place for place in real.values()}).items()):
        if not any(within(path, folder) for folder in shown) and not any(within(place, cover) for cover in covered):
            shown.append(path)
            yield path, place


def _covers(places: Iterable[tuple[str, str]], hidden: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Every path of the view under which something hidden would be seen, and whether it is a folder."""
    reals = {os.path.realpath(path) for path in hidden if os.path.exists(path)}
    for path, real in places:
        for cover in sorted(reals):
            if within(cover, real):
                yield os.path.normpath(os.path.join(path, os.path.relpath(cover, real))), os.path.isdir(cover)


def _copy_of(path: str) -> int:
    """A tree of mounts with all below it, as it is outside, mounted nowhere yet."""
    return call("open_tree", AT_FDCWD, os.fsencode(path), TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC)


def _new(kind: str, flags: int, **options: str) -> int:
    """A new file system, mounted nowhere yet."""
    context = call("fsopen", kind.encode(), 1)
    try:
        for name, value in options.items():
            call("fsconfig", context, SET_STRING, name.encode(), value.encode(), 0)
        call("fsconfig", context, CREATE, None, None, 0)
        return call("fsmount", context, 1, flags)
    finally:
        os.close(context)


def _set(tree: int, path: bytes, attributes: int, flags: int) -> None:
    wanted = ctypes.create_string_buffer(struct.pack("=QQQQ", attributes, 0, 0, 0), 32)
    call("mount_setattr", tree, path, flags, wanted, 32)


def _mount(tree: int, path: str, attributes: int) -> None:
    """Mount a tree at a path of the new root, which is made where it lacks, and close its descriptor."""
    _set(tree, b"", attributes, AT_EMPTY_PATH | AT_RECURSIVE)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.makedirs(path, exist_ok=True)
    elif not os.path.exists(path):
        os.mknod(path, stat.S_IFREG | 0o644)
    call("move_mount", tree, b"", AT_FDCWD, os.fsencode(path), MOVE_FROM_DESCRIPTOR)
    os.close(tree)


def _enter_new_root(mountpoint: str) -> None:
    """Make an empty file system the root of this mount namespace; of the old one nothing stays mounted."""
    root = _new("tmpfs", NO_SUID | NO_DEVICES, size=str(SKELETON_BYTES), mode="0755")
    with step(f"{mountpoint}: nothing can be mounted on this folder"):
        call("move_mount", root, b"", AT_FDCWD, os.fsencode(mountpoint), MOVE_FROM_DESCRIPTOR)
    os.fchdir(root)
    os.close(root)
    call("pivot_root", b".", b".")
    call("umount2", b".", DETACH)
    os.chdir("/")


def _new_scratch(size: int, user: int, group: int) -> int:
    files = max(LEAST_FILES, size // BYTES_PER_FILE)
    owner = {"uid": str(user), "gid": str(group)}
    return _new("tmpfs", 0, size=str(size), nr_inodes=str(files), mode="0700", **owner)


def _hide(covers: Iterable[tuple[str, bool]]) -> None:
    """Mount something empty that cannot be opened over whatever is hidden."""
    folder, file = f"{NOTHING}/folder", f"{NOTHING}/file"
    os.mkdir(NOTHING)
    os.mkdir(folder, 0)
    os.mknod(file, stat.S_IFREG)
    for path, is_folder in covers:
        _mount(_copy_of(folder if is_folder else file), path, READ_ONLY | NO_SUID | NO_DEVICES)


def _new_processes() -> int | None:
    """The /proc of the own namespace; none where users may mount none, as in a container that masks its own.

    The kernel looks for one in the mount namespace, so this comes before the old root goes.
    """
    try:
        return _new("proc", 0, subset="pid")
    except PermissionError:
        return None
