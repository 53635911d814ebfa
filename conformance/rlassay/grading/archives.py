"""Unpacking zip and tar archives that anybody may have made: nothing that they declare is believed.

What comes out is counted while it comes, whatever sizes the archive names; headers are read in small pieces; links,
devices and names that lead elsewhere are left out.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from rlassay.grading.tree import CHUNK, SubmissionError, Tree, shown, too_large

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")

MOST_ENTRIES = 40_000
"""Entries of an archive, those that are left out included."""

DIRECTORY = 1 << 23
"""Bytes that the directory of a zip may have."""

HEADERS = 1 << 31
"""The sum over the long headers of a tar of their bytes squared: some releases of Python search them in such time."""

XZ_MEMORY = 1 << 27
"""Bytes that unpacking an .xz may need."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)

FOREIGN = {b"Rar!": "RAR", b"7z\xbc\xaf": "7-Zip", b"(\xb5/\xfd": "zstandard"}
"""Beginnings of archives that are not unpacked, and what they are."""


def is_archive(name: str) -> bool:
    """Whether a file name is that of an archive."""
    return name.lower().endswith(SUFFIXES)


def extract(path: Path, tree: Tree) -> None:
    """Unpack an archive into a tree; what kind it is, its content says.

    Raises:
        SubmissionError: it is damaged, encrypted, of another kind, or holds more than the limits allow.
    """
    start = b""
    try:
        with _Guarded(io.FileIO(path)) as stream:
            start = stream.read(8)
            stream.seek(0)
            if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
                _extract_zip(stream, tree)
                return
            for magic, opener in COMPRESSIONS.items():
                if start.startswith(magic):
                    with tempfile.TemporaryFile(dir=tree.root) as unpacked:
                        _copy(opener(stream), unpacked, tree.limits.unpacked)
                        unpacked.seek(0)
                        _extract_tar(unpacked, tree)
                    return
            _extract_tar(stream, tree)
    except SubmissionError as error:
        raise SubmissionError(f"{shown(path.name)}: {error}") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise SubmissionError(f"{shown(path.name)}: {_unreadable(start, error)}") from error


def _unreadable(start: bytes, error: Exception) -> str:
    kind = next((kind for magic, kind in FOREIGN.items() if start.startswith(magic)), None)
    if kind is not None:
        return f"is a {kind} archive, which is not unpacked; hand in a .zip or .tar.gz"
    return f"cannot be unpacked ({type(error).__name__}: {shown(str(error))}); it is damaged, or no zip or tar archive"


class _Guarded(io.BufferedReader):
    """A file of which nothing large is read at once, however large an archive says that a part of it is."""

    most = DIRECTORY

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = self.most
        if size > self.most:
            raise SubmissionError("its headers are larger than those of any honest archive")
        return super().read(size)


def _extract_zip(stream: IO[bytes], tree: Tree) -> None:
    with zipfile.ZipFile(stream) as archive:
        _require_few(len(archive.infolist()))
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir():
                continue
            if kind not in (0, stat.S_IFREG):
                tree.leave_out(info.filename, "it is a link" if kind == stat.S_IFLNK else "it is not a regular file")
            elif info.flag_bits & 1:
                raise SubmissionError("is encrypted; hand it in without a password")
            elif info.compress_type not in METHODS:
                raise SubmissionError("is compressed in an unusual way; make the .zip with the system's own tool")
            else:
                tree.add(info.filename, _chunks(partial(archive.open, info)))


def _extract_tar(stream: IO[bytes], tree: Tree) -> None:
    headers = _TarReader(stream)
    with tarfile.open(fileobj=headers, mode="r:", encoding="utf-8") as archive:
        entries = 0
        while (member := archive.next()) is not None:
            entries += 1
            _require_few(entries)
            if member.isdir():
                continue
            if member.issym() or member.islnk():
                tree.leave_out(member.name, "it is a link")
            elif not member.isreg() or member.issparse():
                tree.leave_out(member.name, "it is not a regular file")
            else:
                tree.add(member.name, headers.content(member.offset_data, member.size))


class _TarReader(io.RawIOBase):
    """A tar as the standard library reads its headers: long ones are few, and none is very long."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.left = stream, HEADERS

    def read(self, size: int = -1, /) -> bytes:
        if size > tarfile.BLOCKSIZE:
            self.left -= size * size
        if size < 0 or size > CHUNK or self.left < 0:
            raise SubmissionError("its headers are larger than those of any honest archive")
        return self.stream.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self.stream.seek(offset, whence)

    def tell(self) -> int:
        return self.stream.tell()

    def content(self, offset: int, size: int) -> Iterator[bytes]:
        """The content of a member.

        Raises:
            SubmissionError: the archive ends before it does.
        """
        self.stream.seek(offset)
        while size > 0:
            chunk = self.stream.read(min(size, CHUNK))
            if not chunk:
                raise SubmissionError("cannot be unpacked: it ends in the middle; upload it again")
            size -= len(chunk)
            yield chunk


def _require_few(entries: int) -> None:
    if entries > MOST_ENTRIES:
        raise SubmissionError(f"holds more than {MOST_ENTRIES} entries; hand in the code alone")


def _chunks(opener: Callable[[], IO[bytes] | gzip.GzipFile]) -> Iterator[bytes]:
    with opener() as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def _copy(chunks: Iterator[bytes], sink: IO[bytes], limit: int) -> None:
    """Twice the limit is let through, since a tar holds headers, and folders that are left out."""
    copied = 0
    for chunk in chunks:
        copied += len(chunk)
        if copied > 2 * limit:
            raise SubmissionError(too_large(limit))
        sink.write(chunk)


def _xz_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
    while not decompressor.eof:
        packed = stream.read(CHUNK) if decompressor.needs_input else b""
        if decompressor.needs_input and not packed:
            raise EOFError("it ends in the middle")
        yield decompressor.decompress(packed, CHUNK)


COMPRESSIONS: dict[bytes, Callable[[IO[bytes]], Iterator[bytes]]] = {
    b"\x1f\x8b": lambda stream: _chunks(lambda: gzip.GzipFile(fileobj=stream)),
    b"BZh": lambda stream: _chunks(lambda: bz2.BZ2File(stream)),
    b"\xfd7zXZ\x00": _xz_chunks,
}
"""Compressed archives: how each begins, and the chunks that come out of it."""
