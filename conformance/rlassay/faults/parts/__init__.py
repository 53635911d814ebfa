"""Right building blocks that the faults of several topics share: precision, masking, averaging under a convention.

They conform by themselves. They do not validate, as wrong implementations seldom do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rlassay_spec.convention import Convention


def same(value: Any) -> Any:
    """The part that changes nothing."""
    return value


def working(tensor: Tensor) -> Tensor:
    """The tensor in float32 or better."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def constant(tensor: Tensor) -> Tensor:
    """The tensor in float32 or better, without its graph."""
    return working(tensor.detach())


def hide(tensor: Tensor, shown: Tensor) -> Tensor:
    """The tensor in float32 or better where `shown`, exactly 0 elsewhere, in the gradient too."""
    return torch.where(shown, working(tensor), 0.0)


def multiply_out(tensor: Tensor, shown: Tensor) -> Tensor:
    """What many write instead of `hide`: 0·NaN is NaN."""
    return working(tensor) * shown


def share(terms: Tensor, shown: Tensor, convention: Convention, sequences: float, tokens: float) -> Tensor:
    """What these rows contribute to the mean over a batch of that many sequences and tokens.

    `terms` [B, T] are 0 where not `shown`.
    """
    if convention.aggregation == "token_mean":
        return terms.sum() / max(tokens, 1)
    per_row = terms.sum(dim=1)
    if convention.aggregation == "sequence_mean":
        per_row = per_row / shown.sum(dim=1).clamp(min=1)
    if convention.aggregation == "constant":
        per_row = per_row / (convention.aggregation_constant or torch.nan)
    return per_row.sum() / max(sequences, 1)


def average(terms: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The mean over the batch that the convention names."""
    return share(terms, shown, convention, counted(shown, convention), int(shown.sum()))


def counted(shown: Tensor, convention: Convention) -> int:
    """The number of sequences B that the convention counts."""
    return len(shown) if convention.empty_rows == "counted" else int(shown.any(dim=1).sum())


def by_mode(convention: Convention, mode: str, constant: float | None = None) -> Convention:
    """The convention with another way to average."""
    return replace(convention, aggregation=mode, aggregation_constant=constant)


def everything(shown: Tensor) -> Tensor:
    """A mask of ones."""
    return torch.ones_like(shown)


def without_holes(shown: Tensor) -> Tensor:
    """A mask that shows all between the first and the last shown place of a row."""
    after_first = shown.cumsum(dim=1) > 0
    before_last = shown.flip(1).cumsum(dim=1).flip(1) > 0
    return after_first & before_last


def without_last(shown: Tensor) -> Tensor:
    """A mask that hides the last shown place of each row."""
    return shown & (shown.flip(1).cumsum(dim=1).flip(1) > 1)


def only_last(shown: Tensor) -> Tensor:
    """A mask of the last shown place of each row."""
    return shown & (shown.flip(1).cumsum(dim=1).flip(1) == 1)


def last_column(shown: Tensor) -> Tensor:
    """A mask of the last column."""
    return torch.arange(shown.shape[1]).expand_as(shown) == shown.shape[1] - 1


def without_first(shown: Tensor) -> Tensor:
    """A mask that hides the first shown place of each row."""
    return shown & (shown.cumsum(dim=1) > 1)


def late(shown: Tensor) -> Tensor:
    """A mask that is one place late."""
    return torch.nn.functional.pad(shown[:, :-1], (1, 0))


def early(shown: Tensor) -> Tensor:
    """A mask that is one place early."""
    return torch.nn.functional.pad(shown[:, 1:], (0, 1))


def of_first_row(shown: Tensor) -> Tensor:
    """A mask that is the first row's for all rows."""
    return shown[:1].expand_as(shown)
