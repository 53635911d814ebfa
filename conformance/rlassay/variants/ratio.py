"""Right ways to write the clipped surrogate, the GRPO objective and the value loss."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rlassay.variants import EMPTY, MULTIPLIED, Variants

VARIANTS = Variants()


def _mean(terms: Tensor, mask: Tensor) -> Tensor:
    return terms.masked_fill(mask == 0, 0).sum(1).mean()


@VARIANTS.variant("clipped_loss", "the larger of the negated surrogates", seen="CV-15", lapses=(MULTIPLIED,))
def max_of_negated(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    a = advantages.detach()[:, None]
    ratio = (log_probs - old_log_probs.detach()).exp()
    return _mean(torch.maximum(-ratio * a, -ratio.clamp(1 - clip_low, 1 + clip_high) * a), mask)


@VARIANTS.variant("clipped_loss", "one bound by the advantage's sign", seen="CV-17", lapses=(MULTIPLIED,))
def piecewise(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    a = advantages.detach()[:, None]
    ratio = torch.exp(log_probs - old_log_probs.detach())
    bounded = torch.where(a >= 0, ratio.clamp(max=1 + clip_high), ratio.clamp(min=1 - clip_low))
    return _mean(-bounded * a, mask)


@VARIANTS.variant("clipped_loss", "a quotient of probabilities", seen="CV-63", lapses=(MULTIPLIED,))
def quotient(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    p, p_old = log_probs.float().exp(), old_log_probs.detach().float().exp()
    ratio = (p / p_old).to(log_probs.dtype)
    a = advantages.detach().reshape(-1, 1)
    return -_mean(torch.min(ratio * a, torch.clip(ratio, 1 - clip_low, 1 + clip_high) * a), mask)


@VARIANTS.variant("clipped_loss", "negative log-probs and relu", seen="CV-11", lapses=(MULTIPLIED,))
def negative_log_probs(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    new, old = -log_probs, -old_log_probs.detach()
    ratio, a = torch.exp(old - new), advantages.detach()[:, None]
    excess = torch.where(a > 0, F.relu(ratio - (1 + clip_high)), -F.relu((1 - clip_low) - ratio))
    return -_mean((ratio - excess) * a, mask)


class _Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_ratio: Tensor, a: Tensor, low: float, high: float) -> Tensor:
        ratio = log_ratio.exp()
        bounded = ratio.clamp(1 - low, 1 + high)
        alive = ~(((a > 0) & (ratio > 1 + high)) | ((a < 0) & (ratio < 1 - low)))
        ctx.save_for_backward(ratio * a * alive)
        return torch.minimum(ratio * a, bounded * a)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return grads[0] * gradient, None, None, None


@VARIANTS.variant(
    "clipped_loss", "an autograd function with the gradient of the lecture", seen="CV-16", lapses=(MULTIPLIED,)
)
def own_backward(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    a = advantages.detach()[:, None].expand_as(log_probs)
    surrogate = _Clipped.apply(log_probs - old_log_probs.detach(), a, clip_low, clip_high)
    return -_mean(surrogate, mask)


@VARIANTS.variant("clipped_loss", "log-ratios held to ±20", seen="CV-14")
def clamp_of_no_effect(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    log_ratio = (log_probs - old_log_probs.detach()).clamp(-20.0, 20.0)
    a, ratio = advantages.detach().unsqueeze(1), log_ratio.exp()
    return -_mean(torch.stack([ratio * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a]).amin(dim=0), mask)


@VARIANTS.variant("clipped_loss", "log-ratios held to ±2", seen="CV-14", log_ratio_clamp=2.0)
def clamped(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    ratio = torch.exp(torch.clamp(log_probs - old_log_probs.detach(), -2.0, 2.0))
    a = advantages.detach().unsqueeze(1)
    return -_mean(torch.min(ratio * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a), mask)


@VARIANTS.variant(
    "clipped_loss",
    "the caller detaches",
    seen="CV-10",
    old_log_probs="caller",
    aggregation="token_mean",
    lapses=(EMPTY, MULTIPLIED),
)
def caller_detaches(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    ratio, a = torch.exp(log_probs - old_log_probs), advantages.detach()[:, None]
    terms = -torch.min(ratio * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a)
    return terms[mask.bool()].mean()


def _normalised(rewards: Tensor) -> Tensor:
    sigma = rewards.std(1, keepdim=True, correction=0)
    return torch.where(sigma > 0, (rewards - rewards.mean(1, keepdim=True)) / sigma, 0.0).flatten()


@VARIANTS.variant(
    "grpo_objective", "exp(d) − d − 1 for k3, all terms before the mean", seen="CV-55", lapses=(MULTIPLIED,)
)
def in_one_sum(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    rewards: Tensor,
    beta: float,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    a = _normalised(rewards.detach().float())[:, None]
    ratio = torch.exp(log_probs - old_log_probs.detach())
    surrogate = torch.min(ratio * a, torch.clamp(ratio, 1 - clip_low, 1 + clip_high) * a)
    d = ref_log_probs.detach() - log_probs
    return _mean(-(surrogate - beta * (d.exp() - d - 1)), mask).to(log_probs.dtype)


@VARIANTS.variant(
    "grpo_objective",
    "sample standard deviation, token mean, k3 held to 10",
    seen="CV-23",
    std_ddof=1,
    std_eps=1e-4,
    aggregation="token_mean",
    k3_clamp=10.0,
    lapses=(EMPTY, MULTIPLIED),
)
def as_in_libraries(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    rewards: Tensor,
    beta: float,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    size = rewards.shape[1]
    flat = rewards.detach().float().reshape(-1)
    mean = flat.view(-1, size).mean(dim=1).repeat_interleave(size, dim=0)
    spread = flat.view(-1, size).std(dim=1).repeat_interleave(size, dim=0) if size > 1 else torch.zeros_like(flat)
    a = ((flat - mean) / (spread + 1e-4)).unsqueeze(1)
    ratio = torch.exp(log_probs - old_log_probs.detach())
    losses = torch.max(-a * ratio, -a * torch.clamp(ratio, 1 - clip_low, 1 + clip_high))
    d = ref_log_probs.detach() - log_probs
    kl = torch.clamp(torch.exp(d) - d - 1, min=-10, max=10)
    m = mask.to(losses.dtype)
    return (((losses + beta * kl) * m).sum() / m.sum()).to(log_probs.dtype)


@VARIANTS.variant("value_loss", "torch.max of both squares", seen="CV-48", lapses=(MULTIPLIED,))
def max_of_squares(
    values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float | None = None
) -> Tensor:
    r, old = returns.detach(), old_values.detach()
    losses = (values - r) ** 2
    if clip is not None:
        clipped = torch.clamp(values, old - clip, old + clip)
        losses = torch.max(losses, (clipped - r) ** 2)
    return 0.5 * _mean(losses, mask)


@VARIANTS.variant("value_loss", "mse_loss without reduction", lapses=(MULTIPLIED,))
def mse_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float | None = None) -> Tensor:
    r, old = returns.detach(), old_values.detach()
    losses = F.mse_loss(values, r, reduction="none")
    if clip is not None:
        near = old + (values - old).clamp(-clip, clip)
        other = F.mse_loss(near, r, reduction="none")
        losses = torch.where(losses >= other, losses, other)
    return (0.5 * losses * mask).sum(1).mean().to(values.dtype)
