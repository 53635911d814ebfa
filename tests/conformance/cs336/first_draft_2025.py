"""The assignment in its form of 2025 as a first draft may look: most functions have one of the usual mistakes."""

import torch
from torch.nn.functional import log_softmax, softmax


def tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer):
    """Padding is part of the mask."""
    rows, starts = [], []
    for prompt, output in zip(prompt_strs, output_strs):
        prompt_ids = tokenizer.encode(prompt)
        rows.append(prompt_ids + tokenizer.encode(output))
        starts.append(len(prompt_ids))
    width = max(len(row) for row in rows)
    ids = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows])
    response = torch.arange(width)[None, :] >= torch.tensor(starts)[:, None]
    return {"input_ids": ids[:, :-1], "labels": ids[:, 1:], "response_mask": response[:, 1:]}


def compute_group_normalized_rewards(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
    """The standard deviation is that of the population."""
    raw = torch.tensor([reward_fn(r, t)["reward"] for r, t in zip(rollout_responses, repeated_ground_truths)])
    groups = raw.view(-1, group_size)
    advantages = groups - groups.mean(-1, keepdim=True)
    if normalize_by_std:
        advantages /= groups.std(-1, keepdim=True, correction=0) + advantage_eps
    return advantages.view(-1), raw, {}


def compute_entropy(logits):
    """log softmax(x) is −inf for large differences."""
    p = softmax(logits, dim=-1)
    return -(p * torch.log(p)).sum(-1)


def get_response_log_probs(model, input_ids, labels, return_token_entropy):
    """The input is scored."""
    logits = model(input_ids).logits
    result = {"log_probs": log_softmax(logits, -1).gather(-1, input_ids.unsqueeze(-1)).squeeze(-1)}
    return {**result, "token_entropy": compute_entropy(logits)} if return_token_entropy else result


def compute_naive_policy_gradient_loss(raw_rewards_or_advantages, policy_log_probs):
    return -raw_rewards_or_advantages * policy_log_probs


def compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange):
    """The minus sign was pulled through the minimum."""
    ratio = torch.exp(policy_log_probs - old_log_probs)
    clipped = ratio.clamp(1 - cliprange, 1 + cliprange)
    return torch.min(-ratio * advantages, -clipped * advantages), {}


def compute_policy_gradient_loss(policy_log_probs, loss_type, raw_rewards, advantages, old_log_probs, cliprange):
    raise NotImplementedError


def masked_mean(tensor, mask, dim=None):
    """The mean of zeros is taken too."""
    return (tensor * mask).mean() if dim is None else (tensor * mask).mean(dim)


def masked_normalize(tensor, mask, normalize_constant=1.0, dim=None):
    return (tensor * mask).sum(dim) / normalize_constant


def sft_microbatch_train_step(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    """The number of accumulation steps is forgotten."""
    loss = masked_normalize(-policy_log_probs, response_mask, normalize_constant, -1).mean()
    loss.backward()
    return loss, {}


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
        policy_log_probs, loss_type, raw_rewards, advantages, old_log_probs, cliprange
    )
    loss = masked_mean(per_token, response_mask, -1).mean() / gradient_accumulation_steps
    loss.backward()
    return loss, metadata
