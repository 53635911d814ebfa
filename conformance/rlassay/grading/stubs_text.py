"""The specification's typed stubs as one file that stands by itself."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType

from rlassay_spec.operations import Operation


@dataclass
class _Needs:
    """What a file needs to define before its functions: names by the module that they come from, and type aliases."""

    imports: dict[str, set[str]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def add(self, names: Iterable[str], module: ModuleType) -> None:
        """Add what some names mean in a module, and what that needs in turn."""
        tree = ast.parse(source := inspect.getsource(module))
        for name in names:
            for statement in tree.body:
                if isinstance(statement, ast.ImportFrom) and name in {alias.name for alias in statement.names}:
                    self._import(name, str(statement.module))
                elif isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name:
                    assert statement.value is not None
                    self.add([*_names(statement.annotation), *_names(statement.value)], module)
                    self.aliases.setdefault(name, ast.get_source_segment(source, statement) or "")

    def _import(self, name: str, module: str) -> None:
        if module.partition(".")[0] == "rlassay_spec":
            self.add([name], sys.modules[module])
        else:
            self.imports.setdefault(module, set()).add(name)


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def stubs_text(operations: Sequence[Operation]) -> Iterator[str]:
    """The blocks of the file: imports, type aliases, then the functions by topic, each with its contract."""
    needs = _Needs()
    sources = {operation.name: inspect.getsource(operation.stub) for operation in operations}
    for operation in operations:
        function = ast.parse(sources[operation.name]).body[0]
        assert isinstance(function, ast.FunctionDef)
        parts = [function.args, *([function.returns] if function.returns is not None else [])]
        needs.add([name for part in parts for name in _names(part)], sys.modules[operation.stub.__module__])
    lines = (f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(needs.imports.items()))
    yield "\n".join(lines)
    yield "\n".join(needs.aliases.values())
    for topic in dict.fromkeys(operation.topic for operation in operations):
        stubs = [operation for operation in operations if operation.topic == topic]
        if stubs[0].interface == "own":
            about = inspect.getdoc(sys.modules[stubs[0].stub.__module__]) or ""
            yield "\n" + "\n".join(f"# {line}".rstrip() for line in about.splitlines())
        for operation in stubs:
            yield "\n" + sources[operation.name].replace(operation.name, student_name(operation), 1).rstrip()


def student_name(operation: Operation) -> str:
    """What a submission calls an operation: both forms of a function of CS336 have one name there."""
    return operation.name.removesuffix("_2026")
