"""Wrong code for advantages, losses and KL estimators: each function is wrong in one thing.

`BITES` lists with each the claims whose check must see it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import rlassay_impl
from rlassay_spec.operations import OPERATIONS
from tests.conformance.declared_code import (
    VARIANTS,
    Functions,
    centred,
    k3_of_the_log_ratio,
    others_left,
)

RIGHT: Functions = {name: getattr(rlassay_impl, name) for name in OPERATIONS}


def groupless(weigh: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Statistics over the whole batch."""
    return lambda r: weigh(r.reshape(1, -1)).reshape(r.shape)


def normalised(r: Tensor, ddof: int = 0, eps: float = 0.0) -> Tensor:
    return centred(r) / (r.std(dim=1, correction=ddof, keepdim=True) + eps)


def first_best(r: Tensor) -> Tensor:
    """Of several best responses only the first is kept."""
    return torch.zeros_like(r).scatter(1, r.argmax(dim=1, keepdim=True), r.amax(dim=1, keepdim=True))


def per_batch(x: Tensor, mask: Tensor) -> Tensor:
    """The masked sum over the number of sequences."""
    return torch.where(mask.bool(), x, 0.0).sum() / len(x)


def per_length(x: Tensor, mask: Tensor) -> Tensor:
    """The mean of the sequences' means."""
    return (torch.where(mask.bool(), x, 0.0).sum(dim=1) / mask.sum(dim=1).clamp(min=1)).mean()


def per_token(x: Tensor, mask: Tensor) -> Tensor:
    """One mean over all tokens."""
    return torch.where(mask.bool(), x, 0.0).sum() / mask.sum()


def per_entry(x: Tensor, mask: Tensor) -> Tensor:
    """The mean over the padded array."""
    return torch.where(mask.bool(), x, 0.0).mean()


def multiplied(x: Tensor, mask: Tensor) -> Tensor:
    """Masking by multiplication: 0·NaN is NaN."""
    return (x * mask).sum() / len(x)


def unmasked(x: Tensor, mask: Tensor) -> Tensor:
    return x.sum() / len(x)


def last_token(x: Tensor, mask: Tensor) -> Tensor:
    """Only the last token of the array is trained."""
    return x[:, -1].sum() / len(x)


Mean = Callable[[Tensor, Tensor], Tensor]


def weighted_by(weigh: Callable[..., Tensor], mean: Mean = per_batch) -> Callable[..., Tensor]:
    """−w·log π with other weights or another mean."""

    def wrong(x: Tensor, mask: Tensor, *others: Any) -> Tensor:
        w = weigh(*others)
        return mean(-(w if w.dim() == 2 else w[:, None]) * x, mask)

    return wrong


def imitated(mean: Mean = per_batch) -> Callable[..., Tensor]:
    return lambda x, mask: mean(-x, mask)


def kept_only(x: Tensor, mask: Tensor, r: Tensor) -> Tensor:
    """The mean over the kept sequences, NaN where none is kept."""
    return torch.where(mask.bool(), -x, 0.0)[r == 1].sum() / (r == 1).sum()


def clipped_of(
    ratio: Callable[[Tensor, Tensor], Tensor] = lambda x, old: (x - old.detach()).exp(),
    choose: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda plain, clip, a: torch.minimum(plain, clip),
    weigh: Callable[[Tensor], Tensor] = Tensor.detach,
) -> Functions:
    """clipped_loss and grpo_objective with another ratio, another choice between the two terms, other weights."""

    def clipped(x: Tensor, old: Tensor, mask: Tensor, a: Tensor, low: float = 0.2, high: float = 0.2) -> Tensor:
        rho, advantage = ratio(x, old), weigh(a)[:, None]
        return per_batch(-choose(rho * advantage, rho.clamp(1 - low, 1 + high) * advantage, advantage), mask)

    def objective(x: Tensor, old: Tensor, ref: Tensor, mask: Tensor, r: Tensor, beta: float, *clip: float) -> Tensor:
        return clipped(x, old, mask, RIGHT["grpo_advantages"](r).flatten(), *clip)

    return {"clipped_loss": clipped, "grpo_objective": objective}


def dead_outside(plain: Tensor, clip: Tensor, a: Tensor) -> Tensor:
    """No slope anywhere outside the bounds, in the value of the right surrogate."""
    least = torch.minimum(plain, clip)
    return torch.where(plain == clip, least, least.detach())


def objective_without_guard(x: Tensor, old: Tensor, ref: Tensor, mask: Tensor, r: Tensor, *rest: float) -> Tensor:
    """Advantages of equal rewards are 0/0."""
    loss_of: Tensor = RIGHT["clipped_loss"](x, old, mask, normalised(r).flatten())
    return loss_of


