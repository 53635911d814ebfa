"""Hostile submissions earn what they got right before they turned hostile, and nothing else happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from rlassay.grading import confined
from rlassay.grading.assignment import Assignment
from rlassay.grading.assignment_file import read_assignment
from rlassay.grading.confined import end_warm_process, warm_process
from rlassay.grading.grader import Graded, Job, grade, ungraded
from rlassay.grading.handed_in import HandedIn, Submission
from rlassay.guest.confine import best_level
from rlassay.isolation.warm import ENVIRONMENT, IsolationError
from rlassay.record import Record, decode, gather
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


def test_a_name_that_is_no_utf_8_costs_nobody_anything(assignment: Assignment, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff\xfe.py")
    path.write_text(Attack().source)
    submission = Submission(key="odd", id="odd", name="", files=(HandedIn(path, path.name),))
    job = Job(submission, assignment, "namespaces")
    assert earned(grade(job)) == ALL
    assert ungraded(job, OSError("gone")).grade.files == grade(job).grade.files


def test_many_torch_threads_cost_nothing(assignment: Assignment, tmp_path: Path) -> None:
    assert earned(graded(assignment, tmp_path, Attack(before="import torch\ntorch.set_num_threads(64)").source)) == ALL


def test_what_a_submission_could_read_must_not_be_private(assignment: Assignment, tmp_path: Path) -> None:
    place = Path(warm_process(assignment, "namespaces").view.readable[0])
    with pytest.raises(IsolationError, match="which submissions can read") as caught:
        confined.tested_level(assignment, "namespaces", [place / "submissions"])
    assert str(place) in str(caught.value)
    confined.tested_level(assignment, "namespaces", [tmp_path])


def test_visible_inputs_are_others_for_each_version_and_hidden_ones_the_same(
    assignment: Assignment, tmp_path: Path
) -> None:
    """What is shown of one version tells nothing about the next; handing in again is no second throw of the dice."""
    (first, *_) = assignment.parts
    half = replace(assignment, parts=(replace(first, visible=("value",)),))
    wrong = "def kl_k1(log_probs, ref_log_probs):\n    return 0 * log_probs + %d\n"
    shown, hidden = set(), set()
    for version in (1, 2):
        record = read_record_of(graded(half, tmp_path, wrong % version))
        for result in record.checks:
            assert result.failure is not None or result.outcome == "pass"
            if result.failure is not None and result.id in ("kl_k1/value", "kl_k1/keywords"):
                inputs = (result.id, str(result.failure.inputs))
                (shown if result.id == "kl_k1/value" else hidden).add(inputs)
    assert (len(shown), len(hidden)) == (2, 1)


def read_record_of(result: Graded) -> Record:
    lines = result.files["record.ndjson"].split(b"\n")[:-1]
    return gather(decode(line) for line in lines)


def test_a_place_in_a_submission_is_told_from_its_own_folder_on(assignment: Assignment, tmp_path: Path) -> None:
    notes = " ".join(graded(assignment, tmp_path, "x = 1\nraise ValueError('no luck')\n").grade.notes)
    assert "ValueError: no luck (mallory.py, line 2)" in notes
