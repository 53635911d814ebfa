"""`rlassay grade` and `rlassay regrade` as staff use them: everybody is graded, nothing is lost, nothing is left."""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from rlassay.cli import run
from rlassay.grading.classbook import cell
from rlassay.grading.grade import Grade
from rlassay.grading.store import read_run
from rlassay.isolation.selftest import SelfTest
from rlassay.isolation.view import View
from rlassay.isolation.warm import IsolationError
from tests.conformance.cli_support import wait_for
from tests.conformance.grading.attacks import ATTACKS, Attack
from tests.conformance.grading.command_support import (
    FILE,
    contents,
    needs_namespaces,
    rlassay,
    start,
    stored,
    write_all,
)

RIGHT = Attack().source
CLASS = {
    "ada.py": RIGHT,
    "bob.py": RIGHT.replace("torch.expm1(log_ratio) - log_ratio", "log_ratio**2 / 2"),
    "empty.py": "",
    "--help.py": RIGHT,
    "%2e%2e%2f%2e%2e%2fx.py": RIGHT,
    "same.py": RIGHT,
    "same.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": RIGHT}]}),
    "exit.py": ATTACKS["os_exit_at_import"].source,
    "x\x1b[31m.py": ATTACKS["daemonised_child"].source,
    "y-hang.py": ATTACKS["swallowed_signals"].source,
    "z-hang.py": ATTACKS["infinite_loop_at_import"].source,
}
ROSTER = "id,name\nada,../../../ada\nbob,--help\n"
HELD, HUNG = {"kl_k1": "1", "keep_groups": "4"}, {"kl_k1": "1", "kl_k3": "0", "keep_groups": "4"}
FULL = {"kl_k1": "1", "kl_k3": "2", "keep_groups": "4"}


