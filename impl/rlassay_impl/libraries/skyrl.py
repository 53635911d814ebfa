"""SkyRL's PPO and GRPO mathematics (tried with skyrl 0.3.0) under its loss reduction `sequence_mean`.

The functions of `skyrl.backends.skyrl_train.utils` are called as the trainer and its workers call them: policy losses
are sums, and the loss reduction is applied to the advantages beforehand. `sequence_mean` is declared although the
default is `token_mean`, because the value loss and the KL are always averaged so. Log-ratios are clamped to ±20 (GSPO's
at 10, from above) and k3 to ±10, and callers detach old log-probs. GAE comes whitened, so it is read off the returns;
whitening adds 1e-8 to the variance, another convention than within groups, so `whiten` is left out.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rlassay_impl.libraries.shells import shells

with shells(
    *("skyrl", "skyrl.backends", "skyrl.backends.skyrl_train", "skyrl.backends.skyrl_train.utils"),
    *("skyrl.train", "skyrl.train.utils"),
    stubs=(
        *("ray", "ray.util", "ray.util.scheduling_strategies", "torchdata", "torchdata.stateful_dataloader"),
        *("transformers", "skyrl.backends.skyrl_train.utils.io", "skyrl.backends.skyrl_train.workers"),
        *("skyrl.backends.skyrl_train.workers.worker", "skyrl.backends.skyrl_train.workers.worker_utils"),
        *("skyrl.train.config", "skyrl.train.dataset", "skyrl.train.generators", "skyrl.train.generators.base"),
        "skyrl.train.generators.utils",
    ),
):
    from skyrl.backends.skyrl_train.utils import off_policy_correction_utils, ppo_utils, torch_utils
    from skyrl.train.utils.trainer_utils import zero_variance_filter

CONVENTION: dict[str, Any] = {
    "name": "SkyRL",
    "std_ddof": 1,
    "std_eps": 1e-6,
    "std_eps_place": "added",
    "aggregation": "sequence_mean",
    "empty_rows": "counted",
    "singleton_group": "free",
    "old_log_probs": "caller",
    "k3_clamp": 10.0,
    "log_ratio_clamp": 20.0,
}

REDUCTIONS = {
    "sequence_sum": ("seq_mean_token_sum_norm", 1),
    "sequence_mean": ("sequence_mean", None),
    "token_mean": ("token_mean", None),
}
"""The loss reduction that SkyRL has for our aggregation, and its `max_seq_len`."""

OTHER_CORRECTIONS = (
    *("sequence_mask_metric", "outlier_token_is_threshold_low", "outlier_token_is_threshold_high"),
    *("token_mask_is_threshold_low", "token_mask_is_threshold_high"),
)
"""The settings of the off-policy correction that are off."""


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """`logprobs_from_logits` on the shifted logits, divided by the temperature as SkyRL's model wrapper does."""
    log_probs: Tensor = torch_utils.logprobs_from_logits(logits[:, :-1] / temperature, token_ids[:, 1:])
    return log_probs


def entropy(logits: Tensor) -> Tensor:
    """`chunked_entropy_from_logits`."""
    entropies: Tensor = torch_utils.chunked_entropy_from_logits(logits, requires_grad=True)
    return entropies


def centered_advantages(rewards: Tensor) -> Tensor:
    """`compute_grpo_outcome_advantage` without the division by σ, on responses of one token."""
    return _outcome_advantages(ppo_utils.compute_grpo_outcome_advantage, rewards, grpo_norm_by_std=False)


def grpo_advantages(rewards: Tensor) -> Tensor:
    """`compute_grpo_outcome_advantage` on responses of one token."""
    return _outcome_advantages(ppo_utils.compute_grpo_outcome_advantage, rewards)


def rloo_advantages(rewards: Tensor) -> Tensor:
    """`compute_rloo_outcome_advantage` on responses of one token."""
    return _outcome_advantages(ppo_utils.compute_rloo_outcome_advantage, rewards)


