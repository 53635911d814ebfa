"""`rlassay regrade`: grades again, and says what changed and why."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlassay.cli.check import FILE, INTERRUPTED
from rlassay.cli.grade import ASSIGNMENT, JOBS, ROSTER, SCHEDULER
from rlassay.cli.outputs import STDOUT, opened
from rlassay.describe import plain
from rlassay.terminal import open_console, print_row
from rlassay.verdict import CONFORMS, DOES_NOT_CONFORM, HARNESS_FAILED

SHOWN = 10
"""So many grades that would be lost are named."""

if TYPE_CHECKING:
    from rich.console import Console

    from rlassay.grading.regrade import Change


@click.command(short_help="Grade again, and show what changed and why.")
@click.argument("results", type=FILE, metavar="RESULTS")
@click.argument("folder", type=FILE, metavar="SUBMISSIONS")
@ASSIGNMENT
@click.option("--diff", is_flag=True, help="Only show what would change; RESULTS stay as they are.")
@click.option("--json", "changes_path", type=FILE, metavar="FILE", help="Write the changes; - is standard output.")
@ROSTER
@JOBS
@SCHEDULER
def regrade(
    results: Path,
    folder: Path,
    path: Path,
    diff: bool,
    changes_path: Path | None,
    roster: Path | None,
    jobs: int | None,
    scheduler: str | None,
) -> int:
    """Grade the submissions again as RESULTS were graded, in the same layout and at the same level of confinement, and
    show for each whose marks or checks are not what they were what changed and why.

    \b
    rlassay regrade results/ submissions/ --assignment assignment.toml --diff

    RESULTS are replaced all at once when everything is graded, unless that would lose a grade that they have.

    \b
    Exit code 0: nothing changed. 1: something did. 2: the command line, the assignment or a folder cannot be used.
    3: rlassay itself failed somewhere.
    """
    from rlassay.cli import grading
    from rlassay.grading.assignment_file import read_assignment
    from rlassay.grading.classroom import run_of, write_class
    from rlassay.grading.regrade import changes, changes_json
    from rlassay.grading.replacing import lost, replace_results
    from rlassay.grading.store import Store, read_run

    console = open_console(sys.stderr if changes_path == STDOUT else sys.stdout)
    results = results.resolve()
    with grading.explained(), ExitStack() as stack:
        run = read_run(results)
        assignment = read_assignment(path)
        found = grading.find_again(folder, run.layout, roster)
        stream = stack.enter_context(opened(changes_path)) if changes_path is not None else None
        grading.announce(found, assignment, console)
        grading.check_isolation(assignment, run.level, [folder, results], console)
        beside = stack.enter_context(tempfile.TemporaryDirectory(prefix=f".{results.name}.", dir=results.parent))
        store = Store(Path(beside, results.name), run_of(assignment, run.level, found), resume=False)
        if not grading.Graders(jobs, scheduler).grade(store, assignment, run.level, found.submissions):
            click.echo(f"interrupted; {plain(str(results))} is as it was", err=True)
            return INTERRUPTED
        summary = write_class(store, assignment, found.layout)
        changed = changes(results, store.folder)
        if stream is not None:
            stream.write(changes_json(changed))
        _show(changed, len(found.submissions), console)
        if not diff:
            missing = lost(results, store.folder)
            if not missing:
                replace_results(results, store.folder)
            _tell(results, missing, console)
    if summary.failed or summary.review:
        return HARNESS_FAILED
    return DOES_NOT_CONFORM if changed else CONFORMS


def _show(changed: Sequence[Change], count: int, console: Console) -> None:
    for change in changed:
        for line in change.lines():
            print_row(console, "", plain(line), 2)
    print_row(console, "", f"{count} graded again, {len(changed)} changed")


def _tell(results: Path, missing: Sequence[str], console: Console) -> None:
    if missing:
        keys = f"{', '.join(missing[:SHOWN])}{' …' if len(missing) > SHOWN else ''}"
        what = f"is as it was, since {len(missing)} grades would be lost or need a review: {keys}"
    else:
        what = "is replaced"
    print_row(console, "", f"{plain(str(results))} {what}")
