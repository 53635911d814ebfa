"""The assignment in its form of 2025, written with loops over rows and a tokenizer's `encode`."""

from math import inf, nan

import torch
import torch.nn.functional as F
from torch import Tensor


def tokenize_prompt_and_output(prompt_strs: list[str], output_strs: list[str], tokenizer) -> dict[str, Tensor]:
    inputs, labels, masks = [], [], []
    for prompt, output in zip(prompt_strs, output_strs):
        prompt_ids, output_ids = tokenizer.encode(prompt), tokenizer.encode(output)
        ids = prompt_ids + output_ids
        inputs.append(torch.tensor(ids[:-1]))
        labels.append(torch.tensor(ids[1:]))
        masks.append(torch.tensor([0] * (len(prompt_ids) - 1) + [1] * len(output_ids)))
    pad = torch.nn.utils.rnn.pad_sequence
    return {
        "input_ids": pad(inputs, batch_first=True, padding_value=tokenizer.eos_token_id),
        "labels": pad(labels, batch_first=True, padding_value=-100),
        "response_mask": pad(masks, batch_first=True, padding_value=0),
        "lengths": torch.tensor([len(row) for row in inputs]),
    }


def compute_group_normalized_rewards(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
    raw = []
    for response, truth in zip(rollout_responses, repeated_ground_truths, strict=True):
        raw.append(float(reward_fn(response, truth)["reward"]))
    advantages = []
    for start in range(0, len(raw), group_size):
        group = raw[start : start + group_size]
        mean = sum(group) / group_size
        scale = 1.0
        if normalize_by_std:
            variance = sum((reward - mean) ** 2 for reward in group) / (group_size - 1) if group_size > 1 else nan
            scale = variance**0.5 + advantage_eps
        advantages += [(reward - mean) / scale for reward in group]
    return torch.tensor(advantages)[:, None], torch.tensor(raw, dtype=torch.float64), {}


def compute_entropy(logits: Tensor) -> Tensor:
    rows = [torch.distributions.Categorical(logits=row).entropy() for row in logits]
    return torch.stack(rows)


def get_response_log_probs(model, input_ids: Tensor, labels: Tensor, return_token_entropy: bool) -> dict[str, Tensor]:
    outputs = model(input_ids=input_ids)
    vocabulary = outputs.logits.shape[-1]
    losses = F.cross_entropy(outputs.logits.reshape(-1, vocabulary), labels.reshape(-1), reduction="none")
    with torch.no_grad():
        entropy = compute_entropy(outputs.logits)
    return {"token_entropy": entropy, "log_probs": -losses.reshape(labels.shape)}


def compute_naive_policy_gradient_loss(raw_rewards_or_advantages: Tensor, policy_log_probs: Tensor) -> Tensor:
    rows = [-weight * row for weight, row in zip(raw_rewards_or_advantages.squeeze(-1), policy_log_probs)]
    return torch.stack(rows)


def compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange):
    rows = []
    for advantage, new, old in zip(advantages.detach(), policy_log_probs, old_log_probs.detach()):
        ratio = new.exp() / old.exp()
        low, high = (-inf, 1 + cliprange) if advantage > 0 else (1 - cliprange, inf)
        rows.append(-advantage * ratio.clamp(low, high))
    return torch.stack(rows), {}


def compute_policy_gradient_loss(
    policy_log_probs, loss_type, raw_rewards=None, advantages=None, old_log_probs=None, cliprange=None
):
    match loss_type:
        case "no_baseline":
            return compute_naive_policy_gradient_loss(raw_rewards, policy_log_probs), {"type": loss_type}
        case "reinforce_with_baseline":
            return compute_naive_policy_gradient_loss(advantages, policy_log_probs), {"type": loss_type}
        case "grpo_clip":
            return compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange)
    raise ValueError(loss_type)


def masked_mean(tensor: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return masked_mean(tensor.reshape(1, -1), mask.reshape(1, -1), dim=1)[0]
    means = []
    for row, flags in zip(tensor.unbind(1 - dim % 2), mask.bool().unbind(1 - dim % 2)):
        means.append(row[flags].mean() if flags.any() else row.sum() * 0)
    return torch.stack(means)


def masked_normalize(tensor, mask, dim=None, normalize_constant=1.0):
    kept = torch.zeros_like(tensor)
    kept[mask.bool()] = tensor[mask.bool()]
    return torch.sum(kept, dim) / normalize_constant


def sft_microbatch_train_step(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    loss = torch.zeros((), dtype=policy_log_probs.dtype)
    for row, flags in zip(policy_log_probs, response_mask.bool()):
        loss = loss - row[flags].sum() / normalize_constant
    loss = loss / len(policy_log_probs) / gradient_accumulation_steps
    loss.backward()
    return loss, {"rows": len(policy_log_probs)}


def grpo_microbatch_train_step(
    policy_log_probs,
    response_mask,
    gradient_accumulation_steps,
    loss_type,
    raw_rewards=None,
    advantages=None,
    old_log_probs=None,
    cliprange=None,
):
    per_token, metadata = compute_policy_gradient_loss(
        policy_log_probs=policy_log_probs,
        loss_type=loss_type,
        raw_rewards=raw_rewards,
        advantages=advantages,
        old_log_probs=old_log_probs,
        cliprange=cliprange,
    )
    loss = sum(row[flags].mean() for row, flags in zip(per_token, response_mask.bool()))
    loss = loss / (len(per_token) * gradient_accumulation_steps)
    loss.backward()
    return loss, metadata
