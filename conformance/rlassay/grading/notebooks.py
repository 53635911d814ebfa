"""The Python of a Jupyter notebook: its code cells, with what only IPython understands made comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from rlassay.grading.tree import SubmissionError, shown

KEPT_MAGICS = ("%%time", "%%capture")
"""Cell magics that run the cell as it is; all others say that it is another language, or not run here."""

MAGIC = re.compile(r"(?:[%!?]|(?:pip3?|conda|uv) \w|[\w, ]+=\s*[!%]|[\w.*]+\?{1,2}\s*$)")
"""The beginning of a line that IPython reads and Python does not."""

LARGEST = 16 << 20
"""Bytes of a notebook."""

TOKEN = re.compile(r"\"\"\"|'''|\\.|[\"'#()\[\]{}]")
"""What decides whether the next line continues a string or a bracket."""


def to_python(content: bytes, name: str) -> tuple[str, list[str]]:
    """The source of a notebook's code cells, and notes on what became of the rest.

    Magics and shell escapes become comments line by line, so that all others keep their places; each cell has a
    comment above it with its number. `await` outside of functions stays.

    Raises:
        SubmissionError: it is not a notebook.
    """
    cells = list(_code_cells(content, name))
    lines: list[str] = []
    notes: list[str] = []
    comments = 0
    for number, source in cells:
        magic = _cell_magic(source)
        if magic and magic not in KEPT_MAGICS:
            notes.append(f"{shown(name)}: cell {number} is left out, being {shown(magic)}")
            continue
        kept, changed = _without_magics(source)
        comments += changed
        lines += [f"# %% cell {number}", *kept, ""]
    if comments:
        notes.append(f"{shown(name)}: {comments} lines for IPython or the shell became comments")
    return "\n".join(lines) + "\n", notes


def _code_cells(content: bytes, name: str) -> Iterator[tuple[int, str]]:
    """Number and source of each code cell."""
    if len(content) > LARGEST:
        raise SubmissionError(
            f"{shown(name)} is not read: it is larger than {LARGEST >> 20} MiB; clear its outputs and save it again"
        )
    try:
        notebook = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise SubmissionError(
            f"{shown(name)} is not a notebook: its JSON cannot be read ({shown(str(error))}); save it again in Jupyter"
        ) from None
    for number, cell in enumerate(_cells(notebook, name), start=1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            text = "".join(map(str, source)) if isinstance(source, list) else str(source)
            yield number, text.encode(errors="replace").decode()


def _cells(notebook: Any, name: str) -> list[Any]:
    if isinstance(notebook, dict):
        sheets = notebook.get("worksheets")
        if isinstance(notebook.get("cells"), list):
            return list(notebook["cells"])
        if isinstance(sheets, list):
            return [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells") or ()]
    raise SubmissionError(f"{shown(name)} is not a notebook: it has no list of cells; save it again in Jupyter")


def _cell_magic(source: str) -> str:
    first = source.lstrip().partition("\n")[0].split()
    return first[0] if first and first[0].startswith("%%") else ""


def _without_magics(source: str) -> tuple[list[str], int]:
    """The lines with those for IPython made comments, and how many those are."""
    lines: list[str] = []
    changed = 0
    depth, quote, continued, magic = 0, "", False, False
    for line in source.replace("\r\n", "\n").split("\n"):
        begins = not (magic or depth or quote or continued) and MAGIC.match(line.lstrip()) is not None
        if not (begins or magic):
            lines.append(line)
            depth, quote = _scan(line, depth, quote)
            continued = not quote and line.endswith("\\")
            continue
        changed += 1
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(f"{indent}pass  # {line.strip()}" if indent and begins else f"# {line}")
        magic = line.endswith("\\")
    return lines, changed


def _scan(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Depth of brackets and open quote after a line."""
    for match in TOKEN.finditer(line):
        token = match.group()
        if quote:
            quote = "" if token == quote or (token in ('"""', "'''") and token[0] == quote) else quote
        elif token == "#":
            break
        elif token[0] in "\"'":
            quote = token
        elif token in "([{":
            depth += 1
        elif token in ")]}":
            depth = max(depth - 1, 0)
    return depth, quote if len(quote) == 3 else ""
