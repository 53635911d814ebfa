"""TRL's GRPO and RLOO mathematics (tried with trl 1.16.0) under its default loss type, `dapo`: a token mean.

The real methods of `GRPOTrainer` and `RLOOTrainer` are called on a stand-in for the trainer: one process, no
accumulation, a "model" whose log-probs are handed over, one reward function. A loss that takes log-probs as they are,
without a ratio, is of the type `cispo` with fresh samples, whose weight is then 1.

TRL expects advantages, old and reference log-probs without a graph, as its own `no_grad` block makes them. Not mapped:
`delta`, which bounds the ratio of good tokens too and so is the dual clip only above 1 + ε; the vLLM weights, which are
1 at masked places and get masked in the loss.
"""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from trl import GRPOTrainer, RLOOTrainer
from trl.rewards import get_soft_overlong_punishment
from trl.trainer import utils

CONVENTION: dict[str, Any] = {
    "name": "trl",
    "std_ddof": 1,
    "std_eps": 1e-4,
    "std_eps_place": "added",
    "aggregation": "token_mean",
    "singleton_group": "zero",
    "old_log_probs": "caller",
}

OFF = ("aux_loss_enabled", "use_vllm", "normalize_advantages", "mask_truncated_completions", "use_adaptive_entropy")
NONE = ("off_policy_mask_threshold", "pad_to_multiple_of", "reward_clip_range", "environment_factories", "environments")
ONE = ("top_entropy_quantile", "current_gradient_accumulation_steps", "num_iterations", "entropy_coef")
"""Attributes of a trainer that are False, None and 1 here."""


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """`selective_log_softmax` on the shifted logits."""
    log_probs: Tensor = utils.selective_log_softmax(logits[:, :-1], token_ids[:, 1:], temperature)
    return log_probs


