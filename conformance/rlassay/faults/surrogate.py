"""Known faults of the dual-clipped and of the sequence-wise surrogate; the topic's others are in `surrogate_terms`."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlassay.check import Kind
from rlassay.faults import Faults, Function
from rlassay.faults.loss_ratio import CHOICES, RATIOS
from rlassay.faults.parts import (
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
from rlassay.faults.parts import surrogate as right
from rlassay.faults.parts.loss import clipped_loss
from rlassay.faults.parts.means import plain_mean, sum_of_sequences
from rlassay.faults.parts.sequence_ratios import (
    arithmetic_mean,
    of_batch,
    of_mean,
    over,
    quotient,
    rolled,
    root_of_product,
    tokens_bounded,
)
from rlassay.faults.parts.surrogate import bounded_below, of_row, row_mean
from rlassay.faults.parts.weights import across, live
from rlassay_spec.convention import Convention

FAULTS = Faults()

DUAL, GSPO, BONUS, WEIGHTS = CODE = ("dual_clip_loss", "gspo_loss", "entropy_bonus", "importance_weights")


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
    code = partial(getattr(right, operation), **parts)
    faults.add(identity, operation, title, source, code, kind=kind, convention=choice)


add = partial(declare, FAULTS)

MASKS: tuple[tuple[str, str, str, Function], ...] = (
    ("MK-01", "a mask of ones: prompt, tool output and padding count", "trl issue 334", everything),
    ("MK-02", "the mask with its polarity reversed", "RAGEN issue 71", torch.logical_not),
    ("MK-03", "a mask without holes: tool tokens between sampled ones count", "trl PR 4975", without_holes),
    ("LOS-01", "a mask that is one token late", "textbook", late),
    ("LOS-84", "a mask that is one token early", "textbook", early),
    ("LOS-02", "the last sampled token of each row left out", "textbook", without_last),
    ("LOS-78", "the last column alone, whatever the mask says", "textbook", last_column),
    ("LOS-79", "the last sampled token of each row alone", "textbook", only_last),
    ("LOS-03", "the first row's mask for every row", "textbook", of_first_row),
)

for _operation in CODE:
    for _identity, _title, _source, _visible in MASKS:
        add(_operation, _identity, _title, _source, visible=_visible)
    add(
        _operation,
        "MK-13",
        "masking by multiplication: 0·NaN is NaN",
        "OpenRLHF PR 1240",
        kind="robustness",
        cover=multiply_out,
    )

for _operation in (DUAL, BONUS):
    add(
        _operation,
        "MK-14",
        "a mean over all positions, masked or not",
        "pytorch/rl PR 4057",
        visible=everything,
        mean=plain_mean,
    )
    add(
        _operation,
        "AG-04",
        "the mean of value times mask: masked places are counted",
        "stable-baselines3-contrib PR 78",
        mean=plain_mean,
    )
    for _mode in ("sequence_mean", "token_mean"):
        add(
            _operation,
            f"CV-27-{_mode}",
            f"the aggregation {_mode}",
            "trl issue 2995",
            choice={"aggregation": _mode},
        )

for _operation in (DUAL, GSPO, BONUS):
    add(
        _operation,
        "LOS-04",
        "a sum over the sequences instead of their mean",
        "textbook",
        mean=(lambda x, m, c: x.sum()) if _operation == GSPO else sum_of_sequences,
    )
    add(
        _operation,
        "AC-03",
        "rows without a sampled token left out of the count of sequences",
        "NVIDIA-NeMo/RL issue 212, the other way round",
        choice={"empty_rows": "dropped"},
    )

for _operation in (DUAL, GSPO):
    add(_operation, "LOS-05", "the loss with its sign reversed", "textbook", finish=same)
    add(_operation, "CV-14", "log-ratios bounded to [−1, 1]", "prime-rl PR 1329", choice={"log_ratio_clamp": 1.0})
    add(_operation, "LOS-85", "log-ratios bounded to [−10, 10]", "textbook", choice={"log_ratio_clamp": 10.0})

_ASIDE = ("CL-03", "CV-19", "CL-05", "CL-01")
for _identity, _title, _source, _rho in RATIOS:
    add(DUAL, _identity, _title, _source, rho=_rho)
for _identity, _title, _source, _choose in CHOICES:
    if _identity not in _ASIDE:
        add(DUAL, _identity, _title, _source, choose=_choose)
        add(GSPO, _identity, _title, _source, choose=lambda s, a, low, high, c=_choose: c(s, a, low, high, None))

_dual = partial(add, DUAL)
_dual("RT-06", "weights with a live gradient", "torchforge PR 527", weigh=live)
_dual("LOS-36", "advantages along the tokens where B = T", "textbook", weigh=across)

BOUNDS: tuple[tuple[str, str, str, Function], ...] = (
    (
        "CL-03",
        "at least dual_clip·Â whatever the sign: for good tokens too",
        "tianshou issue 433",
        lambda s, rho, a, dual: torch.maximum(s, dual * a),
    ),
    ("CL-04", "no dual clip: the option is not handed on", "THUDM/slime PR 2247", lambda s, rho, a, dual: s),
    (
        "SUR-02",
        "−dual_clip·Â as the bound: its sign is lost",
        "textbook",
        lambda s, rho, a, dual: torch.where(a < 0, torch.maximum(s, -dual * a), s),
    ),
    (
        "SUR-03",
        "the smaller of the surrogate and dual_clip·Â for bad tokens",
        "textbook",
        lambda s, rho, a, dual: torch.where(a < 0, torch.minimum(s, dual * a), s),
    ),
    ("SUR-04", "a dual clip of 3 whatever is asked", "textbook", lambda s, rho, a, dual: bounded_below(s, rho, a, 3.0)),
    (
        "SUR-05",
        "−dual_clip as the bound, whatever the advantage's size",
        "textbook",
        lambda s, rho, a, dual: torch.where(a < 0, s.clamp(min=-dual), s),
    ),
    (
        "SUR-06",
        "a ratio of at most dual_clip for good tokens too",
        "textbook",
        lambda s, rho, a, dual: torch.where(a < 0, torch.maximum(s, dual * a), torch.minimum(s, dual * a)),
    ),
    (
        "SUR-07",
        "the dual clip for good tokens, not for bad ones",
        "textbook",
        lambda s, rho, a, dual: torch.where(a > 0, torch.maximum(s, dual * a), s),
    ),
    (
        "SUR-08",
        "a gradient that passes the dual clip",
        "textbook: straight-through estimator",
        lambda s, rho, a, dual: s + (bounded_below(s, rho, a, dual) - s).detach(),
    ),
    (
        "SUR-09",
        "dual_clip as a bound on the log-ratio",
        "textbook",
        lambda s, rho, a, dual: torch.where(a < 0, torch.maximum(s, a * torch.tensor(dual).exp()), s),
    ),
    ("SUR-10", "1 + dual_clip as the bound", "textbook", lambda s, rho, a, dual: bounded_below(s, rho, a, 1 + dual)),
    (
        "SUR-11",
        "bad tokens beyond the dual clip left out",
        "textbook",
        lambda s, rho, a, dual: torch.where((a < 0) & (rho > dual), 0.0, s),
    ),
    (
        "SUR-12",
        "1/dual_clip as a lower bound for good tokens on top",
        "textbook",
        lambda s, rho, a, dual: torch.where(a > 0, torch.maximum(s, a / dual), bounded_below(s, rho, a, dual)),
    ),
)
for _identity, _title, _source, _bound in BOUNDS:
    _dual(_identity, _title, _source, bound=_bound)


RATIOS_OF_ROWS: tuple[tuple[str, str, str, Function], ...] = (
    (
        "RT-01",
        "a ratio of 1 whatever π_old was, its gradient alive",
        "torchforge PR 571",
        lambda n, o, m, c: row_mean(n - n.detach(), m, c).exp(),
    ),
    ("LOS-44", "ratio ≡ 1 with a dead gradient: π over itself", "claim P6.2", lambda n, *_: (n - n).sum(1).exp()),
    ("LOS-45", "log π_old with a live gradient", "claim P6.1", lambda n, o, m, c: row_mean(n - o, m, c).exp()),
    ("RT-03", "a ratio without gradient", "PPO-PyTorch issue 18", of_mean(lambda x: x.detach().exp())),
    ("LOS-46", "the ratio turned over: π_old/π", "textbook", of_mean(lambda x: (-x).exp())),
    ("LOS-47", "the quotient of the summed log-probs", "claim P8.6", quotient),
    ("LOS-48", "1 + the log-ratio in place of its exponential", "textbook", of_mean(lambda x: 1 + x)),
    ("LOS-49", "the bare log-ratio in place of the ratio", "textbook", of_mean(same)),
    ("CV-13", "the product of the row's ratios: their logarithms summed", "trl issue 5814", over(lambda m: 1)),
    ("SUR-20", "the arithmetic mean of the row's ratios", "textbook", arithmetic_mean),
    ("SUR-21", "the padded length in place of the row's", "textbook", over(lambda m: m.shape[1])),
    ("SUR-22", "the longest row's length for every row", "textbook", over(lambda m: m.sum(1).max().clamp(min=1))),
    ("SUR-23", "the square root of the length", "textbook", over(lambda m: m.sum(dim=1).clamp(min=1).sqrt())),
    ("SUR-24", "the mean length of the rows", "textbook", over(lambda m: (m.sum() / len(m)).clamp(min=1))),
    ("SUR-25", "one ratio for the whole batch", "textbook", of_batch),
    ("SUR-26", "a root of the product of the ratios, which overflows in long rows", "textbook", root_of_product),
    ("SUR-27", "token log-ratios bounded to [−1, 1] before their mean", "textbook", tokens_bounded),
    ("AG-05", "0/0 for a row without a token", "trl PR 3248", over(lambda m: m.sum(dim=1))),
    ("RO-05", "log-probs of π_old in another order of the rows", "verl issue 2185", rolled(0)),
    ("LOS-50", "log-probs of π_old one token late", "textbook", rolled(1)),
)
_gspo = partial(add, GSPO)
for _identity, _title, _source, _rho in RATIOS_OF_ROWS:
    _gspo(_identity, _title, _source, rho=_rho)

_gspo("RT-06", "weights with a live gradient", "torchforge PR 527", weigh=lambda a, m: hide(working(a), m.any(dim=1)))
_gspo("LOS-38", "advantages of the next row", "RO-06: two shuffles", weigh=lambda a, m: of_row(a.roll(1), m))
_gspo(
    "SUR-28", "a row counted once per token", "textbook", mean=lambda x, m, c: right.over_sequences(x * m.sum(1), m, c)
)
_gspo(
    "SUR-29",
    "rows weighted by their length: a mean over the tokens",
    "textbook",
    mean=lambda x, m, c: (x * m.sum(dim=1)).sum() / m.sum().clamp(min=1),
)
_gspo(
    "SUR-30",
    "the length taken off twice: the row's term divided by n as well",
    "textbook",
    mean=lambda x, m, c: right.over_sequences(x / m.sum(dim=1).clamp(min=1), m, c),
)


@FAULTS.fault("SUR-31", GSPO, "a ratio and a clip for each token, averaged over the row: GRPO's", "textbook")
def _per_token(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2, *, convention: Convention,
) -> Tensor:  # fmt: skip
    asked = Convention(aggregation="sequence_mean", empty_rows=convention.empty_rows)
    return clipped_loss(log_probs, old_log_probs, mask, advantages, clip_low, clip_high, convention=asked)
