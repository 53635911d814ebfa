"""`rlassay check`: judges a target and reports what it finds."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO

import click

from rlassay.check import PROFILES
from rlassay.cli.outputs import STDOUT, OutputError, opened, require_separate, require_writable
from rlassay.cli.selection import SelectionError, select
from rlassay.describe import plain
from rlassay.expected import ExpectedError, draft, read_expected
from rlassay.folder import FolderError, read_folder
from rlassay.guest.errors import TargetError
from rlassay.guest.interfaces import INTERFACES
from rlassay.judge import Plan, judge
from rlassay.junit import junit
from rlassay.record import Line, gather, write
from rlassay.runner import TIMEOUTS, Settings
from rlassay.suite import all_checks
from rlassay.terminal import open_console, progress, render, show_progress
from rlassay_spec.convention import CONVENTIONS

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

FILE = click.Path(path_type=Path)


class Unusable(click.ClickException):
    """Nothing can be judged; the message says why."""

    exit_code = 2


@click.command(short_help="Judge an implementation.")
@click.argument("target")
@click.option(
    "--interface",
    type=click.Choice(list(INTERFACES)),
    show_default="own",
    help="Under which names and signatures TARGET provides the operations.",
)
@click.option(
    "--convention",
    type=click.Choice(list(CONVENTIONS)),
    help="Judge by this convention, whatever TARGET declares in CONVENTION.",
)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="standard",
    show_default=True,
    help="How many random examples a check gets.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the random examples.")
@click.option("--strict", is_flag=True, help="Robustness decides too, not conformance alone.")
@click.option(
    "-k",
    "expression",
    metavar="EXPRESSION",
    default="",
    help="Only checks whose id satisfies this: 'kl and not refuses', B9.1.",
)
@click.option(
    "--operation",
    "operations",
    metavar="NAME",
    multiple=True,
    help="Only checks of this operation; may be given several times.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    show_default="30, thorough 300",
    help="How long one check may take.",
)
@click.option(
    "--json",
    "record_path",
    type=FILE,
    metavar="FILE",
    help="Write the record, line by line while it runs; - is standard output.",
)
@click.option("--junit", "junit_path", type=FILE, metavar="FILE", help="Write JUnit XML.")
@click.option(
    "--expected",
    "expected_path",
    type=FILE,
    metavar="FILE",
    help="Known deviations: failures that are listed there do not count, and have to happen.",
)
@click.option(
    "--write-expected",
    "draft_path",
    type=FILE,
    metavar="FILE",
    help="Draft a file of known deviations from the failures of this run.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show every failure, with code that repeats it.")
def check(
    target: str,
    interface: str | None,
    convention: str | None,
    profile: str,
    seed: int,
    strict: bool,
    expression: str,
    operations: tuple[str, ...],
    timeout: float | None,
    record_path: Path | None,
    junit_path: Path | None,
    expected_path: Path | None,
    draft_path: Path | None,
    verbose: bool,
) -> int:
    """Judge TARGET: a .py file, a folder, a module, or module:object.

    \b
    rlassay check solution.py
    rlassay check solution.py --profile quick -k 'grpo and not refuses'
    rlassay check package.module:Trainer --json run.ndjson --junit run.xml

    A file rlassay.toml in TARGET's folder may list the checks to make, as checks = ["kl_k3/value"], and say which
    interface it has.

    \b
    Exit code 0: every conformance check of the operations that TARGET provides
    passed (with --strict, every robustness check too). 1: some did not.
    2: a wrong option, or nothing to check. 3: rlassay itself failed.
    """
    try:
        folder = read_folder(target)
        interface = interface or folder.interface
        checks = all_checks(interface)
        selected = folder.among(select(checks, operations, expression), checks)
        expected = read_expected(expected_path, checks) if expected_path is not None else {}
        _require_harmless(target, record_path, junit_path, expected_path, draft_path)
        settings = Settings(target, interface, convention, profile, seed, timeout or TIMEOUTS[profile])
        plan = Plan(settings, selected, len(checks), folder.selection(expression), strict, expected)
        lines: list[Line] = []
        with ExitStack() as files:
            stream = files.enter_context(opened(record_path)) if record_path is not None else None
            report = files.enter_context(opened(junit_path)) if junit_path is not None else None
            interrupted = _follow(plan, lines, stream)
            if report is not None and lines:
                report.write(junit(gather(lines)))
    except (FolderError, SelectionError, ExpectedError, OutputError, TargetError) as error:
        raise Unusable(plain(str(error))) from error
    if interrupted:
        done = f"after {len(lines) - 1} of {len(selected)} checks" if lines else "before the first check"
        click.echo(f"interrupted {done}; no verdict", err=True)
        return INTERRUPTED
    record = gather(lines)
    if draft_path is not None:
        draft_path.write_text(draft(record.checks, expected, strict), encoding="utf-8")
    render(record, open_console(sys.stderr if record_path == STDOUT else sys.stdout), verbose)
    assert record.footer is not None
    return record.footer.exit_code


def _follow(plan: Plan, lines: list[Line], stream: IO[bytes] | None) -> bool:
    """Collect the lines of a run, and write them as they come; True where Ctrl-C ended it."""
    try:
        with closing(judge(plan)) as run, progress(plan.settings.target) as bar:
            for line in run:
                lines.append(line)
                if stream is not None:
                    write(stream, line)
                show_progress(bar, line)
    except KeyboardInterrupt:
        return True
    return False


def _require_harmless(
    target: str, record: Path | None, report: Path | None, expected: Path | None, draft_path: Path | None
) -> None:
    """Refuse output files that are each other, the target or (but for a draft) the list of known deviations."""
    outputs = {"--json": record, "--junit": report}
    require_separate(outputs | {"--write-expected": draft_path}, {"the target": Path(target)})
    require_separate(outputs, {"the file of --expected": expected})
    if draft_path is None:
        return
    if draft_path.exists() and draft_path != expected:
        hint = "remove it, or pass it as --expected too, so that its reasons are kept"
        raise OutputError(f"--write-expected: {draft_path} exists already; {hint}")
    require_writable(draft_path)
