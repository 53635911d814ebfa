"""Archives, honest and hostile: what is unpacked, what is left out, and what is refused early."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rlassay.grading import archives
from rlassay.grading.archives import MOST_ENTRIES, extract
from rlassay.grading.tree import SubmissionError, Tree
from tests.conformance.grading.made import CODE, Most, files_below, tar_member, tar_of, zip_of


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    root = tmp_path / "into" / "root"
    root.mkdir(parents=True)
    return Tree(root, Most())


def notes(tree: Tree) -> str:
    return "\n".join(tree.all_notes())


def only_inside(tmp_path: Path, tree: Tree) -> bool:
    """Whether nothing lies beside the root, and no link inside of it."""
    beside = {path.name for path in (tmp_path / "into").iterdir()}
    return beside == {"root"} and not any(path.is_symlink() for path in tree.root.rglob("*"))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_unpacked_however_it_is_compressed(tmp_path: Path, tree: Tree, mode: str) -> None:
    extract(tar_of(tmp_path / "hw.tar", ("hw/solution.py", CODE.encode()), mode=mode), tree)
    assert files_below(tree.root) == {"hw/solution.py": CODE}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip_is_unpacked_however_it_is_compressed(tmp_path: Path, tree: Tree, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "hw.zip", "w", method) as archive:
        archive.writestr("hw/", "")
        archive.writestr("hw/solution.py", CODE)
    extract(tmp_path / "hw.zip", tree)
    assert files_below(tree.root) == {"hw/solution.py": CODE}


def test_the_content_says_what_kind_an_archive_is(tmp_path: Path, tree: Tree) -> None:
    extract(tar_of(tmp_path / "named.zip", ("solution.py", CODE.encode())), tree)
    assert files_below(tree.root) == {"solution.py": CODE}


def test_all_that_is_unpacked_has_ordinary_permissions(tmp_path: Path, tree: Tree) -> None:
    info = tarfile.TarInfo("a/solution.py")
    info.mode = 0o4000
    old = os.umask(0o077)
    try:
        extract(tar_of(tmp_path / "hw.tar", (info, b"")), tree)
    finally:
        os.umask(old)
    assert [path.stat().st_mode & 0o7777 for path in sorted(tree.root.rglob("*"))] == [0o755, 0o644]


HOSTILE_NAMES = ["../evil.py", "a/../../evil.py", "/evil.py", "C:\\evil.py", "..\\evil.py", "a/../../../etc/passwd"]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_name_that_leads_out_is_left_out(tmp_path: Path, tree: Tree, name: str, kind: str) -> None:
    path = tmp_path / "hw"
    if kind == "zip":
        zip_of(path, (name, "bad"), ("solution.py", CODE))
    else:
        tar_of(path, (name, b"bad"), ("solution.py", CODE.encode()))
    extract(path, tree)
    assert files_below(tree.root) == {"solution.py": CODE}
    assert "its name leads out of the submission" in notes(tree)
    assert only_inside(tmp_path, tree)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret", "solution.py"])
def test_links_in_a_tar_are_left_out_and_not_written_through(
    tmp_path: Path, tree: Tree, kind: bytes, target: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    members = [(tar_member("link", kind, target), b""), ("link", b"through"), ("link/x.py", b""), ("solution.py", b"")]
    extract(tar_of(tmp_path / "hw.tar", *members), tree)
    assert files_below(tree.root) == {"link": "through", "solution.py": ""}
    assert "link is left out: it is a link" in notes(tree)
    assert "there is a file of that name" in notes(tree)
    assert (tmp_path / "secret").read_text() == "secret"
    assert only_inside(tmp_path, tree)


def test_a_link_in_a_zip_is_left_out(tmp_path: Path, tree: Tree) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    extract(zip_of(tmp_path / "hw.zip", (info, "/etc/passwd"), ("solution.py", CODE)), tree)
    assert files_below(tree.root) == {"solution.py": CODE}
    assert "link is left out: it is a link" in notes(tree)


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE])
def test_devices_pipes_and_sparse_files_are_left_out(tmp_path: Path, tree: Tree, kind: bytes) -> None:
    extract(tar_of(tmp_path / "hw.tar", (tar_member("odd", kind), b""), ("solution.py", b"")), tree)
    assert files_below(tree.root) == {"solution.py": ""}
    assert "odd is left out: it is not a regular file" in notes(tree)


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_a_compressed_bomb_stops_early(tmp_path: Path, tree: Tree, compressor: str) -> None:
    (tmp_path / "bomb").write_bytes(COMPRESSORS[compressor](bytes(50 << 20)))
    tracemalloc.start()
    with pytest.raises(SubmissionError, match="unpacks to more than 1 MiB; hand in the code alone"):
        extract(tmp_path / "bomb", tree)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20
    assert files_below(tree.root) == {}


def test_a_zip_bomb_stops_early_whatever_size_it_declares(tmp_path: Path, tree: Tree) -> None:
    zip_of(tmp_path / "bomb.zip", ("zeros", bytes(50 << 20)))
    with pytest.raises(SubmissionError, match=r"bomb.zip: it unpacks to more than 1 MiB"):
        extract(tmp_path / "bomb.zip", tree)
    assert sum(path.stat().st_size for path in tree.root.rglob("*")) <= 1 << 20


def test_entries_of_a_zip_that_share_their_bytes_count_each_time(tmp_path: Path, tree: Tree) -> None:
    content = zip_of(tmp_path / "shared.zip", ("a", bytes(300 << 10))).read_bytes()
    start, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
    directory = content[start:end] * 50
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 50, 50, len(directory), start, 0)
    (tmp_path / "shared.zip").write_bytes(content[:start] + directory + tail)
    with pytest.raises(SubmissionError):
        extract(tmp_path / "shared.zip", tree)
    assert sum(path.stat().st_size for path in tree.root.rglob("*")) <= 1 << 20


def test_more_files_than_allowed_are_refused(tmp_path: Path, tree: Tree) -> None:
    zip_of(tmp_path / "many.zip", *((f"d{n}/f", "") for n in range(51)))
    with pytest.raises(SubmissionError, match="holds more than 100 files and folders"):
        extract(tmp_path / "many.zip", tree)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_of_100_000_entries_is_refused(tmp_path: Path, tree: Tree, kind: str) -> None:
    path = tmp_path / "many"
    if kind == "zip":
        entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"f"
        directory = entry * 100_000
        end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(directory), 8, 0)
        path.write_bytes(b"PK\3\4" + bytes(4) + directory + end)
    else:
        info = tarfile.TarInfo("__pycache__/f").tobuf()
        path.write_bytes(info * 100_000)
    with pytest.raises(SubmissionError, match=f"more than {MOST_ENTRIES} entries"):
        extract(path, tree)


def test_headers_of_a_tar_that_fill_memory_are_refused(tmp_path: Path, tree: Tree) -> None:
    header = tar_member("long", tarfile.GNUTYPE_LONGNAME)
    header.size = 1 << 19
    (tmp_path / "hw.tar").write_bytes(header.tobuf() + b"a" * (1 << 19))
    with pytest.raises(SubmissionError, match="headers are larger than those of any honest archive"):
        extract(tmp_path / "hw.tar", tree)


def test_headers_that_are_slow_to_search_are_refused_before_they_cost_much(
    tmp_path: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "HEADERS", 1 << 25)
    header = tar_member("pax", tarfile.XHDTYPE)
    record = b"4096 comment=".ljust(4095, b"1") + b"\n"
    header.size = len(record)
    (tmp_path / "hw.tar").write_bytes((header.tobuf() + record) * 100)
    with pytest.raises(SubmissionError, match="headers are larger"):
        extract(tmp_path / "hw.tar", tree)


def test_a_directory_of_a_zip_that_fills_memory_is_refused(tmp_path: Path, tree: Tree) -> None:
    size = 9 << 20
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, size, 8, 0)
    (tmp_path / "hw.zip").write_bytes(b"PK\3\4" + bytes(4 + size) + end)
    with pytest.raises(SubmissionError, match="headers are larger"):
        extract(tmp_path / "hw.zip", tree)


def test_the_last_of_two_entries_with_one_name_counts(tmp_path: Path, tree: Tree) -> None:
    tar_of(tmp_path / "hw.tar", ("solution.py", b"old = 1"), ("./solution.py", b"new = 1"))
    extract(tmp_path / "hw.tar", tree)
    assert files_below(tree.root) == {"solution.py": "new = 1"}
    assert "is there twice; the last one counts" in notes(tree)


def test_names_that_differ_in_case_stay_apart_where_the_file_system_can(tmp_path: Path, tree: Tree) -> None:
    extract(tar_of(tmp_path / "hw.tar", ("Solution.py", b"a"), ("solution.py", b"b")), tree)
    assert files_below(tree.root) in ({"Solution.py": "a", "solution.py": "b"}, {"Solution.py": "b"})


def test_a_file_where_a_folder_is_does_not_replace_it(tmp_path: Path, tree: Tree) -> None:
    extract(tar_of(tmp_path / "hw.tar", ("a/solution.py", b""), ("a", b"file")), tree)
    assert files_below(tree.root) == {"a/solution.py": ""}
    assert "there is a folder of that name" in notes(tree)


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        (b"caf\xe9.py", "caf_.py"),
        (b"a\x1b[31m\n.py", "a_[31m_.py"),
        (b"x" * 95 + b".py", "x" * 95 + ".py"),
        ("ü/lösung.py".encode(), "ü/lösung.py"),
        (b"--help.py", "--help.py"),
    ],
)
def test_odd_names_become_names_that_every_file_system_has(
    tmp_path: Path, tree: Tree, name: bytes, becomes: str
) -> None:
    text = name.decode("utf-8", "surrogateescape")
    extract(tar_of(tmp_path / "hw.tar", (text, b"x = 1")), tree)
    assert files_below(tree.root) == {becomes: "x = 1"}
    assert ("is renamed" in notes(tree)) == (becomes != text)
    assert notes(tree).isprintable() or not notes(tree)


def test_a_name_that_is_too_long_keeps_its_ending(tmp_path: Path, tree: Tree) -> None:
    extract(zip_of(tmp_path / "hw.zip", ("é" * 400 + ".py", "x = 1")), tree)
    (name,) = files_below(tree.root)
    assert len(name.encode()) < 120
    assert name.endswith("é.py")


def test_what_lies_too_deep_is_left_out(tmp_path: Path, tree: Tree) -> None:
    extract(zip_of(tmp_path / "hw.zip", ("a/" * 1000 + "x.py", ""), ("solution.py", CODE)), tree)
    assert files_below(tree.root) == {"solution.py": CODE}
    assert "folders deep" in notes(tree)


def test_what_tools_leave_behind_is_left_out_and_does_not_count(tmp_path: Path, tree: Tree) -> None:
    junk = [(f".venv/lib/{number}.py", "") for number in range(200)]
    junk += [("__MACOSX/._solution.py", "x"), ("a/._b.py", "x"), (".git/config", ""), ("a/__pycache__/b.pyc", "")]
    extract(zip_of(tmp_path / "hw.zip", *junk, ("a/b.py", CODE)), tree)
    assert files_below(tree.root) == {"a/b.py": CODE}
    assert notes(tree) == "left out, as tools make them: ._*, .git, .venv, __MACOSX, __pycache__"


def test_an_encrypted_zip_is_refused_with_what_to_do(tmp_path: Path, tree: Tree) -> None:
    path = zip_of(tmp_path / "hw.zip", ("solution.py", CODE))
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(SubmissionError, match=r"hw.zip: is encrypted; hand it in without a password"):
        extract(path, tree)


def test_a_zip_with_a_method_that_few_tools_know_is_refused(tmp_path: Path, tree: Tree) -> None:
    with zipfile.ZipFile(tmp_path / "hw.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("solution.py", CODE)
    with pytest.raises(SubmissionError, match="compressed in an unusual way"):
        extract(tmp_path / "hw.zip", tree)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"Rar!\x1a\x07\x01\x00" + bytes(600), "is a RAR archive, which is not unpacked; hand in a .zip or .tar.gz"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(600), "is a 7-Zip archive"),
        (b"", "cannot be unpacked"),
        (b"PK\x03\x04 and no more", "cannot be unpacked"),
        (gzip.compress(b"no tar at all", mtime=0), "cannot be unpacked"),
        (gzip.compress(random.Random(0).randbytes(4000))[:-100], "cannot be unpacked"),
        (b"\xfd7zXZ\x00" + bytes(20), "cannot be unpacked"),
    ],
)
def test_what_is_no_archive_is_refused_with_what_it_is(tmp_path: Path, tree: Tree, content: bytes, says: str) -> None:
    (tmp_path / "hw.zip").write_bytes(content)
    with pytest.raises(SubmissionError, match=f"hw.zip: {says}"):
        extract(tmp_path / "hw.zip", tree)


def test_an_archive_with_any_byte_changed_is_unpacked_or_refused(tmp_path: Path) -> None:
    whole = [
        zip_of(tmp_path / "a.zip", ("a/solution.py", CODE)).read_bytes(),
        tar_of(tmp_path / "a.tar", ("a/solution.py", CODE.encode()), mode="w").read_bytes()[:1500],
    ]
    for number, content in enumerate(whole):
        for place in range(0, len(content), 3):
            changed = bytearray(content)
            changed[place] ^= 0xFF
            root = tmp_path / "into" / f"{number}-{place}"
            root.mkdir(parents=True)
            (tmp_path / "hw").write_bytes(changed)
            try:
                extract(tmp_path / "hw", Tree(root, Most()))
            except SubmissionError as error:
                assert str(error).startswith("hw: ")


def test_an_error_of_this_machine_is_not_laid_on_the_student(tmp_path: Path, tree: Tree) -> None:
    with pytest.raises(FileNotFoundError):
        extract(tmp_path / "gone.zip", tree)
