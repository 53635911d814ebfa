"""Known faults of group advantages and of the filter of groups without contrast."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlassay.check import Kind
from rlassay.faults import Faults, Function
from rlassay.faults.parts import constant
from rlassay.faults.parts.advantage import (
    best,
    centred,
    contrast,
    deviation,
    guarded,
    leave_one_out,
    mean,
    normalised,
    others,
)
from rlassay.faults.parts.statistics import (
    as_it_comes,
    batch_deviation,
    best_of,
    cancelling,
    deviation_of_others,
    groups_of_four_only,
    guarded_by_deviation,
    in_batch,
    in_one_batch,
    largest_other,
    median,
    not_guarded,
    of_batch,
    of_batch_when_uneven,
    of_halves,
    of_positive,
    over_groups,
    precedence,
    raw_without_contrast,
    unguarded,
)
from rlassay_spec.convention import LECTURE

FAULTS = Faults()


def _fault(
    operation: str,
    identity: str,
    title: str,
    source: str,
    code: Function,
    kind: Kind = "conformance",
    choice: dict[str, Any] | None = None,
    **parts: Any,
) -> None:
    FAULTS.add(identity, operation, title, source, partial(code, **parts), kind=kind, convention=choice)


_centered = partial(_fault, "centered_advantages", code=centred)
_grpo = partial(_fault, "grpo_advantages", code=normalised)
_rloo = partial(_fault, "rloo_advantages", code=leave_one_out)
_max = partial(_fault, "max_advantages", code=best)


BASELINES: tuple[tuple[str, str, str, Function], ...] = (
    ("AD-06", "statistics over the whole batch", "grpo-flat issue 2", of_batch),
    ("AD-07", "statistics over the whole batch where G is odd", "THUDM/slime issue 1414", of_batch_when_uneven),
    ("AD-09", "statistics over the groups, for each place in a group", "tensorflow/agents issue 651", over_groups),
    ("AD-12", "statistics of each half of a group", "THUDM/slime PR 2235", of_halves),
    ("ADV-01", "the group's median as baseline", "textbook", median),
    ("ADV-02", "the group's largest reward as baseline", "textbook", best_of),
    ("ADV-03", "negative rewards counted as 0 in the mean", "textbook", of_positive),
    ("ADV-04", "a group of four whose last reward is forgotten", "textbook", groups_of_four_only),
)

for _identity, _title, _source, _baseline in BASELINES:
    _centered(_identity, _title, _source, baseline=_baseline, guard=as_it_comes)

_centered(
    "ADV-46",
    "a mean that rounds: equal rewards of 0.1 leave 1e-9",
    "claim B10.6",
    kind="robustness",
    guard=unguarded,
)
_centered("ADV-05", "leave-one-out advantages", "claim B9.6", baseline=others)
_centered("ADV-06", "the raw rewards: no baseline", "claim P4.1", baseline=torch.zeros_like, guard=as_it_comes)
_centered(
    "ADV-47",
    "a constant baseline of one half",
    "textbook",
    baseline=lambda r: torch.full_like(r, 0.5),
    guard=as_it_comes,
)
_centered("ADV-07", "mean minus reward", "textbook", guard=lambda a, r, convention: guarded(-a, r, convention))
_centered("ADV-08", "the reward itself in a group without contrast", "claim B10.6", guard=raw_without_contrast)
_centered(
    "ADV-09", "the reward itself in a group of one", "verl-project/verl PR 7581", choice={"singleton_group": "reward"}
)
_fault(
    "centered_advantages",
    "ADV-10",
    "advantages in units of the standard deviation",
    "redai-studio/Relax issue 192",
    normalised,
)


_fault("grpo_advantages", "AD-06", "statistics over the whole batch", "grpo-flat issue 2", in_one_batch)
_fault(
    "grpo_advantages",
    "ADV-11",
    "statistics over the whole batch, with 0 for groups without contrast",
    "grpo-flat issue 2",
    in_batch,
)
_grpo("AD-07", "the batch's mean where G is odd", "THUDM/slime issue 1414", baseline=of_batch_when_uneven)
_fault(
    "grpo_advantages",
    "AD-09",
    "statistics over the groups, for each place in a group",
    "tensorflow/agents issue 651",
    lambda rewards, *, convention: normalised(rewards.T, convention=convention).T,
)
_fault(
    "grpo_advantages",
    "ADV-52",
    "statistics over the groups, for each place in a group; NaN without contrast",
    "textbook: dim=0",
    lambda rewards, *, convention: not_guarded(rewards.T, convention).T,
)
_grpo("ADV-12", "the group's mean, but the batch's standard deviation", "textbook", divisor=batch_deviation)
_grpo("ADV-13", "the batch's mean, but the group's standard deviation", "textbook", baseline=of_batch)
_grpo("ADV-48", "the sizes of the advantages without sign", "textbook", guard=lambda a, r, c: guarded(a, r, c).abs())
_grpo("AD-12", "the mean of each half of a group", "THUDM/slime PR 2235", baseline=of_halves)
_grpo("ADV-14", "the sample standard deviation", "claim B9.1: torch.std's default", choice={"std_ddof": 1})
_grpo("ADV-15", "1e-4 added to the standard deviation", "claim P5.1", choice={"std_eps": 1e-4})
_grpo(
    "ADV-16",
    "the sample standard deviation with 1e-4 added",
    "claim P5.1",
    choice={"std_ddof": 1, "std_eps": 1e-4},
)
_grpo(
    "ADV-17",
    "1e-4 inside the square root",
    "redai-studio/Relax issue 192",
    choice={"std_eps": 1e-4, "std_eps_place": "inside"},
)
_grpo(
    "ADV-09", "the reward itself in a group of one", "verl-project/verl PR 7581", choice={"singleton_group": "reward"}
)
_fault("grpo_advantages", "ADV-18", "centred rewards: no division", "NovaSky-AI/SkyRL issue 869", centred)
_grpo("ADV-19", "the variance in place of σ", "textbook", divisor=lambda r, c: deviation(r, c).square())
_fault("grpo_advantages", "AD-08", "R − mean/σ: a bracket is missing", "pytorch-cpp-rl issue 14", precedence)
_grpo(
    "AD-03",
    "a variance E[R²] − E[R]² in float32, guarded by σ > 0",
    "NVIDIA-NeMo/RL PR 4158",
    kind="robustness",
    divisor=cancelling,
    guard=guarded_by_deviation,
)
_grpo("ADV-20", "the mean deviation in place of σ", "textbook", divisor=lambda r, _: mean((r - mean(r)).abs()))
_grpo(
    "ADV-21",
    "the range in place of σ",
    "textbook",
    divisor=lambda r, convention: best_of(r) - r.amin(dim=1, keepdim=True),
)
_grpo("ADV-22", "leave-one-out advantages over σ", "NVIDIA-NeMo/RL issue 1518", baseline=others)
_grpo("ADV-23", "no baseline: the reward over σ", "textbook", baseline=torch.zeros_like)
_grpo(
    "ADV-24",
    "advantages bounded to [−2, 2]",
    "textbook",
    guard=lambda a, r, convention: guarded(a, r, convention).clamp(-2.0, 2.0),
)
_grpo("ADV-04", "a group of four whose last reward is forgotten", "textbook", baseline=groups_of_four_only)
_grpo("ADV-03", "negative rewards counted as 0 in the mean", "textbook", baseline=of_positive)
_grpo("ADV-08", "the reward itself in a group without contrast", "claim B10.6", guard=raw_without_contrast)
_grpo("ADV-07", "mean minus reward", "textbook", guard=lambda a, r, convention: guarded(-a, r, convention))


@FAULTS.fault("ADV-25", "grpo_advantages", "0/0 = NaN in a group without contrast", "claim B10.6")
def _nan_without_contrast(rewards: Tensor) -> Tensor:
    r = constant(rewards)
    return ((r - mean(r)) / r.std(dim=1, keepdim=True, correction=0)).to(rewards.dtype)


_rloo(
    "ADV-46",
    "a mean that rounds: equal rewards of 0.1 leave 1e-9",
    "claim B10.6",
    kind="robustness",
    guard=unguarded,
)
_rloo("ADV-06", "the raw rewards: no baseline", "claim B9.6", baseline=torch.zeros_like, guard=as_it_comes)
_rloo("ADV-26", "a baseline that contains the own reward", "claim B9.6", baseline=mean)
_rloo(
    "AD-06",
    "the mean of all others of the batch",
    "grpo-flat issue 2",
    guard=as_it_comes,
    baseline=lambda r: others(r.reshape(1, -1)).reshape(r.shape),
)
_rloo(
    "ADV-27",
    "the sum of the others, divided by G",
    "textbook",
    baseline=lambda r: (r.sum(1, keepdim=True) - r) / r.shape[1],
)
_rloo(
    "ADV-28",
    "the mean of the group, divided by G−1",
    "textbook",
    baseline=lambda r: r.sum(1, keepdim=True) / max(r.shape[1] - 1, 1),
)
_rloo(
    "ADV-29",
    "the factor (G−1)/G turned over",
    "claim B9.6",
    baseline=mean,
    finish=lambda a, r: a * (r.shape[1] - 1) / r.shape[1],
)
_rloo("ADV-07", "baseline minus reward", "textbook", finish=lambda a, r: -a)
_rloo(
    "ADV-30",
    "the mean of the earlier ones in the group",
    "claim B8.11",
    baseline=lambda r: (r.cumsum(1) - r) / torch.arange(r.shape[1]).clamp(min=1),
)
_rloo("ADV-31", "the next reward of the group as baseline", "textbook", baseline=lambda r: r.roll(-1, dims=1))
_rloo("ADV-02", "the largest reward of the others as baseline", "textbook", baseline=lambda r: largest_other(r))
_rloo(
    "ADV-09", "the reward itself in a group of one", "verl-project/verl PR 7581", choice={"singleton_group": "reward"}
)
_rloo(
    "ADV-10",
    "advantages in units of the standard deviation",
    "NVIDIA-NeMo/RL issue 1518",
    finish=lambda a, r: a / torch.where(contrast(r), deviation(r, LECTURE), 1.0),
)
_rloo(
    "AD-02",
    "advantages in units of the others' standard deviation plus 1e-6",
    "NVIDIA-NeMo/RL issue 1518",
    finish=lambda a, r: a / (deviation_of_others(r) + 1e-6),
)


_max("AD-06", "the best of the whole batch", "claim P4.1", largest=lambda r: r.amax().expand(len(r), 1))
_max("ADV-06", "the raw rewards", "claim P4.1", largest=lambda r: r)
_max("ADV-32", "1 for the best, not its reward", "claim P4.1", keep=torch.ones_like)
_max("ADV-33", "the worst of the group", "textbook", largest=lambda r: r.amin(dim=1, keepdim=True))
_max("ADV-34", "a best reward that counts only if it is positive", "claim P4.1", keep=lambda r: r.clamp(min=0.0))
_max("ADV-35", "the best of each place over the groups", "textbook", largest=lambda r: r.amax(dim=0, keepdim=True))


@FAULTS.fault("ADV-36", "max_advantages", "the first of the best alone: ties are dropped", "claim P4.1")
def _first_of_the_best(rewards: Tensor) -> Tensor:
    r = constant(rewards)
    first = torch.nn.functional.one_hot(r.argmax(dim=1), r.shape[1]).bool()
    return torch.where(first, r, 0.0).to(rewards.dtype)


@FAULTS.fault("ADV-37", "max_advantages", "0 in a group without contrast", "claim P4.1")
def _zero_without_contrast(rewards: Tensor) -> Tensor:
    return torch.where(contrast(rewards), best(rewards), 0.0).to(rewards.dtype)


@FAULTS.fault("ADV-51", "max_advantages", "the centred reward of the best", "textbook")
def _centred_best(rewards: Tensor) -> Tensor:
    return best(constant(rewards) - mean(constant(rewards))).to(rewards.dtype)


@FAULTS.fault("ADV-38", "max_advantages", "reward minus the group's best", "textbook")
def _regret(rewards: Tensor) -> Tensor:
    return (rewards - best_of(rewards)).detach()


def _keep(identity: str, title: str, source: str, keeps: Function, kind: Kind = "conformance") -> None:
    FAULTS.add(identity, "keep_groups", title, source, lambda rewards: keeps(constant(rewards)), kind=kind)


_keep("ADV-49", "every group", "claim B10.6", lambda r: torch.ones(len(r), dtype=torch.bool))
_keep("ADV-50", "no group", "claim B10.6", lambda r: torch.zeros(len(r), dtype=torch.bool))
_keep("ADV-39", "groups without contrast", "textbook", lambda r: ~contrast(r)[:, 0])
_keep("ADV-40", "groups with a success", "NVIDIA-NeMo/RL issue 2431", lambda r: (r > 0).any(dim=1))
_keep("ADV-41", "groups with a failure", "textbook", lambda r: (r < r.amax()).any(dim=1))
_keep("AD-06", "contrast in the whole batch", "grpo-flat issue 2", lambda r: (r.amax() > r.amin()).expand(len(r)))
_keep("ADV-42", "groups whose standard deviation is above 0.1", "textbook", lambda r: r.std(dim=1, correction=0) > 0.1)
_keep(
    "ADV-43",
    "groups whose mean is strictly between 0 and 1",
    "textbook",
    lambda r: (mean(r) > 0)[:, 0] & (mean(r) < 1)[:, 0],
)
_keep("ADV-44", "groups whose first two rewards differ", "textbook", lambda r: r[:, 0] != r[:, min(1, r.shape[1] - 1)])
_keep("ADV-45", "groups of rewards that are not all 0", "textbook", lambda r: (r != 0).any(dim=1))
_keep(
    "FI-03",
    "groups whose spread is not 0 after rounding: E[R²] − E[R]² in float32",
    "NVIDIA-NeMo/RL PR 4158",
    lambda r: mean(r.float().square())[:, 0] - mean(r.float()).square()[:, 0] != 0,
    kind="robustness",
)
