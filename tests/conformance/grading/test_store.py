"""Results on disk: a submission's files are all there or none, and a run that was killed can go on."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rlassay.grading.store import Run, Store, StoreError, grades, put, read_grade, read_run, write
from tests.conformance.grading.report_support import grade

RUN = Run(
    schema=1,
    rlassay="0.1.0",
    assignment="a" * 64,
    secret="5",
    title="Losses",
    level="namespaces",
    layout="plain",
    submissions=2,
)


def files(points: str = "12", key: str = "ada") -> dict[str, bytes]:
    return {"grade.json": msgspec.json.encode(grade(key, points)), "report.html": points.encode()}


def run_with(**changes: Any) -> Run:
    return msgspec.structs.replace(RUN, **changes)


@pytest.fixture(params=["exchange", "two renames"])
def _exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the system's exchange of folders, and without."""
    if request.param == "two renames":
        monkeypatch.setattr("rlassay.grading.store._exchange", lambda one, other: False)
    elif not hasattr(ctypes.CDLL(None), "renameat2"):
        pytest.skip("the C library has no renameat2")


def test_what_is_saved_is_there_in_full_with_the_settings_of_the_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "results", RUN, resume=False)
    store.save("ada", files())
    assert read_run(store.folder) == RUN
    assert {path.name: path.read_bytes() for path in (store.submissions / "ada").iterdir()} == files()
    assert [path.name for path in store.submissions.iterdir()] == ["ada"]
    assert sorted(path.name for path in store.folder.iterdir()) == ["run.json", "submissions"]


@pytest.mark.usefixtures("_exchange")
def test_a_result_that_is_saved_again_replaces_all_of_the_first(tmp_path: Path) -> None:
    store = Store(tmp_path, RUN, resume=False)
    store.save("ada", {**files("3"), "junit.xml": b"old"})
    store.save("ada", files("12"))
    assert {path.name: path.read_bytes() for path in (store.submissions / "ada").iterdir()} == files("12")
    assert [path.name for path in store.submissions.iterdir()] == ["ada"]


def test_a_result_that_cannot_be_written_leaves_the_one_that_is_there(tmp_path: Path) -> None:
    store = Store(tmp_path, RUN, resume=False)
    store.save("ada", files("3"))
    with pytest.raises(OSError):
        store.save("ada", {**files("12"), "no/such/folder": b""})
    assert read_grade(tmp_path, "ada") == grade("ada", "3")


@pytest.mark.usefixtures("_exchange")
def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text(name)
    put(tmp_path / "new", tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old" / "text").read_text() == "new"


def test_results_are_not_mixed_with_those_of_an_earlier_run_unless_asked_to(tmp_path: Path) -> None:
    Store(tmp_path, RUN, resume=False).save("ada", files())
    with pytest.raises(StoreError, match=r"holds the results of an earlier run; go on with --resume, or name another"):
        Store(tmp_path, RUN, resume=False)
    Store(tmp_path, run_with(submissions=3), resume=True)
    assert read_run(tmp_path).submissions == 3
    assert read_grade(tmp_path, "ada") == grade("ada")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"assignment": "b" * 64}, "another assignment"),
        ({"rlassay": "0.2.0"}, "another version of rlassay (0.1.0, now 0.2.0)"),
        ({"level": "limits"}, "another level of confinement (namespaces, now limits)"),
        ({"secret": "6"}, "another secret;"),
    ],
)
def test_a_run_does_not_go_on_under_other_settings(tmp_path: Path, changes: dict[str, str], told: str) -> None:
    Store(tmp_path, RUN, resume=False)
    with pytest.raises(StoreError) as raised:
        Store(tmp_path, run_with(**changes), resume=True)
    assert told in str(raised.value)
    assert "marks must not mix" in str(raised.value)
    assert read_run(tmp_path) == RUN


