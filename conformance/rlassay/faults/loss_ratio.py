"""Known faults of the losses with a probability ratio, of the whole GRPO objective and of the value loss."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from rlassay.faults import Faults, Function
from rlassay.faults.loss import declare
from rlassay.faults.parts import average, counted, everything, hide, same, working
from rlassay.faults.parts import loss as right
from rlassay.faults.parts.advantage import centred, normalised
from rlassay.faults.parts.choices import (
    alive_outside,
    always_clipped,
    clipped_alone,
    clipped_to_range,
    dead_outside,
    geometric_mean,
    means_compared,
    normalised_between,
    per_sequence,
    quotient,
    smaller,
    unclipped,
)
from rlassay.faults.parts.kl import k1, k2, k3, turned_over
from rlassay.faults.parts.loss import bounded, log_ratio, pessimistic
from rlassay_spec.convention import Convention

FAULTS = Faults()
add = partial(declare, FAULTS)


RATIOS: tuple[tuple[str, str, str, Function], ...] = (
    (
        "RT-01",
        "a ratio of 1 whatever π_old was, its gradient alive",
        "torchforge PR 571",
        lambda new, *_: (new - new.detach()).exp(),
    ),
    ("LOS-44", "ratio ≡ 1 with a dead gradient: π over itself", "claim P6.2", lambda new, *_: (new - new).exp()),
    ("LOS-45", "log π_old with a live gradient", "claim P6.1", lambda new, old, *_: (new - old).exp()),
    ("RT-03", "a ratio without gradient", "PPO-PyTorch issue 18", lambda n, o, m, c: log_ratio(n, o, c).exp().detach()),
    ("LOS-46", "the ratio turned over: π_old/π", "textbook", lambda n, o, m, c: (-log_ratio(n, o, c)).exp()),
    ("LOS-47", "the quotient of the log-probs", "claim P8.6", quotient),
    ("LOS-48", "1 + the log-ratio in place of its exponential", "textbook", lambda n, o, m, c: 1 + log_ratio(n, o, c)),
    ("LOS-49", "the bare log-ratio in place of the ratio", "textbook", lambda n, o, m, c: log_ratio(n, o, c)),
    ("CV-13", "one ratio a sequence: the product of its tokens'", "trl issue 5814", per_sequence),
    ("CV-65", "one ratio a sequence: the geometric mean of its tokens'", "arXiv 2507.18071", geometric_mean),
    (
        "RO-05",
        "log-probs of π_old in another order of the rows",
        "verl issue 2185",
        lambda n, o, m, c: log_ratio(n, o.roll(1, dims=0), c).exp() * m,
    ),
    (
        "LOS-50",
        "log-probs of π_old one token late",
        "textbook",
        lambda n, o, m, c: log_ratio(n, o.roll(1, dims=1), c).exp() * m,
    ),
)


CHOICES: tuple[tuple[str, str, str, Function], ...] = (
    (
        "CL-02",
        "the larger of both surrogates",
        "safe-grid-agents PR 28",
        lambda r, a, low, high, m: torch.maximum(r * a, bounded(r, low, high) * a),
    ),
    ("CL-06", "no clip", "rllm issue 81", lambda r, a, low, high, m: r * a),
    ("LOS-51", "the clipped surrogate alone", "claim P5.4", lambda r, a, low, high, m: bounded(r, low, high) * a),
    (
        "LOS-52",
        "clip_low and clip_high exchanged",
        "textbook",
        lambda r, a, low, high, m: pessimistic(r, a, high, low, m),
    ),
    (
        "LOS-53",
        "clip_low for both bounds",
        "CV-18 undeclared",
        lambda r, a, low, high, m: pessimistic(r, a, low, low, m),
    ),
    (
        "LOS-54",
        "bounds of 0.2 whatever is asked",
        "textbook",
        lambda r, a, low, high, m: pessimistic(r, a, 0.2, 0.2, m),
    ),
    (
        "LOS-55",
        "no lower bound",
        "textbook",
        lambda r, a, low, high, m: torch.minimum(r * a, r.clamp(max=1 + high) * a),
    ),
    ("LOS-56", "no upper bound", "textbook", lambda r, a, low, high, m: torch.minimum(r * a, r.clamp(min=1 - low) * a)),
    (
        "LOS-57",
        "the smaller ratio, whatever the advantage's sign",
        "textbook",
        lambda r, a, low, high, m: torch.minimum(r, bounded(r, low, high)) * a,
    ),
    ("LOS-58", "a gradient that passes the clip", "claim P5.3", alive_outside),
    ("LOS-59", "a gradient that dies outside the bounds on either side", "claim P5.4", dead_outside),
    (
        "LOS-60",
        "bounds e^±ε of the ratio",
        "textbook",
        lambda r, a, low, high, m: torch.minimum(
            r * a, r.clamp(torch.tensor(-low).exp().item(), torch.tensor(high).exp().item()) * a
        ),
    ),
    ("CL-01", "the smaller of both batch means", "pytorch-cpp-rl issue 14", means_compared),
    (
        "CL-03",
        "at least 3·Â whatever the sign: a dual clip for good actions too",
        "tianshou issue 433",
        lambda r, a, low, high, m: torch.maximum(pessimistic(r, a, low, high, m), 3 * a),
    ),
    (
        "CV-19",
        "a dual clip at 3 that was not asked for",
        "verl PR 784",
        lambda r, a, low, high, m: torch.where(
            a < 0, torch.maximum(pessimistic(r, a, low, high, m), 3 * a), pessimistic(r, a, low, high, m)
        ),
    ),
    ("CL-05", "advantages normalised in the clipped branch alone", "pytorch/rl PR 1033", normalised_between),
)

for _operation in ("clipped_loss", "grpo_objective"):
    for _identity, _title, _source, _rho in RATIOS:
        add(_operation, _identity, _title, _source, rho=_rho)
    for _identity, _title, _source, _choose in CHOICES:
        add(_operation, _identity, _title, _source, choose=_choose)
    add(_operation, "CV-14", "log-ratios bounded to [−1, 1]", "prime-rl PR 1329", choice={"log_ratio_clamp": 1.0})
    add(_operation, "LOS-85", "log-ratios bounded to [−10, 10]", "textbook", choice={"log_ratio_clamp": 10.0})

_objective = partial(add, "grpo_objective")
_objective("LOS-05", "the surrogate with its sign reversed", "textbook", finish=same)
_objective(
    "AD-06",
    "advantages of the whole batch",
    "grpo-flat issue 2",
    standing=lambda r, c: normalised(r.reshape(1, -1), convention=c).reshape(-1),
)
_objective(
    "ADV-18", "centred advantages", "SkyRL issue 869", standing=lambda r, c: centred(r, convention=c).reshape(-1)
)
_objective("LOS-61", "the raw rewards in place of advantages", "textbook", standing=lambda r, c: r.reshape(-1))
_objective(
    "LOS-62",
    "groups interleaved: sequence b taken for row b mod N",
    "trl issue 4531",
    standing=lambda r, c: normalised(r, convention=c).T.reshape(-1),
)
_objective(
    "AD-09",
    "advantages over the groups, for each place in a group",
    "tensorflow/agents issue 651",
    standing=lambda r, c: normalised(r.T, convention=c).T.reshape(-1),
)
_objective("ADV-14", "advantages with the sample standard deviation", "claim B9.1", choice={"std_ddof": 1})
_objective("ADV-15", "1e-4 added to the standard deviation", "claim P5.1", choice={"std_eps": 1e-4})
_objective("KL-01", "the KL subtracted from the loss", "verl commit a65c9157", penalty=lambda kl, beta: -beta * kl)
_objective("KL-02", "a KL without gradient", "open-instruct issue 530", penalty=lambda kl, beta: beta * kl.detach())
_objective("KL-03", "k3 with the ratio turned over", "PAE issue 8", kl=turned_over)
_objective("LOS-63", "k1 for k3", "claim P7.2", kl=k1)
_objective("LOS-64", "k2 for k3", "claim P7.2", kl=k2)
_objective("LOS-65", "no KL", "textbook", penalty=lambda kl, beta: 0 * kl)
_objective("LOS-66", "the KL without β", "textbook", penalty=lambda kl, beta: kl)
_objective("LOS-67", "a reference policy with a live gradient", "claim P7.1", frozen=same)
_objective(
    "LOS-68", "a KL with importance weights", "textbook", kl_mean=lambda d, m, rho, c: average(d * rho.detach(), m, c)
)
_objective("KL-04", "a KL averaged over all positions", "PAE issue 8", kl_mean=lambda d, m, rho, c: d.mean())
_objective(
    "LOS-69",
    "a KL summed over the sequences",
    "textbook",
    kl_mean=lambda d, m, rho, c: average(d, m, c) * counted(m, c),
)
_objective("KLE-18", "k3 without its −1", "textbook", kl=lambda new, ref, c: k3(new, ref, c) + (new != 0))
_objective("CV-23", "k3 bounded to [−5, 5]", "trl PR 6637", choice={"k3_clamp": 5.0})


@FAULTS.fault("KL-05", "grpo_objective", "a KL over masked places too", "rlhf-book PR 216")
def _kl_everywhere(
    log_probs: Tensor, old_log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, rewards: Tensor, beta: float,
    clip_low: float = 0.2, clip_high: float = 0.2, *, convention: Convention,
) -> Tensor:  # fmt: skip
    rest = right.grpo_objective(
        log_probs, old_log_probs, ref_log_probs, mask, rewards, 0.0, clip_low, clip_high, convention=convention
    )
    divergence = k3(working(log_probs), working(ref_log_probs.detach()), convention)
    return (rest + beta * average(divergence, everything(mask != 0), convention)).to(log_probs.dtype)


@FAULTS.fault("RT-05", "grpo_objective", "the KL's log-ratio in the surrogate", "trl PR 6637")
def _overwritten(
    log_probs: Tensor, old_log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, rewards: Tensor, beta: float,
    clip_low: float = 0.2, clip_high: float = 0.2, *, convention: Convention,
) -> Tensor:  # fmt: skip
    shown = mask != 0
    towards_ref = hide(ref_log_probs.detach(), shown)
    return right.grpo_objective(
        log_probs, old_log_probs, ref_log_probs, mask, rewards, beta, clip_low, clip_high, convention=convention,
        rho=lambda new, old, *_: (towards_ref - new).exp(),
    )  # fmt: skip


@FAULTS.fault("LOS-70", "grpo_objective", "π_old and π_ref exchanged", "textbook")
def _exchanged(
    log_probs: Tensor, old_log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, rewards: Tensor, beta: float,
    clip_low: float = 0.2, clip_high: float = 0.2, *, convention: Convention,
) -> Tensor:  # fmt: skip
    return right.grpo_objective(
        log_probs, ref_log_probs, old_log_probs, mask, rewards, beta, clip_low, clip_high, convention=convention
    )


_value = partial(add, "value_loss")
_value("LOS-71", "the squared error without its half", "textbook", error=torch.square)
_value("LOS-72", "half the absolute error", "textbook", error=lambda e: 0.5 * e.abs())
_value(
    "LOS-73",
    "a Huber loss of threshold 1",
    "textbook",
    error=lambda e: torch.where(e.abs() <= 1, 0.5 * e**2, e.abs() - 0.5),
)
_value("LOS-74", "the smaller of both errors", "openai/baselines issue 91", choose=smaller)
_value("LOS-51", "the clipped error alone", "textbook", choose=clipped_alone)
_value(
    "VL-02", "a clip without effect: the old values are the new ones", "tensorflow/agents issue 352", choose=unclipped
)
_value("LOS-75", "the value itself clipped to ±clip", "textbook", choose=clipped_to_range)
_value("LOS-76", "a clip of 0.2 where none is asked for", "textbook", choose=always_clipped)
_value("VL-03", "returns with a live gradient", "Gymnasium issue 1494", target=same)
_value("LOS-45", "old values with a live gradient", "textbook", frozen=same)
_value(
    "LOS-77", "the error of the old values", "textbook", choose=lambda v, old, r, clip, error: error(old + 0 * v - r)
)
