"""A class for the assignment of the examples: its submissions, each with the Python that its marks must be those of.

Right and wrong functions are the suite's variants and faults, written out as Python that stands by itself.
"""

from __future__ import annotations

import ast
import inspect
import random
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from tests.conformance.grading.attacks import ALL, ATTACKS, NOT_K3

from rlassay.faults import faults_of
from rlassay.grading.assignment import Assignment
from rlassay.grading.starter import starter
from rlassay.variants import Variant, all_variants
from rlassay_spec.convention import LECTURE, Convention

ATTACKED = {name: attack for name, attack in ATTACKS.items() if attack.earns in (ALL, NOT_K3, frozenset())}
"""Those of which it is known what they earn, whatever they are built around."""

BROKEN = (
    "import library_that_only_my_laptop_has",
    "model = open('/home/me/weights.bin', 'rb').read()",
    "device = torch.zeros(1).cuda().device",
    "assert kl_k3(torch.zeros(1, 2), torch.zeros(1, 2)).sum() == 1, 'testing'",
)
"""Why a module does not load; its definitions are right all the same."""


KINDS = (
    *("right", "wrong", "right", "wrong", "partial", "right", "wrong", "unloaded", "hostile", "partial"),
    *("right", "wrong", "right", "wrong", "partial", "right", "wrong", "unloaded", "hostile", "unloaded"),
)


@dataclass(frozen=True)
class Made:
    """A submission: as it is handed in, and the Python whose outcomes are the right ones, or, of a hostile one, the
    parts that earn all of their points."""

    id: str
    kind: str
    source: str
    judged: str = ""
    earns: frozenset[str] | None = None


