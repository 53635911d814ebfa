"""verl's PPO and GRPO mathematics (tried with verl 0.9.1) under its `token-mean` aggregation.

`verl.trainer.ppo.core_algos` and `verl.utils.torch_functional` are called as the trainer calls them. verl detaches old
log-probs by its caller, drops sequences without tokens, clamps log-ratios to ±20 and k3 to ±10.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from verl.trainer.ppo import core_algos
from verl.utils import torch_functional

CONVENTION: dict[str, Any] = {
    "name": "verl",
    "std_ddof": 1,
    "std_eps": 1e-6,
    "std_eps_place": "added",
    "aggregation": "token_mean",
    "empty_rows": "dropped",
    "singleton_group": "free",
    "old_log_probs": "caller",
    "k3_clamp": 10.0,
    "log_ratio_clamp": 20.0,
}

MODES = {
    "sequence_sum": "seq-mean-token-sum",
    "sequence_mean": "seq-mean-token-mean",
    "token_mean": "token-mean",
    "constant": "seq-mean-token-sum-norm",
}

WITHOUT_DUAL_CLIP = 1e9
"""A bound of the dual clip that no ratio reaches: `clipped_loss` is the plain clipped surrogate."""


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """`logprobs_from_logits` on the shifted logits, divided by the temperature as verl's actor does."""
    log_probs: Tensor = torch_functional.logprobs_from_logits(logits[:, :-1] / temperature, token_ids[:, 1:])
    return log_probs


def entropy(logits: Tensor) -> Tensor:
    """`entropy_from_logits`."""
    entropies: Tensor = torch_functional.entropy_from_logits(logits)
    return entropies


def grpo_advantages(rewards: Tensor) -> Tensor:
    """`compute_grpo_outcome_advantage` on responses of one token."""
    return _outcome_advantages(core_algos.compute_grpo_outcome_advantage, rewards)


def rloo_advantages(rewards: Tensor) -> Tensor:
    """`compute_rloo_outcome_advantage` on responses of one token."""
    return _outcome_advantages(core_algos.compute_rloo_outcome_advantage, rewards)


def centered_advantages(rewards: Tensor) -> Tensor:
    """`compute_grpo_outcome_advantage` without the division by σ."""
    return _outcome_advantages(core_algos.compute_grpo_outcome_advantage, rewards, norm_adv_by_std_in_grpo=False)


def aggregate(values: Tensor, mask: Tensor, mode: str, constant: float | None = None) -> Tensor:
    """`agg_loss` in the mode that verl has for ours."""
    loss: Tensor = core_algos.agg_loss(values, mask, MODES[mode], loss_scale_factor=constant)
    return loss


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """`compute_policy_loss`, its dual clip out of reach."""
    loss: Tensor = core_algos.compute_policy_loss(
        old_log_probs,
        log_probs,
        advantages[:, None].expand_as(log_probs),
        mask,
        cliprange_low=clip_low,
        cliprange_high=clip_high,
        clip_ratio_c=WITHOUT_DUAL_CLIP,
    )[0]
    return loss


def kl_k1(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`kl_penalty` of kind `kl`."""
    return _kl(log_probs, ref_log_probs, "kl")


def kl_k2(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`kl_penalty` of kind `mse`."""
    return _kl(log_probs, ref_log_probs, "mse")


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`kl_penalty` of kind `low_var_kl`."""
    return _kl(log_probs, ref_log_probs, "low_var_kl")


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float | None = None) -> Tensor:
    """`compute_value_loss`; verl always clips, so no clip is a bound out of reach."""
    bound = WITHOUT_DUAL_CLIP if clip is None else clip
    loss: Tensor = core_algos.compute_value_loss(values, returns, old_values, mask, bound)[0]
    return loss


def _outcome_advantages(estimator: Any, rewards: Tensor, **options: Any) -> Tensor:
    groups, size = rewards.shape
    index = np.repeat(np.arange(groups), size)
    scores = rewards.reshape(-1, 1).clone()
    advantages: Tensor = estimator(scores, torch.ones_like(scores), index, **options)[0]
    return advantages.reshape(groups, size)


def _kl(log_probs: Tensor, ref_log_probs: Tensor, kind: str) -> Tensor:
    estimate: Tensor = core_algos.kl_penalty(log_probs, ref_log_probs, kind)
    return estimate
