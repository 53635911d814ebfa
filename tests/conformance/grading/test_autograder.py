"""The archive for Gradescope's autograder, made, laid out as Gradescope lays it out, and run as Gradescope runs it."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from rlassay.cli import run
from rlassay.grading import pins as pins_module
from rlassay.grading.assignment_file import read_assignment
from rlassay.grading.autograder import FILES, autograder_zip
from rlassay.grading.autograder_layout import failed_json
from rlassay.grading.autograder_run import NOT_ISOLATED, Metadata, extended, submission_of
from rlassay.grading.gradescope import FAILED
from rlassay.grading.pins import PinError, pins
from rlassay.guest.confine import best_level
from tests.conformance.grading.attacks import RIGHT, in_kl_k3

LEVEL, _ = best_level()

SECRET = "the secret of the archive"
ASSIGNMENT = """
title = "three small parts"
secret_file = "secret.txt"
profile = "quick"
examples = 2

[limits]
call = 1.0
load = 20.0
submission = 60.0
cpu = 40
memory = "512 MiB"
tmp = "16 MiB"

[deadline]
due = 2026-12-01T23:59:00+01:00
late = { per_day = 0.5, days = 3 }

[[part]]
operation = "kl_k1"
points = 1
visible = true

[[part]]
operation = "kl_k3"
points = 2

