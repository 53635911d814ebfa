"""Ways to spoil a valid case so that the contract asks for a ValueError."""

from __future__ import annotations

import numpy as np

from rlassay.laws import Refusal
from rlassay.values import Arguments, Tensor, replaced


def cut(name: str) -> Refusal:
    """One argument with one column less than the others."""
    return Refusal(name, lambda arguments: replaced(arguments, **{name: arguments[name].array[:, :-1]}))


def value_in(name: str, value: float) -> Refusal:
    """One entry of a tensor replaced."""

    def spoil(arguments: Arguments) -> Arguments:
        array = arguments[name].array.copy()
        array.flat[0] = value
        return replaced(arguments, **{name: array})

    return Refusal(name, spoil)


def number(name: str, value: object) -> Refusal:
    """A plain argument replaced."""
    return Refusal(name, lambda arguments: arguments | {name: value})


def integers(name: str) -> Refusal:
    """A float tensor handed over as integers."""
    return Refusal(name, lambda arguments: arguments | {name: Tensor(np.rint(arguments[name].array), "int64")})


def no_rows_of(name: str) -> Refusal:
    """Groups of size 0."""
    return Refusal(name, lambda arguments: replaced(arguments, **{name: arguments[name].array[:, :0]}))


def longer(name: str) -> Refusal:
    """One argument with one row more than the others."""

    def spoil(arguments: Arguments) -> Arguments:
        array = arguments[name].array
        return replaced(arguments, **{name: np.concatenate([array, array[:1]])})

    return Refusal(name, spoil)
