"""The assignment in its form of 2025, with `torch.where`, casts to float32 and guards against empty means."""

import torch


def tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer):
    batch = tokenizer.pad(
        {
            "input_ids": [
                tokenizer(prompt).input_ids + tokenizer(output).input_ids
                for prompt, output in zip(prompt_strs, output_strs)
            ]
        },
        return_tensors="pt",
    )
    prompt_lengths = torch.tensor([len(tokenizer.tokenize(prompt)) for prompt in prompt_strs]).unsqueeze(1)
    lengths = batch["attention_mask"].sum(dim=1, keepdim=True)
    places = torch.arange(batch["input_ids"].shape[1]).unsqueeze(0)
    response = torch.where((places >= prompt_lengths) & (places < lengths), 1.0, 0.0)
    return {
        "input_ids": batch["input_ids"][:, :-1].contiguous(),
        "labels": batch["input_ids"][:, 1:].contiguous(),
        "response_mask": response[:, 1:].contiguous(),
    }


def compute_group_normalized_rewards(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
    rewards = torch.zeros(len(rollout_responses), dtype=torch.float32)
    for place, pair in enumerate(zip(rollout_responses, repeated_ground_truths)):
        rewards[place] = reward_fn(*pair)["reward"]
    groups = rewards.view(-1, group_size)
    deviation, mean = torch.std_mean(groups, dim=-1, keepdim=True)
    scale = deviation + advantage_eps if normalize_by_std else torch.ones_like(deviation)
    return ((groups - mean) / scale).flatten(), rewards, {"std": deviation}


def compute_entropy(logits):
    logits = logits.float()
    return torch.logsumexp(logits, dim=-1) - (torch.softmax(logits, dim=-1) * logits).sum(dim=-1)


def get_response_log_probs(model, input_ids, labels, return_token_entropy):
    model.eval()
    logits = model(input_ids, attention_mask=torch.ones_like(input_ids))["logits"].float()
    chosen = torch.gather(logits, 2, labels[:, :, None])[:, :, 0]
    result = {"log_probs": chosen - torch.logsumexp(logits, dim=-1)}
    if return_token_entropy:
        result["token_entropy"] = compute_entropy(logits).detach()
    return result


def compute_naive_policy_gradient_loss(raw_rewards_or_advantages, policy_log_probs):
    return torch.mul(raw_rewards_or_advantages.expand_as(policy_log_probs).float(), policy_log_probs.float()).neg()


def compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange):
    ratio = (policy_log_probs.float() - old_log_probs.float()).exp()
    too_far = torch.where(advantages > 0, ratio > 1 + cliprange, ratio < 1 - cliprange)
    bound = torch.where(advantages > 0, 1 + cliprange, 1 - cliprange)
    loss = -torch.where(too_far, bound, ratio) * advantages
    return loss, {"clip_fraction": too_far.float().mean()}


def compute_policy_gradient_loss(policy_log_probs, loss_type, raw_rewards, advantages, old_log_probs, cliprange):
    losses = {
        "no_baseline": lambda: (compute_naive_policy_gradient_loss(raw_rewards, policy_log_probs), {}),
        "reinforce_with_baseline": lambda: (compute_naive_policy_gradient_loss(advantages, policy_log_probs), {}),
        "grpo_clip": lambda: compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange),
    }
    return losses[loss_type]()


def masked_mean(tensor, mask, dim=None):
    kept = torch.where(mask, tensor, 0.0)
    if dim is None:
        return kept.sum() / mask.sum().clamp(min=1)
    return kept.sum(dim) / (mask.float().sum(dim) + 1e-8)


def masked_normalize(tensor, mask, normalize_constant=1.0, dim=None):
    return torch.where(mask, tensor, torch.zeros_like(tensor)).sum(dim) / normalize_constant


def sft_microbatch_train_step(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    summed = masked_normalize(policy_log_probs.float(), response_mask.bool(), normalize_constant, -1)
    loss = -(summed / gradient_accumulation_steps).mean()
    loss.backward()
    return loss.detach(), {}


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
    loss = masked_mean(per_token, response_mask.bool(), 1).mean(0)
    (loss / gradient_accumulation_steps).backward()
    return loss / gradient_accumulation_steps, {**metadata, "loss": loss.item()}