def write_class_folder(folder: Path) -> Path:
    """A folder with an assignment, a roster and the submissions."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "assignment.toml").write_text(FILE.replace("load = 20.0", "load = 3.0"))
    (folder / "roster.csv").write_text(ROSTER)
    write_all(folder / "submissions", CLASS)
    return folder


ARGUMENTS = ("submissions", "--assignment", "assignment.toml", "--out", "results", "--roster", "roster.csv")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One undisturbed run: its folder, and what it printed."""
    folder = write_class_folder(tmp_path_factory.mktemp("class") / "inner" / "inner")
    done = rlassay("grade", *ARGUMENTS, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout


@pytest.fixture
def again(finished: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy of the undisturbed run."""
    return Path(shutil.copytree(finished[0], tmp_path / "copy"))


def earned(grade: Grade) -> dict[str, str]:
    return {part.name: part.earned for part in grade.parts}


def by_id(folder: Path) -> dict[str, Grade]:
    return {grade.id: grade for grade in stored(folder / "results").values()}


@needs_namespaces
class TestRun:
    def test_everybody_is_graded_for_what_is_right(self, finished: tuple[Path, str]) -> None:
        grades = stored(finished[0] / "results").values()
        assert len(grades) == len(CLASS)
        assert {grade.status for grade in grades} == {"graded"}
        marks = {grade.id: earned(grade) for grade in grades}
        wrong = marks.pop("bob")
        assert wrong | {"kl_k3": ""} == FULL | {"kl_k3": ""}
        assert 0 < eval(wrong["kl_k3"]) < 2
        assert marks.pop("empty") == dict.fromkeys(FULL, "0")
        slow = marks.pop("y-hang")
        assert slow | {"kl_k3": ""} == FULL | {"kl_k3": ""}
        assert set(map(str, marks.values())) == {str(FULL)}

    def test_two_submissions_with_one_id_are_both_graded_and_told(self, finished: tuple[Path, str]) -> None:
        folder, out = finished
        same = [grade for grade in stored(folder / "results").values() if grade.id == "same"]
        assert sorted(grade.files for grade in same) == [["same.ipynb"], ["same.py"]]
        assert "same is the id of both same.ipynb and same.py" in " ".join(out.split())

    def test_names_lead_nowhere_and_reach_no_terminal(self, finished: tuple[Path, str]) -> None:
        folder, out = finished
        places = {path.name for path in (folder / "results" / "submissions").iterdir()}
        assert all(re.fullmatch(r"\w[\w.-]*", place, re.ASCII) for place in places)
        assert {path.name for path in folder.iterdir()} == {
            *("assignment.toml", "roster.csv", "submissions", "results", "pid-0")
        }
        assert [path.name for path in folder.parent.iterdir()] == [folder.name]
        assert "\x1b" not in out
        assert by_id(folder)["ada"].name == "../../../ada"

    def test_every_file_is_there(self, finished: tuple[Path, str]) -> None:
        results = finished[0] / "results"
        for place in (results / "submissions").iterdir():
            assert {path.name for path in place.iterdir()} == {
                *("grade.json", "record.ndjson", "results.json", "junit.xml", "report.html")
            }
        with (results / "grades.csv").open(encoding="utf-8-sig", newline="") as stream:
            rows = sorted(row["id"] for row in csv.DictReader(stream))
        assert rows == sorted(cell(grade.id) for grade in stored(results).values())
        assert json.loads((results / "summary.json").read_bytes())["submissions"] == len(CLASS)
        for name in ("canvas.csv", "moodle.csv", "similarity.csv", "summary.html"):
            assert (results / name).stat().st_size > 0

    def test_the_level_in_force_is_printed_and_recorded(self, finished: tuple[Path, str]) -> None:
        folder, out = finished
        assert "isolation: namespaces; its self-test withstood 29 of 29 attempts" in out
        assert read_run(folder / "results").level == "namespaces"
        assert {grade.level for grade in stored(folder / "results").values()} == {"namespaces"}

    def test_the_secret_is_nowhere_in_the_results(self, finished: tuple[Path, str]) -> None:
        for path in (finished[0] / "results").rglob("*"):
            assert path.is_dir() or b"the secret of the small parts" not in path.read_bytes()


@needs_namespaces
class TestResume:
    def test_only_what_changed_or_is_missing_is_graded_again(self, again: Path) -> None:
        before = stored(again / "results")
        (again / "submissions" / "bob.py").write_text(RIGHT)
        (again / "submissions" / "eve.py").write_text(RIGHT)
        shutil.rmtree(again / "results" / "submissions" / "exit")
        known = {path.name: path.stat().st_ino for path in (again / "results" / "submissions").iterdir()}
        done = rlassay("grade", *ARGUMENTS, "--resume", cwd=again)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"{len(CLASS) - 2} are graded already" in done.stdout
        after = stored(again / "results")
        assert earned(after["bob"]) == earned(after["eve"]) == FULL
        assert {key: after[key] for key in before if key != "bob"} == {k: v for k, v in before.items() if k != "bob"}
        now = {path.name: path.stat().st_ino for path in (again / "results" / "submissions").iterdir()}
        assert {key for key in known if known[key] != now[key]} == {"bob"}

    def test_a_run_that_was_killed_goes_on_to_the_same_results(
        self, finished: tuple[Path, str], tmp_path: Path
    ) -> None:
        folder = write_class_folder(tmp_path)
        command = start("grade", *ARGUMENTS, "--jobs", "1", cwd=folder)
        wait_for(_graded(folder, 3), "three are graded", 120)
        command.kill(signal.SIGKILL)
        assert command.wait().returncode == 128 + signal.SIGKILL
        assert 3 <= _count(folder) < len(CLASS)
        assert not (folder / "results" / "grades.csv").exists()
        done = rlassay("grade", *ARGUMENTS, "--resume", cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert stored(folder / "results") == stored(finished[0] / "results")
        assert contents(folder / "results") == contents(finished[0] / "results")

    def test_ctrl_c_keeps_what_is_graded_and_leaves_no_process(self, tmp_path: Path) -> None:
        folder = write_class_folder(tmp_path)
        command = start("grade", *ARGUMENTS, "--jobs", "1", cwd=folder)
        wait_for(_graded(folder, 2), "two are graded", 120)
        command.kill(signal.SIGINT)
        done = command.wait()
        assert done.returncode == 130
        assert done.stderr.splitlines() == ["interrupted; what is graded is in results, and --resume goes on"]
        with (folder / "results" / "grades.csv").open(encoding="utf-8-sig", newline="") as stream:
            assert 2 <= len(list(csv.DictReader(stream))) == _count(folder) < len(CLASS)


def _count(folder: Path) -> int:
    return len(list((folder / "results" / "submissions").glob("[!.]*")))


def _graded(folder: Path, number: int) -> Callable[[], bool]:
    return lambda: _count(folder) >= number


@needs_namespaces
class TestRegrade:
    ARGUMENTS = ("results", "submissions", "--assignment", "assignment.toml", "--roster", "roster.csv")

    def test_grading_again_changes_nothing(self, again: Path) -> None:
        before = contents(again / "results"), stored(again / "results")
        done = rlassay("regrade", *self.ARGUMENTS, "--json", "changes.json", cwd=again)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"{len(CLASS)} graded again, 0 changed" in done.stdout
        assert (contents(again / "results"), stored(again / "results")) == before
        assert json.loads((again / "changes.json").read_bytes()) == []

    def test_a_difference_is_shown_with_its_reason_and_then_made(self, again: Path) -> None:
        (again / "submissions" / "bob.py").write_text(RIGHT)
        (again / "results" / "notes.txt").write_text("Bob has an extension.")
        before = contents(again / "results"), stored(again / "results")
        done = rlassay("regrade", *self.ARGUMENTS, "--diff", cwd=again)
        shown = " ".join(done.stdout.split())
        assert (done.returncode, done.stderr) == (1, "")
        assert re.search(r"--help \(bob\): [56]\.\d+ of 7 → 7 of 7", shown)
        assert "because its code changed (sha256" in shown
        assert shown.endswith(f"{len(CLASS)} graded again, 1 changed")
        assert (contents(again / "results"), stored(again / "results")) == before
        done = rlassay("regrade", *self.ARGUMENTS, cwd=again)
        assert (done.returncode, done.stderr) == (1, "")
        assert "".join(done.stdout.split()).endswith("resultsisreplaced")  # a long path is broken anywhere
        assert earned(stored(again / "results")["bob"]) == FULL
        assert set(stored(again / "results")) == set(before[1])
        assert (again / "results" / "notes.txt").read_text() == "Bob has an extension."
        assert not list(again.glob(".results*"))

    def test_results_are_not_replaced_by_some_that_lack_a_grade(self, again: Path) -> None:
        for name in CLASS:
            if name != "ada.py":
                (again / "submissions" / name).unlink()
        before = contents(again / "results"), stored(again / "results")
        done = rlassay("regrade", *self.ARGUMENTS, cwd=again)
        shown = " ".join(done.stdout.split())
        assert (done.returncode, done.stderr) == (1, "")
        assert "because it is missing in the second folder" in shown
        assert f"is as it was, since {len(CLASS) - 1} grades would be lost or need a review" in shown
        assert (contents(again / "results"), stored(again / "results")) == before


@pytest.fixture
def class_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The class, in the current folder, where nothing is isolated and nothing is to be graded."""
    folder = write_class_folder(tmp_path / "class")
    monkeypatch.chdir(folder)
    tested = SelfTest("namespaces", {"escape": ""}, withstood=True)
    monkeypatch.setattr("rlassay.cli.grading.tested_level", lambda assignment, level, private: tested)
    monkeypatch.setattr("rlassay.grading.batch.local", None)
    return folder


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--layout", "blackboard"], "'blackboard' is no layout of submissions; there are plain, canvas, moodle"),
        (["--roster", "nobody.csv"], "nobody.csv: cannot be read: No such file"),
        (["--roster", "assignment.toml"], "assignment.toml, line 1: has no column named id"),
        (["--only", "ada", "--only", "eve"], "submissions: has no submission of eve"),
        (["--assignment", "missing.toml"], "missing.toml"),
        (["--out", "submissions"], "submissions: is not empty and holds no results; name another folder with --out"),
        (["--out", "submissions/results"], "lies in submissions, where each entry is a submission"),
        (["--out", "roster.csv"], "roster.csv: is not empty and holds no results"),
        (["--scheduler", "nonsense"], "nonsense: "),
        (["--isolation", "none"], "Invalid value for '--isolation'"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_graded(
    class_folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    arguments = dict(zip(ARGUMENTS[1::2], ARGUMENTS[2::2], strict=True))
    extra: list[str] = []
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option in arguments:
            arguments[option] = value
        else:
            extra += [option, value]
    assert run(["grade", "submissions", *(word for pair in arguments.items() for word in pair), *extra]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert not list((class_folder / "results").rglob("grade.json"))


def test_an_empty_folder_is_told(class_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (class_folder / "none").mkdir()
    assert run(["grade", "none", *ARGUMENTS[1:]]) == 2
    assert "none: there is nothing to grade in it; there are no submissions in it" in capsys.readouterr().err


def test_results_of_an_earlier_run_are_not_touched(class_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_all(class_folder / "results", {"run.json": '{"type": "run"}'})
    assert run(["grade", *ARGUMENTS]) == 2
    assert "run.json: cannot be read" in capsys.readouterr().err
    assert [path.name for path in (class_folder / "results").iterdir()] == ["run.json"]


@pytest.mark.parametrize("command", [["regrade", "results", "submissions", "--assignment", "assignment.toml"]])
def test_there_is_nothing_to_compare_without_results(
    class_folder: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert run(command) == 2
    assert "results: holds no results of rlassay grade (No such file or directory)" in capsys.readouterr().err


class Refusing:
    """A warm process on a machine that makes no namespaces."""

    def __init__(self, *python: str) -> None:
        self.view = View((), ())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def guest(self, *arguments: object, **keywords: object) -> None:
        raise IsolationError("a guest cannot be confined: unshare: Operation not permitted [EPERM]")


def test_a_level_that_is_not_to_be_had_is_refused_with_the_one_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(write_class_folder(tmp_path))
    monkeypatch.setattr("rlassay.grading.confined.WarmProcess", Refusing)
    monkeypatch.setattr("rlassay.grading.confined.best_level", lambda: ("filtered", "no namespaces"))
    assert run(["grade", *ARGUMENTS]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "the level namespaces is not to be had: a guest cannot be confined: unshare: Operation not" in told
    assert "this machine gives filtered, which you can ask for with --isolation filtered" in told
    assert not (tmp_path / "results").exists()
