"""Which checks a run makes: the ones of the named operations whose id satisfies the expression of `-k`."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence

import click

from rlassay.check import Check
from rlassay.guest.importing import did_you_mean

Predicate = Callable[[str], bool]


class SelectionError(ValueError):
    """A selection that cannot be made; says what to write instead."""


def random_seed() -> int:
    """A seed chosen at random, printed on standard error so that the run can be repeated."""
    seed = secrets.randbelow(2**31)
    click.echo(f"seed {seed}", err=True)
    return seed


def select(checks: Mapping[str, Check], operations: Sequence[str] = (), expression: str = "") -> list[Check]:
    """The checks of the operations (of all, if none is named) that satisfy the expression.

    Raises:
        SelectionError: an operation is unknown, the expression is malformed, or nothing is selected.
    """
    known = {check.operation for check in checks.values()}
    for name in operations:
        if name not in known:
            raise SelectionError(f"there is no operation {name!r}{did_you_mean(name, known)}")
    matches = predicate(expression) if expression else lambda text: True
    found = [c for c in checks.values() if (not operations or c.operation in operations) and matches(c.id)]
    if not found:
        of = f" of {', '.join(operations)}" if operations else ""
        raise SelectionError(f"no check{of} has an id that satisfies {expression!r}" + _nearest(expression, checks))
    return found


def _nearest(expression: str, checks: Mapping[str, Check]) -> str:
    parts = {part for identifier in checks for part in (*identifier.split("/"), identifier)}
    unknown = (word for word in _words(expression) if not any(word.casefold() in key.casefold() for key in checks))
    return next(filter(None, (did_you_mean(word, parts) for word in unknown)), "")


def _words(expression: str) -> list[str]:
    return [word for word in _tokens(expression) if word not in ("(", ")", "and", "or", "not")]


def _tokens(expression: str) -> list[str]:
    return re.findall(r"[()]|[^\s()]+", expression)


def predicate(expression: str) -> Predicate:
    """Whether a text satisfies an expression: words are parts of the text in any case, with and, or, not, parentheses.

    Raises:
        SelectionError: the expression is malformed.
    """
    return _Parser(expression).parse()


class _Parser:
    """Recursive descent: or binds loosest, then and, then not."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.tokens = [*_tokens(expression), ""]
        self.place = 0

    def parse(self) -> Predicate:
        result = self._either()
        if self.tokens[self.place]:
            self._fail("and, or, or the end")
        return result

    def _take(self, token: str) -> bool:
        taken = self.tokens[self.place] == token
        self.place += taken
        return taken

    def _fail(self, wanted: str) -> None:
        found = repr(self.tokens[self.place]) if self.tokens[self.place] else "the end"
        raise SelectionError(f"{self.expression!r}: found {found} where {wanted} should be")

    def _either(self) -> Predicate:
        left = self._both()
        while self._take("or"):
            left = _or(left, self._both())
        return left

    def _both(self) -> Predicate:
        left = self._single()
        while self._take("and"):
            left = _and(left, self._single())
        return left

    def _single(self) -> Predicate:
        if self._take("not"):
            inner = self._single()
            return lambda text: not inner(text)
        if self._take("("):
            inner = self._either()
            if not self._take(")"):
                self._fail("and, or, or )")
            return inner
        word = self.tokens[self.place]
        if word in ("", ")", "and", "or"):
            self._fail("a part of a check's id")
        self.place += 1
        return lambda text: word.casefold() in text.casefold()


def _or(left: Predicate, right: Predicate) -> Predicate:
    return lambda text: left(text) or right(text)


def _and(left: Predicate, right: Predicate) -> Predicate:
    return lambda text: left(text) and right(text)
