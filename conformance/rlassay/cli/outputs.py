"""The files that a run writes: refused before anything runs if they cannot be written or would destroy something."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import IO

STDOUT = Path("-")


class OutputError(ValueError):
    """A file that cannot be written; says which and why."""


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, emptied at once so that nobody takes an earlier run's for this one's; - is standard output.

    Raises:
        OutputError: it cannot be opened.
    """
    if path == STDOUT:
        yield sys.stdout.buffer
        return
    try:
        stream = path.open("wb")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    with stream:
        yield stream


def require_writable(path: Path) -> None:
    """A file can be written later; what it holds stays.

    Raises:
        OutputError: it cannot.
    """
    try:
        path.open("ab").close()
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


def require_separate(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """No output, named by its option, is another output or an input.

    Raises:
        OutputError: two of them are one file.
    """
    written = [(option, path.resolve()) for option, path in outputs.items() if path not in (None, STDOUT)]
    read = [(option, path.resolve()) for option, path in inputs.items() if path is not None]
    pairs = [*combinations(written, 2), *((one, other) for one in written for other in read)]
    for (option, path), (other, same) in pairs:
        if path == same:
            raise OutputError(f"{option} would overwrite {path}, which is {other}")
