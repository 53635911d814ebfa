"""From what was handed in to what a guest loads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from rlassay.grading.handed_in import HandedIn, Submission
from rlassay.grading.submissions import SubmissionError, Unpacked, unpack
from tests.conformance.grading.made import CODE, Most, files_below, notebook_of, tar_of, unpacked, zip_of


def folder_of(root: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def loads(result: Unpacked) -> tuple[str, str]:
    """The root's name, and what of it is loaded."""
    return result.folder.name, result.target


def test_a_file_is_loaded_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "jane doe.py").write_text(CODE)
    result = unpacked(tmp_path / "jane doe.py", tmp_path / "into")
    assert loads(result) == ("into", "jane doe.py")
    assert (result.folder / result.target).read_text() == CODE
    assert result.notes == ()


FOLDERS = {
    "one file": ({"grpo.py": CODE, "README.md": ""}, "grpo.py"),
    "several files": ({"a.py": CODE, "b.py": "", "setup.py": ""}, "."),
    "solution.py beside others": ({"solution.py": CODE, "helpers.py": ""}, "solution.py"),
    "solution.py one folder down": ({"train.py": "", "hw/solution.py": CODE}, "hw/solution.py"),
    "solution.py in a package": ({"train.py": "", "hw/solution.py": CODE, "hw/__init__.py": ""}, "hw.solution"),
    "two solution.py": ({"train.py": "", "a/solution.py": "", "b/solution.py": ""}, "train.py"),
    "a repository with src": ({"src/grpo/__init__.py": CODE, "setup.py": "", "tests/test_a.py": ""}, "src/grpo"),
    "files in src": ({"src/grpo.py": CODE, "README.md": ""}, "src/grpo.py"),
    "a package at the top": ({"grpo/__init__.py": CODE, "tests/__init__.py": "", "setup.py": ""}, "grpo"),
    "a folder that is no package": ({"code_/a.py": CODE, "code_/b.py": "", "report.pdf": ""}, "code_"),
    "folders in folders": ({"hw/part/a.py": CODE, "hw/report.pdf": "", "x.txt": ""}, "hw/part/a.py"),
    "only what lies beside code elsewhere": ({"scripts/a.py": CODE, "x.txt": ""}, "scripts/a.py"),
    "a folder with a file's name": ({"x.py/data.txt": "", "solution.py/a.txt": "", "hw/a.py": CODE}, "hw/a.py"),
    "CS336": (
        {"cs336_alignment/__init__.py": "", "tests/adapters.py": CODE, "tests/__init__.py": ""},
        "tests.adapters",
    ),
    "a package named as a module": ({"torch/__init__.py": CODE, "x.txt": ""}, "submission_torch"),
    "a package that cannot be imported": ({"my-pkg/__init__.py": CODE, "x.txt": ""}, "submission_my_pkg"),
}


@pytest.mark.parametrize(("files", "target"), FOLDERS.values(), ids=FOLDERS)
@pytest.mark.parametrize("form", ["folder", "zip", "zip of a folder"])
def test_what_is_loaded_of_a_folder(tmp_path: Path, files: Mapping[str, str], target: str, form: str) -> None:
    if form == "folder":
        handed_in = folder_of(tmp_path / "jane", files)
    else:
        prefix = "repo-main/" if form == "zip of a folder" else ""
        handed_in = zip_of(tmp_path / "jane.zip", *((f"{prefix}{name}", content) for name, content in files.items()))
    result = unpacked(handed_in, tmp_path / "into")
    assert loads(result) == ("repo-main" if form == "zip of a folder" else "into", target)


@pytest.mark.parametrize(
    ("name", "package"), [("grpo", "grpo"), ("jane.doe", "submission"), ("torch", "submission"), ("a-b", "submission")]
)
def test_a_folder_that_is_a_package_is_loaded_as_one(tmp_path: Path, name: str, package: str) -> None:
    folder = folder_of(tmp_path / name, {"__init__.py": CODE, f"{package}/data.txt": "same name inside"})
    result = unpacked(folder, tmp_path / "into")
    assert loads(result) == ("into", package)
    assert sorted(files_below(result.folder)) == [f"{package}/__init__.py", f"{package}/{package}/data.txt"]


