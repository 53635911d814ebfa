"""Hostile submissions earn what they got right before they turned hostile, and nothing else happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rlassay.grading.assignment import Assignment
from rlassay.grading.assignment_file import read_assignment
from rlassay.grading.confined import end_warm_process, warm_process
from rlassay.grading.grader import Graded, Job, grade
from rlassay.grading.handed_in import HandedIn, Submission
from rlassay.guest.confine import best_level
from rlassay.isolation.warm import ENVIRONMENT
from tests.conformance.grading.attacks import ALL, ATTACKS, PARTS, Attack

LEVEL, WHY = best_level()

MARK = f"attacked-{os.getpid()}".encode()

pytestmark = pytest.mark.skipif(LEVEL != "namespaces", reason=f"no namespaces here: {WHY}")

FILE = """
title = "attacked"
secret = "the secret of the attacked"
profile = "quick"
examples = 2

[limits]
call = 2.0
load = 4.0
submission = 30.0
cpu = 20
memory = "512 MiB"
tmp = "16 MiB"
"""


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assignment]:
    path = tmp_path_factory.mktemp("assignment") / "assignment.toml"
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setitem(ENVIRONMENT, "MARK", MARK.decode())
    path.write_text(FILE + "".join(f'\n[[part]]\noperation = "{part}"\npoints = 10\n' for part in PARTS))
    end_warm_process()
    yield read_assignment(path)
    end_warm_process()
    monkeypatch.undo()


def graded(assignment: Assignment, folder: Path, source: str, student: str = "mallory") -> Graded:
    path = folder / f"{student}.py"
    path.write_bytes(source.encode(errors="surrogateescape"))
    submission = Submission(key=student, id=student, name="", files=(HandedIn(path, path.name),))
    return grade(Job(submission, assignment, "namespaces"))


def earned(result: Graded) -> frozenset[str]:
    """The parts that earned their points."""
    assert all(part.earned in ("0", part.points) for part in result.grade.parts)
    return frozenset(part.name for part in result.grade.parts if part.earned != "0")


def guests(assignment: Assignment) -> set[int]:
    """Processes that were forked from this module's warm process and are still there."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if MARK in entry.read_bytes():
                found.add(int(entry.parent.name))
    return found - {warm_process(assignment, "namespaces").process.pid}


def test_the_functions_that_attacks_are_built_around_are_right(assignment: Assignment, tmp_path: Path) -> None:
    assert earned(graded(assignment, tmp_path, Attack().source)) == ALL


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_earns_what_is_right_and_leaves_nothing(assignment: Assignment, tmp_path: Path, name: str) -> None:
    attack = ATTACKS[name]
    result = graded(assignment, tmp_path, attack.source)
    assert (earned(result), result.grade.status) == (attack.earns, "graded")
    assert guests(assignment) == set()
    assert earned(graded(assignment, tmp_path, Attack().source, "honest")) == ALL


def test_no_attack_sees_another_submission_the_assignment_or_the_secret(assignment: Assignment, tmp_path: Path) -> None:
    (tmp_path / "honest.py").write_text(Attack().source)
    search = (
        "import os, json\n"
        "found, wanted = [], ('assignment.toml', 'honest.py', 'run.json', 'shadow')\n"
        "for folder, folders, names in os.walk('/'):\n"
        "    folders[:] = [name for name in folders if os.path.join(folder, name) not in ('/proc', '/usr')]\n"
        "    found += [os.path.join(folder, name) for name in names if name in wanted]\n"
        "raise RuntimeError(json.dumps(found))\n"
    )
    result = graded(assignment, tmp_path, search)
    told = " ".join(result.grade.notes)
    assert "RuntimeError: []" in told
    assert str(tmp_path) not in told


def test_a_guest_finds_neither_the_secret_nor_the_seed_in_its_memory_or_environment(
    assignment: Assignment, tmp_path: Path
) -> None:
    search = (
        "import gc, os\n"
        "texts = [text for text in gc.get_objects() if isinstance(text, (str, bytes))] + list(os.environ.values())\n"
        "texts += [str(value)[:1000] for value in gc.get_objects() if isinstance(value, dict)]\n"
        "secret = 'the secret of the ' + 'attacked'\n"
        "raise RuntimeError(f'found {sum(secret in str(text) for text in texts)}')\n"
    )
    assert "found 0" in " ".join(graded(assignment, tmp_path, search).grade.notes)


def test_the_same_submission_gets_the_same_marks_twice(assignment: Assignment, tmp_path: Path) -> None:
    source = Attack(
        after="def kl_k3(log_probs, ref_log_probs):\n    return (log_probs - ref_log_probs) ** 2 / 2"
    ).source
    first, second = (graded(assignment, tmp_path, source) for _ in range(2))
    assert first.grade.parts == second.grade.parts
    assert first.files["results.json"] == second.files["results.json"]
    assert first.files["report.html"] == second.files["report.html"]


def test_a_dead_warm_process_is_replaced(assignment: Assignment, tmp_path: Path) -> None:
    os.kill(warm_process(assignment, "namespaces").process.pid, signal.SIGKILL)
    assert earned(graded(assignment, tmp_path, Attack().source)) == ALL
