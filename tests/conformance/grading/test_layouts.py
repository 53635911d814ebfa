"""Whose the entries of a folder are, in each platform's layout, and that none is lost."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from rlassay.grading.keys import distinct_keys, safe_key
from rlassay.grading.layouts import LAYOUTS, find_submissions
from rlassay.grading.roster import RosterEntry, RosterError, read_roster
from rlassay.grading.submissions import Submission, SubmissionError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "submissions"
    path.mkdir()
    return path


def put(folder: Path, *names: str) -> None:
    """Write empty files; a name that ends in a slash is a folder's."""
    for name in names:
        path = folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text("")


def by_id(folder: Path, layout: str | None = None) -> dict[str, Submission]:
    return {submission.id: submission for submission in find_submissions(folder, layout).submissions}


def test_in_the_plain_layout_each_entry_is_a_submission(folder: Path) -> None:
    put(folder, "ann.py", "bob.tar.gz", "cid.ipynb", "dan.doe/x.py", "eve.x.zip", "fay.rar")
    found = find_submissions(folder)
    assert found.layout == "plain"
    assert [(s.id, s.key, s.name, s.late, s.path.name) for s in found.submissions] == [
        ("ann", "ann", "", None, "ann.py"),
        ("bob", "bob", "", None, "bob.tar.gz"),
        ("cid", "cid", "", None, "cid.ipynb"),
        ("dan.doe", "dan.doe", "", None, "dan.doe"),
        ("eve.x", "eve.x", "", None, "eve.x.zip"),
        ("fay", "fay", "", None, "fay.rar"),
    ]
    assert found.problems == ()


def test_what_the_staff_keep_beside_submissions_is_left_out_with_a_word(folder: Path) -> None:
    put(folder, "ann.py", "roster.csv", "assignment.toml", ".hidden.py", ".DS_Store", "__MACOSX/x", "._ann.py")
    found = find_submissions(folder)
    assert [submission.id for submission in found.submissions] == ["ann"]
    assert found.problems == (
        ".hidden.py is left out: its name says that it is hidden",
        "assignment.toml is left out: it is no kind of submission",
        "roster.csv is left out: it is no kind of submission",
    )


def test_a_link_is_a_problem_and_is_not_followed(folder: Path, tmp_path: Path) -> None:
    put(folder, "ann.py")
    (tmp_path / "secret").mkdir()
    (folder / "bob").symlink_to(tmp_path / "secret")
    (folder / "cid.py").symlink_to("cid.py")
    found = find_submissions(folder)
    assert [submission.id for submission in found.submissions] == ["ann"]
    assert found.problems == tuple(
        f"{name} is left out: it is a link, which may lead anywhere; copy what it leads to"
        for name in ("bob", "cid.py")
    )


def test_a_pipe_is_a_problem(folder: Path) -> None:
    os.mkfifo(folder / "bob.py")
    assert find_submissions(folder).problems == (
        "bob.py is left out: it is not a regular file",
        "there are no submissions in it",
    )


def test_two_entries_for_one_id_are_both_graded_and_reported(folder: Path) -> None:
    put(folder, "ann.py", "ann.zip")
    found = find_submissions(folder)
    assert [submission.id for submission in found.submissions] == ["ann", "ann"]
    assert len({submission.key for submission in found.submissions}) == 2
    assert found.problems == ("ann is the id of both ann.py and ann.zip; both are graded, so pick the one that counts",)


