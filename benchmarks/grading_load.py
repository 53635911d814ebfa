"""Grades a class of which the marks are known, with the real command, and checks that all of it went well.

    python benchmarks/grading_load.py 500                       the assignment of the examples
    python benchmarks/grading_load.py 500 --profile quick

The aims on two cores: at least 60 submissions a minute (quick: 200), no wrong mark, none lost, no process left, and
graders that take no more memory at the end than when they had warmed up.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import torch
from class_load import Made, make_class

from rlassay.engine import run_check
from rlassay.grading.assignment import Assignment, seed_of
from rlassay.grading.assignment_file import read_assignment
from rlassay.grading.scoring import Penalty, marks
from rlassay.grading.store import grades
from rlassay.load import load_target
from rlassay.record import read_record
from rlassay.torch_subject import TorchSubject

SUBREAPER = 36
WARMED_UP = 0.5
"""After this share of the class, caches are filled."""

GROWTH = 1.1
"""So much more than then a grader may take at the end."""


@dataclass
class Report:
    """What a run took, and what is wrong with it, which should be nothing."""

    submissions: int
    minutes: float
    cpu: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, list[float]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def per_minute(self) -> float:
        """Submissions a minute, of the whole command."""
        return self.submissions / self.minutes

    def lines(self) -> list[str]:
        """The report as text."""
        told = [f"{self.submissions} submissions in {60 * self.minutes:.0f} s: {self.per_minute:.0f} a minute"]
        told.append(f"  {self.cpu / self.submissions:.2f} s of CPU each, on {len(os.sched_getaffinity(0))} cores")
        told += [f"  {kind}: {seconds:.2f} s each" for kind, seconds in self.seconds.items()]
        for what, (warm, most, last) in self.memory.items():
            told.append(f"  {what}: {warm:.0f} MiB warmed up, {most:.0f} MiB at most, {last:.0f} MiB at the end")
        return [*told, *self.wrong, f"{len(self.wrong)} things are wrong"]


def write_folder(folder: Path, count: int, profile: str, hostile: bool = True) -> tuple[Assignment, list[Made]]:
    """The assignment of the examples and so many submissions, in a folder."""
    text = (ROOT / "examples" / "assignment.toml").read_text(encoding="utf-8")
    (folder / "assignment.toml").write_text(text.replace('profile = "standard"', f'profile = "{profile}"'))
    (folder / "secret.txt").write_text("the secret of the load, long enough")
    assignment = read_assignment(folder / "assignment.toml")
    made = [one for one in make_class(assignment, count) if hostile or one.kind != "hostile"]
    (folder / "submissions").mkdir()
    (folder / "judged").mkdir()
    for one in made:
        (folder / "submissions" / f"{one.id}.py").write_bytes(one.source.encode(errors="surrogateescape"))
        (folder / "judged" / f"{one.id.replace('-', '_')}.py").write_text(one.judged)
    return assignment, made


def grade(folder: Path, made: Sequence[Made]) -> Report:
    """Grade the class with the command, and measure its processes until none is left."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    command = [
        sys.executable,
        "-m",
        "rlassay",
        "grade",
        "submissions",
        "--assignment",
        "assignment.toml",
        "--out",
        "results",
    ]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    before, begun = used.ru_utime + used.ru_stime, time.monotonic()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    samples: list[tuple[int, dict[str, float]]] = []
    while process.poll() is None:
        time.sleep(0.5)
        done = len(list(folder.glob("results/submissions/[!.]*")))
        samples.append((done, dict(_memory(process.pid))))
    report = Report(len(made), (time.monotonic() - begun) / 60)
    if process.returncode != 0:
        report.wrong.append(f"exit code {process.returncode}: {(folder / 'log').read_text()[-2000:]}")
    warm = [memory for done, memory in samples if done >= WARMED_UP * len(made)]
    for what in dict.fromkeys(what for memory in warm for what in memory if memory[what]):
        course = [memory[what] for memory in warm if memory.get(what)]
        report.memory[what] = [course[0], max(course), course[-1]]
        if course[-1] > GROWTH * course[0]:
            report.wrong.append(f"memory of {what} grows")
    if not _reaped(30):
        report.wrong.append("processes are left")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report.cpu = used.ru_utime + used.ru_stime - before
    return report