def make_class(assignment: Assignment, count: int, seed: int = 0) -> Iterator[Made]:
    """So many submissions: of 20, 6 right, 6 wrong somewhere, 3 partly missing, 3 that do not load, 2 hostile."""
    chance = random.Random(seed)
    stubs = starter(assignment)["solution.py"].replace("from rlassay", "from not_there")
    names = [part.operation for part in assignment.parts]
    attacks = list(ATTACKED)
    chance.shuffle(attacks)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        identity = f"student-{number:04}-{kind}"
        if kind == "hostile":
            name = attacks[number // 10 % len(attacks)]
            attack, right = ATTACKED[name], written(chance, names)
            source = f"import torch\n{attack.before}\n{right}\n{attack.after}\n"
            missing = frozenset(("kl_k3",)) if attack.earns == NOT_K3 else frozenset()
            earns = frozenset(names) - missing if attack.earns else frozenset()
            yield Made(f"{identity}-{name}", kind, source, earns=earns)
            continue
        kept = names if kind != "partial" else sorted(chance.sample(names, chance.randint(1, len(names) - 1)))
        code = written(chance, kept, wrong=chance.randint(1, 3) if kind == "wrong" else 0)
        code = f"{stubs}\n\n{code}"
        broken = f"{code}\n\n{chance.choice(BROKEN)}\n" if kind == "unloaded" else code
        yield Made(identity, kind, broken, code)


def written(chance: random.Random, operations: Sequence[str], wrong: int = 0) -> str:
    """Python that provides operations, so many of them wrong."""
    faulty = set(chance.sample(list(operations), wrong))
    for _ in range(1000):
        text = Text()
        try:
            for operation in operations:
                choices = _faulty(operation) if operation in faulty else _right(operation)
                text.provide(operation, chance.choice(choices), flat=operation not in faulty)
            exec(compile(text.python(), "written", "exec", dont_inherit=True), {"__name__": "written"})  # noqa: S102 - our own code
        except (Unportable, SyntaxError, NameError):
            continue
        return text.python()
    raise AssertionError(f"no way to write {', '.join(operations)}")


def _right(operation: str) -> list[Callable[..., Any]]:
    return [variant.functions[operation] for variant in all_variants().values() if _holds(variant, operation)]


def _holds(variant: Variant, operation: str) -> bool:
    return operation in variant.functions and {**asdict(variant.convention), "name": "lecture"} == asdict(LECTURE)


def _faulty(operation: str) -> list[Callable[..., Any]]:
    return [fault.under(LECTURE) for fault in faults_of(operation) if fault.wrong_under(LECTURE)]


class Unportable(Exception):
    """A function that cannot be written out here: another one has its name, or its source is not to be had."""


class Text:
    """Python that makes functions of rlassay again without it."""

    def __init__(self) -> None:
        self.lines: list[str] = ["from functools import partial", "from types import SimpleNamespace"]
        self.known: dict[str, object] = {}
        self.factories: dict[types.FunctionType, str] = {}
        self.made = 0

    def python(self) -> str:
        """All of it."""
        return "\n".join(self.lines) + "\n"

    def provide(self, name: str, function: Callable[..., Any], flat: bool) -> None:
        """Define a function under a name: as a person would, with what it needs beside it, or (not `flat`) any way."""
        if flat:
            self._define(name, function)
        else:
            self.lines.append(f"{name} = {self._expression(function)}")

    def _define(self, name: str, value: Any) -> None:
        """Bind a name to a value in the module."""
        if self.known.setdefault(name, value) is not value:
            raise Unportable(name)
        if not (isinstance(value, types.FunctionType) and value.__module__.startswith("rlassay")):
            self.lines.append(f"{name} = {self._expression(value)}" if not _origin(value) else _import(name, value))
            return
        node = _node(value)
        if value.__closure__ or not isinstance(node, ast.FunctionDef):
            raise Unportable(name)
        own = node.name
        for used, needed in _globals(node, value).items():
            if needed is not value and self.known.get(used) is not needed:
                self._define(used, needed)
        node.name = name
        self.lines += ["", ast.unparse(node)] + ([f"{own} = {name}"] if own != name and own in _names(node) else [])

    def _expression(self, value: Any) -> str:
        if isinstance(value, partial):
            keywords = (f"{name}={self._expression(entry)}" for name, entry in value.keywords.items())
            return f"partial({', '.join([*map(self._expression, (value.func, *value.args)), *keywords])})"
        if isinstance(value, Convention):
            return f"SimpleNamespace(**{asdict(value)!r})"
        if isinstance(value, types.FunctionType) and value.__module__.startswith("rlassay"):
            if value not in self.factories:
                self.factories[value] = self._factory(value)
            return self.factories[value]
        if isinstance(value, str | int | float | bool | None):
            return repr(value)
        if isinstance(value, tuple | list):
            return f"({''.join(f'{self._expression(entry)}, ' for entry in value)})"
        if _origin(value):
            self.made += 1
            self.lines.append(_import(f"imported_{self.made}", value))
            return f"imported_{self.made}"
        raise Unportable(repr(value))

    def _factory(self, function: types.FunctionType) -> str:
        """A function made within another one, which hands it what it uses."""
        node = _node(function)
        used = {name: value for name, value in _globals(node, function).items() if value is not function}
        used |= dict(
            zip(function.__code__.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True)
        )
        arguments = [self._expression(value) for value in used.values()]
        self.made += 1
        made = f"make_{self.made}"
        body = ast.unparse(node).replace("\n", "\n    ")
        result = node.name if isinstance(node, ast.FunctionDef) else f"({body})"
        first = f"    {body}\n" if isinstance(node, ast.FunctionDef) else ""
        self.lines.append(f"\ndef {made}({', '.join(used)}):\n{first}    return {result}\n\n")
        self.lines.append(f"made_{self.made} = {made}({', '.join(arguments)})")
        return f"made_{self.made}"


def _origin(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return f"{module}:{name}" if module and name and not module.startswith("rlassay") else ""


def _import(name: str, value: Any) -> str:
    module, _, attribute = _origin(value).partition(":")
    if module.startswith("rlassay"):
        raise Unportable(module)
    return f"from {module} import {attribute} as {name}" if attribute else f"import {module} as {name}"


def _node(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """The function's own syntax, without decorators and annotations."""
    tree = ast.parse(inspect.getsource(inspect.getmodule(function)))  # type: ignore[arg-type]
    line, wanted = function.__code__.co_firstlineno, ast.Lambda if function.__name__ == "<lambda>" else ast.FunctionDef
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and isinstance(node, wanted)
        and min([node.lineno, *(entry.lineno for entry in getattr(node, "decorator_list", []))]) == line
    ]
    if len(found) != 1:
        raise Unportable(function.__qualname__)
    node = found[0]
    for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
        if argument is not None:
            argument.annotation = None
    if isinstance(node, ast.FunctionDef):
        node.decorator_list, node.returns = [], None
    return node


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _globals(node: ast.AST, function: types.FunctionType) -> dict[str, Any]:
    known = function.__globals__
    return {name: known[name] for name in sorted(_names(node)) if name in known}
