"""`rlassay starter`: writes the hand-out of an assignment."""

from __future__ import annotations

from pathlib import Path

import click

from rlassay.cli.check import FILE, Unusable
from rlassay.describe import plain
from rlassay.grading.assignment_file import AssignmentError, read_assignment
from rlassay.grading.starter import StarterError
from rlassay.grading.starter import starter as files_of


@click.command(short_help="Write the hand-out of an assignment.")
@click.option("--assignment", "path", type=FILE, metavar="FILE", required=True, help="The assignment.")
@click.option("--out", "folder", type=FILE, metavar="FOLDER", required=True, help="Where to write; new, or empty.")
def starter(path: Path, folder: Path) -> int:
    """Write what students get: solution.py with a typed stub and its contract for each function, a README, and
    rlassay.toml, by which `rlassay check solution.py` makes the checks that they may see.

    \b
    rlassay starter --assignment assignment.toml --out handout

    \b
    Exit code 0: it is written. 2: the assignment cannot be used, or FOLDER is not empty.
    """
    try:
        files = files_of(read_assignment(path))
    except (AssignmentError, StarterError) as error:
        raise Unusable(plain(str(error))) from error
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Unusable(plain(f"{folder}: is there already and not an empty folder; name another with --out"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(plain(str(folder / name)))
    return 0
