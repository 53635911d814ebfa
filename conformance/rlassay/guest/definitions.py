"""The imports, constants and definitions of a source file, without what else it would do when it is imported.

Kept are imports, functions and classes, `try` around imports, `if` on a plain condition, and assignments of plain
expressions: literals, names that are kept, arithmetic, containers, comprehensions, lambdas, and calls of what
`CHEAP_CALLS` lists or of a dataclass of the file. Everything else is left out: training loops, loading of models,
reading of arguments, what is guarded by `__name__`. Each statement that is kept runs for itself, so that one that
fails takes nothing else with it. Annotations are not evaluated.
"""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from .kept import Filter

PYTHON = f"Python {sys.version_info.major}.{sys.version_info.minor}"

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

STANDARD = ("staticmethod", "classmethod", "property", "abc", "abstractmethod", "functools", "torch")
"""Decorators of methods, or modules of such, that are never taken off."""

MOST_RANGES = 12
"""So many ranges of lines are named in the note about what is left out."""


@dataclass(frozen=True)
class Statement:
    """A statement that is kept: its line, what it is in words, its code, and the code without its decorators."""

    line: int
    what: str
    code: CodeType
    bare: CodeType | None


@dataclass(frozen=True)
class Definitions:
    """The statements of a file that are kept, in order, and the lines (first, last) of those that are left out."""

    statements: tuple[Statement, ...]
    dropped: tuple[tuple[int, int], ...]


def build(source: str | bytes, filename: str) -> Definitions:
    """What is kept of a source; nothing of it is executed.

    Raises:
        SyntaxError: this Python cannot read it; the message says which Python that is.
    """
    try:
        tree = ast.parse(source, filename)
        flags = _future_flags(tree)
        kept = Filter()
        statements = tuple(_statement(node, filename, flags) for node in kept.body(tree.body, split=True))
    except SyntaxError as error:
        error.msg = f"{error.msg} ({PYTHON} reads it; code for a newer one needs that)"
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        what = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise SyntaxError(f"{what} ({PYTHON} reads it)", (filename, None, None, None)) from None
    return Definitions(statements, _merged(kept.dropped))


def run(definitions: Definitions, namespace: dict[str, Any]) -> list[str]:
    """Execute what is kept in a module's namespace.

    Returns:
        Notes about what is left out, and about imports and definitions that failed.
    """
    notes = []
    if definitions.dropped:
        notes.append(f"left out, not being imports, constants or definitions: {_lines(definitions.dropped)}")
    for statement in definitions.statements:
        error = _execute(statement.code, namespace)
        if error and statement.bare is not None and not _execute(statement.bare, namespace):
            notes.append(f"line {statement.line}: {statement.what} is taken without its decorators: {error}")
        elif error:
            notes.append(f"line {statement.line}: {statement.what} failed: {error}")
    return notes


def _execute(code: CodeType, namespace: dict[str, Any]) -> str:
    """What it raised, or nothing."""
    try:
        exec(code, namespace)  # noqa: S102 - what runs in a guest is the submission
    except BaseException as error:  # noqa: BLE001 - it may raise anything, SystemExit included
        return _error_text(error)
    return ""


def _error_text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:  # noqa: BLE001 - an exception's own text may raise
        return type(error).__name__


def _future_flags(tree: ast.Module) -> int:
    flags = __future__.annotations.compiler_flag
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
    return flags


def _compile(node: ast.stmt, filename: str, flags: int) -> CodeType:
    code: CodeType = compile(ast.Module([node], []), filename, "exec", flags=flags, dont_inherit=True)
    return code


def _statement(node: ast.stmt, filename: str, flags: int) -> Statement:
    code, bare = _compile(node, filename, flags), None
    if isinstance(node, DEFINITIONS) and _undecorate(node):
        bare = _compile(node, filename, flags)
    what = node.name if isinstance(node, DEFINITIONS) else f"`{ast.unparse(node).partition(chr(10))[0][:100]}`"
    return Statement(node.lineno, what, code, bare)


def _undecorate(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Take decorators off a definition, and from a class's methods those that say nothing of how they are called."""
    changed, node.decorator_list = bool(node.decorator_list), []
    for method in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(method, DEFINITIONS):
            kept = [decorator for decorator in method.decorator_list if _is_standard(decorator)]
            changed |= len(kept) < len(method.decorator_list)
            method.decorator_list = kept
    return changed


def _is_standard(decorator: ast.expr) -> bool:
    name = ast.unparse(decorator)
    return name.endswith((".setter", ".deleter")) or name.partition(".")[0] in STANDARD


def _merged(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges that touch become one."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def _lines(ranges: tuple[tuple[int, int], ...]) -> str:
    def texts() -> Iterator[str]:
        yield from (str(first) if first == last else f"{first}-{last}" for first, last in ranges[:MOST_RANGES])
        if len(ranges) > MOST_RANGES:
            yield f"and {len(ranges) - MOST_RANGES} more"

    one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"{'line' if one else 'lines'} {', '.join(texts())}"
