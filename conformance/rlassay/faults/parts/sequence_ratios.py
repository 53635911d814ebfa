"""Wrong ratios of whole sequences, to be exchanged for `geometric_mean`."""

from __future__ import annotations

import torch
from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import hide
from rlassay.faults.parts.surrogate import row_mean
from rlassay_spec.convention import Convention


def of_mean(ratio: Function) -> Function:
    """Another function than exp of the row's mean log-ratio."""
    return lambda new, old, shown, convention: ratio(row_mean(new - old.detach(), shown, convention))


def over(length: Function) -> Function:
    """The exponential of the summed log-ratio over another length."""
    return lambda new, old, shown, convention: ((new - old.detach()).sum(dim=1) / length(shown)).exp()


def rolled(dim: int) -> Function:
    """The ratio to log-probs of π_old that are moved on by one along an axis."""
    return lambda new, old, shown, convention: row_mean(
        hide(new - old.detach().roll(1, dims=dim), shown), shown, convention
    ).exp()


def arithmetic_mean(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The mean of the row's ratios."""
    ratios = hide((new - old.detach()).exp(), shown).sum(dim=1) / shown.sum(dim=1).clamp(min=1)
    return torch.where(shown.any(dim=1), ratios, 1.0)


def root_of_product(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The product of the row's ratios, which overflows, to the power of 1/n."""
    return (new - old.detach()).exp().prod(dim=1) ** (1 / shown.sum(dim=1).clamp(min=1))


def tokens_bounded(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The geometric mean of ratios of which each is bounded to e^±1."""
    return row_mean((new - old.detach()).clamp(-1.0, 1.0), shown, convention).exp()


def quotient(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """Summed log π / summed log π_old."""
    return new.sum(dim=1) / torch.where(shown.any(dim=1), old.detach().sum(dim=1), 1.0)


def of_batch(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The geometric mean over all rows."""
    return ((new - old.detach()).sum() / shown.sum().clamp(min=1)).exp().expand(len(shown))