def test_a_name_that_is_not_utf8_is_kept_as_an_id(folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9.py")).write_text("")
    (submission,) = find_submissions(folder).submissions
    assert submission.id == "caf\\xe9"
    assert submission.key.isascii()
    assert submission.path.exists()


CANVAS = (
    "doejane_12345_67890_solution.py",
    "doejane_12345_67891_helpers-2.py",
    "roejohn_LATE_12346_67892_hw.tar-1.gz",
    "LATE_anon_aB3dE_67893_solution.py",
    "anon_xY4zW_67894_2_3_solution-12.py",
    "müllerjürgen_2_12347_67895___init__-1.py",
)


def test_the_names_of_a_canvas_download_say_whose_files_are(folder: Path) -> None:
    put(folder, *CANVAS[:-1])
    found = find_submissions(folder)
    assert (found.layout, found.problems) == ("canvas", ())
    assert {s.id: (s.name, s.late, [file.name for file in s.files]) for s in found.submissions} == {
        "12345": ("doejane", False, ["solution.py", "helpers.py"]),
        "12346": ("roejohn", True, ["hw.tar.gz"]),
        "anon_aB3dE": ("", True, ["solution.py"]),
        "anon_xY4zW": ("", False, ["2_3_solution.py"]),
    }


def test_typed_texts_and_links_of_canvas_are_reported(folder: Path) -> None:
    put(folder, *CANVAS[:3], "poesue_12348_text.html", "poetom_LATE_12349_link.html", "solution.py", "other/x.py")
    found = find_submissions(folder)
    assert found.layout == "canvas"
    assert set(by_id(folder)) == {"12345", "12346", "solution", "other"}
    assert set(found.problems) == {
        "poesue_12348_text.html is left out: it is a typed text",
        "poetom_LATE_12349_link.html is left out: it is a link to somewhere",
        "solution.py has no name of the layout canvas; it is graded as solution",
        "other has no name of the layout canvas; it is graded as other",
    }


def test_two_files_of_one_student_that_would_have_one_name_are_both_kept(folder: Path) -> None:
    put(folder, "doejane_1_20_solution.py", "doejane_1_21_solution-1.py")
    (submission,) = find_submissions(folder).submissions
    assert [file.name for file in submission.files] == ["solution.py", "doejane_1_21_solution-1.py"]


def test_two_students_with_one_name_are_kept_apart(folder: Path) -> None:
    put(folder, "doejane_12345_1_solution.py", "doejane_12346_2_solution.py")
    found = find_submissions(folder)
    assert [(s.name, s.key) for s in found.submissions] == [("doejane", "12345"), ("doejane", "12346")]


def test_a_moodle_download_is_folders_or_flat_files(folder: Path) -> None:
    put(
        folder,
        "Jane Doe_1234567_assignsubmission_file_/solution.py",
        "Jane Doe_1234568_assignsubmission_file_/solution.py",
        "Müller, Jürgen_1234569_assignsubmission_file_solution.py",
        "Müller, Jürgen_1234569_assignsubmission_file_helpers_2.py",
        "Group A_17_assignsubmission_file/x.py",
        "Default group_assignsubmission_file_/x.py",
        "Jane Doe_1234567_assignsubmission_onlinetext_/onlinetext.html",
        "John Roe_1234570_assignsubmission_onlinetext_onlinetext.html",
    )
    found = find_submissions(folder)
    assert found.layout == "moodle"
    assert {s.id: (s.name, [file.name for file in s.files]) for s in found.submissions} == {
        "1234567": ("Jane Doe", [""]),
        "1234568": ("Jane Doe", [""]),
        "1234569": ("Müller, Jürgen", ["helpers_2.py", "solution.py"]),
        "17": ("Group A", [""]),
        "Default group": ("Default group", [""]),
    }
    assert found.problems == (
        "Jane Doe_1234567_assignsubmission_onlinetext_ is left out: it is a typed text",
        "John Roe_1234570_assignsubmission_onlinetext_onlinetext.html is left out: it is a typed text",
    )


METADATA = {
    "submission_1": {
        ":submitters": [{":name": "Jane Doe", ":sid": "../../x", ":email": "j@x.edu"}],
        ":created_at": "2026-11-30T22:41:07+01:00",
    },
    "submission_2": {
        ":submitters": [{":name": "Ann", ":sid": 7}, {":name": "Bob", ":sid": None, ":email": "b@x.edu"}],
        ":created_at": "2026-11-30T22:41:07",
    },
    "submission_3": {":submitters": "odd", ":created_at": 3},
    "submission_9": {":submitters": []},
    "other": 3,
}


@pytest.fixture
def export(folder: Path) -> Path:
    put(folder, "submission_1/solution.py", "submission_2/solution.py", "submission_3/x.py", "submission_4/y.py")
    (folder / "submission_metadata.yml").write_text(json.dumps(METADATA))
    return folder


def with_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is YAML, so its reader stands in for PyYAML's."""
    module = ModuleType("yaml")
    module.safe_load = json.loads  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "yaml", module)


