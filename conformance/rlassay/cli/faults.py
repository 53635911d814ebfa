"""`rlassay faults`: the suite against every known fault and every correct variant."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from rlassay.check import PROFILES
from rlassay.cli.outputs import OutputError, require_separate, require_writable
from rlassay.cli.selection import random_seed
from rlassay.describe import plain
from rlassay.guest.errors import TargetError
from rlassay.guest.importing import did_you_mean
from rlassay.terminal import counted, open_console, print_row, print_rows

if TYPE_CHECKING:
    from rlassay.matrix.rows import Entry, Row
    from rlassay.matrix.run import Matrix
    from rlassay.matrix.verdict import Verdict

SHOWN = 12
"""Of so many subjects at most all that was found is shown."""

MOST = 40
"""So many lines of a list are shown."""

FILE = click.Path(path_type=Path)


@click.command(short_help="Try the suite on known faults and correct variants.")
@click.argument("select", nargs=-1, metavar="[NAME]...")
@click.option("--reference", default="rlassay_impl", show_default=True, help="What the faults are planted into.")
@click.option("--profile", type=click.Choice(list(PROFILES)), default="standard", show_default=True, help="Examples.")
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the random examples.")
@click.option("--random", "chance", is_flag=True, help="The seed is chosen at random, and printed.")
@click.option("--jobs", type=click.IntRange(min=1), show_default="one a processor", help="How many processes work.")
@click.option(
    "--json",
    "record",
    type=FILE,
    metavar="FILE",
    help="Keep the rows, an object a line; those that hold are not rerun.",
)
@click.option("--page", "page_path", type=FILE, metavar="FILE", help="Write the matrix as a page (whole matrix).")
@click.option(
    "--killers", "killers_path", type=FILE, metavar="FILE", help="Write what must kill each fault (whole matrix)."
)
@click.option("--list", "listing", is_flag=True, help="List the subjects and run nothing.")
def faults(
    select: tuple[str, ...],
    reference: str,
    profile: str,
    seed: int,
    chance: bool,
    jobs: int | None,
    record: Path | None,
    page_path: Path | None,
    killers_path: Path | None,
    listing: bool,
) -> int:
    """Run the suite against every known fault and every correct variant, or those that are named: by key
    (grpo_advantages/AD-06), id (AD-06), operation (grpo_advantages) or form (fault, generic, variant).

    \b
    rlassay faults                            the whole matrix
    rlassay faults --json matrix.ndjson       the same; only what has changed since the last time
    rlassay faults grpo_advantages/AD-06      one fault: what it is, what kills it, the smallest input
    rlassay faults AD-06 --list               where a fault is planted

    \b
    Exit code 0: every fault is killed, no variant is flagged and, of the whole
    matrix, every check kills a fault. 1: not so. 2: a wrong option. 3: rlassay
    itself failed in a check.
    """
    from rlassay.matrix import page, run, verdict

    try:
        outputs = {"--json": record, "--page": page_path, "--killers": killers_path}
        require_separate(outputs, {"the reference": Path(reference)})
        for path in filter(None, outputs.values()):
            require_writable(path)
        if chance and seed:
            raise click.UsageError("--random chooses the seed; leave --seed out")
        matrix = run.plan(reference, profile, random_seed() if chance else seed)
        chosen = _chosen(matrix.entries, select)
        if (page_path or killers_path) and len(chosen) < len(matrix.entries):
            raise click.UsageError("--page and --killers need the whole matrix; leave the names out")
        console = open_console(sys.stdout)
        if listing:
            for key, entry in chosen.items():
                console.print(Text.assemble((key, "bold"), f"  {entry.title}"), soft_wrap=True)
            return 0
        rows = _rows(matrix, list(chosen), jobs or run.default_jobs(), record)
    except (OutputError, TargetError, run.MatrixError) as error:
        raise click.UsageError(plain(str(error))) from error
    if killers_path is not None:
        recorded = {r.subject: verdict.must_kill(r, matrix.entries[r.subject]) for r in rows if r.form == "fault"}
        killers_path.write_text(json.dumps(recorded, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    else:
        recorded = verdict.read_killers()
    found = verdict.judged(rows, matrix.entries, recorded)
    if page_path is not None:
        page_path.write_text(page.page(rows, matrix.entries), encoding="utf-8")
    if len(rows) <= SHOWN:
        for row in rows:
            _print_subject(chosen[row.subject], row, console)
    _print_verdict(rows, matrix.entries, found, console)
    return 3 if found.broken else 0 if found.green else 1


def _chosen(entries: dict[str, Entry], names: Sequence[str]) -> dict[str, Entry]:
    """The subjects that are named, in the order of the matrix; all of them where none is."""
    known = {word.casefold(): word for entry in entries.values() for word in _words(entry)}
    for name in names:
        if name.casefold() not in known:
            words = set(known.values())
            hint = did_you_mean(name, words) or did_you_mean(name.upper(), words)
            raise click.UsageError(f"there is no fault or variant {name!r}{hint}")
    wanted = {known[name.casefold()] for name in names}
    return {key: entry for key, entry in entries.items() if not wanted or wanted & _words(entry)}


def _words(entry: Entry) -> set[str]:
    """What an entry can be named by; a variant also by the legitimate choice that it stands for."""
    _, _, identity = entry.key.partition("/")
    words = {entry.key, entry.form}
    if entry.form == "reference":
        return words
    stands_for = {entry.source} if entry.form == "variant" else set()
    return words | set(entry.operations) | ({identity} | stands_for) - {""}


def _rows(matrix: Matrix, keys: Sequence[str], jobs: int, record: Path | None) -> list[Row]:
    """The rows of the subjects: those on record that still hold, and the others, which are put on record."""
    from rlassay.matrix.run import continued, read_rows, run
    from rlassay.record import write

    kept = read_rows(record, matrix) if record is not None else {}
    missing = [key for key in keys if key not in kept]
    if len(missing) < len(keys):
        click.echo(f"{len(keys) - len(missing)} of {len(keys)} rows are on record and still hold", err=True)
    found = dict(kept)
    with ExitStack() as stack:
        stream = stack.enter_context(continued(record, matrix, kept)) if record is not None else None
        for row in counted(run(matrix, missing, jobs), len(missing), "faults and variants"):
            found[row.subject] = row
            if stream is not None:
                write(stream, row)
    return [found[key] for key in keys]


def _print_subject(entry: Entry, row: Row, console: Console) -> None:
    """All that is known of one subject; in brackets the number of examples."""
    from rlassay.matrix.rows import killers
    from rlassay.matrix.verdict import flags

    sure = killers(row, entry) if entry.wrong else flags(row, entry)
    counting, others = (
        [f"{identity} ({count})" for identity, count in row.kills.items() if (identity in sure) is counts]
        for counts in (True, False)
    )
    facts = {
        "operation": ", ".join(entry.operations) if entry.form != "reference" else "",
        "seen in": entry.source,
        "right under": entry.declares,
        f"{'killed' if entry.wrong else 'flagged'} by": ", ".join(counting) or "nothing",
        "seen by too" if entry.wrong else "allowed": ", ".join(others),
        "errors": "; ".join(f"{identity}: {message}" for identity, message in row.errors.items()),
    }
    if row.example is not None:
        example = row.example
        facts |= {"call": example.call, **example.inputs}
        facts |= {"right": example.right, "faulty": example.faulty, "says": example.message}
    print_row(console, "", Text.assemble((entry.key, "bold"), f"  {entry.title}"))
    print_rows(console, [(Text(label, style="cyan"), plain(text)) for label, text in facts.items() if text], 2)
    console.print()


def _print_verdict(rows: Sequence[Row], entries: dict[str, Entry], found: Verdict, console: Console) -> None:
    _print_list("no check kills", found.survivors, console)
    _print_list("no longer killed by", [f"{k}: {', '.join(v)}" for k, v in found.lost.items()], console)
    _print_list("flagged, though correct", [f"{k}: {', '.join(v)}" for k, v in found.flagged.items()], console)
    _print_list("kill nothing", found.toothless, console)
    _print_list("rlassay itself failed", [f"{k}: {', '.join(v)}" for k, v in found.broken.items()], console)
    wrong = [row for row in rows if entries[row.subject].wrong]
    parts = [f"{len(wrong) - len(found.survivors)} of {len(wrong)} faults killed"] if wrong else []
    if len(rows) > len(wrong):
        parts.append(f"{len(found.flagged)} of {len(rows) - len(wrong)} correct subjects flagged")
    if len(rows) == len(entries):
        parts.append(f"{len(found.toothless)} checks kill nothing" if found.toothless else "every check kills some")
    parts.append(f"{sum(row.examples for row in rows)} examples")
    console.print(Text(", ".join(parts), style="bold green" if found.green else "bold red"))


def _print_list(title: str, lines: Collection[str], console: Console) -> None:
    if not lines:
        return
    console.print(Text(title, style="bold red"))
    for line in list(lines)[:MOST]:
        print_row(console, "", plain(line), 2)
    if len(lines) > MOST:
        print_row(console, "", f"and {len(lines) - MOST} more", 2)
    console.print()
