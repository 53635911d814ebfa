"""Group-relative policy optimisation."""

import torch

from .sft import compute_entropy

__all__ = ["compute_entropy", "compute_naive_policy_gradient_loss", "masked_mean"]


def compute_naive_policy_gradient_loss(raw_rewards_or_advantages, policy_log_probs):
    return torch.einsum("bi,bt->bt", -raw_rewards_or_advantages, policy_log_probs)


def masked_mean(tensor, mask, dim=None):
    weights = mask.to(tensor.dtype)
    return torch.sum(tensor * weights, dim=dim) / torch.sum(weights, dim=dim).clamp_min(1e-6)
