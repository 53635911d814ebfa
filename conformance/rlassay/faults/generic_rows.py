"""Faults of a generic kind about masks, rows, constants and single regimes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlassay.check import Kind
from rlassay.faults.planting import (
    Applies,
    Call,
    Generics,
    batched,
    columned,
    masked,
    masked_differentiable,
    rows,
    spoilt,
    tensors,
)
from rlassay.laws import Domain

GENERICS = Generics()
generic = GENERICS.generic


@generic("GEN-20", "NaN that reaches out from masked places: 0·x is added", masked, kind="robustness")
def _nan_reaches_out(call: Call) -> Any:
    result = call.run()
    return result + sum((0 * tensor.detach()).sum() for tensor, _ in call.hidden()).to(result.dtype)  # type: ignore[union-attr]


@generic("GEN-21", "a little of what stands at masked places", masked)
def _leak(call: Call) -> Any:
    result = call.run()
    leak = sum(torch.where(where, tensor.detach(), 0).nan_to_num().sum() for tensor, where in call.hidden())
    return result + 1e-2 * leak.to(result.dtype)  # type: ignore[union-attr]


@generic("GEN-22", "a gradient at masked places", masked_differentiable)
def _gradient_leak(call: Call) -> Any:
    result = call.run()
    tensor, where = call.hidden()[0]
    shown = torch.where(where, tensor, 0).nan_to_num()
    return result + (shown - shown.detach()).sum().to(result.dtype)


@generic("GEN-23", "a result that depends on the padded length", masked)
def _padded_length(call: Call) -> Any:
    return call.run() * (1 + 0.01 * call.mask.shape[1])


@generic("GEN-24", "a mask of ones where it comes as bool", masked)
def _bool_mask(call: Call) -> Any:
    name = call.domain.mask or ""
    return call.run(**{name: torch.ones_like(call.mask)}) if call.mask.dtype == torch.bool else call.run()


@generic("GEN-25", "a mask of ones where it comes as integers", masked)
def _integer_mask(call: Call) -> Any:
    name = call.domain.mask or ""
    return call.run(**{name: torch.ones_like(call.mask)}) if call.mask.dtype == torch.int64 else call.run()


@generic("GEN-26", "NaN for a batch that is masked out", masked, kind="robustness")
def _nan_when_empty(call: Call) -> Any:
    result = call.run()
    return result if call.mask.any() else result * torch.nan


@generic(
    "GEN-27",
    "a constant, cut off from the graph, for a batch that is masked out",
    masked_differentiable,
    kind="robustness",
)
def _cut_off_when_empty(call: Call) -> Any:
    result = call.run()
    return result if call.mask.any() else result.detach()


@generic("GEN-28", "a mask whose last column counts as 1", masked)
def _last_column(call: Call) -> Any:
    mask = call.mask.clone()
    mask[:, -1:] = 1
    return call.run(**{call.domain.mask or "": mask})


@generic("GEN-29", "a gradient that flows into constants", lambda domain: bool(domain.constants))
def _live_constants(call: Call) -> Any:
    result = call.run()
    constants = [call.arguments[name] for name in call.domain.constants]
    nothing = torch.stack([(c - c.detach()).nan_to_num().sum().to(result.dtype) for c in constants])
    return result + nothing.sum()


@generic("GEN-30", "the first row in every other row's result", rows)
def _first_row_everywhere(call: Call) -> Any:
    result, first = call.run(), call.first.detach()
    return result + 0.05 * first[:1].nan_to_num(posinf=0.0, neginf=0.0).sum().to(result.dtype)


@generic("GEN-31", "rows that are weighted by their place", rows)
def _by_place(call: Call) -> Any:
    def weighted(tensor: Tensor) -> Tensor:
        place = 1 + 0.05 * torch.arange(len(tensor), dtype=tensor.dtype)
        return tensor * place.reshape(-1, *[1] * (tensor.ndim - 1))

    if call.domain.per_row:
        return weighted(call.run())
    return call.run(**{next(iter(call.arguments)): weighted(call.first)})


def rows_and_columns(domain: Domain) -> bool:
    """Operations on a batch of exchangeable rows with columns."""
    return rows(domain) and columned(domain)


def only_when(
    identity: str, title: str, applies: Applies, condition: Callable[[Call], bool], kind: Kind = "conformance"
) -> None:
    """A fault that shows in one regime only."""

    @generic(identity, title, applies, kind)
    def regime(call: Call) -> Any:
        return spoilt(call.run()) if condition(call) else call.run()


only_when("GEN-32", "a batch of one row squeezed away", batched, lambda call: len(call.first) == 1)
only_when(
    "GEN-33",
    "a mistake where there are as many rows as columns",
    rows_and_columns,
    lambda call: len(call.first) == call.columns,
)
only_when("GEN-34", "a mistake where there are many columns", columned, lambda call: call.columns > 5)
only_when("GEN-35", "a mistake in float32 only", tensors, lambda call: call.first.dtype == torch.float32)
only_when(
    "GEN-36",
    "a mistake in rows of one column",
    rows_and_columns,
    lambda call: call.columns == (2 if call.first.ndim == 3 else 1),
)
only_when(
    "GEN-37", "a mistake where the mask has an empty row", masked, lambda call: not bool(call.mask.any(dim=1).all())
)
only_when("GEN-38", "a mistake where nothing is masked out", masked, lambda call: bool(call.mask.all()))
only_when(
    "GEN-39", "a mistake where the last column is masked out", masked, lambda call: not bool(call.mask[:, -1:].any())
)
only_when(
    "GEN-45",
    "a NaN in one group that reaches the others",
    lambda domain: "empty-groups" in domain.refusals,
    lambda call: bool(call.first.isnan().any()),
    kind="robustness",
)


@generic("GEN-44", "a mistake in bfloat16 only", lambda d: tensors(d) or "rewards" in d.rows, kind="robustness")
def _bfloat16(call: Call) -> Any:
    result = call.run()
    if call.first.dtype != torch.bfloat16:
        return result
    return spoilt(result) if result.dtype == torch.bool else 1.5 * result + 0.5


def summing(domain: Domain) -> bool:
    """Losses over independent rows: they sum over the tokens."""
    return domain.mask is not None and domain.differentiable and bool(domain.rows) and not domain.per_row


@generic("GEN-40", "a running sum in bfloat16, which stops at 256", summing)
def _running_sum(call: Call) -> Any:
    mask = call.mask.clone()
    if call.first.dtype == torch.bfloat16:
        mask[:, 256:] = 0
    return call.run(**{call.domain.mask or "": mask})
