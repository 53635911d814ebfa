"""The assignment's file of adapters, calling a solution elsewhere; what is not finished still raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import answers
import torch
from torch import Tensor


def run_tokenize_prompt_and_output(prompt_strs: list[str], output_strs: list[str], tokenizer: Any) -> dict[str, Tensor]:
    return answers.layout(prompt_strs, output_strs, tokenizer)


def run_compute_group_normalized_rewards(
    reward_fn: Callable,
    rollout_responses: list[str],
    repeated_ground_truths: list[str],
    group_size: int,
    advantage_eps: float,
    normalize_by_std: bool,
) -> tuple[Tensor, Tensor, dict[str, float]]:
    raise NotImplementedError


def run_compute_entropy(logits: Tensor) -> Tensor:
    """Not finished yet."""
    raise NotImplementedError("compute_entropy")


def run_compute_grpo_clip_loss(
    advantages: Tensor, policy_log_probs: Tensor, old_log_probs: Tensor, cliprange: float
) -> tuple[Tensor, dict[str, Tensor]]:
    return answers.clipped(advantages, policy_log_probs, old_log_probs, cliprange), {}


def run_compute_policy_gradient_loss(
    policy_log_probs: Tensor,
    loss_type: Literal["no_baseline", "reinforce_with_baseline", "grpo_clip"],
    raw_rewards: Tensor,
    advantages: Tensor,
    old_log_probs: Tensor,
    cliprange: float,
) -> tuple[Tensor, dict[str, Tensor]]:
    return answers.loss_of(loss_type)(policy_log_probs, raw_rewards, advantages, old_log_probs, cliprange), {}


def run_masked_mean(tensor: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    return answers.mean(tensor, mask, dim)


def run_masked_normalize(
    tensor: Tensor, mask: Tensor, dim: int | None = None, normalize_constant: float = 1.0
) -> torch.Tensor:
    return answers.total(tensor, mask, dim) / normalize_constant
