"""Wrong ways to average over a batch, to be exchanged for `average`."""

from __future__ import annotations

from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import average, counted
from rlassay_spec.convention import Convention


def plain_mean(terms: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The mean over all positions."""
    return terms.mean()


def sum_of_sequences(terms: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The mean over the batch times the number of sequences."""
    return average(terms, shown, convention) * counted(shown, convention)


def by_mode(**means: Function) -> Function:
    """Another mean in the named modes, the right one elsewhere."""
    return lambda terms, shown, asked: means.get(asked.aggregation, average)(terms, shown, asked)


def as_mode(mode: str) -> Function:
    """The mean of another mode."""
    return lambda x, shown, asked: average(x, shown, Convention(aggregation=mode, empty_rows=asked.empty_rows))


def over_longest(terms: Tensor, shown: Tensor, asked: Convention) -> Tensor:
    """Row sums over the length of the longest row."""
    return terms.sum() / shown.sum(dim=1).max().clamp(min=1) / counted(shown, asked)


def over_width(terms: Tensor, shown: Tensor, asked: Convention) -> Tensor:
    """Row sums over the padded length."""
    return terms.mean()


def unfloored(terms: Tensor, shown: Tensor, asked: Convention) -> Tensor:
    """Divisions without a floor: 0/0 where nothing is shown."""
    per_row = terms.sum(dim=1)
    if asked.aggregation == "token_mean":
        return terms.sum() / shown.sum()
    if asked.aggregation == "sequence_mean":
        per_row = per_row / shown.sum(dim=1)
    return per_row.mean() / (asked.aggregation_constant or 1.0)


def no_sequences(terms: Tensor, shown: Tensor, asked: Convention) -> Tensor:
    """Row sums over the constant, not over the number of sequences."""
    return terms.sum() / (asked.aggregation_constant or 1.0)
