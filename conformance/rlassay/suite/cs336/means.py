"""Checks of masked_mean, masked_normalize and aggregate_loss_across_microbatch."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial, require
from rlassay.comparison import require_array
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor
from rlassay.suite.cs336.calls import Suspect, agree, agree_gradient, call
from rlassay.suite.cs336.cases import SHAPES, mask, precision
from rlassay.topic import Topic
from rlassay_spec.convention import Convention

TOPIC = Topic()

DIMS: tuple[int | None, ...] = (None, 1, 0, -1)

MEAN_SUSPECTS = (
    Suspect("dividing by the number of all entries", lambda a: _sum(a) / _count(a, np.ones_like(a["mask"]))),
    Suspect("counting the masked-in entries of the whole mask", lambda a: _sum(a) / a["mask"].sum()),
    Suspect("leaving the mask out", lambda a: a["tensor"].mean(axis=a.get("dim"))),
    Suspect("not dividing at all", lambda a: _sum(a)),
)
NORMALIZE_SUSPECTS = (
    Suspect("not dividing by normalize_constant", lambda a: _sum(a)),
    Suspect("dividing by the number of masked-in entries", lambda a: _sum(a) / _count(a, a["mask"])),
    Suspect("leaving the mask out", lambda a: a["tensor"].sum(axis=a.get("dim")) / a.get("normalize_constant", 1.0)),
)
AGGREGATE_SUSPECTS = {
    "sequence": (
        Suspect("the mean over all tokens of the microbatch", lambda a: _total(a) / a["mask"].sum()),
        Suspect("dividing each row by its full length", lambda a: _total(a) / a["mask"].size),
        Suspect("not dividing by the number of sequences", lambda a: _row_means(a).sum()),
    ),
    "constant": (
        Suspect(
            "dividing by the number of sequences as well",
            lambda a: _total(a) / a["normalization_constant"] / len(a["mask"]),
        ),
        Suspect("not dividing by normalization_constant", lambda a: _total(a)),
    ),
}


def masked_case(draw: Draw, convention: Convention) -> Arguments:
    """A tensor and a mask of bools, along every dimension; no row is empty."""
    shape = draw.choice("shape", SHAPES)
    flags = mask(draw, shape)
    dim = draw.choice("dim", DIMS)
    arguments: Arguments = {"tensor": Tensor(draw.normal(*shape, scale=2.0)), "mask": flags}
    return precision(draw, arguments if dim is None else arguments | {"dim": dim})


def normalized_case(draw: Draw, convention: Convention) -> Arguments:
    """The same with a constant, which is always given: only some hand-outs have a default for it."""
    return masked_case(draw, convention) | {"normalize_constant": draw.choice("constant", (4.0, 1.0, 0.5, 1024.0))}


def aggregate_case(draw: Draw, convention: Convention, normalization: str) -> Arguments:
    """Losses of either sign under a ragged mask."""
    flags = mask(draw, draw.choice("shape", SHAPES))
    arguments: Arguments = {
        "per_token_policy_gradient_loss": Tensor(draw.normal(*flags.array.shape, scale=2.0)),
        "mask": flags,
        "loss_normalization": normalization,
    }
    if normalization == "constant":
        arguments["normalization_constant"] = draw.choice("constant", (4.0, 10.0, 1024.0))
    return precision(draw, arguments)


def with_mask_of(draw: Draw, arguments: Arguments) -> Arguments:
    """The mask as integers or floats."""
    dtype = draw.choice("mask dtype", ("int64", "float32"))
    return arguments | {"mask": Tensor(arguments["mask"].array, dtype)}


@TOPIC.check("masked_mean", law="value", title="masked_mean divides by the number of masked-in entries along dim")
def mean_value(trial: Trial) -> None:
    """Σ m x / Σ m."""
    agree(trial, "masked_mean", masked_case(trial.draw, trial.convention), suspects=MEAN_SUSPECTS)


@TOPIC.check("masked_mean", law="gradient", title="masked_mean has the oracle's gradient")
def mean_gradient(trial: Trial) -> None:
    """m / Σ m."""
    agree_gradient(trial, "masked_mean", masked_case(trial.draw, trial.convention))


@TOPIC.check("masked_mean", law="empty", title="masked_mean of no entry is 0 or NaN and leaves the other rows alone")
def mean_of_nothing(trial: Trial) -> None:
    """A row without a masked-in entry."""
    arguments = masked_case(trial.draw, trial.convention)
    flags = arguments["mask"].array.copy()
    flags[0] = False
    arguments = {"tensor": arguments["tensor"], "mask": Tensor(flags, "bool"), "dim": 1}
    observed = call(trial, "masked_mean", arguments)
    got = require_array("masked_mean", observed, (len(flags),))
    empty = got[~flags.any(axis=1)]
    fits = bool((np.isnan(empty) | (empty == 0)).all())
    require(fits, f"masked_mean of a row without masked-in entries is {empty[0]:g}, but should be 0 or NaN")
    agree(trial, "masked_mean", arguments)


@TOPIC.check("masked_normalize", law="value", title="masked_normalize divides the masked sum along dim by the constant")
def normalize_value(trial: Trial) -> None:
    """Σ m x / constant."""
    arguments = normalized_case(trial.draw, trial.convention)
    agree(trial, "masked_normalize", arguments, suspects=NORMALIZE_SUSPECTS)


@TOPIC.check("masked_normalize", law="gradient", title="masked_normalize has the oracle's gradient")
def normalize_gradient(trial: Trial) -> None:
    """m / constant."""
    agree_gradient(trial, "masked_normalize", normalized_case(trial.draw, trial.convention))


def _declare_aggregate(normalization: str) -> None:
    operation = "aggregate_loss_across_microbatch"

    @TOPIC.check(operation, law=normalization, title=f"{operation} normalises by {normalization}")
    def value(trial: Trial) -> None:
        """The value."""
        arguments = aggregate_case(trial.draw, trial.convention, normalization)
        agree(trial, operation, arguments, suspects=AGGREGATE_SUSPECTS[normalization])

    @TOPIC.check(
        operation,
        law=f"{normalization}-gradient",
        title=f"{operation} has the oracle's gradient when it normalises by {normalization}",
    )
    def gradient(trial: Trial) -> None:
        """The gradient."""
        agree_gradient(trial, operation, aggregate_case(trial.draw, trial.convention, normalization))


def _declare_mask_dtype(operation: str) -> None:
    @TOPIC.check(
        operation,
        law="mask-dtype",
        kind="robustness",
        title=f"{operation} takes masks of int and float as well as of bool",
    )
    def mask_dtype(trial: Trial) -> None:
        """0 and 1 mean the same in any dtype."""
        if operation == "masked_mean":
            arguments = masked_case(trial.draw, trial.convention)
        elif operation == "masked_normalize":
            arguments = normalized_case(trial.draw, trial.convention)
        else:
            arguments = aggregate_case(trial.draw, trial.convention, "constant")
        agree(trial, operation, with_mask_of(trial.draw, arguments))


for _normalization in AGGREGATE_SUSPECTS:
    _declare_aggregate(_normalization)
for _operation in ("masked_mean", "masked_normalize", "aggregate_loss_across_microbatch"):
    _declare_mask_dtype(_operation)


def _sum(a: Arguments) -> np.ndarray:
    return np.asarray((a["mask"] * a["tensor"]).sum(axis=a.get("dim")))


def _count(a: Arguments, entries: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(entries.sum(axis=a.get("dim")), 1))


def _total(a: Arguments) -> float:
    return float((a["mask"] * a["per_token_policy_gradient_loss"]).sum())


def _row_means(a: Arguments) -> np.ndarray:
    sums = (a["mask"] * a["per_token_policy_gradient_loss"]).sum(axis=1)
    return np.asarray(sums / np.maximum(a["mask"].sum(axis=1), 1))
