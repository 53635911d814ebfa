"""The summary of a run in a terminal, rendered from its record.

What comes from the subject enters as `rich.text.Text` without control characters, so it is shown and never obeyed.
Where the output's encoding lacks a character, a stand-in or its code is written.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from rlassay.describe import convention_text, facts, law_of, many, message, names_something, plain, stale_text
from rlassay.expected import TODO
from rlassay.findings import finding_lines
from rlassay.ranking import by_weight, ranked
from rlassay.record import CheckResult, Header, Line, Record
from rlassay.verdict import Tally, tallies

T = TypeVar("T")

FEW = 3
"""So many operations that are not provided are named, unless all is asked for."""

STAND_INS = {
    "✔": "+",
    "✘": "x",
    "·": "|",
    "…": "...",
    "—": "-",
    "–": "-",
    "−": "-",
    "’": "'",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
}
ERRORS = "rlassay.stand-ins"


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    written = (STAND_INS.get(c) or ascii(c)[1:-1] for c in lost)
    return "".join(written), error.end


codecs.register_error(ERRORS, _stand_in)


def open_console(stream: TextIO) -> Console:
    """A console on a stream that writes whatever its encoding."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=ERRORS)
    return Console(file=stream, highlight=False, markup=False, emoji=False)


@contextmanager
def progress(target: str) -> Iterator[Progress]:
    """A progress bar on standard error, where that is a terminal: `show_progress` moves it."""
    console = open_console(sys.stderr)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty())
    with bar:
        bar.add_task(f"loading {plain(target)}", total=None)
        yield bar


