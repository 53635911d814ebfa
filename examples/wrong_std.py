"""A student's solution as it might be handed in: it runs, it trains, and two of its five functions are wrong."""

import torch
from torch import Tensor


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    log_probs = torch.log_softmax(logits[:, :-1] / temperature, dim=-1)
    return log_probs.gather(-1, token_ids[:, 1:, None]).squeeze(-1)


def grpo_advantages(rewards: Tensor) -> Tensor:
    mean = rewards.mean(dim=1, keepdim=True)
    std = rewards.std(dim=1, keepdim=True)
    advantages = (rewards - mean) / std
    # groups without contrast have std 0 (and a single rollout has none at all)
    same = rewards.amax(dim=1, keepdim=True) == rewards.amin(dim=1, keepdim=True)
    return torch.where(same, torch.zeros_like(rewards), advantages)


def rloo_advantages(rewards: Tensor) -> Tensor:
    n = rewards.shape[1]
    same = rewards.amax(dim=1, keepdim=True) == rewards.amin(dim=1, keepdim=True)
    others = (rewards.sum(dim=1, keepdim=True) - rewards) / max(n - 1, 1)
    return torch.where(same, torch.zeros_like(rewards), rewards - others)


def grpo_loss(log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    weights = advantages.detach()[:, None]
    return -torch.where(mask.bool(), weights * log_probs, torch.zeros_like(log_probs)).sum(dim=1).mean()


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    # we update once per batch of rollouts, so the old policy is the current one
    ratio = torch.exp(log_probs - log_probs)
    weights = advantages.detach()[:, None]
    surrogate = torch.minimum(ratio * weights, ratio.clamp(1 - clip_low, 1 + clip_high) * weights)
    return -torch.where(mask.bool(), surrogate, torch.zeros_like(surrogate)).sum(dim=1).mean()
