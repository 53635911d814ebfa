"""Right versions of single functions that differ in what the assignment leaves open, or in how they are written."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from tests.conformance.cs336 import plain_2025, plain_2026

Function = Callable[..., Any]

VARIANTS: list[tuple[str, Function]] = []


def variant(operation: str) -> Callable[[Function], Function]:
    """Declare the function below as a right version of an operation."""

    def declare(function: Function) -> Function:
        VARIANTS.append((operation, function))
        return function

    return declare


@variant("tokenize_prompt_and_output")
def padded_apart(prompt_strs, output_strs, tokenizer):
    """The last token of a shorter row is not repeated in input_ids; the mask is of floats; there is one key more."""
    rows = [tokenizer.encode(prompt) + tokenizer.encode(output) for prompt, output in zip(prompt_strs, output_strs)]
    width = max(map(len, rows)) - 1
    inputs = torch.full((len(rows), width), 0, dtype=torch.int32)
    labels = torch.full((len(rows), width), -100)
    mask = torch.zeros(len(rows), width)
    for b, row in enumerate(rows):
        inputs[b, : len(row) - 1] = torch.tensor(row[:-1])
        labels[b, : len(row) - 1] = torch.tensor(row[1:])
        mask[b, len(tokenizer.encode(prompt_strs[b])) - 1 : len(row) - 1] = 1.0
    return {"response_mask": mask, "labels": labels, "input_ids": inputs, "attention_mask": labels != -100}


@variant("tokenize_prompt_and_output")
def tokenized_as_tensors(prompt_strs, output_strs, tokenizer):
    """Tokens come as tensors, and a message of unknown kind may be in the dictionary."""
    rows, masks = [], []
    for prompt, output in zip(prompt_strs, output_strs):
        first = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids[0]
        second = tokenizer(output, return_tensors="pt", add_special_tokens=False).input_ids[0]
        rows.append(torch.cat([first, second]))
        masks.append(torch.cat([torch.zeros_like(first), torch.ones_like(second)]).bool())
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=tokenizer.pad_token_id)
    mask = torch.nn.utils.rnn.pad_sequence(masks, batch_first=True)
    return {"input_ids": ids[:, :-1], "labels": ids[:, 1:], "response_mask": mask[:, 1:], "note": "right"}


@variant("compute_group_normalized_rewards")
def columns_and_rich_metadata(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
    advantages, raw, _ = plain_2025.compute_group_normalized_rewards(
        reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
    )
    return advantages[:, None], raw[:, None].double(), {"rewards": raw.tolist(), "best": SimpleNamespace(reward=1.0)}


@variant("compute_group_normalized_rewards")
def with_numpy(reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std):
    pairs = zip(rollout_responses, repeated_ground_truths)
    groups = np.array([reward_fn(*pair)["reward"] for pair in pairs]).reshape(-1, group_size)
    advantages = groups - groups.mean(1, keepdims=True)
    if normalize_by_std:
        advantages /= groups.std(1, keepdims=True, ddof=1) + advantage_eps
    return [torch.from_numpy(advantages.ravel()), torch.from_numpy(groups.ravel()), {}]


@variant("compute_entropy")
def entropy_with_a_guard(logits):
    p = torch.softmax(logits, dim=-1)
    return -(p * torch.log(p + 1e-10)).sum(dim=-1)


@variant("compute_entropy")
def entropy_in_double(logits):
    return torch.special.entr(torch.softmax(logits.double(), dim=-1)).sum(dim=-1).to(logits.dtype)


@variant("get_response_log_probs")
def always_with_entropy(model, input_ids, labels, return_token_entropy):
    model.train()
    logits = model(input_ids=input_ids.to(model.device), attention_mask=None, use_cache=False)[0]
    chosen = logits.gather(-1, labels[..., None]) - logits.logsumexp(-1, keepdim=True)
    return {"token_entropy": plain_2026.compute_entropy(logits), "log_probs": chosen[..., 0], "logits": logits}


@variant("compute_grpo_clip_loss")
def clipped_with_a_live_advantage(advantages, policy_log_probs, old_log_probs, cliprange):
    ratio = torch.exp(policy_log_probs) * torch.exp(-old_log_probs)
    bounded = torch.min(torch.max(ratio, torch.tensor(1 - cliprange)), torch.tensor(1 + cliprange))
    both = torch.stack([ratio * advantages, bounded * advantages])
    return -both.amin(dim=0), {"ratio": ratio}


@variant("masked_mean")
def mean_with_a_guard(tensor, mask, dim=None):
    return (tensor * mask).sum(dim=dim) / (mask.sum(dim=dim) + 1e-6)


@variant("masked_mean")
def mean_by_nanmean(tensor, mask, dim=None):
    return torch.nanmean(tensor.masked_fill(~mask.bool(), torch.nan), dim=dim)


@variant("masked_normalize")
def constant_after_dim(tensor, mask, dim=None, normalize_constant=1.0):
    dims = tuple(range(tensor.dim())) if dim is None else dim
    return torch.sum(torch.mul(tensor, mask.to(tensor.dtype)) / normalize_constant, dims)


@variant("sft_microbatch_train_step")
def loss_as_a_number(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    loss = -(policy_log_probs * response_mask).sum() / normalize_constant / len(policy_log_probs)
    (loss / gradient_accumulation_steps).backward()
    return loss.item() / gradient_accumulation_steps, {}


@variant("compute_rollout_rewards")
def rewards_as_a_column(reward_fn, rollout_responses, repeated_ground_truths):
    return plain_2026.compute_rollout_rewards(reward_fn, rollout_responses, repeated_ground_truths)[0][:, None], {}


@variant("compute_policy_gradient_loss_2026")
def advantages_as_a_row(
    raw_rewards_or_advantages,
    policy_log_probs,
    importance_reweighting_method="none",
    old_log_probs=None,
    cliprange=None,
    response_mask=None,
):
    """Takes advantages [B] alone, and masks its result."""
    assert raw_rewards_or_advantages.dim() == 1
    loss, metadata = plain_2026.compute_policy_gradient_loss(
        raw_rewards_or_advantages.unsqueeze(-1),
        policy_log_probs,
        importance_reweighting_method,
        old_log_probs,
        cliprange,
        response_mask,
    )
    return loss if response_mask is None else loss * response_mask, metadata


@variant("compute_policy_gradient_loss_2026")
def advantages_as_a_column(
    raw_rewards_or_advantages,
    policy_log_probs,
    importance_reweighting_method="none",
    old_log_probs=None,
    cliprange=None,
    response_mask=None,
):
    """Takes advantages [B, 1] alone."""
    rows, columns = raw_rewards_or_advantages.shape
    assert (rows, columns) == (len(policy_log_probs), 1)
    return plain_2026.compute_policy_gradient_loss(
        raw_rewards_or_advantages,
        policy_log_probs,
        importance_reweighting_method,
        old_log_probs,
        cliprange,
        response_mask,
    )


@variant("aggregate_loss_across_microbatch")
def aggregated_by_weights(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    weights = mask / mask.sum(dim=1, keepdim=True) / len(mask)
    if loss_normalization == "constant":
        weights = mask / normalization_constant
    return (per_token_policy_gradient_loss * weights).sum()


@variant("grpo_train_step")
def zeroed_and_bounded_by_hand(**arguments):
    """Gradients are set to zero before and after the step, the norm is bounded without 1e-6, the loss is a number."""
    model, optimizer, most = (arguments[name] for name in ("model", "optimizer", "max_grad_norm"))
    take_step = optimizer.step

    def bounded_step():
        norm = torch.cat([parameter.grad.ravel() for parameter in model.parameters()]).norm()
        for parameter in model.parameters():
            parameter.grad *= min(1.0, most / float(norm)) if norm else 1.0
        take_step()

    optimizer.step = bounded_step
    optimizer.zero_grad(set_to_none=False)
    loss, metadata = plain_2026.grpo_train_step(**{**arguments, "max_grad_norm": 1e9})
    optimizer.zero_grad(set_to_none=False)
    optimizer.step = take_step
    return float(loss), metadata
