"""The assignment in its form of 2025, by masked sums over whole tensors."""

import torch


def tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer):
    prompts = tokenizer(prompt_strs, add_special_tokens=False)["input_ids"]
    outputs = tokenizer(output_strs, add_special_tokens=False)["input_ids"]
    width = max(len(prompt) + len(output) for prompt, output in zip(prompts, outputs))
    ids = torch.full((len(prompts), width), tokenizer.pad_token_id)
    mask = torch.zeros(len(prompts), width, dtype=torch.bool)
    for row, (prompt, output) in enumerate(zip(prompts, outputs)):
        ids[row, : len(prompt) + len(output)] = torch.tensor(prompt + output)
        mask[row, len(prompt) : len(prompt) + len(output)] = True
    return {"input_ids": ids[:, :-1], "labels": ids[:, 1:], "response_mask": mask[:, 1:]}


def compute_group_normalized_rewards(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
    scores = [reward_fn(response, truth) for response, truth in zip(rollout_responses, repeated_ground_truths)]
    raw_rewards = torch.tensor([score["reward"] for score in scores])
    groups = raw_rewards.reshape(-1, group_size)
    advantages = groups - groups.mean(dim=1, keepdim=True)
    if normalize_by_std:
        advantages = advantages / (groups.std(dim=1, keepdim=True) + advantage_eps)
    return advantages.reshape(-1), raw_rewards, {"mean": raw_rewards.mean(), "max": raw_rewards.max()}


def compute_entropy(logits):
    log_p = torch.log_softmax(logits, dim=-1)
    return -(log_p.exp() * log_p).sum(dim=-1)


def get_response_log_probs(model, input_ids, labels, return_token_entropy=False):
    logits = model(input_ids).logits
    log_p = torch.log_softmax(logits, dim=-1)
    result = {"log_probs": log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)}
    if return_token_entropy:
        result["token_entropy"] = compute_entropy(logits)
    return result


def compute_naive_policy_gradient_loss(raw_rewards_or_advantages, policy_log_probs):
    return -raw_rewards_or_advantages * policy_log_probs


def compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange):
    ratio = torch.exp(policy_log_probs - old_log_probs)
    clipped = torch.clamp(ratio, 1 - cliprange, 1 + cliprange)
    return -torch.minimum(ratio * advantages, clipped * advantages), {"clipped": ratio != clipped}


def compute_policy_gradient_loss(policy_log_probs, loss_type, raw_rewards, advantages, old_log_probs, cliprange):
    if loss_type == "no_baseline":
        return compute_naive_policy_gradient_loss(raw_rewards, policy_log_probs), {}
    if loss_type == "reinforce_with_baseline":
        return compute_naive_policy_gradient_loss(advantages, policy_log_probs), {}
    assert loss_type == "grpo_clip"
    return compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange)


def masked_mean(tensor, mask, dim=None):
    if dim is None:
        return (tensor * mask).sum() / mask.sum()
    return (tensor * mask).sum(dim=dim) / mask.sum(dim=dim)


def masked_normalize(tensor, mask, normalize_constant=1.0, dim=None):
    masked = tensor * mask
    return (masked.sum() if dim is None else masked.sum(dim=dim)) / normalize_constant


def sft_microbatch_train_step(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    per_row = masked_normalize(-policy_log_probs, response_mask, normalize_constant, dim=-1)
    loss = per_row.mean() / gradient_accumulation_steps
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
    loss = masked_mean(per_token, response_mask, dim=1).mean() / gradient_accumulation_steps
    loss.backward()
    return loss.detach(), metadata
