"""Generic mutants: small changes of the reference implementation's code, with the suite as killer.

    python scripts/mutants.py                       all modules
    python scripts/mutants.py --module advantage    one of them

Cosmic-ray makes the mutants of the functions that the operations are made of: other operators, comparisons, numbers,
keywords, conditions turned over, loops and decorators left out. A mutant that no check kills has to be on record in
scripts/mutants.toml, with the reason why it is no fault; a record that no mutant needs any more is stale. Exit status 1
if either list is not empty.

One process works, and forks for each mutant, so that one which loops or breaks its process takes nothing with it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import json
import multiprocessing
import sys
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

import torch
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from rlassay import shrink
from rlassay.check import Check
from rlassay.engine import run_check
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject

PACKAGE = "rlassay_impl"
RECORD = Path(__file__).with_name("mutants.toml")
LEFT_OUT = ("__init__", "policy")
"""Modules that no operation is made of."""

FIELDS = ("module", "function", "before", "after")
SECONDS = 120.0
"""A mutant that takes longer runs for ever, and is killed by that."""


@dataclass(frozen=True)
class Mutant:
    """A changed module: the function in which the change is, the changed lines before and after, all of the source."""

    module: str
    function: str
    before: str
    after: str
    source: str


@dataclass(frozen=True)
class Known:
    """A survivor on record, or (without `after`) all those of a line, with the reason why it is no fault."""

    module: str
    function: str
    before: str
    reason: str
    after: str = ""

    def covers(self, mutant: Mutant) -> bool:
        """Whether a mutant is this one, or one of these."""
        place = (self.module, self.function, self.before)
        return place == (mutant.module, mutant.function, mutant.before) and self.after in ("", mutant.after)


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a module that means something else than the module does."""
    meaning, seen = _meaning(source), set[str]()
    tree = get_ast(source)
    for name in operator_names():
        if get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        places = [node for node in ast_nodes(tree) for _ in operator.mutation_positions(node)]
        for occurrence, node in enumerate(places):
            changed = mutate_code(source, operator, occurrence)
            if changed is None or changed in seen or _meaning(changed) in (meaning, None):
                continue
            seen.add(changed)
            function = str(ASTQuery(node).get_definition_name() or "")
            yield Mutant(module, function, *_difference(source, changed), changed)


def reached(paths: Sequence[Path], operations: Sequence[str]) -> set[str]:
    """The functions that the operations call, by name, directly or through others: the suite judges no other code."""
    calls: dict[str, set[str]] = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                inside = list(ast.walk(node))
                names = {part.id for part in inside if isinstance(part, ast.Name)}
                calls.setdefault(node.name, set()).update(names)
    found, waiting = set[str](), list(operations)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += calls.get(name, set()) & set(calls)
    return found


def _meaning(source: str) -> str | None:
    """The code without annotations, which nothing reads; None where it is no Python."""

    class Bare(ast.NodeTransformer):
        def visit_arg(self, node: ast.arg) -> ast.arg:
            node.annotation = None
            return node

        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
            node.returns = None
            self.generic_visit(node)
            return node

        def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
            node.annotation = ast.Constant(None)
            self.generic_visit(node)
            return node

    try:
        return ast.dump(Bare().visit(ast.parse(source)))
    except SyntaxError:
        return None


def _difference(before: str, after: str) -> tuple[str, str]:
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    sides = {sign: " ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"}
    return sides["-"], sides["+"]


class _Mutated(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Finds one module and gives the mutant's source for it."""

    def __init__(self, mutant: Mutant, path: str) -> None:
        importlib.machinery.SourceFileLoader.__init__(self, f"{PACKAGE}.{mutant.module}", path)
        self.mutant = mutant

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=self.path)

    def get_code(self, fullname: str) -> Any:
        return compile(self.mutant.source, self.path, "exec", dont_inherit=True)


def killer(mutant: Mutant, path: str) -> str:
    """The check that kills a mutant, or why it did not even get so far; nothing where it survives."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Mutated(mutant, path))
    try:
        package = importlib.import_module(PACKAGE)
    except Exception as error:  # noqa: BLE001 - whatever it is, the mutant does not import
        return f"import: {type(error).__name__}"
    subject = TorchSubject({name: getattr(package, name) for name in package.__all__})
    at_home = {name for name in package.__all__ if getattr(package, name).__module__ == f"{PACKAGE}.{mutant.module}"}
    checks = ordered(mutant.function)
    near = [check for check in checks if set(check.operations) & at_home]
    for profile, chosen in (("quick", near), ("quick", checks), ("standard", near)):
        for check in chosen:
            if run_check(check, subject, profile).outcome not in ("pass", "not-declared"):
                return check.id
    return ""


def ordered(function: str) -> list[Check]:
    """The checks that are likely to see a change in a function first."""
    first = {"value": 0, "gradient": 1}
    return sorted(all_checks().values(), key=lambda c: (c.operation != function, first.get(c.law, 2)))


def _send(pipe: Any, mutant: Mutant, path: str) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    shrink.REPLAYS = 0
    pipe.send(killer(mutant, path))


def killed_by(mutant: Mutant, path: str) -> str:
    """What kills a mutant in a process of its own."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(theirs, mutant, path))
    process.start()
    theirs.close()
    try:
        return str(ours.recv()) if ours.poll(SECONDS) else "timeout"
    except EOFError:
        return "crash"
    finally:
        process.kill()
        process.join()


def main() -> int:
    """Run the mutants of the modules and compare the survivors with the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--module", action="append", help="module of the reference (repeatable); all if not given")
    options = parser.parse_args()
    house = Path(importlib.import_module(PACKAGE).__path__[0])
    paths = sorted(path for path in house.glob("*.py") if path.stem not in LEFT_OUT)
    chosen = [path for path in paths if not options.module or path.stem in options.module]
    recorded = [Known(**entry) for entry in tomllib.loads(RECORD.read_text(encoding="utf-8"))["survivor"]]
    judged = reached(paths, importlib.import_module(PACKAGE).__all__)
    survivors: list[Mutant] = []
    count = 0
    for path in chosen:
        source = path.read_text(encoding="utf-8")
        found = [mutant for mutant in mutants(path.stem, source) if mutant.function in judged]
        for place, mutant in enumerate(found, start=1):
            if not killed_by(mutant, str(path)):
                survivors.append(mutant)
                if not any(known.covers(mutant) for known in recorded):
                    print(as_record(mutant), flush=True)
            if place % 50 == 0 or place == len(found):
                print(f"{path.stem}: {place} of {len(found)}, {len(survivors)} survivors so far", file=sys.stderr)
        count += len(found)
    return report(survivors, recorded, count, [path.stem for path in chosen])


def as_record(mutant: Mutant) -> str:
    """A survivor as an entry of the record, but for the reason."""
    fields = (f"{name} = {json.dumps(getattr(mutant, name), ensure_ascii=False)}" for name in FIELDS)
    return "\n".join(("[[survivor]]", *fields, ""))


def report(survivors: Sequence[Mutant], recorded: Sequence[Known], count: int, modules: Sequence[str]) -> int:
    """Count, and print what is on record for nothing."""
    new = [mutant for mutant in survivors if not any(known.covers(mutant) for known in recorded)]
    stale = [k for k in recorded if k.module in modules and not any(map(k.covers, survivors))]
    for known in stale:
        print(f"on record for nothing: {known}")
    excused = len(survivors) - len(new)
    print(f"{count} mutants, {count - len(survivors)} killed, {excused} survive with a reason, {len(new)} without one")
    return 1 if new or stale else 0


if __name__ == "__main__":
    sys.exit(main())