def keep_groups(rewards: Tensor) -> Tensor:
    """`zero_variance_filter` without a tolerance."""
    groups, size = rewards.shape
    uids = [str(group) for group in range(groups) for _ in range(size)]
    kept = {uids[index] for index in zero_variance_filter(rewards.flatten().tolist(), uids)}
    return torch.tensor([str(group) in kept for group in range(groups)])


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    """The returns of `compute_gae_advantage_return` minus the values: its advantages, before they are whitened.

    Rows are right-aligned behind a column of padding, as SkyRL lays out responses: the recursion does not look at the
    mask, which is left to the whitening (and that refuses a batch with a single step, so it gets more here).
    """
    order = mask.bool().long().argsort(dim=1, stable=True)
    steps, critic = (functional.pad(entry.gather(1, order), (1, 0)) for entry in (rewards, values))
    returns: Tensor = ppo_utils.compute_gae_advantage_return(steps, critic, torch.ones_like(steps), gamma, lam)[1]
    estimates = torch.zeros_like(rewards).scatter(1, order, (returns - critic)[:, 1:])
    return torch.where(mask.bool(), estimates, 0.0)


def aggregate(values: Tensor, mask: Tensor, mode: str, constant: float | None = None) -> Tensor:
    """`reduce_loss` of values scaled by `apply_loss_reduction_to_advantages_minibatch`; a sum is a constant of 1."""
    reduction, length = REDUCTIONS.get(mode, ("seq_mean_token_sum_norm", constant))
    total: Tensor = ppo_utils.reduce_loss(_scaled(values, mask, reduction, length), mask)
    return total


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """`ppo_policy_loss` of type `regular`."""
    config = _config("regular", eps_clip_low=clip_low, eps_clip_high=clip_high)
    return _policy_loss(ppo_utils.ppo_policy_loss, config, log_probs, old_log_probs, mask, advantages)


def dual_clip_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
) -> Tensor:
    """`ppo_policy_loss` of type `dual_clip`."""
    config = _config("dual_clip", eps_clip_low=clip_low, eps_clip_high=clip_high, clip_ratio_c=dual_clip)
    return _policy_loss(ppo_utils.ppo_policy_loss, config, log_probs, old_log_probs, mask, advantages)


def gspo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """`gspo_policy_loss`."""
    config = _config("gspo", eps_clip_low=clip_low, eps_clip_high=clip_high, loss_reduction="sequence_mean")
    return _policy_loss(ppo_utils.gspo_policy_loss, config, log_probs, old_log_probs, mask, advantages)


def kl_k1(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`compute_approx_kl` of type `k1`."""
    return _kl(log_probs, ref_log_probs, "k1")


def kl_k2(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`compute_approx_kl` of type `k2`."""
    return _kl(log_probs, ref_log_probs, "k2")


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`compute_approx_kl` of type `k3`."""
    return _kl(log_probs, ref_log_probs, "k3")


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float | None = None) -> Tensor:
    """`ppo_critic_loss`."""
    error: Tensor = ppo_utils.ppo_critic_loss(values, old_values, returns, SimpleNamespace(value_clip=clip), mask)[0]
    return error


def importance_weights(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    """What `apply_off_policy_correction` of type `token` makes of losses of 1 under the mask."""
    config = SimpleNamespace(tis_ratio_type="token", token_tis_ratio_clip_high=cap, **dict.fromkeys(OTHER_CORRECTIONS))
    losses = mask.to(log_probs.dtype)
    weights: Tensor = off_policy_correction_utils.apply_off_policy_correction(
        losses, log_probs, sampler_log_probs, mask, config
    )[0]
    return weights


def _outcome_advantages(estimator: Any, rewards: Tensor, **options: Any) -> Tensor:
    groups, size = rewards.shape
    index = np.repeat(np.arange(groups), size)
    scores = rewards.reshape(-1, 1).clone()
    advantages: Tensor = estimator(scores, torch.ones_like(scores), index, **options)[0]
    return advantages.reshape(groups, size)


def _scaled(advantages: Tensor, mask: Tensor, reduction: str, length: float | None = None) -> Tensor:
    scaled: Tensor = ppo_utils.apply_loss_reduction_to_advantages_minibatch(
        advantages, mask, reduction, micro_batch_size=len(mask), max_seq_len=length
    )
    return scaled


def _config(kind: str, **options: Any) -> Any:
    return SimpleNamespace(policy_loss_type=kind, off_policy_correction=None, **options)


def _policy_loss(
    policy_loss: Any, config: Any, log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor
) -> Tensor:
    scaled = _scaled(advantages[:, None].expand_as(log_probs), mask, "sequence_mean")
    value: Tensor = policy_loss(log_probs, old_log_probs, scaled, config, mask)[0]
    return value


def _kl(log_probs: Tensor, ref_log_probs: Tensor, kind: str) -> Tensor:
    estimate: Tensor = ppo_utils.compute_approx_kl(log_probs, ref_log_probs, kl_estimator_type=kind)
    return estimate