def masked_log_probs(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    """`selective_log_softmax` with its row mask."""
    log_probs: Tensor = utils.selective_log_softmax(logits[:, :-1], token_ids[:, 1:], row_mask=mask)
    return log_probs


def entropy(logits: Tensor) -> Tensor:
    """`entropy_from_logits`."""
    entropies: Tensor = utils.entropy_from_logits(logits)
    return entropies


def entropy_bonus(logits: Tensor, mask: Tensor) -> Tensor:
    """The loss of advantages of 0 with an entropy coefficient of 1, which TRL subtracts."""
    entropies = utils.entropy_from_logits(logits[:, :-1])
    nothing = torch.zeros_like(entropies)
    return -_loss(nothing, mask, nothing, entropies, _entropy_bonus_enabled=True)


def centered_advantages(rewards: Tensor) -> Tensor:
    """GRPO's with `scale_rewards="none"`."""
    return _scored(GRPOTrainer, rewards, scale_rewards="none")


def grpo_advantages(rewards: Tensor) -> Tensor:
    """GRPO's with `scale_rewards="group"`, the default."""
    return _scored(GRPOTrainer, rewards, scale_rewards="group")


def rloo_advantages(rewards: Tensor) -> Tensor:
    """RLOO's, not normalised over the batch, which is the default."""
    return _scored(RLOOTrainer, rewards)


def policy_gradient_loss(log_probs: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """`cispo` with one advantage for each token."""
    return _loss(log_probs, mask, weights, loss_type="cispo")


def grpo_loss(log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    """`cispo` with fresh samples."""
    return _loss(log_probs, mask, advantages, loss_type="cispo")


def microbatch_loss(
    log_probs: Tensor, mask: Tensor, advantages: Tensor, total_sequences: int, total_tokens: int
) -> Tensor:
    """`cispo` with the whole batch's tokens as `num_items_in_batch`."""
    return _loss(log_probs, mask, advantages, items=torch.tensor(total_tokens), loss_type="cispo")


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """Loss type `dapo`."""
    return _loss(log_probs, mask, advantages, old=old_log_probs, epsilon_low=clip_low, epsilon_high=clip_high)


def gspo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """Loss type `grpo` with `importance_sampling_level="sequence"`."""
    level: dict[str, Any] = {"loss_type": "grpo", "importance_sampling_level": "sequence"}
    return _loss(log_probs, mask, advantages, old=old_log_probs, epsilon_low=clip_low, epsilon_high=clip_high, **level)


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """The loss of each token alone, with advantage 0 and β = 1."""
    losses = [
        _loss(own, torch.ones_like(own), torch.zeros_like(own), ref=ref, beta=1.0)
        for own, ref in zip(log_probs.reshape(-1, 1, 1), ref_log_probs.reshape(-1, 1, 1), strict=True)
    ]
    return torch.stack(losses).reshape(log_probs.shape)


def grpo_objective(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    rewards: Tensor,
    beta: float,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """Advantages by `_generate_and_score_completions`, then loss type `dapo` with β."""
    advantages = grpo_advantages(rewards).reshape(-1)
    clip: dict[str, Any] = {"epsilon_low": clip_low, "epsilon_high": clip_high}
    return _loss(log_probs, mask, advantages, old=old_log_probs, ref=ref_log_probs, beta=beta, **clip)


def overlong_penalty(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    """`get_soft_overlong_punishment` on completions of these lengths."""
    reward_function = get_soft_overlong_punishment(max_length, buffer)
    return torch.tensor(reward_function(completion_ids=[[0] * length for length in lengths.tolist()]))


def _trainer(**options: Any) -> SimpleNamespace:
    """What the methods read of a trainer: the defaults in one process, but for the options."""
    steps = {"gradient_accumulation_steps": 1, "steps_per_generation": 1, "gradient_checkpointing_kwargs": None}
    arguments = {"delta": None, "use_bias_correction_kl": False, "per_device_train_batch_size": 1}
    process = {"device": torch.device("cpu"), "num_processes": 1, "process_index": 0, "sync_gradients": True}
    defaults: dict[str, Any] = {
        **dict.fromkeys(OFF, False) | dict.fromkeys(NONE) | dict.fromkeys(ONE, 1),
        "args": SimpleNamespace(**steps, **arguments),
        "accelerator": SimpleNamespace(gather=lambda x: x, reduce=lambda x, reduction: x, **process),
        "model": SimpleNamespace(training=True, is_gradient_checkpointing=False),
        "loss_type": "dapo",
        "importance_sampling_level": "token",
        "beta": 0.0,
        "epsilon_low": 0.2,
        "epsilon_high": 5.0,  # of cispo, where it bounds the weight itself
        "_entropy_bonus_enabled": False,
        "tools": [],
        "reward_funcs": [None],
        "reward_func_names": ["reward"],
        "reward_weights": torch.ones(1),
        "multi_objective_aggregation": "sum_then_normalize",
        "_tokenizer": SimpleNamespace(pad_token_id=0),
        "_metrics": defaultdict(lambda: defaultdict(list)),
        "_logs": {"rewards": defaultdict(list), "prompt": [], "completion": [], "advantages": []},
        "_pending_extra_logs": {},
        "_pending_metrics": {},
    }
    return SimpleNamespace(**defaults | options)


def _loss(
    log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    entropies: Tensor | None = None,
    old: Tensor | None = None,
    ref: Tensor | None = None,
    items: Tensor | None = None,
    **options: Any,
) -> Tensor:
    """`GRPOTrainer._compute_loss` where the model gives these log-probs."""
    forward = (log_probs, torch.zeros_like(log_probs) if entropies is None else entropies, None)
    trainer = _trainer(_get_per_token_logps_and_entropies=lambda *_, **__: forward, **options)
    ids = torch.zeros(log_probs.shape, dtype=torch.int64)
    inputs = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": torch.ones_like(ids[:, :1]),
        "completion_ids": ids,
        "completion_mask": mask,
        "advantages": advantages,
        "old_per_token_logps": old,
        "ref_per_token_logps": ref,
        "num_items_in_batch": mask.sum() if items is None else items,
    }
    loss: Tensor = GRPOTrainer._compute_loss(trainer, None, inputs)
    return loss


def _scored(method: Any, rewards: Tensor, **options: Any) -> Tensor:
    """`_generate_and_score_completions` of completions of one token that get these rewards."""
    count, size = rewards.numel(), rewards.shape[1]
    tokens, texts = [[0]] * count, [""] * count
    generated: Any = (tokens, tokens, None, texts, None, {}, None, None)
    if method is RLOOTrainer:
        generated = (tokens, tokens, texts)
    trainer = _trainer(
        num_generations=size,
        _generate=lambda prompts: generated,
        _calculate_rewards=lambda *_: rewards.reshape(-1, 1),
        _get_per_token_logps_and_entropies=lambda *_, **__: (torch.zeros(count, 1), None, None),
        **options,
    )
    batch = method._generate_and_score_completions(trainer, [{"prompt": ""}] * count)
    advantages: Tensor = batch["advantages"]
    return advantages.reshape(rewards.shape)
