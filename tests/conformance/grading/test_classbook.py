"""The class's tables: right for the platforms that import them, harmless in a spreadsheet."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from rlassay.grading.classbook import cell, write_classbook
from rlassay.grading.grade import Grade, PartGrade
from rlassay.grading.points import percent_text, points_text, rounded
from tests.conformance.grading.report_support import HOSTILE, assignment, grade


def tables(folder: Path, *grades: Grade, layout: str = "plain", title: str = "Losses") -> dict[str, list[list[str]]]:
    """The three tables as they are read back."""
    write_classbook(folder, iter(grades), assignment(title), layout)
    assert {path.name for path in folder.iterdir()} == {"grades.csv", "canvas.csv", "moodle.csv"}
    found = {}
    for path in folder.iterdir():
        with path.open(encoding="utf-8-sig", newline="") as stream:
            found[path.stem] = list(csv.reader(stream))
    for rows in found.values():
        assert len({len(row) for row in rows}) == 1
    return found


def test_grades_have_all_that_staff_asks_for(tmp_path: Path) -> None:
    late = grade("bob", "54/5", earned="12", penalty="1/10", lateness="1 day late", alerts=["hung"], notes=["a", "b"])
    head, row = tables(tmp_path, late)["grades"]
    assert dict(zip(head, row, strict=True)) == {
        "id": "bob",
        "name": "Bob",
        "points": "10.80",
        "maximum": "15.00",
        "earned": "12.00",
        "late": "1 day late",
        "penalty": "10 %",
        "status": "graded",
        "judged": "modules",
        "1. k1 by hand": "7",
        "2. kl_k2": "5",
        "notes": "a · b",
        "for staff": "hung",
    }


def test_canvas_gets_its_own_number_or_the_sis_columns(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    own = tables(tmp_path / "a", grade("17", name="Lovelace, Ada"), layout="canvas")["canvas"]
    assert own == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Losses"],
        ["    Points Possible", "", "", "", "", "15.00"],
        ["Lovelace, Ada", "17", "", "", "", "12.00"],
    ]
    other = tables(tmp_path / "b", grade("17ada", name="Ada"), layout="plain")["canvas"]
    assert other[2] == ["Ada", "", "17ada", "17ada", "", "12.00"]


def test_moodle_gets_the_participant_or_the_id_number(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    head, row = tables(tmp_path / "a", grade("1234567", name="Ada"), layout="moodle")["moodle"]
    assert dict(zip(head, row, strict=True)) == {
        "Identifier": "Participant 1234567",
        "Full name": "Ada",
        "ID number": "",
        "Grade": "12.00",
        "Maximum Grade": "15.00",
        "Last modified (grade)": "",
        "Feedback comments": "12 of 15 points<br>k1 by hand: 7 of 10 points<br>kl_k2: 5 of 5 points",
    }
    assert tables(tmp_path / "b", grade("ada"))["moodle"][1][:3] == ["", "Ada", "ada"]


@pytest.mark.parametrize("layout", ["canvas", "moodle"])
def test_an_id_that_is_no_number_of_the_platform_is_not_given_for_one(tmp_path: Path, layout: str) -> None:
    found = tables(tmp_path, grade("12team"), layout=layout)
    assert found["canvas"][2][1:4] == ["", "12team", "12team"]
    assert found["moodle"][1][:3] == ["", "12Team", "12team"]


@pytest.mark.parametrize("status", ["review", "failed"])
def test_what_staff_has_to_look_at_is_not_exported(tmp_path: Path, status: str) -> None:
    found = tables(tmp_path, grade(status=status, alerts=["look"]))
    assert found["canvas"][2][-1] == ""
    assert found["moodle"][1][3] == found["moodle"][1][6] == ""
    assert found["grades"][1][7] == status
    assert found["grades"][1][2] == ("12.00" if status == "review" else "")
    assert found["grades"][1][-1] == "look"


def test_points_are_rounded_once_from_exact_fractions_and_ties_go_up() -> None:
    """1.005 has no exact float: rounding one gives 1.00."""
    assert f"{rounded('201/200'):f}" == "1.01"
    assert f"{rounded(Fraction(2, 3)):f}" == "0.67"
    assert f"{rounded('1/400'):f}" == "0.00"
    assert (points_text("12"), points_text("25/2"), points_text("0"), points_text("100")) == ("12", "12.5", "0", "100")
    assert percent_text("1/3") == "33.33 %"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1", '=HYPERLINK("x")'])
def test_no_cell_begins_a_formula(tmp_path: Path, text: str) -> None:
    assert cell(text).startswith("'")
    found = tables(tmp_path, grade(id=text, name=text, notes=[text], alerts=[text], lateness=text), title=text)
    for rows in found.values():
        for row in rows:
            assert not [one for one in row if one.lstrip()[:1] in ("=", "+", "-", "@", "＝") and one]


def test_no_formula_begins_where_a_semicolon_parts_the_cells() -> None:
    assert cell("Ada;=1+1; +2") == "Ada;'=1+1;' +2"


def test_ordinary_names_are_left_alone() -> None:
    for name in ("Anne-Marie O'Neil", "李小龍", "Søren", "a@b.org", "x=1", "José; Ada"):
        assert cell(name) == name


def test_hostile_texts_stay_in_their_cell(tmp_path: Path) -> None:
    nasty = f'{HOSTILE}",\r\n"=1+1;\n=2'
    parts = [PartGrade(name=nasty, points="1", earned="1", passed=1, failed=0)]
    found = tables(tmp_path, grade(id=nasty, name=nasty, notes=[nasty], parts=parts), grade("bob"))
    assert [len(rows) for rows in found.values()].count(3) == 2
    for rows in found.values():
        for row in rows:
            assert not any("\n" in one or "\x1b" in one or "\x00" in one for one in row)


def test_the_comment_in_moodle_is_html_in_which_nothing_is_left_to_obey(tmp_path: Path) -> None:
    parts = [PartGrade(name="<img src=x>", points="1", earned="1", passed=1, failed=0)]
    comment = tables(tmp_path, grade(notes=["<script>"], parts=parts))["moodle"][1][6]
    assert comment.replace("<br>", "").count("<") == 0
    assert "&lt;script&gt;" in comment


def test_a_name_cannot_pose_as_the_row_of_the_maximum(tmp_path: Path) -> None:
    rows = tables(tmp_path, grade(name="My Points Possible"))["canvas"]
    assert [("Points Possible" in row[0]) for row in rows] == [False, True, False]


def test_the_same_grades_give_the_same_bytes(tmp_path: Path) -> None:
    content = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        tables(tmp_path / name, grade(), grade("bob", name="Ada"))
        content.append([path.read_bytes() for path in sorted((tmp_path / name).iterdir())])
    assert content[0] == content[1]


def test_an_empty_class_gives_tables_without_rows(tmp_path: Path) -> None:
    assert [len(rows) for rows in tables(tmp_path).values()] == [1, 1, 1]


def test_a_table_that_breaks_off_leaves_the_old_one(tmp_path: Path) -> None:
    tables(tmp_path, grade())
    before = (tmp_path / "grades.csv").read_bytes()

    def broken() -> object:
        yield grade("bob")
        raise RuntimeError("a grade that cannot be read")

    with pytest.raises(RuntimeError):
        write_classbook(tmp_path, broken(), assignment(), "plain")  # type: ignore[arg-type]
    assert (tmp_path / "grades.csv").read_bytes() == before
