"""Planting: how a fault of a generic kind is put into a right function, and which operations can have it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlassay.check import Kind
from rlassay.faults import Function
from rlassay.laws import Domain
from rlassay_spec.operations import OPERATIONS


@dataclass
class Call:
    """One call of the planted function, and what it may remember from earlier ones."""

    domain: Domain
    right: Function
    arguments: dict[str, Any]
    memory: dict[Any, Any]
    by_name: bool

    def run(self, **changes: Any) -> Any:
        """The right result, with other arguments if some are given."""
        return self.right(*(self.arguments | changes).values())

    @property
    def first(self) -> Any:
        """The first argument."""
        return next(iter(self.arguments.values()))

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensor arguments."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, Tensor)}

    @property
    def columns(self) -> int:
        """The number of columns of the first argument that has any."""
        return next(tensor.shape[1] for tensor in self.tensors.values() if tensor.ndim > 1)

    @property
    def mask(self) -> Tensor:
        """The mask."""
        mask: Tensor = self.arguments[self.domain.mask or ""]
        return mask

    def hidden(self) -> list[tuple[Tensor, Tensor]]:
        """The tensors that a mask hides in part, with a mask of what is hidden."""
        if self.domain.masked:
            return [(self.arguments[name], self.mask == 0) for name in self.domain.masked]
        scored = self.first[:, :-1]
        return [(scored, (self.mask == 0)[..., None].expand(scored.shape))]


Plant = Callable[[Call], Any]
Applies = Callable[[Domain], bool]


@dataclass(frozen=True)
class Generic:
    """A kind of fault: what it does to a call, and which operations can have it."""

    id: str
    title: str
    plant: Plant
    applies: Applies
    kind: Kind = "conformance"
    raises: bool = False


class Generics:
    """Collects generic faults."""

    def __init__(self) -> None:
        self.generics: list[Generic] = []

    def generic(
        self, identity: str, title: str, applies: Applies, kind: Kind = "conformance", raises: bool = False
    ) -> Callable[[Plant], Plant]:
        """Declare what the decorated function does to a call as a kind of fault."""

        def declare(plant: Plant) -> Plant:
            self.generics.append(Generic(identity, title, plant, applies, kind, raises))
            return plant

        return declare


def planted(plant: Plant, domain: Domain, right: Function) -> Function:
    """The right function with a fault planted."""
    signature = OPERATIONS[domain.operation].signature
    memory: dict[Any, Any] = {}

    def wrong(*args: Any, **kwargs: Any) -> Any:
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        return plant(Call(domain, right, arguments, memory, bool(kwargs)))

    return wrong


def anything(domain: Domain) -> bool:
    """Every operation."""
    return True


def tensors(domain: Domain) -> bool:
    """Operations that return a tensor of numbers in the dtype of their first argument."""
    return domain.result == "first"


def numbers(domain: Domain) -> bool:
    """Operations that return a tensor of numbers."""
    return domain.result in ("first", "float32")


def differentiable(domain: Domain) -> bool:
    """Operations with a gradient."""
    return domain.differentiable


def masked(domain: Domain) -> bool:
    """Operations with a mask."""
    return domain.mask is not None


def masked_differentiable(domain: Domain) -> bool:
    """Operations with a mask and a gradient."""
    return domain.mask is not None and domain.differentiable


def rows(domain: Domain) -> bool:
    """Operations on a batch whose rows are exchangeable, with a tensor of numbers as result."""
    return bool(domain.rows) and numbers(domain)


def columned(domain: Domain) -> bool:
    """Operations on a batch of rows with columns."""
    parameters = OPERATIONS[domain.operation].signature.parameters
    return any(re.search(r"\[.*,.*\]", parameters[name].annotation.__metadata__[0]) for name in domain.rows)


def batched(domain: Domain) -> bool:
    """Operations on a batch."""
    return bool(domain.rows)


def refusing(domain: Domain) -> bool:
    """Operations of which a ValueError is asked."""
    return bool(domain.refusals) or domain.operation == "number_search"


def spoilt(result: Any) -> Any:
    """A result that is a little wrong in value and gradient."""
    if isinstance(result, Tensor):
        return ~result if result.dtype == torch.bool else result * 1.05 + 0.01
    if isinstance(result, tuple):
        return (result[0][::-1], 1.0 - result[1])
    return result + 1
