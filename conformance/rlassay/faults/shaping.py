"""Known faults of whitening and of the soft punishment of length."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlassay.check import Kind
from rlassay.faults import Faults
from rlassay.faults.parts import everything, hide, multiply_out, same, working
from rlassay.faults.parts.shaping import batch_mean, batch_variance, overlong_penalty, whiten

FAULTS = Faults()


def _whiten(
    identity: str,
    title: str,
    source: str,
    kind: Kind = "conformance",
    choice: dict[str, Any] | None = None,
    **parts: Any,
) -> None:
    FAULTS.add(identity, "whiten", title, source, partial(whiten, **parts), kind=kind, convention=choice)


def _overlong(identity: str, title: str, source: str, **parts: Any) -> None:
    FAULTS.add(identity, "overlong_penalty", title, source, partial(overlong_penalty, **parts))


def row_mean(x: Tensor, shown: Tensor) -> Tensor:
    """The mean of each row."""
    return hide(x, shown).sum(dim=1, keepdim=True) / shown.sum(dim=1, keepdim=True).clamp(min=1)


def row_variance(x: Tensor, shown: Tensor, ddof: int) -> Tensor:
    """The variance of each row."""
    squares = hide(x - row_mean(x, shown), shown).square()
    return squares.sum(dim=1, keepdim=True) / (shown.sum(dim=1, keepdim=True) - ddof).clamp(min=1)


def pooled_variance(x: Tensor, shown: Tensor, ddof: int) -> Tensor:
    """The mean of the rows' variances: what lies between the rows is left out."""
    rows = shown.any(dim=1)
    return row_variance(x, shown, ddof)[rows].sum() / rows.sum().clamp(min=1)


def sample_variance(x: Tensor, shown: Tensor, ddof: int) -> Tensor:
    """The sample variance as torch has it: NaN for a single entry."""
    return hide(x - batch_mean(x, shown), shown).square().sum() / (shown.sum() - 1)


def cancelling_variance(x: Tensor, shown: Tensor, ddof: int) -> Tensor:
    """E[x²] − E[x]² in float32."""
    single = x.float()
    around = batch_mean(single.square(), shown) - batch_mean(single, shown).square()
    return around.clamp(min=0.0).to(x.dtype)


def mean_size(x: Tensor, shown: Tensor, ddof: int) -> Tensor:
    """The square of the mean deviation."""
    return batch_mean((x - batch_mean(x, shown)).abs(), shown).square()


def covered(x: Tensor, shown: Tensor) -> Tensor:
    """Masked-out entries as zeros that count."""
    return hide(x, shown).mean()


def covered_variance(x: Tensor, shown: Tensor, ddof: int) -> Tensor:
    """The variance with masked-out entries as zeros that count."""
    return batch_variance(hide(x, shown), torch.ones_like(shown), ddof)


_whiten(
    "MK-01", "statistics of all entries, masked-out ones among them", "huggingface/trl issue 334", counted=everything
)
_whiten("SHP-01", "masked-out entries as zeros that count", "textbook", centre=covered, variance=covered_variance)
_whiten("SHP-02", "mean and deviation of each row", "textbook", centre=row_mean, variance=row_variance)
_whiten("SHP-03", "the mean of each row, the deviation of the batch", "textbook", centre=row_mean)
_whiten(
    "AD-13",
    "a variance that is the mean of the rows' variances",
    "leggedrobotics/rsl_rl PR 226",
    variance=pooled_variance,
)
_whiten(
    "CV-54",
    "the mean added again: whitening that does not shift it",
    "THUDM/slime issue 1369",
    finish=lambda whitened, x, shown: whitened + batch_mean(x, shown),
)
_whiten("SHP-04", "no mean subtracted", "THUDM/slime issue 1369", centre=lambda x, shown: 0.0)
_whiten("SHP-05", "no division: centred values", "textbook", divide_by=lambda variance, _: torch.ones_like(variance))
_whiten("SHP-06", "the variance in place of σ", "textbook", divide_by=lambda variance, _: variance)
_whiten("SHP-07", "the mean deviation in place of σ", "textbook", variance=mean_size)
_whiten("SHP-08", "whitened entries left at masked-out places", "textbook", cover=lambda whitened, shown: whitened)
_whiten(
    "SHP-09",
    "the values themselves at masked-out places",
    "textbook",
    finish=lambda whitened, x, shown: torch.where(shown, whitened, x),
    cover=lambda whitened, shown: whitened,
)
_whiten("ADV-14", "the sample standard deviation", "torch.std's default", choice={"std_ddof": 1})
_whiten(
    "SHP-53",
    "the sample standard deviation, NaN for a single entry",
    "torch.std's default",
    variance=sample_variance,
    contrast=lambda x, shown: torch.tensor(True),
    cover=multiply_out,
)
_whiten(
    "SHP-10",
    "1e-4 added to the standard deviation",
    "textbook",
    choice={"std_eps": 1e-4},
)
_whiten(
    "SHP-11",
    "1e-4 inside the square root",
    "textbook",
    choice={"std_eps": 1e-4, "std_eps_place": "inside"},
)
_whiten("SHP-12", "the values themselves where there is no contrast", "textbook", flat=same)
_whiten(
    "SHP-13", "bounds of ±2 on what is whitened", "textbook", finish=lambda whitened, x, shown: whitened.clamp(-2, 2)
)
_whiten(
    "AD-03",
    "a variance E[x²] − E[x]² in float32",
    "NVIDIA-NeMo/RL PR 4158",
    variance=cancelling_variance,
)
_whiten(
    "SHP-14",
    "a mean that rounds: equal entries of 0.1 leave 1e-9",
    "textbook",
    kind="robustness",
    contrast=lambda x, shown: batch_variance(x, shown, 0) > 0,
)
_whiten("MK-13", "masking by multiplication: 0·NaN is NaN", "OpenRLHF PR 1240", kind="robustness", cover=multiply_out)
_whiten("SHP-15", "values with a live gradient", "textbook", kind="robustness", frozen=working)


