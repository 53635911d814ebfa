"""AReaL's PPO and GRPO mathematics (tried with areal 1.0.4), with advantages normalised per group.

`areal.utils.functional` and `areal.utils.data` are called as the PPO actor calls them, with boolean masks, and as they
are written instead of compiled. AReaL computes log-probs, advantages and the KL in float32, and clamps every KL
estimator to ±10. Its sequence level (GSPO) is averaged over tokens, so that long sequences weigh more, and is left out;
so is its SFT loss, which divides by 1e-5 more than the number of tokens, and its GAE, which works only on rewards of
its own making.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rlassay_impl.libraries.shells import shells

with shells(
    *("areal", "areal.api", "areal.infra", "areal.utils", "areal.utils.functional"),
    stubs=("areal.api.cli_args", "areal.infra.platforms", "areal.utils.logging"),
):
    from areal.utils import data
    from areal.utils.functional import functional, vocab_parallel

CONVENTION: dict[str, Any] = {
    "name": "AReaL",
    "std_ddof": 1,
    "std_eps": 1e-5,
    "std_eps_place": "added",
    "aggregation": "token_mean",
    "singleton_group": "free",
    "old_log_probs": "caller",
    "k3_clamp": 10.0,
    "empty_mean": "free",
}

NO_CLIP = 1e9
"""A bound that no value reaches: AReaL always clips its value loss."""


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """`gather_logprobs` on the shifted logits."""
    log_probs: Tensor = vocab_parallel.gather_logprobs(logits[:, :-1], token_ids[:, 1:], temperature)
    return log_probs


def entropy(logits: Tensor) -> Tensor:
    """The entropies of `gather_logprobs_entropy`."""
    any_ids = torch.zeros(logits.shape[:2], dtype=torch.int64)
    entropies: Tensor = vocab_parallel.gather_logprobs_entropy(logits, any_ids)[1]
    return entropies


def centered_advantages(rewards: Tensor) -> Tensor:
    """`Normalization` with the group's mean and no standard deviation."""
    return _normalized(rewards, mean_level="group", std_level=None)


def grpo_advantages(rewards: Tensor) -> Tensor:
    """`Normalization` with the group's mean and standard deviation."""
    return _normalized(rewards, mean_level="group", std_level="group")


def rloo_advantages(rewards: Tensor) -> Tensor:
    """`Normalization` with the mean of the others in the group and no standard deviation."""
    return _normalized(rewards, mean_level="group", mean_leave1out=True, std_level=None)


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """`ppo_actor_loss_fn`, with the old policy as proximal and as behaviour policy."""
    return _actor_loss(log_probs, old_log_probs, mask, advantages, clip_low, clip_high)


def dual_clip_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
) -> Tensor:
    """`ppo_actor_loss_fn` with `c_clip`."""
    return _actor_loss(log_probs, old_log_probs, mask, advantages, clip_low, clip_high, dual_clip)


def kl_k1(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`KLEstimator` of kind `k1`."""
    return _kl(log_probs, ref_log_probs, "k1")


def kl_k2(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`KLEstimator` of kind `k2`."""
    return _kl(log_probs, ref_log_probs, "k2")


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`KLEstimator` of kind `k3`."""
    return _kl(log_probs, ref_log_probs, "k3")


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float | None = None) -> Tensor:
    """`ppo_critic_loss_fn`; no clip is a bound out of reach."""
    bound = NO_CLIP if clip is None else clip
    error: Tensor = functional.ppo_critic_loss_fn(values, old_values, returns, bound, mask.bool())[0]
    return error


def importance_weights(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    """The weights of `apply_rejection_sampling` that clamps the ratio of tokens."""
    config = SimpleNamespace(metric="ratio", level="token", action="clamp", lower=None, upper=cap)
    result = functional.apply_rejection_sampling(log_probs, sampler_log_probs, mask.bool(), None, config)
    weights: Tensor = result.behave_imp_weight
    return weights


def whiten(values: Tensor, mask: Tensor) -> Tensor:
    """`Normalization` with the mean and standard deviation of the batch."""
    config = _norm_config(mean_level="batch", std_level="batch")
    whitened: Tensor = data.Normalization(config)(values, mask.float())
    return whitened


def overlong_penalty(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    """What `reward_overlong_penalty` adds to rewards of 0."""
    columns = torch.arange(int(lengths.max()))
    batch = {"rewards": torch.zeros(lengths.shape), "input_ids": lengths, "loss_mask": columns < lengths[:, None]}
    penalties: Tensor = functional.reward_overlong_penalty(batch, buffer, 1.0, max_length)["rewards"]
    return penalties


def _normalized(rewards: Tensor, **levels: Any) -> Tensor:
    config = _norm_config(group_size=rewards.shape[1], **levels)
    advantages: Tensor = data.Normalization(config)(rewards.reshape(-1))
    return advantages.reshape(rewards.shape)


def _norm_config(**options: Any) -> Any:
    """AReaL's `NormConfig` with its defaults."""
    defaults = {"mean_leave1out": False, "std_unbiased": True, "eps": 1e-5, "group_size": 1}
    return SimpleNamespace(**defaults | options)


def _actor_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
) -> Tensor:
    loss: Tensor = functional.ppo_actor_loss_fn(
        log_probs,
        proximal_logprobs=old_log_probs,
        old_logprobs=old_log_probs,
        advantages=advantages[:, None].expand_as(log_probs),
        eps_clip=clip_low,
        eps_clip_higher=clip_high,
        c_clip=dual_clip,
        loss_mask=mask.bool(),
    )[0]
    return loss


def _kl(log_probs: Tensor, ref_log_probs: Tensor, kind: str) -> Tensor:
    estimate: Tensor = data.KLEstimator(kind)(log_probs, ref_log_probs)
    return estimate