def test_imports_start_at_the_top_and_in_src(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "jane", {"src/grpo/__init__.py": "", "solution.py": CODE})
    assert unpacked(folder, tmp_path / "a").imports == (".", "src")
    assert unpacked(folder / "solution.py", tmp_path / "b").imports == (".",)


def test_a_notebook_becomes_a_file_beside_which_others_count(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "jane", {"hw.ipynb": notebook_of(CODE, "%%bash\nls"), "helpers.py": "x = 1"})
    result = unpacked(folder, tmp_path / "into")
    assert result.target == "."
    assert files_below(result.folder) == {"hw.py": f"# %% cell 1\n{CODE}\n\n", "helpers.py": "x = 1"}
    assert result.notes == ("hw.ipynb: cell 2 is left out, being %%bash",)


def test_a_notebook_and_a_file_of_one_name_both_stay(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "jane", {"hw.ipynb": notebook_of("x = 1"), "hw.py": CODE})
    (folder / "hw_notebook.py").write_text("")
    result = unpacked(folder, tmp_path / "into")
    assert sorted(files_below(result.folder)) == ["hw.py", "hw_notebook.py", "hw_notebook_notebook.py"]


def test_a_broken_notebook_is_noted_beside_code_and_refused_without(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "jane", {"hw.ipynb": "{", "a.py": CODE})
    assert "hw.ipynb is not a notebook" in unpacked(folder, tmp_path / "a").notes[0]
    with pytest.raises(SubmissionError, match="hw.ipynb is not a notebook: its JSON cannot be read"):
        unpacked(folder / "hw.ipynb", tmp_path / "b")


def test_the_notebook_that_jupyter_keeps_as_a_checkpoint_does_not_count(tmp_path: Path) -> None:
    files = {"hw.ipynb": notebook_of(CODE), ".ipynb_checkpoints/hw-checkpoint.ipynb": notebook_of("old = 1")}
    result = unpacked(folder_of(tmp_path / "jane", files), tmp_path / "into")
    assert sorted(files_below(result.folder)) == ["hw.py"]


def test_an_archive_that_holds_one_archive_is_unpacked_to_the_files(tmp_path: Path) -> None:
    inner = zip_of(tmp_path / "hw.zip", ("hw/solution.py", CODE))
    middle = tar_of(tmp_path / "hw.tar.gz", ("hw.zip", inner.read_bytes()))
    outer = zip_of(tmp_path / "outer.zip", ("a/hw.tar.gz", middle.read_bytes()), ("report.pdf", ""))
    result = unpacked(outer, tmp_path / "into")
    assert (result.folder / result.target).read_text() == CODE


def test_archives_inside_of_archives_are_not_followed_for_ever(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "0.zip", ("solution.py", CODE))
    for depth in range(1, 5):
        path = zip_of(tmp_path / f"{depth}.zip", (path.name, path.read_bytes()))
    with pytest.raises(SubmissionError, match=r"it holds no Python, only 1.zip; hand in a .py file"):
        unpacked(path, tmp_path / "into")


def test_limits_count_all_that_is_handed_in(tmp_path: Path) -> None:
    inner = zip_of(tmp_path / "inner.zip", ("solution.py", b"#" * (700 << 10)))
    outer = zip_of(tmp_path / "outer.zip", ("inner.zip", inner.read_bytes()), ("big.txt", bytes(700 << 10)))
    with pytest.raises(SubmissionError, match=r"inner.zip: it unpacks to more than 1 MiB"):
        unpacked(outer, tmp_path / "into")


def test_an_archive_beside_code_stays_packed(tmp_path: Path) -> None:
    outer = zip_of(tmp_path / "outer.zip", ("solution.py", CODE), ("data.zip", b"not even a zip"))
    assert "data.zip" in files_below(unpacked(outer, tmp_path / "into").folder)


