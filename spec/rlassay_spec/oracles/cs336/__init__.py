"""Oracles of the functions of the CS336 alignment assignment.

A function with several results has one `Expected` for each, by name. Pullbacks lead into the argument that the contract
names, not always the first.
"""

from rlassay_spec.oracles.cs336.losses import (
    compute_grpo_clip_loss,
    compute_naive_policy_gradient_loss,
    compute_policy_gradient_loss,
    compute_policy_gradient_loss_2026,
)
from rlassay_spec.oracles.cs336.means import aggregate_loss_across_microbatch, masked_mean, masked_normalize
from rlassay_spec.oracles.cs336.rewards import (
    compute_group_normalized_rewards,
    compute_group_normalized_rewards_2026,
    compute_rollout_rewards,
)
from rlassay_spec.oracles.cs336.steps import grpo_microbatch_train_step, sft_microbatch_train_step
from rlassay_spec.oracles.cs336.tokens import compute_entropy, get_response_log_probs, tokenize_prompt_and_output
from rlassay_spec.oracles.cs336.training import grpo_train_step

__all__ = [
    "aggregate_loss_across_microbatch",
    "compute_entropy",
    "compute_group_normalized_rewards",
    "compute_group_normalized_rewards_2026",
    "compute_grpo_clip_loss",
    "compute_naive_policy_gradient_loss",
    "compute_policy_gradient_loss",
    "compute_policy_gradient_loss_2026",
    "compute_rollout_rewards",
    "get_response_log_probs",
    "grpo_microbatch_train_step",
    "grpo_train_step",
    "masked_mean",
    "masked_normalize",
    "sft_microbatch_train_step",
    "tokenize_prompt_and_output",
]
