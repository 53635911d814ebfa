"""`rlassay operations`: what an implementation may provide."""

from __future__ import annotations

import re
import sys

import click
from rich.console import Console
from rich.text import Text

from rlassay.describe import KNOWN_OPERATIONS, signature_text
from rlassay.guest.importing import did_you_mean
from rlassay.guest.interfaces import INTERFACES
from rlassay.suite import all_checks
from rlassay.terminal import open_console, print_row, print_rows
from rlassay_spec.claims import load_claims
from rlassay_spec.operations import Operation


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--interface",
    type=click.Choice(list(INTERFACES)),
    default="own",
    show_default=True,
    help="List the operations of this interface.",
)
def operations(names: tuple[str, ...], interface: str) -> int:
    """List the operations, or print the contracts of some.

    \b
    rlassay operations
    rlassay operations --interface cs336
    rlassay operations grpo_advantages grpo_loss
    """
    console = open_console(sys.stdout)
    for name in names:
        if name not in KNOWN_OPERATIONS:
            raise click.UsageError(f"there is no operation {name!r}{did_you_mean(name, KNOWN_OPERATIONS)}")
    for place, name in enumerate(names):
        if place:
            console.rule(style="dim")
        _print_contract(KNOWN_OPERATIONS[name], console)
    for known in KNOWN_OPERATIONS.values():
        if not names and known.interface == interface:
            print_row(console, "", Text(signature_text(known), style="bold"))
            print_row(console, "", _first_sentence(known.doc), 4)
    return 0


def _first_sentence(doc: str) -> str:
    paragraph = " ".join(doc.partition("\n\n")[0].split())
    found = re.match(r"(.*?)(?<!Dr)[.:](?=\s|$)", paragraph)
    return f"{found[1]}." if found is not None else paragraph


def _print_contract(operation: Operation, console: Console) -> None:
    print_row(console, "", Text(signature_text(operation), style="bold"))
    console.print()
    console.print(Text(operation.doc), soft_wrap=True)
    console.print()
    checks = sum(check.operation == operation.name for check in all_checks(operation.interface).values())
    claims = [claim.id for claim in load_claims().values() if operation.name in claim.operations]
    interface = "" if operation.interface == "own" else f" --interface {operation.interface}"
    command = f"rlassay check TARGET{interface} --operation {operation.name}"
    print_rows(console, [("claims", ", ".join(claims) or "none"), ("checks", f"{checks}: {command}")])
