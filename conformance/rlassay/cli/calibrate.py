"""`rlassay calibrate`: false alarms, power, and the margin of every tolerance."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console
from rich.text import Text

from rlassay.check import PROFILES
from rlassay.cli.outputs import OutputError, require_writable
from rlassay.cli.selection import random_seed
from rlassay.describe import plain
from rlassay.guest.errors import TargetError
from rlassay.statistics import MISS
from rlassay.terminal import counted, open_console, print_row, print_rows

if TYPE_CHECKING:
    from rlassay.calibration.margins import Margin
    from rlassay.calibration.measure import Measured

T = TypeVar("T")

POWER = 1 - MISS
"""A statistical check has to see its effect in this share of the seeds, as its design promises."""


@click.command(short_help="Measure the suite's false alarms, power and margins.")
@click.option("--reference", default="rlassay_impl", show_default=True, help="The right implementation.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Seeds for correct code.")
@click.option("--first-seed", type=int, default=0, show_default=True, help="The first of them.")
@click.option("--random", "chance", is_flag=True, help="The first seed is chosen at random, and printed.")
@click.option("--profile", type=click.Choice(list(PROFILES)), default="quick", show_default=True, help="Examples.")
@click.option("--jobs", type=click.IntRange(min=1), show_default="one a processor", help="How many processes work.")
@click.option("--correct-only", is_flag=True, help="False alarms alone: no faults, no power.")
@click.option("--json", "report", type=click.Path(path_type=Path), metavar="FILE", help="Write all that was measured.")
def calibrate(
    reference: str,
    seeds: int,
    first_seed: int,
    chance: bool,
    profile: str,
    jobs: int | None,
    correct_only: bool,
    report: Path | None,
) -> int:
    """Measure how far the suite's verdicts are from being wrong.

    Correct code (the reference and every correct variant) is judged with many seeds: what a check finds in it is a
    false alarm, and the largest error is compared with the tolerance. Every known fault is judged with one seed in the
    standard profile: in some check it has to lie far above the tolerance. The statistical checks are tried with and
    without an effect of the size that their design states.

    A margin on correct code is the tolerance over the largest error seen, one on faults is the smallest effect over the
    tolerance: the larger, the safer. Below 10 a check is listed; those with a reason on record say it.

    \b
    Exit code 0: no false alarm, and every statistical check sees its effect.
    1: not so. 2: a wrong option.
    """
    from rlassay.calibration.margins import margins
    from rlassay.calibration.measure import measure
    from rlassay.calibration.power import PLANTED, detects
    from rlassay.matrix.run import MatrixError, default_jobs, in_parallel, plan

    if chance and first_seed:
        raise click.UsageError("--random chooses the first seed; leave --first-seed out")
    first_seed = random_seed() if chance else first_seed
    chosen = range(first_seed, first_seed + seeds)
    try:
        if report is not None:
            require_writable(report)
        matrix = plan(reference, profile, first_seed)
        keys = {wrong: [e.key for e in matrix.entries.values() if e.wrong is wrong] for wrong in (False, True)}
        cases = [(key, seed, profile) for seed in chosen for key in keys[False]]
        workers = jobs or default_jobs()
        correct = _all("correct code", in_parallel(matrix, measure, cases, workers), len(cases))
        faulty: list[Measured] = []
        seen: list[tuple[str, bool, bool]] = []
        if not correct_only:
            known = [key for key in keys[True] if matrix.entries[key].form == "fault"]
            tasks = [(key, first_seed, "standard") for key in known]
            faulty = _all("known faults", in_parallel(matrix, measure, tasks, workers), len(tasks))
            trials = [(check, planted, seed) for check in PLANTED for planted in (True, False) for seed in chosen]
            seen = _all("power", in_parallel(matrix, detects, trials, workers), len(trials))
    except (OutputError, TargetError, MatrixError) as error:
        raise click.UsageError(plain(str(error))) from error
    found = margins(correct, faulty)
    alarms = [measured for measured in correct if measured.findings]
    console = open_console(sys.stdout)
    _print_alarms(alarms, len(keys[False]), len(chosen), profile, console)
    _print_margins(found, console)
    detected = _print_power(seen, console)
    if report is not None:
        report.write_text(json.dumps(_document(found, alarms, seen, profile, len(chosen)), indent=1), encoding="utf-8")
    return 0 if detected and not alarms else 1


def _all(what: str, results: Iterator[T], count: int) -> list[T]:
    return list(counted(results, count, what))


def _print_alarms(alarms: Sequence[Measured], subjects: int, seeds: int, profile: str, console: Console) -> None:
    firsts = {(m.subject, check): (m.seed, text) for m in reversed(alarms) for check, text in m.findings.items()}
    for (subject, check), (seed, text) in firsts.items():
        print_row(console, "", plain(f"{subject}: {check}, first in seed {seed}: {text}"), 2)
    count = sum(len(measured.findings) for measured in alarms)
    text = f"{count} false alarms in {subjects} correct subjects × {seeds} seeds, profile {profile}"
    console.print(Text(text, style="bold red" if alarms else "bold green"))
    console.print()


def _print_margins(found: Sequence[Margin], console: Console) -> None:
    from rlassay.calibration.margins import ENOUGH

    narrow = [margin for margin in found if margin.narrow]
    console.print(Text(f"{len(narrow)} of {len(found)} checks have a margin below {ENOUGH:g}", style="bold"))
    print_rows(console, [(margin.check, _sides(margin)) for margin in narrow], 2)
    console.print()


def _sides(margin: Margin) -> str:
    correct = f"correct code {margin.correct:.3g} ({margin.nearest_correct or 'no error'})"
    faults = f", faults {margin.faulty:.3g} ({margin.nearest_fault})" if margin.nearest_fault else ""
    reason = f": {margin.reason}" if margin.reason else ""
    return f"{correct}{faults}{reason}"


def _print_power(seen: Sequence[tuple[str, bool, bool]], console: Console) -> bool:
    """The table of power; whether every statistical check sees its effect and nothing else."""
    from rlassay.calibration.power import PLANTED

    totals, failed = Counter((c, p) for c, p, _ in seen), Counter((c, p) for c, p, failed in seen if failed)
    good = True
    for check in dict.fromkeys(check for check, _, _ in seen):
        shares = {planted: (failed[check, planted], totals[check, planted]) for planted in (True, False)}
        good = good and shares[True][0] >= POWER * shares[True][1] and not shares[False][0]
        text = f"{shares[True][0]} of {shares[True][1]} seeds see “{PLANTED[check].title}”, "
        print_row(console, f"{check} ", text + f"{shares[False][0]} of {shares[False][1]} see what is not there", 2)
    return good


def _document(
    found: Sequence[Margin],
    alarms: Sequence[Measured],
    seen: Sequence[tuple[str, bool, bool]],
    profile: str,
    seeds: int,
) -> dict[str, Any]:
    """Everything that was measured; a margin that nothing limits is null."""

    def finite(number: float) -> float | None:
        return number if number != float("inf") else None

    return {
        "profile": profile,
        "seeds": seeds,
        "alarms": [{"subject": m.subject, "seed": m.seed, "findings": m.findings} for m in alarms],
        "margins": [{**vars(m), "correct": finite(m.correct), "faulty": finite(m.faulty)} for m in found],
        "statistical": [{"check": check, "planted": planted, "failed": failed} for check, planted, failed in seen],
    }