def unbounded(penalty: Tensor, lengths: Tensor, max_length: int) -> Tensor:
    """No bound at −1."""
    return penalty.clamp(max=0.0)


_overlong(
    "RE-10",
    "a slope that starts at the buffer's length",
    "modelscope/ms-swift PR 5557",
    start=lambda max_length, buffer: buffer,
    width=lambda max_length, buffer: max_length - buffer,
)
_overlong(
    "SHP-38", "a slope that starts at the largest length", "textbook", start=lambda max_length, buffer: max_length
)
_overlong("SHP-39", "a bonus: the sign reversed", "textbook", bound=lambda p, lengths, max_length: -p.clamp(-1.0, 0.0))
_overlong("RE-11", "no penalty at all", "verl-project/verl issue 4268", bound=lambda p, lengths, max_length: 0 * p)
_overlong("SHP-40", "no bound at −1", "textbook", bound=unbounded)
_overlong(
    "SHP-41",
    "no bound at 0: a bonus for short answers",
    "textbook",
    bound=lambda p, lengths, max_length: p.clamp(min=-1.0),
)
_overlong(
    "SHP-42",
    "−1 beyond the largest length and 0 up to it",
    "textbook",
    bound=lambda penalty, lengths, max_length: -(lengths > max_length).to(torch.float32),
)
_overlong(
    "SHP-43",
    "0 beyond the largest length",
    "textbook",
    bound=lambda penalty, lengths, max_length: torch.where(lengths > max_length, 0.0, penalty.clamp(-1.0, 0.0)),
)
_overlong(
    "SHP-44", "a slope over the largest length, not the buffer", "textbook", width=lambda max_length, buffer: max_length
)
_overlong(
    "SHP-45",
    "a slope that starts one token early",
    "textbook",
    start=lambda max_length, buffer: max_length - buffer - 1,
)
_overlong(
    "SHP-46", "a slope that starts one token late", "textbook", start=lambda max_length, buffer: max_length - buffer + 1
)
_overlong(
    "SHP-47",
    "−1 as soon as the buffer is touched",
    "textbook",
    bound=lambda penalty, lengths, max_length: -(penalty < 0).to(torch.float32),
)
_overlong(
    "SHP-48",
    "whole steps: a division of integers",
    "textbook",
    bound=lambda p, lengths, max_length: p.clamp(-1.0, 0.0).ceil(),
)
_overlong(
    "SHP-49",
    "the square of the excess",
    "textbook",
    bound=lambda penalty, lengths, max_length: -penalty.clamp(-1.0, 0.0).square(),
)
_overlong(
    "SHP-50",
    "a factor 1 + penalty for the reward",
    "textbook",
    bound=lambda penalty, lengths, max_length: 1.0 + penalty.clamp(-1.0, 0.0),
)


@FAULTS.fault("SHP-51", "overlong_penalty", "lengths counted against the batch's longest answer", "textbook")
def _longest_of_batch(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    return overlong_penalty(lengths, int(lengths.max()), buffer)
