"""Which statements and expressions of a source are imports, constants and definitions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

CHEAP_CALLS = (
    *("abs", "bool", "bytes", "complex", "dict", "enumerate", "float", "frozenset", "getattr", "hasattr", "int"),
    *("isinstance", "len", "list", "max", "min", "object", "range", "round", "set", "slice", "sorted", "str", "sum"),
    *("tuple", "type", "zip", "staticmethod", "classmethod", "property", "math.*", "operator.*", "functools.*"),
    *("itertools.*", "collections.*", "dataclasses.*", "enum.*", "typing.*", "typing_extensions.*", "fractions.*"),
    *("pathlib.*", "os.path.*", "os.getenv", "os.environ.get", "re.compile", "logging.getLogger"),
    *("torch.tensor", "torch.as_tensor", "torch.finfo", "torch.iinfo", "torch.device", "torch.Size", "torch.compile"),
    *("torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.jit.*", "torch.vmap"),
    *("torch.func.*", "torch.cuda.is_available", "torch.cuda.device_count", "torch.backends.mps.is_available"),
    *("numpy.array", "numpy.asarray", "numpy.finfo", "numpy.iinfo", "numpy.dtype", "numpy.float32", "numpy.float64"),
    *("numpy.int64", "numpy.log", "numpy.exp", "numpy.sqrt"),
)
"""Functions that constants may be made with, by the full name that the file's imports give them."""

PLAIN = (
    *(ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript),
    *(ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Starred, ast.JoinedStr, ast.FormattedValue),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.keyword, ast.Lambda),
    *(ast.Name, ast.Call, ast.arguments, ast.arg, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)
"""Parts of expressions that constants may have."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Filter:
    """Keeps statements, and remembers the names that they bind and the lines of those that it leaves out."""

    def __init__(self) -> None:
        self.dropped: list[tuple[int, int]] = []
        self.origins: dict[str, str] = {}
        self.known: set[str] = set(dir(builtins)) | {"__name__", "__file__", "__doc__"}
        self.records: set[str] = set()
        self.open = False

    def body(self, statements: Iterable[ast.stmt], split: bool = False) -> list[ast.stmt]:
        """Those that are kept, changed where only a part of them is; `split` gives each imported name its own."""
        return [kept for statement in statements for kept in self._kept(statement, split)]

    def _kept(self, node: ast.stmt, split: bool) -> Iterator[ast.stmt]:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from self._import(node, split)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._plain_defaults(node.args)
                self.known.add(node.name)
                yield node
            case ast.ClassDef():
                yield self._class(node)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() if self._is_constant(node):
                yield node
            case ast.If() if not _never_imported(node.test):
                yield from self._condition(node)
            case ast.If():
                yield from self.body(node.orelse, split)
            case ast.Try():
                yield from self._attempt(node)
            case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.AnnAssign(value=None):
                return
            case _ if type(node).__name__ == "TypeAlias":
                self.known.update(name.id for name in ast.walk(node) if isinstance(name, ast.Name))
                yield node
            case _:
                self._drop(node)

    def _drop(self, node: ast.stmt) -> None:
        self.dropped.append((node.lineno, node.end_lineno or node.lineno))

    def _import(self, node: ast.Import | ast.ImportFrom, split: bool) -> Iterator[ast.stmt]:
        module = getattr(node, "module", None)
        if module == "__future__":
            return
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            self.open |= alias.name == "*"
            self.known.add(bound)
            origin = alias.name if alias.asname else bound
            self.origins[bound] = origin if isinstance(node, ast.Import) else f"{module}.{alias.name}"
        if not split:
            yield node
            return
        for alias in node.names:
            one = ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(module, [alias], node.level)
            yield ast.copy_location(one, node)

    def _plain_defaults(self, arguments: ast.arguments) -> None:
        """Defaults that would do something become None."""
        defaults = [value if self.is_plain(value) else _none(value) for value in arguments.defaults]
        arguments.defaults = defaults
        arguments.kw_defaults = [
            value if value is None or self.is_plain(value) else _none(value) for value in arguments.kw_defaults
        ]

    def _class(self, node: ast.ClassDef) -> ast.stmt:
        outside = set(self.known)
        fields = [inner for inner in node.body if isinstance(inner, ast.AnnAssign) and inner.value is None]
        node.body = sorted([*self.body(node.body), *fields], key=lambda inner: inner.lineno) or [_pass(node)]
        self.known = outside | {node.name}
        makers = [decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list]
        if any(self._full_name(maker) in ("dataclasses.dataclass", "dataclass") for maker in makers):
            self.records.add(node.name)
        return node

    def _is_constant(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> bool:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [part for target in targets for part in ast.walk(target) if not isinstance(part, ast.expr_context)]
        if not all(isinstance(part, ast.Name | ast.Tuple | ast.List | ast.Starred) for part in names):
            return False
        if node.value is None or not self.is_plain(node.value):
            return False
        bound = {part.id for part in names if isinstance(part, ast.Name)}
        if isinstance(node, ast.AugAssign) and not (self.open or bound <= self.known):
            return False
        self.known |= bound
        for name in bound:
            self.origins.pop(name, None)
        return True

    def _condition(self, node: ast.If) -> Iterator[ast.stmt]:
        if not self.is_plain(node.test):
            self._drop(node)
            return
        body = self.body(node.body)
        node.orelse = self.body(node.orelse)
        if body or node.orelse:
            node.body = body or [_pass(node)]
            yield node

    def _attempt(self, node: ast.Try) -> Iterator[ast.stmt]:
        before = len(self.dropped)
        node.body = self.body(node.body)
        if not node.body:
            del self.dropped[before:]
            self._drop(node)
            return
        for handler in node.handlers:
            handler.body = self.body(handler.body) or [_pass(handler)]
        node.orelse = self.body(node.orelse)
        node.finalbody = self.body(node.finalbody)
        if not node.handlers and not node.finalbody:
            node.finalbody = [_pass(node)]
        yield node

    def is_plain(self, expression: ast.expr) -> bool:
        """Whether an expression is one that constants may be made with."""
        own = {part.id for part in ast.walk(expression) if isinstance(part, ast.Name) and _binds(part)}
        return all(self._is_plain_part(part, own) for part in _evaluated(expression))

    def _is_plain_part(self, part: ast.AST, own: set[str]) -> bool:
        match part:
            case ast.Name():
                return self.open or part.id in self.known or part.id in own
            case ast.Call(func=ast.Name(id=record)) if record in self.records:
                return True
            case ast.Call():
                name = self._full_name(part.func)
                return name is not None and any(fnmatchcase(name, pattern) for pattern in CHEAP_CALLS)
        return isinstance(part, PLAIN)

    def _full_name(self, function: ast.expr) -> str | None:
        match function:
            case ast.Name():
                return self.origins.get(function.id, function.id)
            case ast.Attribute():
                owner = self._full_name(function.value)
                return None if owner is None else f"{owner}.{function.attr}"
        return None


def _never_imported(test: ast.expr) -> bool:
    """Whether a condition is false in a module that is imported: `__name__ == "__main__"`, TYPE_CHECKING."""
    text = ast.unparse(test)
    return text in ("TYPE_CHECKING", "typing.TYPE_CHECKING") or ("__name__" in text and "__main__" in text)


def _binds(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _evaluated(expression: ast.expr) -> Iterator[ast.AST]:
    """The parts that are evaluated at once: all but the bodies of lambdas."""
    waiting: list[ast.AST] = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += [part.args] if isinstance(part, ast.Lambda) else ast.iter_child_nodes(part)


def _none(value: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Constant(None), value)


def _pass(place: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Pass(), place)
