"""`rlassay gradescope-zip`: makes the archive that Gradescope's autograder takes."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rlassay.cli.check import FILE, Unusable
from rlassay.cli.outputs import OutputError, require_separate
from rlassay.describe import plain
from rlassay.guest.confine import LEVELS

SPARE_MINUTES = 2
"""What starting torch twice and judging take beside what a submission may take itself."""

OWN_MEMORY = 768 * 2**20
"""The same for memory, in bytes."""


@click.command("gradescope-zip", short_help="Make the archive for Gradescope's autograder.")
@click.option("--assignment", "path", type=FILE, metavar="FILE", required=True, help="The assignment.")
@click.option("--out", type=FILE, metavar="ZIP", required=True, help="Where to write the archive.")
@click.option(
    "--isolation",
    "level",
    type=click.Choice(LEVELS),
    default="filtered",
    show_default=True,
    help="The level of confinement there: without it nothing is graded.",
)
@click.option(
    "--torch-index",
    metavar="URL",
    default="",
    help="A package index with CPU builds of torch, which are smaller by gigabytes; else it comes from the usual one.",
)
def gradescope_zip(path: Path, out: Path, level: str, torch_index: str) -> int:
    """Make what "Configure Autograder" asks for on Gradescope: an archive with setup.sh, run_autograder, the assignment
    and rlassay, which grades each submission there by the versions that are installed here.

    \b
    rlassay gradescope-zip --assignment assignment.toml --out autograder.zip

    The archive holds the secret: it is for staff alone. Gradescope's containers usually forbid namespaces, so the level
    is one below what `rlassay grade` asks for. A container that does not give it grades nothing and says so.

    \b
    Exit code 0: it is written. 2: the assignment cannot be used, or ZIP cannot be written.
    """
    from rlassay.grading.assignment_file import AssignmentError, read_assignment
    from rlassay.grading.autograder import AutograderError, autograder_zip
    from rlassay.grading.store import write

    try:
        assignment = read_assignment(path)
        require_separate({"--out": out}, {"the assignment": path})
        content = autograder_zip(assignment, level, torch_index)
        before = os.umask(0o077)
        try:
            write(out, content)
        except OSError as error:
            raise OutputError(f"{out}: cannot be written: {error.strerror}") from error
        finally:
            os.umask(before)
    except (AssignmentError, AutograderError, OutputError) as error:
        raise Unusable(plain(str(error))) from error
    limits = assignment.limits
    minutes = -(-int(limits.submission) // 60) + SPARE_MINUTES
    memory = (OWN_MEMORY + limits.memory) / 2**30
    click.echo(plain(f"{out}: {len(content) / 1e6:.1f} MB, isolation {level}; it holds the secret: for staff alone"))
    click.echo(f"on Gradescope: a container with {memory:.1f} GiB of memory and {minutes} minutes, or more of each")
    return 0
