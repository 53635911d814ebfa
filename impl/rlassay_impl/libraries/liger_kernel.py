"""Liger-Kernel's GRPO mathematics (tried with liger-kernel 0.8.5) under its default loss type, `dapo`: a token mean.

`LigerFusedLinearGRPOLoss` takes hidden states and the weights of a language model's head. Called here are its two
parts, as it calls them on a chunk: `chunk_forward`, hidden states to log-probs, with a hidden size of 1, and
`ppo_loss_fn`, log-probs to the loss. Its autograd function gives gradients to hidden states and weights alone, so
everything else goes in detached. A loss that takes log-probs as they are is of the type `cispo` with fresh samples,
whose weight is then 1. Not mapped: the kernels for GPUs; `delta`, which bounds the ratio of good tokens too.
"""

from typing import Any

import torch
from liger_kernel.chunked_loss import grpo_loss as grpo
from torch import Tensor

CONVENTION: dict[str, Any] = {"name": "liger_kernel", "aggregation": "token_mean"}

LIGER: Any = grpo.LigerFusedLinearGRPOFunction


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """`chunk_forward` of each position alone: its logits are the head's weights, the hidden state is 1."""
    rows, places, _ = logits[:, :-1].shape
    hidden = torch.ones(1, 1, 1, dtype=logits.dtype)
    log_probs = [
        LIGER.chunk_forward(hidden, logits[b, t, :, None], token_ids[b : b + 1, t + 1 : t + 2], temperature=temperature)
        for b in range(rows)
        for t in range(places)
    ]
    return torch.cat(log_probs).reshape(rows, places) if log_probs else logits[:, :-1, 0].float()


def grpo_loss(log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    """`cispo` with fresh samples; its `epsilon_high` bounds the weight itself."""
    return _loss(log_probs, mask, advantages, loss_type="cispo", epsilon_high=5.0)


def microbatch_loss(
    log_probs: Tensor, mask: Tensor, advantages: Tensor, total_sequences: int, total_tokens: int
) -> Tensor:
    """`cispo` with the whole batch's tokens as `num_items_in_batch`."""
    return _loss(log_probs, mask, advantages, loss_type="cispo", epsilon_high=5.0, num_items_in_batch=total_tokens)


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """Loss type `dapo`."""
    clip: dict[str, Any] = {"epsilon_low": clip_low, "epsilon_high": clip_high}
    return _loss(log_probs, mask, advantages, old_log_probs, loss_type="dapo", **clip)


def gspo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """Loss type `grpo` with `importance_sampling_level="sequence"`."""
    clip: dict[str, Any] = {"epsilon_low": clip_low, "epsilon_high": clip_high}
    level = {"loss_type": "grpo", "importance_sampling_level": "sequence"}
    return _loss(log_probs, mask, advantages, old_log_probs, **clip, **level)


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`k3_loss_fn`."""
    estimate: Tensor = grpo.k3_loss_fn(ref_log_probs.detach(), log_probs)
    return estimate


def _loss(
    log_probs: Tensor, mask: Tensor, advantages: Tensor, old_log_probs: Tensor | None = None, **options: Any
) -> Tensor:
    """`ppo_loss_fn` of a batch in one chunk, without KL."""
    old = None if old_log_probs is None else old_log_probs.detach()
    loss: Tensor = LIGER.ppo_loss_fn(
        log_probs, mask, advantages.detach(), mask, old_per_token_logps=old, beta=0.0, **options
    )[0]
    return loss