def test_a_gradescope_export_has_names_ids_and_times(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_yaml(monkeypatch)
    found = find_submissions(export)
    assert found.layout == "gradescope"
    people = {s.path.name: (s.id, s.name, s.submitted) for s in found.submissions}
    assert people == {
        "submission_1": ("../../x", "Jane Doe", datetime.fromisoformat("2026-11-30T22:41:07+01:00")),
        "submission_2": ("7+b@x.edu", "Ann, Bob", datetime(2026, 11, 30, 22, 41, 7, tzinfo=UTC)),
        "submission_3": ("3", "", None),
        "submission_4": ("4", "", None),
    }
    assert found.submissions[0].key == safe_key("../../x")
    assert found.problems == ("submission_9 is listed in submission_metadata.yml, but is not there",)


def test_without_a_yaml_reader_the_folders_numbers_are_the_ids(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    found = find_submissions(export)
    assert [s.id for s in found.submissions] == ["1", "2", "3", "4"]
    assert "is not read, so names and times are not known" in found.problems[0]
    assert "pip install pyyaml" in found.problems[0]


def test_metadata_that_cannot_be_read_loses_no_submission(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_yaml(monkeypatch)
    (export / "submission_metadata.yml").write_text("{")
    found = find_submissions(export)
    assert len(found.submissions) == 4
    assert "cannot be read" in found.problems[0]


def test_the_one_folder_of_an_export_is_looked_into(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_yaml(monkeypatch)
    outer = export.parent / "outer"
    outer.mkdir()
    export.rename(outer / "assignment_123_export")
    assert find_submissions(outer).layout == "gradescope"
    assert len(find_submissions(outer).submissions) == 4


def test_a_layout_that_is_named_is_the_one_that_is_read(folder: Path) -> None:
    put(folder, CANVAS[0])
    assert set(by_id(folder, "plain")) == {"doejane_12345_67890_solution"}
    found = find_submissions(folder, "moodle")
    assert found.problems == (
        f"{CANVAS[0]} has no name of the layout moodle; it is graded as doejane_12345_67890_solution",
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_accounts_for_every_entry(folder: Path, layout: str) -> None:
    put(
        folder,
        *CANVAS,
        "x_text.html",
        "a_1_text.html",
        "Jo_1_assignsubmission_file_/",
        "submission_5/",
        "z.py",
        "r.csv",
    )
    found = find_submissions(folder, layout)
    graded = {file.path.name for submission in found.submissions for file in submission.files}
    reported = {path.name for path in folder.iterdir() if any(path.name in problem for problem in found.problems)}
    assert graded | reported == {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(("name", "layout"), [("gone", None), ("submissions", "blackboard")])
def test_a_folder_or_layout_that_there_is_not_is_an_error(tmp_path: Path, name: str, layout: str | None) -> None:
    (tmp_path / "submissions").mkdir()
    with pytest.raises(SubmissionError, match=r"is not a folder|is no layout of submissions; there are plain, canvas"):
        find_submissions(tmp_path / name, layout)


SAFE = ["ann", "Ann-3", "a.b_c", "12345", "x" * 80]
UNSAFE = [
    *("../../x", "--help", "-", ".", "..", ".hidden", "CON", "nul.txt", "com1", "", " ", "a b", "x" * 81, "y" * 300),
    *("a/b", "a\\b", "a\x00b", "a\nb", "a\x1b[2J", "é", "名前", "\udcff", "end.", "a:b"),
]


@pytest.mark.parametrize("text", SAFE)
def test_a_safe_id_is_its_own_key(text: str) -> None:
    assert safe_key(text) == text


@pytest.mark.parametrize("text", UNSAFE)
def test_any_other_id_has_a_safe_key_with_a_hash(text: str) -> None:
    key = safe_key(text)
    assert key != text
    assert key == safe_key(text)
    assert 0 < len(key) <= 80
    assert key.isascii() and key.replace("-", "").replace("_", "").replace(".", "").isalnum()
    assert key[0] not in "-." and not key.endswith(".")
    assert key.split(".")[0].lower() not in ("con", "nul", "com1")


def test_no_two_ids_have_one_key_even_where_case_does_not_count() -> None:
    ids = [*SAFE, *UNSAFE, "Ann", "ANN", "ann-3", "a_b", "a/b", safe_key("a b"), "ann", "ann"]
    keys = distinct_keys([(text, f"entry {number}") for number, text in enumerate(ids)])
    assert len({key.lower() for key in keys}) == len(ids)
    assert all(len(key) <= 80 for key in keys)
    assert keys == distinct_keys([(text, f"entry {number}") for number, text in enumerate(ids)])


def roster(tmp_path: Path, text: str, encoding: str = "utf-8") -> Path:
    (tmp_path / "roster.csv").write_text(text, encoding=encoding)
    return tmp_path / "roster.csv"


def test_a_roster_gives_names_and_times_by_id(tmp_path: Path) -> None:
    text = (
        'Section,ID,Name,Submitted\nA,7,"Doe, Jane",2026-12-01T23:41:07+01:00\n\nB,8,,\nB,9,Zoë,2026-12-01T22:41:07Z\n'
    )
    assert read_roster(roster(tmp_path, text, "utf-8-sig")) == {
        "7": RosterEntry("7", "Doe, Jane", datetime.fromisoformat("2026-12-01T23:41:07+01:00")),
        "8": RosterEntry("8", "", None),
        "9": RosterEntry("9", "Zoë", datetime(2026, 12, 1, 22, 41, 7, tzinfo=UTC)),
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: has no column named id"),
        ("name\nx\n", "line 1: has no column named id; the first line names the columns"),
        ("id\n7\n8\n7\n", "line 4: '7' is there twice; keep one of the lines"),
        ("id,name\n,Jane\n", "line 2: has no id"),
        ("id,name\n7,Doe, Jane\n", "line 2: has 3 fields for 2 columns; quote those with commas"),
        ("id,submitted\n7,2026-12-01T23:41:07\n", "line 2: '2026-12-01T23:41:07' has no offset from UTC; write it as"),
        ("id,submitted\n7,yesterday\n", "line 2: 'yesterday' is no time"),
        ('id\n"7\n', "line 2: is not CSV"),
    ],
)
def test_a_roster_that_is_wrong_is_refused_with_the_line(tmp_path: Path, text: str, says: str) -> None:
    path = roster(tmp_path, text)
    with pytest.raises(RosterError) as refused:
        read_roster(path)
    assert str(refused.value).startswith(f"{path}, {says}")


def test_a_roster_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RosterError, match="gone.csv: cannot be read: No such file"):
        read_roster(tmp_path / "gone.csv")
    with pytest.raises(RosterError, match="it is not UTF-8"):
        read_roster(roster(tmp_path, "id,name\n7,Zoë\n", "latin-1"))
