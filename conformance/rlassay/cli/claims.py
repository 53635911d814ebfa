"""`rlassay claims`: the specification, and which check asserts which claim."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click
from rich.console import Console
from rich.text import Text

from rlassay.guest.importing import did_you_mean
from rlassay.suite import all_checks
from rlassay.terminal import open_console, print_row, print_rows
from rlassay_spec.claims import VERDICTS, Claim, Value, load_claims

STYLES = {"holds": "green", "conditional": "yellow", "refuted": "red", "measured": "cyan"}


@click.command()
@click.argument("identifier", metavar="[ID]", required=False)
@click.option("--lecture", metavar="NAME", help="Only the claims of one lecture: rl-basics or rl-in-practice.")
@click.option("--coverage", is_flag=True, help="Which checks assert each claim; exit code 1 if a claim has none.")
def claims(identifier: str | None, lecture: str | None, coverage: bool) -> int:
    """Show what the two lectures claim, and whether it is true.

    \b
    rlassay claims                        every claim
    rlassay claims B9.6                   one claim in full
    rlassay claims --lecture rl-basics    one lecture
    rlassay claims --coverage             claim by claim, the checks that assert it
    """
    found = load_claims()
    lectures = list(dict.fromkeys(claim.lecture for claim in found.values()))
    if identifier is not None and identifier not in found:
        raise click.UsageError(f"there is no claim {identifier!r}{did_you_mean(identifier, found)}")
    if lecture is not None and lecture not in lectures:
        raise click.UsageError(f"there is no lecture {lecture!r}; the lectures are {', '.join(lectures)}")
    chosen = [claim for claim in found.values() if identifier in (None, claim.id) and lecture in (None, claim.lecture)]
    asserting = _asserting()
    console = open_console(sys.stdout)
    if coverage:
        return _print_coverage(chosen, asserting, sorted(set(asserting) - set(found)), console)
    if identifier is not None:
        _print_claim(found[identifier], asserting.get(identifier, []), console)
    else:
        _print_claims(chosen, console)
    return 0


def _asserting() -> dict[str, list[str]]:
    """Claim id → ids of the checks that assert it."""
    asserting: dict[str, list[str]] = {}
    for check in all_checks().values():
        for identifier in check.claims:
            asserting.setdefault(identifier, []).append(check.id)
    return asserting


def _print_claims(chosen: Sequence[Claim], console: Console) -> None:
    for claim in chosen:
        label = Text.assemble((f"{claim.id:<8}", "bold"), (f"{claim.verdict:<13}", STYLES[claim.verdict]))
        print_row(console, label, claim.statement, 21)


def _print_claim(claim: Claim, checks: Sequence[str], console: Console) -> None:
    verdict = (claim.verdict, STYLES[claim.verdict])
    print_row(console, "", Text.assemble((f"{claim.id}  ", "bold"), verdict, f": {VERDICTS[claim.verdict]}"))
    print_row(console, "", claim.statement)
    console.print()
    rows = {
        "formula": claim.formula,
        "true when": claim.condition,
        "instead": claim.truth,
        "lecture": f"{claim.lecture}, {claim.section}",
        "source": claim.source,
        "operations": ", ".join(claim.operations),
        "checks": ", ".join(checks) or _without_check(claim),
    }
    print_rows(console, [(Text(label, style="cyan"), text) for label, text in rows.items() if text])
    _print_values("values", claim.values, console)
    _print_values("values where it is true", claim.inside, console)
    _print_values("values where it is not true", claim.counterexamples, console)


def _print_values(title: str, values: Sequence[Value], console: Console) -> None:
    if not values:
        return
    console.print()
    print_row(console, "", Text(title, style="cyan"))
    for value in values:
        printed = f" (the lecture prints {value.printed})" if value.printed is not None else ""
        print_row(console, "", f"{value.name}: {value.value}{printed}", 2)
        print_row(console, "", Text(f"= {value.expression}", style="dim"), 4)


def _without_check(claim: Claim) -> str:
    return "none: its expressions are the proof" if claim.asserted_by == "spec" else "NONE"


def _print_coverage(
    chosen: Sequence[Claim], asserting: Mapping[str, Sequence[str]], unknown: Sequence[str], console: Console
) -> int:
    rows = [(claim.id, ", ".join(asserting.get(claim.id, ())) or _without_check(claim)) for claim in chosen]
    print_rows(console, [(Text(identifier, style="bold"), text) for identifier, text in rows])
    console.print()
    missing = [claim.id for claim in chosen if claim.id not in asserting and claim.asserted_by == "conformance"]
    if unknown:
        text = f"asserted by checks, but not in the specification: {', '.join(unknown)}"
        print_row(console, "", Text(text, style="red"))
    if missing:
        text = f"{len(missing)} of {len(chosen)} claims have no check: {', '.join(missing)}"
        print_row(console, "", Text(text, style="red"))
        return 1
    print_row(console, "", Text(f"all {len(chosen)} claims are asserted", style="green"))
    return 1 if unknown else 0
