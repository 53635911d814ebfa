"""The losses as they should be, each with parts that a fault can exchange."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import average, constant, hide, same, share, working
from rlassay.faults.parts.advantage import normalised
from rlassay.faults.parts.kl import k3
from rlassay_spec.convention import Convention


def column(per_sequence: Tensor, shown: Tensor) -> Tensor:
    """One constant number per sequence, for each of its tokens."""
    return constant(per_sequence)[:, None].expand(shown.shape)


def as_given(per_token: Tensor, shown: Tensor) -> Tensor:
    """One constant number per token."""
    return constant(per_token)


def aggregate(
    values: Tensor,
    mask: Tensor,
    mode: str,
    constant: float | None = None,
    *,
    convention: Convention,
    visible: Function = same,
    cover: Function = hide,
    mean: Function = average,
    finish: Function = same,
) -> Tensor:
    """Right, unless a part is exchanged."""
    shown = visible(mask != 0)
    asked = replace(convention, aggregation=mode, aggregation_constant=constant)
    return torch.as_tensor(finish(mean(cover(values, shown), shown, asked))).to(values.dtype)


def weighted(
    log_probs: Tensor,
    mask: Tensor,
    weights: Tensor,
    convention: Convention,
    *,
    visible: Function = same,
    cover: Function = hide,
    score: Function = same,
    weigh: Function = column,
    mean: Function = average,
    finish: Function = torch.neg,
) -> Tensor:
    """aggregate(−w · log π): the form that the losses share, right unless a part is exchanged.

    `weigh` makes [B, T] of the weights.
    """
    shown = visible(mask != 0)
    terms = cover(weigh(weights, shown), shown) * cover(score(log_probs), shown)
    return torch.as_tensor(finish(mean(terms, shown, convention))).to(log_probs.dtype)


def sft_loss(log_probs: Tensor, mask: Tensor, *, convention: Convention, **parts: Any) -> Tensor:
    """Weight 1."""
    return weighted(log_probs, mask, torch.ones(len(log_probs)), convention, **parts)


def rest_loss(
    log_probs: Tensor,
    mask: Tensor,
    rewards: Tensor,
    *,
    convention: Convention,
    success: Function = lambda rewards: working(rewards == 1),
    **parts: Any,
) -> Tensor:
    """Weight 1 where the reward is exactly 1."""
    return weighted(log_probs, mask, success(rewards), convention, **parts)


def reinforce_loss(
    log_probs: Tensor,
    mask: Tensor,
    rewards: Tensor,
    baselines: Tensor,
    *,
    convention: Convention,
    surplus: Function = lambda rewards, baselines: constant(rewards) - constant(baselines),
    **parts: Any,
) -> Tensor:
    """Weight R − b."""
    return weighted(log_probs, mask, surplus(rewards, baselines), convention, **parts)


def policy_gradient_loss(
    log_probs: Tensor, mask: Tensor, weights: Tensor, *, convention: Convention, **parts: Any
) -> Tensor:
    """A weight per token."""
    return weighted(log_probs, mask, weights, convention, **{"weigh": as_given, **parts})


def grpo_loss(log_probs: Tensor, mask: Tensor, advantages: Tensor, *, convention: Convention, **parts: Any) -> Tensor:
    """Weight Â."""
    return weighted(log_probs, mask, advantages, convention, **parts)


def dr_grpo_loss(
    log_probs: Tensor, mask: Tensor, advantages: Tensor, constant: float, *, convention: Convention, **parts: Any
) -> Tensor:
    """Weight Â, sums over a constant."""
    asked = replace(convention, aggregation="constant", aggregation_constant=constant)
    return weighted(log_probs, mask, advantages, asked, **parts)


def microbatch_loss(
    log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    total_sequences: int,
    total_tokens: int,
    *,
    convention: Convention,
    divide: Function = lambda sequences, tokens, shown: (sequences, tokens),
    **parts: Any,
) -> Tensor:
    """Weight Â, with the denominators of the full batch."""

    def mean(terms: Tensor, shown: Tensor, convention: Convention) -> Tensor:
        return share(terms, shown, convention, *divide(total_sequences, total_tokens, shown))

    return weighted(log_probs, mask, advantages, convention, **{"mean": mean, **parts})


def log_ratio(new: Tensor, old: Tensor, convention: Convention) -> Tensor:
    """log π − log π_old with π_old constant, bounded where the convention says so."""
    difference = new - old.detach()
    bound = convention.log_ratio_clamp
    return difference if bound is None else difference.clamp(-bound, bound)


def ratio(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """π / π_old."""
    return log_ratio(new, old, convention).exp()


def bounded(rho: Tensor, low: float, high: float) -> Tensor:
    """The ratio inside the clip bounds."""
    return rho.clamp(1 - low, 1 + high)


def pessimistic(rho: Tensor, a: Tensor, low: float, high: float, shown: Tensor) -> Tensor:
    """The smaller of both surrogates."""
    return torch.minimum(rho * a, bounded(rho, low, high) * a)


def surrogate(
    log_probs: Tensor,
    old_log_probs: Tensor,
    shown: Tensor,
    advantages: Tensor,
    low: float,
    high: float,
    convention: Convention,
    *,
    cover: Function = hide,
    weigh: Function = column,
    rho: Function = ratio,
    choose: Function = pessimistic,
) -> tuple[Tensor, Tensor]:
    """The surrogate per token, right unless a part is exchanged."""
    a = cover(weigh(advantages, shown), shown)
    ratios = rho(cover(log_probs, shown), cover(old_log_probs, shown), shown, convention)
    return choose(ratios, a, low, high, shown), ratios


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    *,
    convention: Convention,
    visible: Function = same,
    mean: Function = average,
    finish: Function = torch.neg,
    **parts: Any,
) -> Tensor:
    """Right, unless a part is exchanged."""
    shown = visible(mask != 0)
    terms, _ = surrogate(log_probs, old_log_probs, shown, advantages, clip_low, clip_high, convention, **parts)
    return torch.as_tensor(finish(mean(terms, shown, convention))).to(log_probs.dtype)


def grpo_objective(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    rewards: Tensor,
    beta: float,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    *,
    convention: Convention,
    visible: Function = same,
    mean: Function = average,
    finish: Function = torch.neg,
    standing: Function = lambda rewards, convention: normalised(rewards, convention=convention).reshape(-1),
    kl: Function = k3,
    frozen: Function = torch.detach,
    kl_mean: Function = lambda divergence, shown, ratios, convention: average(divergence, shown, convention),
    penalty: Function = torch.mul,
    cover: Function = hide,
    **parts: Any,
) -> Tensor:
    """Right, unless a part is exchanged. `kl` sees unmasked places only, unless `kl_mean` looks at all of them."""
    shown = visible(mask != 0)
    advantages = standing(working(rewards), convention)
    terms, ratios = surrogate(
        log_probs, old_log_probs, shown, advantages, clip_low, clip_high, convention, cover=cover, **parts
    )
    divergence = kl(cover(log_probs, shown), cover(frozen(ref_log_probs), shown), convention)
    loss = finish(mean(terms, shown, convention)) + penalty(kl_mean(divergence, shown, ratios, convention), beta)
    return torch.as_tensor(loss).to(log_probs.dtype)


def squared(error: Tensor) -> Tensor:
    """Half the square."""
    return 0.5 * error.square()


def larger(v: Tensor, old: Tensor, target: Tensor, clip: float | None, error: Function) -> Tensor:
    """The error, with clip the larger of the unclipped and the clipped one."""
    if clip is None:
        return torch.as_tensor(error(v - target))
    near = old + (v - old).clamp(-clip, clip)
    return torch.maximum(error(v - target), error(near - target))


def value_loss(
    values: Tensor,
    old_values: Tensor,
    returns: Tensor,
    mask: Tensor,
    clip: float | None = None,
    *,
    convention: Convention,
    visible: Function = same,
    cover: Function = hide,
    frozen: Function = torch.detach,
    target: Function = torch.detach,
    error: Function = squared,
    choose: Function = larger,
    mean: Function = average,
    finish: Function = same,
) -> Tensor:
    """Right, unless a part is exchanged."""
    shown = visible(mask != 0)
    v, old, r = cover(values, shown), cover(frozen(old_values), shown), cover(target(returns), shown)
    terms = cover(choose(v, old, r, clip, error), shown)
    return torch.as_tensor(finish(mean(terms, shown, convention))).to(values.dtype)