def _memory(pid: int) -> list[tuple[str, float]]:
    """The resident MiB of the command and of its graders, which are its children but for the tracker of resources."""
    found = [("the command", _resident(pid))]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            mother = int(path.read_text().rpartition(")")[2].split()[1])
            if mother == pid and b"spawn_main" in path.with_name("cmdline").read_bytes():
                found.append((f"grader {path.parent.name}", _resident(int(path.parent.name))))
        except OSError:
            pass
    return sorted(found)


def _resident(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError):
        return 0.0


def _reaped(seconds: float) -> bool:
    """Whether this process, which takes all orphans, has no child left within a time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
        except ChildProcessError:
            return True
    return False


def expected(folder: Path, assignment: Assignment, one: Made, digest: str) -> tuple[dict[str, str], dict[str, str]]:
    """What each part of a submission earns, and each check's outcome, found in this process; `digest` is the hash of
    what was handed in."""
    if one.earns is not None:
        return {part.name: str(part.points if part.name in one.earns else 0) for part in assignment.parts}, {}
    torch.set_num_threads(1)
    target = load_target(str(folder / "judged" / f"{one.id.replace('-', '_')}.py"))
    subject = TorchSubject(target.functions, one.id, assignment.convention)
    hidden, visible = seed_of(assignment, one.id), seed_of(assignment, one.id, digest)
    results = [
        run_check(check, subject, assignment.examples, visible if assignment.is_visible(check.id) else hidden)
        for check in assignment.checks()
    ]
    earned = marks(assignment, results, Penalty())
    return (
        {part.part.name: str(part.earned) for part in earned.parts},
        {result.id: result.outcome for result in results},
    )


def compare(folder: Path, assignment: Assignment, made: Sequence[Made], report: Report) -> None:
    """Add to a report what each kind of submission took, and each mark and outcome that is not as expected."""
    stored = {grade.id: grade for grade in grades(folder / "results")}
    taken: dict[str, list[float]] = {}
    digests = [stored[one.id].sha256 if one.id in stored else "" for one in made]
    with ProcessPoolExecutor() as pool:
        found = pool.map(partial(expected, folder, assignment), made, digests)
        for one, (parts, outcomes) in zip(made, found, strict=True):
            grade = stored.pop(one.id, None)
            if grade is None:
                report.wrong.append(f"{one.id} is lost")
                continue
            taken.setdefault(one.kind, []).append(grade.seconds)
            got = {part.name: part.earned for part in grade.parts}
            if got != parts:
                report.wrong.append(f"{one.id} ({grade.status}) earned {got} instead of {parts}")
            record = read_record(folder / "results" / "submissions" / grade.key / "record.ndjson")
            if outcomes and outcomes != (seen := {result.id: result.outcome for result in record.checks}):
                differ = {key: (seen.get(key), outcomes[key]) for key in outcomes if seen.get(key) != outcomes[key]}
                report.wrong.append(f"{one.id}: outcomes and what they should be: {differ}")
    report.wrong += [f"{identity} was never handed in" for identity in stored]
    report.seconds = {kind: sum(times) / len(times) for kind, times in sorted(taken.items())}


def main() -> int:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--profile", default="standard", choices=["quick", "standard"])
    parser.add_argument("--honest", action="store_true", help="leave the hostile ones out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rlassay-load-") as name:
        folder = Path(name)
        assignment, made = write_folder(folder, options.count, options.profile, not options.honest)
        print(json.dumps(Counter(one.kind for one in made)))
        report = grade(folder, made)
        print("\n".join(report.lines()), flush=True)
        compare(folder, assignment, made, report)
    print("\n".join(report.lines()))
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
