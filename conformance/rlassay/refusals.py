"""Ways to spoil a valid case so that the contract asks for a ValueError."""

from __future__ import annotations

import numpy as np

from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.laws import Domain, Refusal


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


def floats(name: str) -> Refusal:
    """An integer tensor handed over as floats."""
    return Refusal(name, lambda arguments: arguments | {name: Tensor(arguments[name].array.astype(float), "float32")})


def no_rows_of(name: str) -> Refusal:
    """Groups of size 0."""
    return Refusal(name, lambda arguments: replaced(arguments, **{name: arguments[name].array[:, :0]}))


def longer(name: str) -> Refusal:
    """One argument with one row more than the others."""

    def spoil(arguments: Arguments) -> Arguments:
        array = arguments[name].array
        return replaced(arguments, **{name: np.concatenate([array, array[:1]])})

    return Refusal(name, spoil)


def shorter(name: str) -> Refusal:
    """One argument without its last row."""
    return Refusal(name, lambda arguments: replaced(arguments, **{name: arguments[name].array[:-1]}))


def standard(domain: Domain) -> dict[str, Refusal]:
    """What every operation has to refuse whose arguments are of that kind: an axis too few or too many in the first
    one, and a mask that holds more than 1."""
    found: dict[str, Refusal] = {}
    if domain.rows:
        first = domain.rows[0]
        found["an-axis-too-few"] = Refusal(first, lambda a: replaced(a, **{first: a[first].array[0]}))
        found["an-axis-too-many"] = Refusal(first, lambda a: replaced(a, **{first: a[first].array[None]}))
    if domain.mask:
        found["a-mask-above-one"] = value_in(domain.mask, 2.0)
        found["a-mask-below-zero"] = value_in(domain.mask, -1.0)
    return found
