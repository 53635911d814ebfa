"""The assignment in its form of 2026, by masked sums over whole tensors."""

import torch


def tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer):
    pairs = [(tokenizer.encode(prompt), tokenizer.encode(output)) for prompt, output in zip(prompt_strs, output_strs)]
    width = max(len(prompt + output) for prompt, output in pairs)
    ids = [prompt + output + [tokenizer.pad_token_id] * (width - len(prompt + output)) for prompt, output in pairs]
    mask = [[0] * len(prompt) + [1] * len(output) + [0] * (width - len(prompt + output)) for prompt, output in pairs]
    ids, mask = torch.tensor(ids), torch.tensor(mask)
    return {"input_ids": ids[:, :-1], "labels": ids[:, 1:], "response_mask": mask[:, 1:]}


def compute_entropy(logits):
    log_z = logits.logsumexp(dim=-1, keepdim=True)
    return ((logits - log_z).exp() * (log_z - logits)).sum(dim=-1)


def get_response_log_probs(model, input_ids, labels, return_token_entropy=False):
    logits = model(input_ids).logits
    log_probs = torch.distributions.Categorical(logits=logits).log_prob(labels)
    return {"log_probs": log_probs, "token_entropy": compute_entropy(logits) if return_token_entropy else None}


def compute_rollout_rewards(reward_fn, rollout_responses, repeated_ground_truths):
    scores = [reward_fn(response, truth) for response, truth in zip(rollout_responses, repeated_ground_truths)]
    return torch.tensor([score["reward"] for score in scores], dtype=torch.float32), {"scores": scores}


def compute_group_normalized_rewards(
    raw_rewards, group_size, baseline="mean", advantage_eps=1e-6, advantage_normalizer="std"
):
    groups = raw_rewards.reshape(-1, group_size)
    mean = groups.mean(dim=1, keepdim=True)
    advantages = groups - mean if baseline == "mean" else groups
    if advantage_normalizer == "std":
        advantages = advantages / (groups.std(dim=1, keepdim=True) + advantage_eps)
    elif advantage_normalizer == "mean":
        advantages = advantages / (mean + advantage_eps)
    return advantages.reshape(-1), {}


def compute_policy_gradient_loss(
    raw_rewards_or_advantages,
    policy_log_probs,
    importance_reweighting_method="none",
    old_log_probs=None,
    cliprange=None,
    response_mask=None,
):
    weights = raw_rewards_or_advantages.reshape(-1, 1)
    if importance_reweighting_method == "none":
        return -weights * policy_log_probs, {}
    log_ratio = policy_log_probs - old_log_probs
    if importance_reweighting_method == "gspo":
        tokens = response_mask.sum(dim=1, keepdim=True)
        log_ratio = ((log_ratio * response_mask).sum(dim=1, keepdim=True) / tokens).expand_as(log_ratio)
    ratio = log_ratio.exp()
    if importance_reweighting_method == "noclip":
        return -weights * ratio, {}
    clipped = ratio.clamp(1 - cliprange, 1 + cliprange)
    return -torch.minimum(weights * ratio, weights * clipped), {}


def aggregate_loss_across_microbatch(
    per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None
):
    masked = per_token_policy_gradient_loss * mask
    if loss_normalization == "constant":
        return masked.sum() / normalization_constant
    return (masked.sum(dim=1) / mask.sum(dim=1)).mean()


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
    rewards, metadata = compute_rollout_rewards(reward_fn, rollout_responses, repeated_ground_truths)
    advantages, _ = compute_group_normalized_rewards(rewards, group_size, baseline, advantage_eps, advantage_normalizer)
    batch = tokenize_prompt_and_output(repeated_prompts, rollout_responses, tokenizer)
    size = len(repeated_prompts) // gradient_accumulation_steps
    optimizer.zero_grad()
    total = 0.0
    for start in range(0, len(repeated_prompts), size):
        rows = slice(start, start + size)
        scored = get_response_log_probs(model, batch["input_ids"][rows], batch["labels"][rows])
        per_token, _ = compute_policy_gradient_loss(
            advantages[rows],
            scored["log_probs"],
            importance_reweighting_method,
            None if old_log_probs is None else old_log_probs[rows],
            cliprange,
            batch["response_mask"][rows],
        )
        loss = aggregate_loss_across_microbatch(
            per_token, batch["response_mask"][rows], loss_normalization, normalization_constant
        )
        if loss_normalization == "sequence":
            loss = loss / gradient_accumulation_steps
        loss.backward()
        total += loss.detach()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    optimizer.step()
    return total, metadata