def counted(results: Iterator[T], count: int, description: str) -> Iterator[T]:
    """The results, with a progress bar on standard error where that is a terminal."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=open_console(sys.stderr), transient=True, disable=not sys.stderr.isatty())
    with bar:
        task = bar.add_task(description, total=count)
        for result in results:
            bar.update(task, advance=1)
            yield result


def show_progress(bar: Progress, line: Line) -> None:
    """Move the bar by one line of the record."""
    (task,) = bar.task_ids
    if isinstance(line, Header):
        bar.update(task, total=line.checks, completed=0, description="checking")
    elif isinstance(line, CheckResult):
        bar.update(task, advance=1, description=line.operations[0])
    else:
        bar.update(task, description="explaining")


def print_row(console: Console, label: Text | str, body: Text | str, indent: int = 0) -> None:
    """Print a label and, beginning in column `indent`, a text; lines that are too long go on below it."""
    first = Text(label) if isinstance(label, str) else label
    text = Text(body) if isinstance(body, str) else body
    for line in text.wrap(console, max(console.width - indent, 20)) or [Text()]:
        first.pad_right(indent - first.cell_len)
        row = first + line
        row.rstrip()
        console.print(row, soft_wrap=True)
        first = Text()


def print_rows(console: Console, rows: Sequence[tuple[Text | str, Text | str]], indent: int = 0) -> None:
    """Print labels and texts in two columns, the first of which begins in column `indent`."""
    labels = [Text(" " * indent) + (Text(label) if isinstance(label, str) else label) for label, _ in rows]
    width = max((label.cell_len for label in labels), default=0) + 2
    for label, (_, body) in zip(labels, rows, strict=True):
        print_row(console, label, body, width)


def render(record: Record, console: Console, verbose: bool = False) -> None:
    """Print the summary: header, one line per operation, failures, robustness findings, the verdict."""
    _print_header(record.header, console)
    operations = tallies(record)
    _print_operations(operations, console)
    for tally in operations:
        if tally.failures:
            _print_failures(tally, record, console, verbose)
    _print_findings(operations, console, verbose)
    _print_list("known deviations", [f"{r.id}: {r.known}" for t in operations for r in t.known], console)
    stale = record.footer.stale if record.footer is not None else []
    _print_list("stale", [stale_text(r) for r in record.checks if r.id in stale], console)
    _print_list("left out by the declared convention", _left_out(record.checks), console)
    broken = [result for result in record.checks if result.outcome == "harness-error"]
    _print_list("rlassay itself failed in these checks, please report it", _lines(broken), console)
    if verbose:
        for result in broken:
            _print_code(result.failure.traceback if result.failure is not None else "", console)
    _print_absent(record.header, console, verbose)
    if not verbose and any(tally.failures for tally in operations):
        print_row(console, "", Text("-v shows every failure, with code that repeats it", style="dim"))
    text, style = verdict(record, operations)
    print_row(console, "", Text(text, style=f"bold {style}"))


def verdict(record: Record, operations: Sequence[Tally]) -> tuple[str, str]:
    """The last line, and its colour."""
    if not record.complete or record.footer is None:
        return f"incomplete run: {len(record.checks)} of {record.header.checks} checks ran; no verdict", "red"
    broken = record.footer.outcomes.get("harness-error", 0)
    if broken:
        return f"no verdict: rlassay itself failed in {many(broken, 'check')}", "red"
    failing = sum(bool(tally.failures) for tally in operations)
    strictly = " strictly" if record.header.strict else ""
    if failing:
        parts = [f"does not conform{strictly}: {failing} of {many(len(operations), 'operation')}"]
    elif not any(tally.ran for tally in operations):
        parts = ["nothing was checked: the declared convention leaves all of it open"]
    else:
        parts = [f"conforms{strictly}"]
    known, findings = sum(len(t.known) for t in operations), sum(len(t.findings) for t in operations)
    if known:
        parts.append(many(known, "known deviation") + _without_reason(operations, known))
    if findings:
        parts.append(many(findings, "robustness finding"))
    if record.footer.stale:
        parts.append(f"{many(len(record.footer.stale), 'known deviation')} out of date")
    return ", ".join(parts), "red" if record.footer.exit_code else "green"


def _without_reason(operations: Sequence[Tally], known: int) -> str:
    drafts = sum(result.known.startswith(TODO) for tally in operations for result in tally.known)
    if not drafts:
        return ""
    return f"{'' if drafts == known else f', {drafts} of them'} without a reason ({TODO})"


def _left_out(checks: Iterable[CheckResult]) -> list[str]:
    """One line for each reason, with the checks that it leaves out."""
    reasons: dict[str, list[str]] = {}
    for result in checks:
        if result.outcome == "not-declared":
            reasons.setdefault(message(result), []).append(result.id)
    return [f"{reason}: {', '.join(identities)}" for reason, identities in reasons.items()]


def _lines(results: Iterable[CheckResult]) -> list[str]:
    return [f"{result.id}: {message(result)}" for result in results]


def _print_header(header: Header, console: Console) -> None:
    parts = [
        f"rlassay {header.rlassay}",
        f"{convention_text(header)} convention",
        f"{header.profile} profile" + (", strict" if header.strict else ""),
        f"seed {header.seed}",
    ]
    if header.interface != "own":
        parts.insert(1, f"{header.interface} interface")
    if header.checks != header.available:
        selected = f"{header.checks} of {header.available} checks"
        parts.append(f"{selected} ({plain(header.expression)})" if header.expression else selected)
    print_row(console, "", Text(plain(header.target), style="bold"))
    print_row(console, "", " · ".join(parts))
    for note in header.notes:
        print_row(console, Text("note: ", style="yellow"), plain(note), 6)
    console.print()


def _print_absent(header: Header, console: Console, verbose: bool) -> None:
    absent = [name for name in header.selected if name not in header.operations]
    if not absent:
        return
    if verbose or len(absent) <= FEW:
        print_row(console, "", Text.assemble(("not provided: ", "bold"), ", ".join(absent)))
    else:
        print_row(console, "", f"{len(absent)} of {len(header.selected)} operations not provided")
    console.print()


def _print_operations(operations: Sequence[Tally], console: Console) -> None:
    width = max((len(tally.operation) for tally in operations), default=0)
    for tally in operations:
        mark = Text("✘", style="bold red") if tally.failures else Text("✔", style="bold green")
        parts = [f"{tally.passed:2} of {tally.ran:2} checks"]
        parts += [many(len(tally.known), "known deviation")] if tally.known else []
        parts += [many(len(tally.findings), "robustness finding")] if tally.findings else []
        print_row(console, Text.assemble(mark, f" {tally.operation}"), ", ".join(parts), width + 4)
    if operations:
        console.print()


def _print_findings(operations: Sequence[Tally], console: Console, verbose: bool) -> None:
    """Where an operation fails, its findings are mostly echoes of that: they are listed only if all is asked for."""
    if verbose:
        lines = [line for tally in operations for line in _lines(tally.findings)]
    else:
        lines = finding_lines([tally for tally in operations if not tally.failures])
    echoes = 0 if verbose else sum(len(tally.findings) for tally in operations if tally.failures)
    if echoes:
        lines.append(f"{'and ' if lines else ''}{echoes}{' more,' if lines else ''} of operations that do not conform")
    _print_list("robustness findings" if verbose else "robustness findings (in full with -v)", lines, console)


def _print_failures(tally: Tally, record: Record, console: Console, verbose: bool) -> None:
    console.rule(Text(tally.operation, style="bold red"), align="left", style="red")
    for explanation in record.explanations:
        if explanation.operation == tally.operation:
            named = names_something(explanation)
            print_row(console, "", Text(plain(explanation.text), style="yellow" if named else "dim"))
            if explanation.fault:
                key = f"{explanation.operation}/{explanation.fault}"
                print_row(console, "", Text(f"rlassay faults {key} tells more", style="dim"))
            console.print()
    if verbose:
        for result in by_weight(tally.failures):
            _print_failure(result, console, verbose)
        return
    rank = ranked(tally.failures)
    for result in rank.shown:
        _print_failure(result, console, verbose)
    lines: list[str] = []
    for results, noun in ((rank.claims, "claim"), (rank.laws, "check")):
        if results:
            lines.append(f"and {many(len(results), f'more {noun}')}: {', '.join(map(law_of, results))}")
    if rank.echoes:
        lines.append(
            f"{many(len(rank.echoes), 'law')} {'fails' if len(rank.echoes) == 1 else 'fail'} with it (-v lists them)"
        )
    if rank.not_run:
        lines.append(f"{many(len(rank.not_run), 'check')} not run after that")
    for line in lines:
        print_row(console, "", line)
    if lines:
        console.print()


def _print_failure(result: CheckResult, console: Console, verbose: bool) -> None:
    title = Text.assemble((result.id, "bold"), f"  {result.title}")
    if result.outcome != "fail":
        title.append(f"  [{result.outcome}]", style="red")
    print_row(console, "", title)
    print_row(console, "", Text(message(result), style="red"), 2)
    print_rows(console, [(Text(label, style="cyan"), text) for label, text in facts(result, full=verbose)], 2)
    console.print()
    if verbose and result.failure is not None:
        for code in (result.failure.snippet, result.failure.traceback):
            _print_code(code, console)


def _print_code(code: str, console: Console) -> None:
    if code:
        indented = "\n".join(f"    {line}".rstrip() for line in plain(code).splitlines())
        console.print(Text(indented), soft_wrap=True)
        console.print()


def _print_list(title: str, lines: Sequence[str], console: Console) -> None:
    if not lines:
        return
    console.print(Text(title, style="bold"))
    for line in lines:
        print_row(console, "", plain(line), 2)
    console.print()
