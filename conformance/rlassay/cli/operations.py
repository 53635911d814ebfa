"""`rlassay operations`: what an implementation may provide."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.text import Text

from rlassay.describe import KNOWN_OPERATIONS, did_you_mean, signature_text
from rlassay.interfaces import INTERFACES
from rlassay.suite import all_checks
from rlassay.terminal import open_console, print_row, print_rows
from rlassay_spec.claims import load_claims
from rlassay_spec.operations import Operation


@click.command()
@click.argument("name", required=False)
@click.option(
    "--interface",
    type=click.Choice(list(INTERFACES)),
    default="own",
    show_default=True,
    help="List the operations of this interface.",
)
def operations(name: str | None, interface: str) -> int:
    """List the operations, or print the contract of one.

    \b
    rlassay operations
    rlassay operations --interface cs336
    rlassay operations grpo_advantages
    """
    console = open_console(sys.stdout)
    if name is None:
        listed = [known for known in KNOWN_OPERATIONS.values() if known.interface == interface]
        print_rows(console, [(Text(known.name, style="bold"), known.summary) for known in listed])
    elif name in KNOWN_OPERATIONS:
        _print_contract(KNOWN_OPERATIONS[name], console)
    else:
        raise click.UsageError(f"there is no operation {name!r}{did_you_mean(name, KNOWN_OPERATIONS)}")
    return 0


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
