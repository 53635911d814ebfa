"""`rlassay grade`: grades a folder of submissions."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rlassay.cli.check import FILE, INTERRUPTED
from rlassay.cli.outputs import OutputError
from rlassay.describe import plain
from rlassay.guest.confine import LEVELS
from rlassay.terminal import open_console, print_row
from rlassay.verdict import HARNESS_FAILED

ASSIGNMENT = click.option("--assignment", "path", type=FILE, metavar="FILE", required=True, help="The assignment.")
ROSTER = click.option("--roster", type=FILE, metavar="CSV", help="Students, with columns id, name, submitted (a time).")
JOBS = click.option(
    "--jobs", type=click.IntRange(min=1), show_default="one a processor", help="How many are graded at once."
)
SCHEDULER = click.option(
    "--scheduler", metavar="ADDRESS", help="Grade on the workers of a Dask scheduler instead (tcp://…)."
)


@click.command(short_help="Grade a folder of submissions.")
@click.argument("folder", type=FILE, metavar="SUBMISSIONS")
@ASSIGNMENT
@click.option("--out", type=FILE, metavar="FOLDER", required=True, help="Where the results go.")
@click.option("--resume", is_flag=True, help="Go on with the results in FOLDER: what is graded is not graded again.")
@click.option("--layout", metavar="NAME", help="plain, canvas, moodle or gradescope; found out if not given.")
@ROSTER
@click.option("--only", multiple=True, metavar="ID", help="Grade this student's submission alone; may be repeated.")
@JOBS
@SCHEDULER
@click.option(
    "--isolation",
    "level",
    type=click.Choice(LEVELS),
    default=LEVELS[0],
    show_default=True,
    help="The level of confinement; a weaker one has to be asked for by name.",
)
def grade(
    folder: Path,
    path: Path,
    out: Path,
    resume: bool,
    layout: str | None,
    roster: Path | None,
    only: tuple[str, ...],
    jobs: int | None,
    scheduler: str | None,
    level: str,
) -> int:
    """Grade every submission in a folder, each in a process of its own that is confined before it loads anything.

    \b
    rlassay grade submissions/ --assignment assignment.toml --out results/

    FOLDER gets grades.csv, canvas.csv, moodle.csv, summary.html, similarity.csv and, for each submission, the record of
    its checks, results.json for Gradescope, junit.xml and report.html. After Ctrl-C or a crash, --resume goes on.

    \b
    Exit code 0: everything is graded. 2: the command line, the assignment or a folder cannot be used. 3: rlassay itself
    failed somewhere; the summary names the submissions that staff has to look at.
    """
    from rlassay.cli import grading
    from rlassay.grading.assignment_file import read_assignment
    from rlassay.grading.classroom import run_of, unfinished, write_class
    from rlassay.grading.store import Store
    from rlassay.grading.summary_page import render_summary

    console = open_console(sys.stdout)
    with grading.explained():
        assignment = read_assignment(path)
        require_elsewhere("--out", out, folder)
        found = grading.find(folder, layout, roster, only)
        grading.announce(found, assignment, console)
        grading.check_isolation(assignment, level, [folder, out], console)
        store = Store(out, run_of(assignment, level, found), resume)
        waiting = unfinished(store, assignment, found.submissions)
        if len(waiting) < len(found.submissions):
            print_row(console, "", f"{len(found.submissions) - len(waiting)} are graded already")
        finished = grading.Graders(jobs, scheduler).grade(store, assignment, level, waiting)
        summary = write_class(store, assignment, found.layout)
    if not finished:
        click.echo(f"interrupted; what is graded is in {plain(str(out))}, and --resume goes on", err=True)
        return INTERRUPTED
    console.print()
    render_summary(summary, console)
    print_row(console, "", f"results are in {plain(str(out))}: grades.csv, summary.html, submissions/")
    return HARNESS_FAILED if summary.failed or summary.review else 0


def require_elsewhere(option: str, folder: Path, submissions: Path) -> None:
    """A folder to write to does not lie among the submissions.

    Raises:
        OutputError: it does.
    """
    if submissions.resolve() in folder.resolve().parents:
        raise OutputError(
            f"{option}: {folder} lies in {submissions}, where each entry is a submission; name a folder elsewhere"
        )
