"""Evaluates the values and expressions of claims.

An expression is Python over `NAMESPACE`: the modules of `rlassay_spec.exact` by name (`bandit.estimates(…)`), sqrt
(exact for squares), exp, log and the builtins. Numbers are exact: 1/3 is a fraction, and so is the decimal 0.05.

A value is an expression too, or a tuple of such. A plain decimal in it (0.358486, −0.58) is rounded: the expression has
to agree with all its digits. All else is exact: fractions compare equal, and where a root or a logarithm makes a float,
the two agree within the relative tolerance 1e-12.
"""

import ast
from decimal import Decimal
from fractions import Fraction
from math import exp, isclose, isfinite, log
from typing import Any

from rlassay_spec import exact
from rlassay_spec.claims.loader import Value

RELATIVE_TOLERANCE = 1e-12


def _divide(top: Any, bottom: Any) -> Any:
    return Fraction(top) / bottom if isinstance(top, int) else top / bottom


NAMESPACE: dict[str, Any] = {name: getattr(exact, name) for name in exact.__all__} | {
    "sqrt": exact.moments.sqrt,
    "exp": exp,
    "log": log,
}


class _Exact(ast.NodeTransformer):
    """Decimals become fractions, and the quotient of two integers too."""

    def __init__(self, source: str) -> None:
        self.source = source

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, float):
            return node
        digits = ast.Constant(ast.get_source_segment(self.source, node))
        return ast.Call(ast.Name("_decimal", ast.Load()), [digits], [])

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.Call(ast.Name("_divide", ast.Load()), [node.left, node.right], [])


def evaluate(expression: str) -> Any:
    """What an expression yields, with exact division and exact decimals."""
    source = expression.strip()
    tree = ast.fix_missing_locations(_Exact(source).visit(ast.parse(source, mode="eval")))
    return eval(compile(tree, f"<{source}>", "eval"), NAMESPACE | {"_decimal": Fraction, "_divide": _divide})


def mismatch(value: Value) -> str | None:
    """Why the expression does not yield the stated value (or the number that the lecture prints); None when it does."""
    got = evaluate(value.expression)
    for stated in (value.value, value.printed):
        if stated is not None and not _agrees(stated.strip(), got):
            return f"{value.name}: {value.expression} is {got!r}, but should be {stated}"
    return None


def _agrees(stated: str, got: Any) -> bool:
    node = ast.parse(stated, mode="eval").body
    if isinstance(node, ast.Tuple):
        parts = [ast.get_source_segment(stated, part) or "" for part in node.elts]
        return isinstance(got, tuple | list) and len(got) == len(parts) and all(map(_agrees, parts, got))
    if _is_decimal(node):
        decimal = Decimal(stated.replace(" ", ""))
        places = -int(decimal.as_tuple().exponent)
        return _is_finite(got) and abs(Fraction(got) - Fraction(decimal)) <= Fraction(1, 2 * 10**places)
    expected = evaluate(stated)
    if isinstance(got, float) or isinstance(expected, float):
        return _is_finite(got) and _is_finite(expected) and isclose(got, expected, rel_tol=RELATIVE_TOLERANCE)
    return bool(got == expected)


def _is_finite(number: Any) -> bool:
    return isinstance(number, int | float | Fraction) and isfinite(number)


def _is_decimal(node: ast.expr) -> bool:
    number = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(number, ast.Constant) and isinstance(number.value, float)
