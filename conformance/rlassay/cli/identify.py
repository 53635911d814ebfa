"""`rlassay identify`: finds the convention that a target follows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from rlassay import __version__
from rlassay.cli.check import FILE, Unusable
from rlassay.cli.outputs import STDOUT, OutputError, opened, require_separate
from rlassay.describe import plain
from rlassay.guest.errors import TargetError
from rlassay.guest.importing import did_you_mean
from rlassay.guest.interfaces import INTERFACES
from rlassay.identify import identifiable
from rlassay.identify.agreement import SCHEMA, Report, agree, declaration
from rlassay.identify.finding import Finding, Identification, Value
from rlassay.runner import TIMEOUTS, Runner, Settings, running
from rlassay.terminal import open_console, print_row, print_rows, progress
from rlassay_spec.convention import CONVENTIONS, LECTURE, convention_from
from rlassay_spec.operations import OPERATIONS

VERDICTS = {"fits": ("✔", "green"), "none": ("✘", "red"), "no answer": ("✘", "red")}


@click.command(short_help="Find the convention that an implementation follows.")
@click.argument("target")
@click.option(
    "--interface",
    type=click.Choice(list(INTERFACES)),
    default="own",
    show_default=True,
    help="Under which names and signatures TARGET provides the operations.",
)
@click.option(
    "--operation",
    "operations",
    metavar="NAME",
    multiple=True,
    help="Only this operation; may be given several times.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    default=TIMEOUTS["standard"],
    show_default=True,
    help="How long one operation may take.",
)
@click.option(
    "--json", "report_path", type=FILE, metavar="FILE", help="Write what is found as JSON; - is standard output."
)
def identify(target: str, interface: str, operations: tuple[str, ...], timeout: float, report_path: Path | None) -> int:
    """Find the convention that TARGET follows, and print the CONVENTION to paste into it.

    \b
    rlassay identify solution.py
    rlassay identify package.module --operation grpo_advantages --json -

    \b
    Exit code 0: one convention fits every operation that TARGET provides.
    1: none fits some operation, or operations contradict one another.
    2: a wrong option, or nothing to identify. 3: rlassay itself failed.
    """
    try:
        _require_known(operations)
        require_separate({"--json": report_path}, {"the target": Path(target)})
        with progress(target) as bar, running(Settings(target, interface, timeout=timeout)) as runner:
            report = _identified(runner, operations, bar)
        if report_path is not None:
            with opened(report_path) as stream:
                stream.write(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    except (OutputError, TargetError) as error:
        raise Unusable(plain(str(error))) from error
    _render(report, open_console(sys.stderr if report_path == STDOUT else sys.stdout))
    return report.exit_code


def _require_known(operations: Sequence[str]) -> None:
    for name in operations:
        if name not in OPERATIONS:
            raise click.UsageError(f"there is no operation {name!r}{did_you_mean(name, OPERATIONS)}")
        if not identifiable(name):
            raise click.UsageError(f"no convention changes what {name} gives; there is nothing to identify")


def _identified(runner: Runner, operations: Sequence[str], bar: Progress) -> Report:
    provided = [name for name in OPERATIONS if name in runner.ready.operations]
    chosen = [name for name in provided if identifiable(name) and (not operations or name in operations)]
    settings, base = runner.settings, CONVENTIONS.get(runner.settings.interface, LECTURE)
    if not chosen:
        what = ", ".join(operations) or "an operation that depends on a convention"
        raise TargetError(f"{settings.target}: does not provide {what}; nothing to identify")
    found = []
    for place, name in enumerate(chosen):
        bar.update(bar.task_ids[0], total=len(chosen), completed=place, description=name)
        found.append(runner.identify(name))
    agreement = agree(found)
    declared = agreement.declared(base)
    fits = all(one.verdict == "fits" for one in found) and not agreement.contradictions
    return Report(
        schema=SCHEMA,
        rlassay=__version__,
        target=settings.target,
        sha256=runner.ready.sha256,
        interface=settings.interface,
        declares=convention_from(runner.ready.convention).declared(),
        operations=found,
        independent=[name for name in provided if not identifiable(name)],
        convention=agreement.convention,
        declaration=declaration(declared, base),
        contradictions=agreement.contradictions,
        undetermined=agreement.undetermined,
        unseen=agreement.unseen,
        exit_code=0 if fits else 1,
    )


def _render(report: Report, console: Console) -> None:
    print_row(console, "", Text(plain(report.target), style="bold"))
    console.print()
    for one in report.operations:
        _print_operation(one, console)
    for field, said in report.contradictions.items():
        print_row(console, "", Text(f"the operations contradict one another in {field}:", style="bold red"))
        print_rows(console, [(value, ", ".join(names)) for value, names in said.items()], 2)
        console.print()
    if report.undetermined:
        print_row(console, "", f"undetermined: {', '.join(report.undetermined)}")
    if report.unseen:
        print_row(console, "", f"no provided operation shows: {', '.join(report.unseen)}")
    if any(one.verdict == "fits" for one in report.operations):
        same = convention_from(report.convention).declared() == report.declares
        what = "as it is declared already" if same else "paste this into the file"
        print_row(console, "", Text(f"what the operations agree on ({what}):", style="bold"))
        console.print()
        console.print(Text(report.declaration), soft_wrap=True)
        console.print()
    failing = sum(one.verdict != "fits" for one in report.operations)
    text = f"no convention fits {failing} of {len(report.operations)} operations: `rlassay check` may name the fault"
    if report.contradictions and not failing:
        text = "no one convention fits every operation"
    elif not failing:
        text = "one convention fits every operation"
    print_row(console, "", Text(text, style=f"bold {'red' if report.exit_code else 'green'}"))


def _print_operation(one: Identification, console: Console) -> None:
    mark, style = VERDICTS[one.verdict]
    counts = f"{one.agreeing} of {one.observations} observations agree" if one.observations else one.verdict
    print_row(console, "", Text.assemble((mark, f"bold {style}"), (f" {one.operation}", "bold"), f"  {counts}"))
    print_rows(console, [(Text(f.field, style="cyan"), _said(f)) for f in one.findings], 4)
    for note in one.notes:
        print_row(console, Text("    note: ", style="yellow"), plain(note), 10)
    if one.verdict == "none":
        closest = ", ".join(f"{name}={_short(value)}" for name, value in one.closest.items()) or "the lecture's"
        rows = [("closest", f"{closest}, which {one.observations - one.agreeing} observations contradict")]
        rows = rows if one.agreeing else []
        if one.contradiction is not None:
            rows += [("contradiction", plain(one.contradiction.message)), ("call", one.contradiction.call)]
            rows += list(one.contradiction.inputs.items())
        print_rows(console, [(Text(label, style="cyan"), text) for label, text in rows], 4)
    console.print()


def _short(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _said(finding: Finding) -> str:
    """The value of a field, how well it is known and by what."""
    note = f" ({finding.note})" if finding.note else ""
    if finding.state == "undetermined":
        left = " or ".join(map(repr, finding.allowed)) or _interval(finding)
        return f"undetermined: {left}{note}"
    parts = [part for part in (_interval(finding), f"shown by {finding.separating}") if part]
    return f"{'none' if finding.value is None else finding.value}: {', '.join(parts)}{note}"


def _interval(finding: Finding) -> str:
    if finding.low is None:
        return ""
    if finding.high is None:
        return f"no bound up to {finding.low:.3g}"
    if finding.low == 0:
        return f"below {finding.high:.1e}"
    return f"between {finding.low:.7g} and {finding.high:.7g}"
