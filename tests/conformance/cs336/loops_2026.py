"""The assignment in its form of 2026, row by row; advantages come as [B], and gspo is left out of the training step."""

import torch
from loops_2025 import get_response_log_probs, tokenize_prompt_and_output
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

__all__ = ["get_response_log_probs", "tokenize_prompt_and_output"]


def compute_rollout_rewards(reward_fn, rollout_responses, repeated_ground_truths):
    rewards = torch.empty(len(rollout_responses), 1)
    for place in range(len(rollout_responses)):
        rewards[place, 0] = reward_fn(rollout_responses[place], repeated_ground_truths[place])["reward"]
    return rewards, {}


def compute_group_normalized_rewards(
    raw_rewards: Tensor,
    group_size: int,
    baseline: str = "mean",
    advantage_eps: float = 1e-6,
    advantage_normalizer: str = "std",
):
    advantages = []
    for group in raw_rewards.double().split(group_size):
        centre = group.mean() if baseline == "mean" else 0.0
        divisor = {"std": group.std() + advantage_eps, "mean": group.mean() + advantage_eps, "none": 1.0}
        advantages.append((group - centre) / divisor[advantage_normalizer])
    return torch.cat(advantages).to(raw_rewards.dtype), {"groups": len(advantages)}


def compute_policy_gradient_loss(
    raw_rewards_or_advantages: Tensor,
    policy_log_probs: Tensor,
    importance_reweighting_method: str = "none",
    old_log_probs: Tensor | None = None,
    cliprange: float | None = None,
    response_mask: Tensor | None = None,
):
    losses = torch.zeros_like(policy_log_probs)
    for row, weight in enumerate(raw_rewards_or_advantages):
        new = policy_log_probs[row]
        if importance_reweighting_method == "none":
            losses[row] = -weight * new
            continue
        log_ratio = new - old_log_probs[row]
        if importance_reweighting_method == "gspo":
            keep = response_mask[row].bool()
            log_ratio = torch.where(keep, log_ratio[keep].mean(), 0.0)
        ratio = torch.exp(log_ratio)
        if importance_reweighting_method == "noclip":
            losses[row] = -weight * ratio
        else:
            losses[row] = torch.max(-weight * ratio, -weight * torch.clip(ratio, 1 - cliprange, 1 + cliprange))
    return losses, {}


def aggregate_loss_across_microbatch(
    per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None
):
    rows = [row[flags.bool()] for row, flags in zip(per_token_policy_gradient_loss, mask)]
    if loss_normalization == "sequence":
        return torch.stack([row.mean() for row in rows]).mean()
    return torch.cat(rows).sum() / normalization_constant


def grpo_train_step(
    model,
    tokenizer,
    optimizer,
    gradient_accumulation_steps,
    max_grad_norm,
    reward_fn,
    repeated_prompts,
    rollout_responses,
    repeated_ground_truths,
    group_size,
    baseline,
    advantage_eps,
    advantage_normalizer,
    importance_reweighting_method,
    old_log_probs,
    cliprange,
    loss_normalization,
    normalization_constant,
):
    if importance_reweighting_method == "gspo":
        raise NotImplementedError("gspo is not supported here")
    model.train()
    rewards, _ = compute_rollout_rewards(reward_fn, rollout_responses, repeated_ground_truths)
    advantages, _ = compute_group_normalized_rewards(
        rewards.squeeze(-1), group_size, baseline, advantage_eps, advantage_normalizer
    )
    count = len(repeated_prompts)
    size = count // gradient_accumulation_steps
    weights = {"sequence": 1 / gradient_accumulation_steps, "constant": 1.0}
    losses = []
    for first in range(0, count, size):
        part = slice(first, first + size)
        batch = tokenize_prompt_and_output(repeated_prompts[part], rollout_responses[part], tokenizer)
        labels = batch["labels"].clamp(min=0)
        new = get_response_log_probs(model, batch["input_ids"].to(model.device), labels, True)["log_probs"]
        old = None if old_log_probs is None else old_log_probs[part, : new.shape[1]]
        mask = batch["response_mask"]
        per_token, _ = compute_policy_gradient_loss(
            advantages[part], new, importance_reweighting_method, old, cliprange, mask
        )
        loss = aggregate_loss_across_microbatch(per_token, mask, loss_normalization, normalization_constant)
        (loss * weights[loss_normalization]).backward()
        losses.append(loss.item() * weights[loss_normalization])
    clip_grad_norm_(list(model.parameters()), max_grad_norm)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return torch.tensor(sum(losses)), {"losses": losses}