def test_a_folder_that_holds_something_else_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    for resume in (False, True):
        with pytest.raises(StoreError, match="is not empty and holds no results; name another folder with --out"):
            Store(tmp_path, RUN, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_folder_for_results(tmp_path: Path) -> None:
    place = tmp_path / "results"
    place.touch()
    with pytest.raises(StoreError, match="holds no results"):
        Store(place, RUN, resume=False)


def test_settings_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no results of rlassay grade"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(StoreError, match=r"run\.json: cannot be read"):
        Store(tmp_path, RUN, resume=True)


def test_what_a_crash_left_is_removed_and_other_files_stay(tmp_path: Path) -> None:
    store = Store(tmp_path, RUN, resume=False)
    for name in (".ada.0123abcd", ".ada.0123abcd.old"):
        (store.submissions / name).mkdir()
        (store.submissions / name / "grade.json").touch()
    kept = [tmp_path / ".DS_Store", tmp_path / "notes.txt", store.submissions / ".DS_Store"]
    for path in (*kept, tmp_path / ".run.json.0123abcd", tmp_path / ".grades.csv.part"):
        path.touch()
    Store(tmp_path, RUN, resume=True)
    assert sorted(tmp_path.rglob("*")) == sorted([*kept, tmp_path / "run.json", store.submissions])


def test_grades_come_by_key_and_one_that_cannot_be_read_is_an_error_to_all_and_none_by_itself(tmp_path: Path) -> None:
    store = Store(tmp_path, RUN, resume=False)
    for key in ("bob", "ada"):
        store.save(key, files(key=key))
    assert [one.key for one in grades(tmp_path)] == ["ada", "bob"]
    (store.submissions / "bob" / "grade.json").write_text('{"type": "grade"')
    with pytest.raises(StoreError, match=r"bob.grade\.json: cannot be read: .*; grade it again"):
        list(grades(tmp_path))
    assert read_grade(tmp_path, "bob") is None
    assert read_grade(tmp_path, "nobody") is None


def test_a_file_that_is_written_again_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    write(tmp_path / "summary.json", b"old")
    write(tmp_path / "summary.json", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"summary.json": b"new"}


KILLED = """
import json, os, shutil, sys
from pathlib import Path
import rlassay.grading.store as module
from rlassay.grading.store import Run, Store, read_grade
from tests.conformance.grading.test_store import RUN, files

steps = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "ctypes.call_function"}
if sys.argv[2] == "two":
    module._exchange = lambda one, other: False

left = None

def hook(event, arguments):
    global left
    if left is not None and (event in steps or event.startswith("os.") and event != "os.listdir"):
        left -= 1
        if left < 0:
            os._exit(9)

def work(folder):
    store = Store(folder, RUN, resume=True)
    store.save("ada", files("3"))
    store.save("ada", files("12"))
    store.save("bob", files("5", "bob"))

sys.addaudithook(hook)
told = []
for number in range(1000):
    folder = Path(sys.argv[1], str(number))
    child = os.fork()
    if child == 0:
        left = number
        work(folder)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = {
        path.name: sorted(file.name for file in path.iterdir())
        for path in (folder / "submissions").glob("[!.]*")
    }
    points = read_grade(folder, "ada")
    work(folder)
    after = {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}
    told.append({"seen": seen, "points": points and points.points, "after": after})
    shutil.rmtree(folder)
    if ended == 0:
        break
print(json.dumps(told))
"""


@pytest.mark.parametrize("way", ["one", "two"])
def test_killed_between_any_two_steps_nothing_is_there_in_part_and_the_next_run_goes_on(
    tmp_path: Path, way: str
) -> None:
    driver = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path, way],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert driver.returncode == 0, driver.stderr
    told = json.loads(driver.stdout)
    assert len(told) > 25
    for state in told:
        assert all(names == sorted(files()) for names in state["seen"].values())
        assert state["after"] == told[-1]["after"]
    points = [state["points"] for state in told]
    first, last = points.index("3"), len(points) - points[::-1].index("3")
    assert points[:first] == [None] * first
    assert points[-1] == "12"
    if way == "one":
        assert set(points[first:last]) == {"3"}, "the old result is there until the new one is"
        assert set(points[last:]) == {"12"}