LIVE_OLD = clipped_of(ratio=lambda x, old: (x - old).exp())
DETACHED = clipped_of(ratio=lambda x, old: (x - old).exp().detach() + 0 * x)
QUOTIENT = clipped_of(ratio=lambda x, old: x / old.detach())
INVERTED = clipped_of(ratio=lambda x, old: (old.detach() - x).exp())
RECOMPUTED = clipped_of(ratio=lambda x, old: (x - x.detach()).exp())
CLIP_ALONE = clipped_of(choose=lambda plain, clip, a: clip)
UNCLIPPED = clipped_of(choose=lambda plain, clip, a: plain)
OPTIMISTIC = clipped_of(choose=lambda plain, clip, a: torch.maximum(plain, clip))
DEAD_OUTSIDE = clipped_of(choose=dead_outside)
LIVE_WEIGHTS = clipped_of(weigh=lambda a: a)
WHITENED = clipped_of(weigh=lambda a: (a - a.mean()) / (a.std(correction=0) + 1e-6))

CENTRED_BITES = (
    ("raw rewards", lambda r: r.clone(), "B7.4 B7.5 B8.1 B9.6 B9.8 B9.10 B9.11 B10.1 B10.6 B10.8 P4.1 P4.2 P8.5 P9.4"),
    ("batch mean", groupless(centred), "B7.6 B9.4 B9.8 P3.3 P3.5 P9.4"),
    ("÷σ", RIGHT["grpo_advantages"], "B8.2 B8.16 B9.7 B10.1 B10.3 P4.1 P9.2 P9.4"),
    ("mean of the others", RIGHT["rloo_advantages"], "B7.4 B8.1 B9.6 B9.7 B9.11 B10.1 P3.3 P9.2 P9.4"),
    ("median", lambda r: r - r.median(dim=1, keepdim=True).values, "B7.4 B8.2 B9.10 B10.3 P8.5"),
    ("rounded mean", lambda r: r - (r / r.shape[1]).sum(dim=1, keepdim=True), "B10.6-float32"),
    ("half", lambda r: r - 0.5, "B9.10 B10.8"),
)
GRPO_BITES = (
    (
        "sample σ",
        lambda r: RIGHT["grpo_advantages"](r) * math.sqrt(1 - 1 / r.shape[1]),
        "B8.16 B9.1 B9.2 B9.6 B10.2 P4.1 P5.1",
    ),
    ("undeclared ε", lambda r: normalised(r, eps=1e-4), "B9.1 B9.2 B10.3 P5.1"),
    ("batch statistics", groupless(RIGHT["grpo_advantages"]), "B8.16 B9.3 B9.4 P4.2"),
    ("no ÷σ", RIGHT["centered_advantages"], "B8.16 B9.1 B9.6 B10.2 B10.3"),
    ("0/0", normalised, "B7.5 B10.6 P4.2"),
    ("tiny ε", lambda r: normalised(r, eps=1e-8), "B10.6-float32"),
    ("absolute values", lambda r: RIGHT["grpo_advantages"](r).abs(), "B9.8 B9.10 P8.5"),
    ("batch centred", lambda r: (r - r.mean()) / r.std(dim=1, correction=0, keepdim=True), "B9.3 B9.8 B9.10"),
)
RLOO_BITES = (
    ("own reward kept", RIGHT["centered_advantages"], "B9.6"),
    ("whole batch", groupless(RIGHT["rloo_advantages"]), "B9.4 B9.8 B9.10"),
    ("raw rewards", lambda r: r.clone(), "B9.6 B9.8 B9.10 B10.6"),
    ("rounded mean", others_left, "B10.6-float32"),
)
MAX_BITES = (
    ("first best", first_best, "P4.1 P4.4"),
    ("best of the batch", groupless(RIGHT["max_advantages"]), "B9.4 P4.4"),
    ("never negative", lambda r: RIGHT["max_advantages"](r).clamp(min=0), "P4.4"),
    ("raw rewards", lambda r: r.clone(), "P4.1 P8.5"),
    ("centred", lambda r: RIGHT["max_advantages"](centred(r)), "P4.1 P4.4 P8.5"),
)
KEEP_BITES = (
    ("keeps all", lambda r: torch.ones(len(r), dtype=torch.bool), "B9.7 B10.6 B10.9 B10.10 P4.2 P9.1"),
    ("any success", lambda r: (r > 0).any(dim=1), "B9.7 B10.6 B10.9 B10.10 P4.2 P9.1"),
    ("differs from its mean", lambda r: (centred(r) != 0).any(dim=1), "B10.6-float32"),
    ("drops all", lambda r: torch.zeros(len(r), dtype=torch.bool), "B10.9"),
)
REWARD = "reinforce_loss"
SFT_BITES = (
    ("mean over tokens", imitated(per_token), "B3.1 B5.1 B5.3 B6.4 B6.6"),
    ("ascent", lambda x, mask: per_batch(x, mask), "B3.1 B3.2 B3.4 B3.5 B5.1 B5.3 B6.4"),
    ("π, not log π", lambda x, mask: per_batch(-x.exp(), mask), "B3.1 B3.2 B3.4 B3.5 B6.4"),
    ("mask ignored", imitated(unmasked), "B3.1 B5.3 B6.6"),
    ("mask multiplied", imitated(multiplied), "B6.6-nonfinite"),
)
REST_BITES = (
    ("mean over the kept", kept_only, "B5.1 B5.2 B5.4 B7.1 B11.1"),
    ("any positive reward", weighted_by(lambda r: (r > 0).to(r.dtype)), "B5.1 B5.2 B11.1"),
    ("reward as weight", weighted_by(lambda r: r), "B5.1 B5.2 B11.1"),
    ("keeps everything", weighted_by(torch.ones_like), "B5.1 B5.2 B5.4 B7.1 B11.1"),
    ("mean over tokens", weighted_by(lambda r: (r == 1).to(r.dtype), per_token), "B5.1 B5.3 B5.4 B7.1"),
)
REINFORCE_BITES = (
    ("baseline ignored", weighted_by(lambda r, b: r), "B3.7 B7.4 B8.10 B8.11 B8.13"),
    ("baseline added", weighted_by(lambda r, b: r + b), "B3.7 B7.4 B8.10 B8.11 B8.13"),
    ("no negative weights", weighted_by(lambda r, b: (r - b).clamp(min=0)), "B3.7 B6.4 B7.4 B8.9 B8.10 B8.16"),
    ("clipped weights", weighted_by(lambda r, b: (r - b).clamp(-0.5, 0.5)), "B2.12 B6.2 B7.3 B8.9 P2.3 P3.4"),
    ("successes only", weighted_by(lambda r, b: (r == 1).to(r.dtype)), "B2.12 B6.2 B6.4 B8.16 B11.1 P3.4"),
    (
        "batch mean taken off",
        weighted_by(lambda r, b: r - b - (r - b).mean()),
        "B3.6 B7.1 B7.2 B7.3 B8.16 B10.8 P2.1 P3.4",
    ),
    ("mean over tokens", weighted_by(lambda r, b: r - b, per_token), "B6.4 B7.1 B7.3 B8.13"),
    ("last token only", weighted_by(lambda r, b: r - b, last_token), "B6.2 B7.3 B8.9 B8.13"),
    ("reward squared", weighted_by(lambda r, b: (r - b).square()), "B2.12 B3.7 B7.4 B8.16 P3.4"),
    ("mask ignored", weighted_by(lambda r, b: r - b, unmasked), "B6.6"),
    ("mask multiplied", weighted_by(lambda r, b: r - b, multiplied), "B6.6-nonfinite"),
)
GRADIENT_BITES = (
    ("weights of a row averaged", weighted_by(lambda w: w.mean(dim=1).detach()), "B8.9 B8.12 B8.13 B8.17 B8.18 P5.6"),
    ("whitened weights", weighted_by(lambda w: (w - w.mean()) / (w.std() + 1e-6)), "B3.6 B6.2 B6.7 B11.1 B11.2 P5.6"),
    ("no negative weights", weighted_by(lambda w: w.clamp(min=0)), "B6.2 B6.7 B8.9 B8.18 B11.1 B11.2"),
    ("live weights", weighted_by(lambda w: w), "P5.2"),
    ("last token only", weighted_by(lambda w: w.detach(), last_token), "B4.2 B6.2 B8.13"),
    ("mean over tokens", weighted_by(lambda w: w.detach(), per_token), "B4.2 B8.12 B11.1"),
    ("mask ignored", weighted_by(lambda w: w.detach(), unmasked), "B6.6"),
    ("mask multiplied", weighted_by(lambda w: w.detach(), multiplied), "B6.6-nonfinite"),
)
GRPO_LOSS_BITES = (
    ("divided by length", weighted_by(Tensor.detach, per_length), "B9.5 B10.4 B10.7 B11.1 P5.5 P8.8"),
    ("mean over the padded array", weighted_by(Tensor.detach, per_entry), "B9.5 B10.4 P5.5"),
    ("no negative weights", weighted_by(lambda a: a.clamp(min=0)), "B9.5 B10.4 B10.7 B11.1 P5.5 P8.8"),
    ("live advantages", weighted_by(lambda a: a), "P5.2"),
    ("last token only", weighted_by(Tensor.detach, last_token), "B8.13 B9.5"),
    ("mask ignored", weighted_by(Tensor.detach, unmasked), "B6.6"),
    ("mask multiplied", weighted_by(Tensor.detach, multiplied), "B6.6-nonfinite"),
)
DR_GRPO_BITES = (
    ("divided by length", weighted_by(lambda a, k: a, per_length), "B10.4 B10.5 B10.7 B11.1 P5.5 P8.8"),
    ("constant ignored", weighted_by(lambda a, k: a), "B10.5 B10.7 B11.1 P5.5 P8.8"),
    ("mean over the padded array", weighted_by(lambda a, k: a, per_entry), "B10.4 B10.5 B10.7 B11.1"),
    ("live advantages", weighted_by(lambda a, k: a / k), "P5.2"),
)
AGGREGATE_BITES = (
    ("one mean over tokens", lambda x, mask, mode, constant=None: per_token(x, mask), "B10.4 B10.7 P5.5 P8.8"),
    ("constant ignored", lambda x, mask, mode, constant=None: per_batch(x, mask), "B10.4 P5.5"),
    ("mask ignored", lambda x, mask, mode, constant=None: x.mean(), "B6.6"),
    ("mask multiplied", lambda x, mask, mode, constant=None: (x * mask).sum() / mask.sum(), "B6.6-nonfinite"),
)
RATIO_BITES = (
    ("live old policy", LIVE_OLD, "P6.1 P6.2", "P6.3"),
    ("detached ratio", DETACHED, "P5.3 P5.7 P6.2 P6.4", "B9.10 P5.2 P5.4"),
    ("quotient of log-probs", QUOTIENT, "P5.3 P6.5 P8.6", "P5.4 P5.6"),
    ("inverted ratio", INVERTED, "P5.3 P5.6 P5.7 P8.6", "P6.3"),
    ("old log-probs recomputed", RECOMPUTED, "P5.3 P5.6 P6.5 P8.6", "P5.4"),
    ("clip without the minimum", CLIP_ALONE, "P5.3", "P5.4"),
    ("no clip", UNCLIPPED, "P5.3 P5.6", "P5.4"),
    ("maximum for minimum", OPTIMISTIC, "P5.3 P5.6", "P5.4"),
    ("dead on both sides", DEAD_OUTSIDE, "P5.3", "P5.4"),
    ("live advantages", LIVE_WEIGHTS, "", "P5.2"),
    ("whitened in the loss", WHITENED, "", "P5.7 P6.4"),
)
K1_BITES = (
    ("reversed", lambda x, ref: ref.detach() - x, "P7.1 P7.5"),
    ("absolute", lambda x, ref: (x - ref.detach()).abs(), "P7.1 P7.3 P7.4 P7.5"),
    ("k3", RIGHT["kl_k3"], "P7.1 P7.3 P7.4 P7.5"),
)
K2_BITES = (
    ("without ½", lambda x, ref: (x - ref.detach()).square(), "P7.4 P7.5"),
    ("k3", RIGHT["kl_k3"], "P7.4 P7.5"),
    ("no gradient", lambda x, ref: (x - ref).detach().square() / 2 + 0 * x, "P7.5"),
)
K3_BITES = (
    ("inverted ratio", lambda x, ref: torch.expm1(x - ref.detach()) - (x - ref.detach()), "P7.2 P7.3 P7.4 P7.5"),
    ("without −1", lambda x, ref: (ref.detach() - x).exp() - (ref.detach() - x), "P7.2 P7.4"),
    ("k2", RIGHT["kl_k2"], "P7.2 P7.3 P7.4 P7.5"),
    ("exp(d) − d − 1", k3_of_the_log_ratio, "P7.2-float32"),
    ("k2's gradient", VARIANTS["kl_k2"], "P7.5"),
)
BITES: list[tuple[str, str, Callable[..., Any], str]] = [
    (operation, name, wrong, text)
    for operation, rows in {
        "centered_advantages": CENTRED_BITES,
        "grpo_advantages": GRPO_BITES,
        "rloo_advantages": RLOO_BITES,
        "max_advantages": MAX_BITES,
        "keep_groups": KEEP_BITES,
        "sft_loss": SFT_BITES,
        "rest_loss": REST_BITES,
        "reinforce_loss": REINFORCE_BITES,
        "policy_gradient_loss": GRADIENT_BITES,
        "grpo_loss": GRPO_LOSS_BITES,
        "dr_grpo_loss": DR_GRPO_BITES,
        "aggregate": AGGREGATE_BITES,
        "clipped_loss": [(name, code["clipped_loss"], f"{both} {own}") for name, code, both, own in RATIO_BITES],
        "grpo_objective": [
            *((name, code["grpo_objective"], both) for name, code, both, _ in RATIO_BITES),
            ("0/0", objective_without_guard, "B10.6"),
        ],
        "kl_k1": K1_BITES,
        "kl_k2": K2_BITES,
        "kl_k3": K3_BITES,
    }.items()
    for name, wrong, text in rows
]
