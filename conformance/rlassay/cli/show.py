"""`rlassay show`: renders a record again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rlassay.describe import plain
from rlassay.record import RecordError, read_record
from rlassay.terminal import open_console, render


@click.command(short_help="Show the summary of a record again.")
@click.argument("record", type=click.Path(path_type=Path))
@click.option("-v", "--verbose", is_flag=True, help="Show every failure, with code that repeats it.")
def show(record: Path, verbose: bool) -> int:
    """Show the summary of a RECORD that `rlassay check --json RECORD` wrote.

    A record without an end, of a run that was killed or still goes on, is shown as far as it goes and called
    incomplete.
    """
    try:
        found = read_record(record)
    except RecordError as error:
        raise click.UsageError(plain(str(error))) from error
    render(found, open_console(sys.stdout), verbose)
    return 0