def test_several_archives_and_no_code_are_refused(tmp_path: Path) -> None:
    outer = zip_of(tmp_path / "outer.zip", ("a.zip", b""), ("b.zip", b""))
    with pytest.raises(SubmissionError, match=r"several archives and no Python: a.zip, b.zip"):
        unpacked(outer, tmp_path / "into")


def test_several_files_of_one_student_lie_together(tmp_path: Path) -> None:
    (tmp_path / "12_34_solution.py").write_text(CODE)
    archive = zip_of(tmp_path / "12_35_rest.zip", ("helpers.py", "x = 1"))
    files = (HandedIn(tmp_path / "12_34_solution.py", "solution.py"), HandedIn(archive, "rest.zip"))
    result = unpack(Submission("key", "12", "", files), tmp_path / "into", Most())
    assert files_below(result.folder) == {"helpers.py": "x = 1", "solution.py": CODE}
    assert result.target == "solution.py"


def test_what_lies_in_a_folder_of_the_platform_is_what_was_handed_in(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "Jane_1_assignsubmission_file_", {"notes.py": "", "pkg/__init__.py": ""})
    zip_of(folder / "hw.zip", ("solution.py", CODE))
    (folder / "out").symlink_to(tmp_path)
    result = unpack(Submission("key", "1", "", (HandedIn(folder, ""),)), tmp_path / "into", Most())
    assert files_below(result.folder) == {"notes.py": "", "pkg/__init__.py": "", "solution.py": CODE}
    assert result.notes == ("out is left out: it is a link",)


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("secret = 1")
    folder = folder_of(tmp_path / "jane", {"solution.py": CODE, "a/b.py": ""})
    (folder / "file.py").symlink_to(tmp_path / "secret.py")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "a" / "loop").symlink_to(folder)
    (folder / "self").symlink_to("self")
    result = unpacked(folder, tmp_path / "into")
    assert files_below(result.folder) == {"a/b.py": "", "solution.py": CODE}
    assert len([note for note in result.notes if note.endswith("it is a link")]) == 4


def test_a_pipe_in_a_folder_is_not_opened(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "jane", {"solution.py": CODE})
    os.mkfifo(folder / "pipe.py")
    assert unpacked(folder, tmp_path / "into").notes == ("pipe.py is left out: it is not a regular file",)


def test_what_a_guest_gets_is_a_copy(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "jane", {"solution.py": CODE})
    (unpacked(folder, tmp_path / "into").folder / "solution.py").write_text("changed")
    assert (folder / "solution.py").read_text() == CODE


def test_a_folder_that_is_too_large_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "jane", {"solution.py": CODE, "model.bin": "x" * (2 << 20)})
    with pytest.raises(SubmissionError, match="more than 1 MiB"):
        unpacked(folder, tmp_path / "into")
    assert len(list((tmp_path / "into").iterdir())) <= 2


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "it holds no Python: it is empty; hand in a .py file, or a .zip with one"),
        ({"hw.pdf": "", "a.txt": ""}, "it holds no Python, only a.txt, hw.pdf; hand in"),
        ({"setup.py": "", "test_a.py": ""}, "it holds no Python, only setup.py, test_a.py"),
        ({"a/x.py": "", "b/y.py": ""}, r"it holds several folders of Python: a, b; put what .* into solution.py"),
        ({"a/__init__.py": "", "b/__init__.py": ""}, "several folders of Python: a, b"),
    ],
)
def test_a_folder_of_which_nothing_can_be_loaded_is_refused(
    tmp_path: Path, files: Mapping[str, str], says: str
) -> None:
    (tmp_path / "jane").mkdir()
    with pytest.raises(SubmissionError, match=says):
        unpacked(folder_of(tmp_path / "jane", files), tmp_path / "into")


def test_an_error_names_no_control_characters(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J\n.pdf").write_text("")
    with pytest.raises(SubmissionError) as refused:
        unpacked(tmp_path / "a\x1b[2J\n.pdf", tmp_path / "into")
    assert str(refused.value).isprintable()