[[part]]
operation = "keep_groups"
points = 4
"""

METADATA: dict[str, Any] = {
    "id": 123456,
    "created_at": "2026-12-01T20:00:00.365935+01:00",
    "assignment": {
        "due_date": "2026-12-01T23:59:00.000000+01:00",
        "group_size": None,
        "group_submission": False,
        "id": 25828,
        "course_id": 1234,
        "late_due_date": None,
        "release_date": "2026-11-01T00:00:00.000000+01:00",
        "title": "three small parts",
        "total_points": "7.0",
    },
    "submission_method": "upload",
    "users": [{"email": "ada@example.org", "id": 77, "name": "Ada"}],
    "previous_submissions": [{"submission_time": "2026-11-30T10:00:00.0+01:00", "score": 0.0, "results": {}}],
}

VISIBILITIES = ("hidden", "after_due_date", "after_published", "visible")
FORMATS = ("text", "html", "simple_format", "md", "ansi")


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assignment")
    (folder / "secret.txt").write_text(f"{SECRET}\n")
    path = folder / "hw1.toml"
    path.write_text(ASSIGNMENT)
    return path


@pytest.fixture(scope="module")
def archive(assignment: Path) -> bytes:
    return autograder_zip(read_assignment(assignment), LEVEL)


def members(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as content:
        return {name: content.read(name) for name in content.namelist()}


@dataclass(frozen=True)
class Container:
    """A folder as Gradescope makes it of an archive."""

    root: Path

    @property
    def results(self) -> Path:
        return self.root / "results" / "results.json"

    def run(self, metadata: Mapping[str, Any] = METADATA, **environment: str) -> str:
        """Run run_autograder as Gradescope does, on this Python; what it prints."""
        shutil.rmtree(self.root / "results", ignore_errors=True)
        (self.root / "results").mkdir()
        (self.root / "submission_metadata.json").write_text(json.dumps(metadata))
        done = subprocess.run(
            ["./run_autograder"],
            cwd=self.root,
            env={**os.environ, "AUTOGRADER_ROOT": str(self.root), "RLASSAY_PYTHON": sys.executable, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=300,
            check=True,
        )
        return done.stdout


@pytest.fixture
def container(archive: bytes, tmp_path: Path) -> Callable[..., Container]:
    def lay_out(source: str | None, name: str = "solution.py") -> Container:
        root = tmp_path / "autograder"
        (root / "submission").mkdir(parents=True)
        with zipfile.ZipFile(io.BytesIO(archive)) as content:
            content.extractall(root / "source")
        shutil.copy(root / "source" / "run_autograder", root)
        (root / "run_autograder").chmod(0o755)
        if source is not None:
            (root / "submission" / name).write_text(source)
        return Container(root)

    return lay_out


def document(container: Container) -> Any:
    """What results.json says; it is as Gradescope documents it."""
    text = container.results.read_text()
    found = json.loads(text)
    assert SECRET not in text
    assert set(found) <= {
        *("score", "execution_time", "output", "output_format", "test_output_format", "test_name_format"),
        *("visibility", "stdout_visibility", "extra_data", "tests", "leaderboard"),
    }
    assert isinstance(found["output"], str)
    assert isinstance(found.get("extra_data", {}), dict)
    assert found["visibility"] in VISIBILITIES
    assert found["stdout_visibility"] == "hidden"
    assert all(found[name] in FORMATS for name in found if name.endswith("_format"))
    for test in found.get("tests", []):
        assert set(test) <= {
            *("score", "max_score", "status", "name", "name_format", "number", "output", "output_format"),
            *("tags", "visibility", "extra_data"),
        }
        assert all(isinstance(test[name], str) for name in ("name", "number", "output"))
        assert all(isinstance(test.get(name, 0.0), float) for name in ("score", "max_score"))
        assert test.get("status", "passed") in ("passed", "failed")
        assert test["visibility"] in VISIBILITIES
    return found


def scores(found: Any) -> dict[str, float]:
    return {test["name"]: test["score"] for test in found["tests"] if "score" in test}


def test_the_archive_has_at_its_root_what_gradescope_looks_for(archive: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(archive)) as content:
        modes = {info.filename: info.external_attr >> 16 for info in content.infolist()}
    assert all(stat.S_ISREG(mode) for mode in modes.values())
    assert {name for name, mode in modes.items() if mode & 0o111} == {"setup.sh", "run_autograder"}
    hidden = {name for name, mode in modes.items() if not mode & 0o077}
    assert hidden == {"assignment/hw1.toml", "assignment/secret.txt"}
    assert sorted({name.split("/")[0] for name in modes}) == [
        *("assignment", "failed.json", "packages", "python-version", "requirements.txt", "run_autograder"),
        *("settings.json", "setup.sh", "torch.txt"),
    ]


def test_the_secret_is_in_its_own_file_alone_and_the_reference_implementation_nowhere(archive: bytes) -> None:
    files = members(archive)
    assert [name for name, content in files.items() if SECRET.encode() in content] == ["assignment/secret.txt"]
    assert not any("rlassay_impl/" in name or "pycache" in name or "/." in name for name in files)


def test_the_same_installation_and_assignment_give_the_same_archive(assignment: Path, archive: bytes) -> None:
    os.utime(assignment)
    assert autograder_zip(read_assignment(assignment), LEVEL) == archive


def test_every_package_is_pinned_to_what_is_installed_here_and_no_index_is_named(archive: bytes) -> None:
    files = members(archive)
    lines = [*files["requirements.txt"].decode().splitlines(), *files["torch.txt"].decode().splitlines()]
    pinned = dict(line.split("==") for line in lines)
    assert {name: version(name).partition("+")[0] for name in pinned} == pinned
    assert {"torch", "numpy", "pytest", "rich", "click", "msgspec", "jinja2", "markupsafe"} <= set(pinned)
    assert files["torch.txt"].decode().startswith("torch==")
    assert "torch" not in files["requirements.txt"].decode()
    assert files["python-version"].decode() == f"{sys.version_info.major}.{sys.version_info.minor}\n"


def installed(monkeypatch: pytest.MonkeyPatch, **packages: tuple[str, list[str]]) -> None:
    """Have these packages installed, and no others."""

    def distribution(name: str) -> SimpleNamespace:
        if name not in packages:
            raise PackageNotFoundError(name)
        return SimpleNamespace(version=packages[name][0], requires=packages[name][1])

    monkeypatch.setattr(pins_module, "distribution", distribution)


def test_what_torch_needs_for_gpus_extras_and_other_systems_stays_out(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(
        monkeypatch,
        **{
            "rlassay": ("1.0", ["Torch>=2.3", "numpy>=1.26", "distributed>=2024.1; extra == 'cluster'"]),
            "torch": (
                "2.9.0+cu130",
                ["nvidia-cudnn-cu13==9; platform_system == 'Linux'", "triton==3", "fancy.name>=1"],
            ),
            "numpy": ("2.4", ["colorama; sys_platform == 'win32'", "rlassay[plot]"]),
            "nvidia-cudnn-cu13": ("9", []),
            "triton": ("3.0", []),
            "distributed": ("2026.1", []),
            "fancy-name": ("1.1", ["torch"]),
        },
    )
    assert pins() == {"fancy-name": "1.1", "numpy": "2.4", "torch": "2.9.0"}


def test_without_an_installed_rlassay_the_versions_are_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, torch=("2.9.0", []), numpy=("2.4", []))
    with pytest.raises(PinError, match="torch and numpy not among what is installed for it; install rlassay with pip"):
        pins()


@pytest.mark.parametrize("name", ["setup.sh", "run_autograder"])
def test_the_scripts_are_sound(name: str) -> None:
    assert (FILES / name).read_text().startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", FILES / name], check=True)
    if shellcheck := shutil.which("shellcheck"):
        subprocess.run([shellcheck, FILES / name], check=True)


def test_a_right_submission_earns_everything_twice_the_same(container: Callable[..., Container]) -> None:
    autograder = container(RIGHT)
    told = autograder.run()
    found = document(autograder)
    assert (found["score"], scores(found)) == (7.0, {"kl_k1": 1.0, "kl_k3": 2.0, "keep_groups": 4.0})
    assert f"from {autograder.root}/source/packages/rlassay, isolation {LEVEL}" in told
    assert "kl_k3: 2 of 2 points" in told
    assert SECRET not in told
    first = autograder.results.read_bytes()
    autograder.run({**METADATA, "id": 123457, "created_at": "2026-12-01T20:30:00+01:00"})
    assert autograder.results.read_bytes() == first


def test_a_wrong_submission_handed_in_late_earns_what_is_left(container: Callable[..., Container]) -> None:
    wrong = f"{RIGHT}\n\ndef kl_k1(log_probs, ref_log_probs):\n    return ref_log_probs.detach() - log_probs\n"
    autograder = container(wrong)
    autograder.run({**METADATA, "created_at": "2026-12-02T01:00:00+01:00"})
    found = document(autograder)
    assert (found["score"], scores(found)) == (3.0, {"kl_k1": 0.0, "kl_k3": 2.0, "keep_groups": 4.0})
    assert "1 h 1 min after the deadline" in found["output"]
    assert any(test["name"].startswith("kl_k1: ") and test["status"] == "failed" for test in found["tests"])


def test_an_empty_submission_earns_nothing_and_is_told_why(container: Callable[..., Container]) -> None:
    autograder = container(None)
    autograder.run()
    found = document(autograder)
    assert found["score"] == 0.0
    assert "it is empty; hand in a .py file" in found["output"]


@pytest.mark.parametrize("body", ["import os\nos._exit(0)", "while True:\n    pass"])
def test_a_hostile_submission_earns_what_it_got_right(container: Callable[..., Container], body: str) -> None:
    autograder = container(in_kl_k3(body).source)
    autograder.run()
    found = document(autograder)
    assert (found["score"], scores(found)) == (5.0, {"kl_k1": 1.0, "kl_k3": 0.0, "keep_groups": 4.0})


def test_a_container_that_does_not_isolate_grades_nothing(container: Callable[..., Container]) -> None:
    autograder = container(RIGHT)
    settings = autograder.root / "source" / "settings.json"
    settings.write_text(settings.read_text().replace(f'"{LEVEL}"', '"walls"'))
    told = autograder.run()
    found = document(autograder)
    assert found["output"] == f"{FAILED}\n{NOT_ISOLATED}"
    assert "score" not in found and "tests" not in found
    assert "the level walls is not to be had here" in told


def without_assignment(autograder: Container) -> dict[str, str]:
    (autograder.root / "source" / "assignment" / "hw1.toml").write_text("title = 3\n")
    return {}


def without_rlassay(autograder: Container) -> dict[str, str]:
    (autograder.root / "source" / "packages" / "rlassay" / "grading" / "grader.py").write_text("import nothing_there\n")
    return {}


def without_python(autograder: Container) -> dict[str, str]:
    return {"RLASSAY_PYTHON": str(autograder.root / "nowhere")}


def without_time(autograder: Container) -> dict[str, str]:
    (autograder.root / "submission" / "solution.py").write_text("while True:\n    pass\n")
    return {"TIMEOUT_SECONDS": "31"}


@pytest.mark.parametrize(
    ("lack", "told"),
    [
        (without_assignment, "hw1.toml, line 1: title is 3"),
        (without_rlassay, "No module named 'nothing_there'"),
        (without_python, "rlassay ended with status 127: this is no mark"),
        (without_time, "rlassay was stopped, by its time limit of 1 s or for want of memory: this is no mark"),
    ],
)
def test_what_goes_wrong_with_us_costs_nothing_and_is_told_to_staff(
    container: Callable[..., Container], lack: Callable[[Container], dict[str, str]], told: str
) -> None:
    autograder = container(RIGHT)
    assert told in autograder.run(**lack(autograder))
    assert autograder.results.read_bytes() == failed_json()
    assert document(autograder)["output"] == FAILED
    assert "score" not in document(autograder)


def test_all_but_the_owner_are_kept_out_before_anything_else(container: Callable[..., Container]) -> None:
    autograder = container(RIGHT)
    for path in (autograder.root, *autograder.root.iterdir()):
        path.chmod(0o755)
    autograder.run(**without_assignment(autograder))
    for name in (".", "source", "results", "submission", "submission_metadata.json"):
        assert (autograder.root / name).stat().st_mode & 0o077 == 0


def test_metadata_that_say_no_time_grade_nothing(container: Callable[..., Container]) -> None:
    autograder = container(RIGHT)
    assert "`created_at`" in autograder.run({"id": 1, "users": []})
    assert autograder.results.read_bytes() == failed_json()


def read(**changes: Any) -> Metadata:
    return msgspec.json.decode(json.dumps(METADATA | changes).encode(), type=Metadata)


def user(name: str, due: str | None = None) -> dict[str, Any]:
    return {"id": 1, "email": f"{name}@example.org", "name": name, "assignment": {"due_date": due}}


def test_a_submission_goes_by_its_students_so_that_they_get_the_same_inputs_again(tmp_path: Path) -> None:
    team = read(users=[user("bob"), user("ada")])
    submission = submission_of(team, tmp_path)
    assert (submission.id, submission.name, submission.key) == ("ada@example.org+bob@example.org", "bob, ada", "123456")
    assert submission_of(read(id=1, users=[user("ada"), user("bob")]), tmp_path).id == submission.id
    assert submission_of(read(users=[{"id": 77, "email": None}]), tmp_path).id == "77"
    assert submission_of(read(users=[]), tmp_path).id == "123456"


def test_an_extension_on_gradescope_moves_the_assignment_s_deadline(assignment: Path) -> None:
    task = read_assignment(assignment)
    assert task.deadline is not None
    longer = read(users=[user("ada"), user("bob", "2026-12-03T23:59:00+01:00")], created_at="2026-12-02T12:00:00+01:00")
    shorter = read(users=[user("ada", "2026-11-30T23:59:00+01:00")])
    moved = extended(task, longer).deadline
    assert moved is not None and moved.due - task.deadline.due == timedelta(days=2)
    assert extended(task, shorter) == task
    assert (longer.late, shorter.late) == (False, False)
    assert read(created_at="2026-12-02T12:00:00+01:00").late is True
    assert read(assignment={}).late is None


def test_the_command_writes_the_archive_for_its_owner_and_says_how_large_it_is(
    assignment: Path, archive: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "autograder.zip"
    assert run(["gradescope-zip", "--assignment", str(assignment), "--out", str(out), "--isolation", LEVEL]) == 0
    assert out.read_bytes() == archive
    assert out.stat().st_mode & 0o077 == 0
    told = capsys.readouterr().out
    assert f"{out}: {len(archive) / 1e6:.1f} MB, isolation {LEVEL}" in told
    assert "a container with 1.2 GiB of memory and 3 minutes" in told


def test_filtered_is_the_level_unless_another_is_asked_for_by_name(assignment: Path, tmp_path: Path) -> None:
    out = tmp_path / "autograder.zip"
    assert run(["gradescope-zip", "--assignment", str(assignment), "--out", str(out)]) == 0
    settings = json.loads(members(out.read_bytes())["settings.json"])
    assert settings == {"assignment": "hw1.toml", "isolation": "filtered"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("points = 1", "points = 0"), "hw1.toml, line 21: points is 0"),
        (("[limits]", '[environment]\npython = "/opt/python"\n[limits]'), "it gets a Python of its own"),
        (('"secret.txt"', '"../secret.txt"'), "move it beside the assignment"),
    ],
)
def test_an_assignment_that_cannot_go_along_is_refused_with_the_reason(
    change: tuple[str, str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "assignment"
    folder.mkdir()
    for place in (folder, tmp_path):
        (place / "secret.txt").write_text(SECRET)
    (folder / "hw1.toml").write_text(ASSIGNMENT.replace(*change))
    out = tmp_path / "autograder.zip"
    assert run(["gradescope-zip", "--assignment", str(folder / "hw1.toml"), "--out", str(out)]) == 2
    assert why in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(("out", "why"), [("hw1.toml", "is the assignment"), ("nowhere/a.zip", "cannot be written")])
def test_an_archive_that_has_no_place_is_refused(
    assignment: Path, out: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["gradescope-zip", "--assignment", str(assignment), "--out", str(assignment.parent / out)]) == 2
    assert why in capsys.readouterr().err
    assert assignment.read_text() == ASSIGNMENT


def test_an_index_of_cpu_builds_is_used_for_torch_alone(assignment: Path) -> None:
    content = autograder_zip(read_assignment(assignment), LEVEL, "https://torch.invalid/cpu")
    files = zipfile.ZipFile(io.BytesIO(content))
    assert files.read("torch.txt").decode().startswith("--index-url https://torch.invalid/cpu\ntorch==")
    assert b"https:" not in files.read("requirements.txt") + files.read("setup.sh")
