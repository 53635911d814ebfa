"""Grades one submission: unpacked, loaded by a guest, judged, marked, reported."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from rlassay import __version__
from rlassay.describe import names_something
from rlassay.grading.assignment import Assignment, seed_of, suite
from rlassay.grading.confined import confinement_of, end_warm_process, require_unseen, warm_process
from rlassay.grading.feedback import for_student
from rlassay.grading.grade import SCHEMA, Grade, How, PartGrade
from rlassay.grading.gradescope import results_json
from rlassay.grading.guest_runner import GuestRunner, NothingRunner
from rlassay.grading.page import page
from rlassay.grading.scoring import Marks, PartMarks, late_penalty, marks
from rlassay.grading.submissions import Submission, SubmissionError, Unpacked, unpack
from rlassay.grading.tree import shown
from rlassay.guest.errors import TargetError
from rlassay.isolation.session import Limits, Loading, Session
from rlassay.isolation.warm import IsolationError, WarmProcess
from rlassay.judge import Judging, Plan, lines
from rlassay.junit import junit
from rlassay.load import NAMES
from rlassay.record import Record, encode, gather
from rlassay.runner import Settings
from rlassay.subject import SubjectGone


@dataclass(frozen=True)
class Job:
    """One submission to grade, by which assignment, at which level of confinement, and by which version of rlassay: a
    grader on another machine may have another one."""

    submission: Submission
    assignment: Assignment
    level: str
    rlassay: str = __version__


@dataclass(frozen=True)
class Graded:
    """All that is kept of a submission: its grade, and its files by name."""

    grade: Grade
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Judged:
    """What judging a submission gave: the record, what was judged, and the seconds that it took."""

    record: Record
    how: How
    waited: float = 0.0
    cpu: float = 0.0


def grade(job: Job) -> Graded:
    """Grade a submission, in a guest of this thread's warm process; another one is tried if that fails.

    Raises:
        IsolationError: the submission cannot be had isolated.
    """
    if job.rlassay != __version__:
        raise IsolationError(f"this grader has rlassay {__version__}, the run has {job.rlassay}: marks must not mix")
    try:
        return _graded(job, warm_process(job.assignment, job.level))
    except IsolationError:
        end_warm_process()
        return _graded(job, warm_process(job.assignment, job.level))


def _graded(job: Job, warm: WarmProcess) -> Graded:
    submission, assignment = job.submission, job.assignment
    with tempfile.TemporaryDirectory(prefix="rlassay-") as folder:
        digest = digest_of(submission)
        try:
            unpacked = unpack(submission, Path(folder, "submission"), assignment.limits)
        except SubmissionError as error:
            judged = _judge(job, NothingRunner(assignment.convention, digest, str(error)), "nothing")
        else:
            judged = _judge_unpacked(job, warm, unpacked, digest, Path(folder))
    penalty = late_penalty(assignment.deadline, submission.submitted, submission.late)
    return _report(job, judged, marks(assignment, judged.record.checks, penalty))


def _judge_unpacked(job: Job, warm: WarmProcess, unpacked: Unpacked, digest: str, folder: Path) -> Judged:
    assignment, reasons = job.assignment, []
    scratch = folder / "scratch"
    scratch.mkdir()
    folder.chmod(0o711)
    require_unseen(warm, job.level, [handed_in.path for handed_in in job.submission.files])
    confinement = confinement_of(warm, assignment, job.level, unpacked.folder, scratch)
    limits = Limits(assignment.limits.call, assignment.limits.load, assignment.limits.submission)
    for how in ("modules", "definitions"):
        loading = Loading(
            target=unpacked.target,
            interface=assignment.interface,
            operations=NAMES[assignment.interface],
            imports=unpacked.imports,
            stubs=assignment.stubs,
            how=how,
        )
        try:
            session = Session(warm, confinement, loading, limits)
        except (TargetError, SubjectGone) as error:
            reasons.append(f"it does not load: {error}")
            continue
        try:
            runner = GuestRunner(
                session,
                assignment.convention,
                visible=[check.id for check in assignment.checks() if assignment.is_visible(check.id)],
                sha256=digest,
                examples=assignment.examples,
                seed=seed_of(assignment, job.submission.id),
                visible_seed=seed_of(assignment, job.submission.id, digest),
                notes=[*unpacked.notes, *(_by_definitions(reason) for reason in reasons)],
            )
            judged = _judge(job, runner, how)
        finally:
            session.close()
        return replace(judged, waited=limits.total - session.left, cpu=session.cpu)
    return _judge(job, NothingRunner(assignment.convention, digest, reasons[0], unpacked.notes), "nothing")


def _by_definitions(reason: str) -> str:
    return f"{reason}; its functions are judged from its imports, constants and definitions alone"


def _judge(job: Job, runner: Judging, how: How) -> Judged:
    assignment = job.assignment
    settings = Settings(
        target=job.submission.path.name,
        interface=assignment.interface,
        profile=assignment.profile,
        seed=seed_of(assignment, job.submission.id),
    )
    visible_first = sorted(assignment.checks(), key=lambda check: not assignment.is_visible(check.id))
    plan = Plan(settings, visible_first, available=len(suite(assignment.interface)))
    return Judged(gather(lines(plan, runner)), how)


def digest_of(submission: Submission) -> str:
    """The hash of what was handed in; empty where that cannot be read."""
    try:
        return _digest(submission)
    except (OSError, RecursionError):
        return ""


def _digest(submission: Submission) -> str:
    digest = hashlib.sha256()
    for handed_in in submission.files:
        files = [handed_in.path]
        if handed_in.path.is_dir():
            files = sorted(path for path in handed_in.path.rglob("*") if path.is_file() and not path.is_symlink())
        for path in files:
            name = path.relative_to(handed_in.path).as_posix()
            digest.update(name.encode(errors="surrogateescape") + b"\0")
            with path.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _report(job: Job, judged: Judged, earned: Marks) -> Graded:
    record, assignment = judged.record, job.assignment
    grade = _grade(job, judged, earned)
    feedback = for_student(record, assignment)
    written = [record.header, *record.checks, *record.explanations, record.footer]
    files = {
        "record.ndjson": b"".join(encode(line) for line in written if line is not None),
        "grade.json": _pretty(grade),
        "results.json": results_json(grade, feedback),
        "junit.xml": junit(feedback.record),
        "report.html": page(grade, feedback, assignment),
    }
    return Graded(grade, files)


def _grade(job: Job, judged: Judged, earned: Marks) -> Grade:
    submission, assignment, record = job.submission, job.assignment, judged.record
    broken = any(result.outcome == "harness-error" for result in record.checks)
    return Grade(
        schema=SCHEMA,
        key=submission.key,
        id=submission.id,
        name=submission.name,
        files=[shown(handed_in.name) for handed_in in submission.files],
        sha256=record.header.sha256,
        assignment=assignment.sha256,
        rlassay=__version__,
        level=job.level,
        status="review" if broken else "graded",
        how=judged.how,
        points=str(earned.points),
        earned=str(earned.earned),
        maximum=str(assignment.maximum),
        penalty=str(earned.penalty.share),
        lateness=earned.penalty.sentence,
        parts=[_part_grade(part, assignment, record) for part in earned.parts],
        notes=list(record.header.notes),
        alerts=[*earned.alerts, *_unjudged(judged)],
        seconds=round(judged.waited, 3),
        cpu=round(judged.cpu, 3),
    )


def _unjudged(judged: Judged) -> list[str]:
    """What staff should know of a submission of which nothing could be judged: its zero may be a wrong file."""
    if judged.how != "nothing":
        return []
    return [f"nothing of it could be judged, so it has no points: {judged.record.header.notes[-1]}"]


def _part_grade(part: PartMarks, assignment: Assignment, record: Record) -> PartGrade:
    operations = {name for check in assignment.part_checks(part.part) for name in check.operations}
    told = [e for e in record.explanations if e.operation in operations and names_something(e)] if part.failed else []
    return PartGrade(
        name=part.part.name,
        points=str(part.part.points),
        earned=str(part.earned),
        passed=part.passed,
        failed=part.failed,
        excused=part.excused,
        provided=part.provided,
        explanation="; ".join(explanation.text for explanation in told),
        fault=", ".join(explanation.fault for explanation in told if explanation.fault),
    )


def ungraded(job: Job, error: BaseException | None) -> Graded:
    """What is kept of a submission that could not be graded: nothing but why."""
    submission, assignment = job.submission, job.assignment
    grade = Grade(
        schema=SCHEMA,
        key=submission.key,
        id=submission.id,
        name=submission.name,
        files=[shown(handed_in.name) for handed_in in submission.files],
        assignment=assignment.sha256,
        rlassay=__version__,
        level=job.level,
        status="failed",
        how="nothing",
        maximum=str(assignment.maximum),
        alerts=[f"rlassay could not grade it: {type(error).__name__}: {error}"],
    )
    return Graded(grade, {"grade.json": _pretty(grade)})


def _pretty(grade: Grade) -> bytes:
    return msgspec.json.format(encode(grade), indent=2).rstrip() + b"\n"
