"""Known faults of aggregation and of the losses that weight log-probs; the other losses' are in `loss_ratio`."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlassay.check import Kind
from rlassay.faults import Faults, Function
from rlassay.faults.parts import (
    constant,
    early,
    everything,
    hide,
    last_column,
    late,
    multiply_out,
    of_first_row,
    only_last,
    same,
    without_holes,
    without_last,
    working,
)
from rlassay.faults.parts import loss as right
from rlassay.faults.parts.loss import column
from rlassay.faults.parts.means import (
    as_mode,
    by_mode,
    no_sequences,
    over_longest,
    over_width,
    plain_mean,
    sum_of_sequences,
    unfloored,
)
from rlassay.faults.parts.weights import across, live, whitened
from rlassay_spec.convention import Convention

FAULTS = Faults()

WEIGHTED = ("sft", "rest", "reinforce", "policy_gradient", "grpo", "dr_grpo", "microbatch")
LOSSES = {f"{name}_loss": getattr(right, f"{name}_loss") for name in (*WEIGHTED, "clipped", "value")}
CODE: dict[str, Function] = LOSSES | {"aggregate": right.aggregate, "grpo_objective": right.grpo_objective}


def declare(
    faults: Faults,
    operation: str,
    identity: str,
    title: str,
    source: str,
    kind: Kind = "conformance",
    choice: dict[str, Any] | None = None,
    **parts: Any,
) -> None:
    """Declare the right code with parts exchanged, or with a choice made that was not declared."""
    faults.add(identity, operation, title, source, partial(CODE[operation], **parts), kind=kind, convention=choice)


add = partial(declare, FAULTS)


def to_all(operations: tuple[str, ...], identity: str, title: str, source: str, **options: Any) -> None:
    """Declare the same fault of several operations."""
    for operation in operations:
        add(operation, identity, title, source, **options)


ALL = tuple(CODE)
SCORED = tuple(f"{name}_loss" for name in WEIGHTED)
CONVENTIONAL = tuple(name for name in ALL if name not in ("aggregate", "dr_grpo_loss"))
NEGATED = (*SCORED, "clipped_loss")
POSITIVE = ("aggregate", "value_loss")
WHOLE = tuple(name for name in ALL if name != "microbatch_loss")

to_all(ALL, "MK-01", "a mask of ones: prompt, tool output and padding count", "trl issue 334", visible=everything)
to_all(ALL, "MK-02", "the mask with its polarity reversed", "RAGEN issue 71", visible=torch.logical_not)
to_all(
    ALL, "MK-03", "a mask without holes: tool tokens between sampled ones count", "trl PR 4975", visible=without_holes
)
to_all(ALL, "LOS-01", "a mask that is one token late", "textbook", visible=late)
to_all(ALL, "LOS-84", "a mask that is one token early", "textbook", visible=early)
to_all(ALL, "LOS-02", "the last sampled token of each row left out", "textbook", visible=without_last)
to_all(ALL, "LOS-78", "the last column alone, whatever the mask says", "textbook", visible=last_column)
to_all(ALL, "LOS-79", "the last sampled token of each row alone", "textbook", visible=only_last)
to_all(ALL, "LOS-03", "the first row's mask for every row", "textbook", visible=of_first_row)
to_all(
    ALL, "MK-13", "masking by multiplication: 0·NaN is NaN", "OpenRLHF PR 1240", kind="robustness", cover=multiply_out
)
to_all(
    WHOLE,
    "MK-14",
    "a mean over all positions, masked or not",
    "pytorch/rl PR 4057",
    visible=everything,
    mean=plain_mean,
)
to_all(
    WHOLE,
    "AG-04",
    "the mean of value times mask: masked places are counted",
    "stable-baselines3-contrib PR 78",
    mean=plain_mean,
)
to_all(WHOLE, "LOS-04", "a sum over the sequences instead of their mean", "textbook", mean=sum_of_sequences)
to_all(NEGATED, "LOS-05", "the loss with its sign reversed", "textbook", finish=same)
to_all(POSITIVE, "LOS-05", "the result with its sign reversed", "textbook", finish=torch.neg)
to_all(SCORED, "LP-07", "a loss cut off from the graph", "gflownet PR 251", finish=lambda loss: -loss.detach())
to_all(POSITIVE, "LP-07", "a result cut off from the graph", "gflownet PR 251", finish=torch.detach)
for _mode in ("sequence_mean", "token_mean"):
    to_all(
        CONVENTIONAL,
        f"CV-27-{_mode}",
        f"the aggregation {_mode}",
        "trl issue 2995",
        choice={"aggregation": _mode},
    )
to_all(
    tuple(name for name in WHOLE if name != "grpo_objective"),
    "AC-03",
    "rows without a sampled token left out of the count of sequences",
    "NVIDIA-NeMo/RL issue 212, the other way round",
    choice={"empty_rows": "dropped"},
)

to_all(SCORED, "LOS-06", "probabilities in place of log-probabilities", "textbook", score=torch.exp)


WITH_ADVANTAGES = ("policy_gradient_loss", "grpo_loss", "dr_grpo_loss", "microbatch_loss", "clipped_loss")
to_all(WITH_ADVANTAGES, "RT-06", "weights with a live gradient", "torchforge PR 527", weigh=live)


_aggregate = partial(add, "aggregate")
_aggregate("AG-01", "a token mean over all positions", "trl issue 6369", mean=by_mode(token_mean=over_width))
_aggregate(
    "AC-08", "a token mean over sequences", "OpenNMT-py PR 526", mean=by_mode(token_mean=as_mode("sequence_sum"))
)
_aggregate(
    "LOS-07",
    "a sequence mean where a token mean is asked",
    "textbook",
    mean=by_mode(token_mean=as_mode("sequence_mean")),
)
_aggregate(
    "LOS-08",
    "a token mean where a sequence mean is asked",
    "textbook",
    mean=by_mode(sequence_mean=as_mode("token_mean")),
)
_aggregate("LOS-09", "a sequence mean over the padded length", "textbook", mean=by_mode(sequence_mean=over_width))
_aggregate(
    "LOS-10", "a sequence mean over the longest row's length", "textbook", mean=by_mode(sequence_mean=over_longest)
)
for _mode in ("sequence_sum", "sequence_mean", "token_mean"):
    _aggregate(f"LOS-80-{_mode}", f"{_mode} whatever the mode", "textbook", mean=as_mode(_mode))
_aggregate("LOS-11", "a sum over all tokens for sequence_sum", "textbook", mean=by_mode(sequence_sum=sum_of_sequences))
_aggregate("LOS-12", "a constant that is ignored", "claim B10.5", mean=by_mode(constant=as_mode("sequence_sum")))
_aggregate("LOS-13", "a constant mode without 1/B", "claim B10.5", mean=by_mode(constant=no_sequences))
_aggregate("LOS-14", "the padded length for the constant", "claim B10.4", mean=by_mode(constant=over_width))
_aggregate("AG-05", "0/0 for rows or a batch without a token", "trl PR 3248", mean=unfloored)

_rest = partial(add, "rest_loss")
_rest("LOS-15", "every positive reward as a success", "claim B5.1", success=lambda r: working(r > 0))
_rest("LOS-16", "rewards of 1 and more as successes", "claim B5.1", success=lambda r: working(r >= 1))
_rest("LOS-17", "rewards that round to 1 as successes", "claim B5.1", success=lambda r: working(r.round() == 1))
_rest("LOS-18", "the reward as weight: REINFORCE", "claim B5.1", success=constant)
_rest("LOS-19", "failures pushed down by −1", "claim B7.2", success=lambda r: working(r == 1) * 2 - 1)
_rest("LOS-20", "every sequence kept: self-distillation", "claim B5.3", success=torch.ones_like)
_rest("LOS-21", "the failures kept", "textbook", success=lambda r: working(r != 1))


def _kept_mean(log_probs: Tensor, mask: Tensor, rewards: Tensor, floor: int, convention: Convention) -> Tensor:
    share_of_kept = len(rewards) / (rewards == 1).sum().clamp(min=floor)
    return (right.rest_loss(log_probs, mask, rewards, convention=convention) * share_of_kept).to(log_probs.dtype)


@FAULTS.fault("LOS-22", "rest_loss", "a mean over the successes alone", "claim B7.1")
def _mean_of_kept(log_probs: Tensor, mask: Tensor, rewards: Tensor, *, convention: Convention) -> Tensor:
    return _kept_mean(log_probs, mask, rewards, 1, convention)


@FAULTS.fault("LOS-23", "rest_loss", "a mean over the successes alone, NaN where there are none", "claim B5.2")
def _mean_of_nothing(log_probs: Tensor, mask: Tensor, rewards: Tensor, *, convention: Convention) -> Tensor:
    return _kept_mean(log_probs, mask, rewards, 0, convention)


SURPLUSES: tuple[tuple[str, str, str, Function], ...] = (
    ("LOS-24", "the baseline added", "textbook", lambda r, b: r + b),
    ("LOS-25", "no baseline", "claim B7.4", lambda r, b: r),
    ("LOS-26", "the baseline of the next row", "textbook", lambda r, b: r - b.roll(1)),
    ("LOS-27", "the batch's mean reward as baseline", "textbook", lambda r, b: r - r.mean()),
    ("LOS-28", "no weight for a reward of 0", "claim B7.2", lambda r, b: (r - b) * (r != 0)),
    ("LOS-29", "a negative weight that counts as 0", "claim B9.8", lambda r, b: (r - b).clamp(min=0.0)),
    ("AD-11", "a column of baselines: each row gets their mean", "L2D issue 5", lambda r, b: r - b.mean()),
    ("LOS-30", "whitened weights", "textbook", lambda r, b: whitened(r - b)),
    ("LOS-81", "weights centred in the batch", "textbook", lambda r, b: r - b - (r - b).mean()),
    ("LOS-82", "ReST: the successes, with weight 1", "claim B7.1", lambda r, b: 1.0 * (r == 1)),
)
for _identity, _title, _source, _surplus in SURPLUSES:
    add("reinforce_loss", _identity, _title, _source, surplus=_surplus)
_live = partial(add, "reinforce_loss", weigh=live)
_live("VL-01", "a baseline with a live gradient", "keras-io issue 194", surplus=lambda r, b: r.detach() - b)
_live("RT-06", "rewards with a live gradient", "torchforge PR 527", surplus=lambda r, b: r - b.detach())


_pg = partial(add, "policy_gradient_loss")
_pg(
    "LOS-31",
    "a row's mean weight for each token",
    "claim B11.1",
    weigh=lambda w, m: constant(w).mean(1, keepdim=True).expand(m.shape),
)
_pg("LOS-30", "whitened weights", "textbook", weigh=lambda w, m: whitened(w))
_pg("LOS-83", "weights whitened with the sample standard deviation", "textbook", weigh=lambda w, m: whitened(w, 1))
_pg("LOS-32", "weights of the token before", "textbook", weigh=lambda w, m: constant(w).roll(1, dims=1))
_pg("LOS-33", "the weights' sizes without sign", "textbook", weigh=lambda w, m: constant(w).abs())
_pg("LOS-29", "positive weights alone", "claim B9.8", weigh=lambda w, m: constant(w).clamp(min=0.0))
_pg("LOS-34", "weights summed to go", "claim B8.12", weigh=lambda w, m: hide(w, m).detach().flip(1).cumsum(1).flip(1))
_pg("LOS-35", "the first row's weights for every row", "textbook", weigh=lambda w, m: of_first_row(constant(w)))


@FAULTS.fault("PL-01", "policy_gradient_loss", "a product of sums: mean log-prob times weights", "Gymnasium issue 1336")
def _product_of_sums(log_probs: Tensor, mask: Tensor, weights: Tensor, *, convention: Convention) -> Tensor:
    shown = mask != 0
    lengths = shown.sum(dim=1, keepdim=True).clamp(min=1)
    means = hide(log_probs, shown).sum(dim=1, keepdim=True) / lengths
    return right.policy_gradient_loss(means.expand(shown.shape), mask, weights, convention=convention).to(
        log_probs.dtype
    )


_WEIGHTS: tuple[tuple[str, str, str, Function], ...] = (
    ("AD-10", "advantages normalised once more in the batch", "textbook", lambda a, m: column(whitened(a), m)),
    (
        "MK-08",
        "the advantages in the mask's place: weighted by them twice",
        "verl issue 2506",
        lambda a, m: column(a.square(), m),
    ),
    ("LOS-29", "positive advantages alone", "claim B9.8", lambda a, m: column(a, m).clamp(min=0.0)),
    ("LOS-33", "the advantages' sizes without sign", "textbook", lambda a, m: column(a, m).abs()),
    ("LOS-36", "advantages along the tokens where B = T", "textbook", across),
    ("LOS-37", "advantages bounded to [−5, 5]", "textbook", lambda a, m: column(a, m).clamp(-5.0, 5.0)),
    ("LOS-38", "advantages of the next row", "RO-06: two shuffles", lambda a, m: column(a.roll(1), m)),
)
for _operation in ("grpo_loss", "dr_grpo_loss", "microbatch_loss", "clipped_loss"):
    for _identity, _title, _source, _weigh in _WEIGHTS:
        add(_operation, _identity, _title, _source, weigh=_weigh)

_dr = partial(add, "dr_grpo_loss")
_dr("LOS-12", "a constant that is ignored", "claim B10.5", mean=as_mode("sequence_sum"))
_dr("LOS-39", "1/length in place of 1/constant", "claim B10.4", mean=as_mode("sequence_mean"))
_dr("LOS-40", "a token mean", "claim B10.4", mean=as_mode("token_mean"))
_dr("LOS-10", "the longest row's length for the constant", "claim B10.5", mean=over_longest)
_dr(
    "LOS-41",
    "1/length on top of 1/constant",
    "claim B10.4",
    mean=lambda x, m, c: as_mode("sequence_mean")(x, m, c) / c.aggregation_constant,
)

_micro = partial(add, "microbatch_loss")
_micro(
    "AC-05",
    "the part's own counts as denominators",
    "prime-rl issue 2358",
    divide=lambda b, n, m: (len(m), int(m.sum())),
)
_micro(
    "AC-01",
    "a division by the number of parts on top",
    "ms-swift issue 10117",
    divide=lambda b, n, m: (b * b / len(m), n * b / len(m)),
)
_micro("AC-02", "a sum that nothing divides", "verl-project/verl PR 436", divide=lambda b, n, m: (1, 1))
