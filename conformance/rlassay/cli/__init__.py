"""The command line."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import click

from rlassay import __version__
from rlassay.cli import (
    calibrate,
    check,
    claims,
    faults,
    grade,
    gradescope_zip,
    identify,
    operations,
    regrade,
    show,
    starter,
)
from rlassay.verdict import HARNESS_FAILED


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="rlassay", message="%(prog)s %(version)s")
def cli() -> None:
    """Tells whether code that computes reinforcement learning for language models computes it rightly.

    \b
    rlassay check solution.py       judge a file, a folder, a module or an object
    rlassay identify solution.py    find the convention that it follows
    rlassay operations              what an implementation may provide, and each contract
    rlassay claims                  what the two lectures say, and whether it is true
    rlassay grade submissions/      grade many submissions, each isolated (--assignment, --out)
    rlassay regrade results/ …      grade again, and show what changed and why
    rlassay starter                 the hand-out of an assignment
    rlassay gradescope-zip          the archive for Gradescope's autograder
    rlassay faults                  the suite itself, tried on known faults and correct variants
    """


for _command in (
    check.check,
    identify.identify,
    show.show,
    claims.claims,
    operations.operations,
    faults.faults,
    calibrate.calibrate,
    grade.grade,
    regrade.regrade,
    starter.starter,
    gradescope_zip.gradescope_zip,
):
    cli.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (the process's own, if None); the exit code.

    0 and 1 are verdicts, 2 is a usage error, 3 a failure of rlassay itself, 130 an interruption.
    """
    try:
        code = cli.main(arguments, prog_name="rlassay", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("interrupted", err=True)
        return check.INTERRUPTED
    except OSError as error:
        click.echo(f"rlassay cannot go on: {error}. There is no verdict.", err=True)
        return HARNESS_FAILED
    except Exception as error:  # noqa: BLE001 - whatever else goes wrong is a failure of rlassay, not a verdict
        traceback.print_exc()
        click.echo(f"rlassay itself failed: {type(error).__name__}: {error}. Please report it.", err=True)
        return HARNESS_FAILED
    return code if isinstance(code, int) else 0


def main() -> None:
    """The console script."""
    sys.exit(run())
