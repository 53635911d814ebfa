"""OpenRLHF's PPO and GRPO mathematics (tried with openrlhf 0.11.2) under its default `token-mean` aggregation.

`openrlhf.models.utils` and `openrlhf.models.loss` are called as the actor calls them; advantages come from the methods
of `RemoteExperienceMaker`, which get a stand-in for what they read of the trainer. The reward clip, which OpenRLHF
applies to advantages, is off. The KL is computed in float32, every estimator clamped to ±10, and log-ratios to ±20; the
actor multiplies log-probs by the mask, and callers detach old log-probs. Advantages are whitened by another convention
(ddof 0, a floor of 1e-8 under the variance) than within groups, so `whiten` is left out.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rlassay_impl.libraries.shells import shells

with shells(
    *("openrlhf", "openrlhf.models", "openrlhf.utils", "openrlhf.trainer", "openrlhf.trainer.ray"),
    stubs=("deepspeed", "ray", "transformers", "openrlhf.trainer.ray.launcher"),
):
    from openrlhf.models import loss, utils
    from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
    from openrlhf.trainer.ppo_utils.length_penalty import apply_overlong_penalty

CONVENTION: dict[str, Any] = {
    "name": "OpenRLHF",
    "std_ddof": 1,
    "std_eps": 1e-9,
    "std_eps_place": "added",
    "aggregation": "token_mean",
    "empty_rows": "dropped",
    "singleton_group": "free",
    "old_log_probs": "caller",
    "k3_clamp": 10.0,
    "log_ratio_clamp": 20.0,
    "empty_mean": "free",
}


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """`log_probs_from_logits` of a copy of the shifted logits, which it divides by the temperature in place."""
    log_probs: Tensor = utils.log_probs_from_logits(logits[:, :-1].clone(), token_ids[:, 1:], temperature)
    return log_probs


def entropy(logits: Tensor) -> Tensor:
    """`compute_entropy`, run as it is written instead of compiled."""
    with torch.compiler.set_stance("force_eager"):
        entropies: Tensor = utils.compute_entropy(logits)
    return entropies


def entropy_bonus(logits: Tensor, mask: Tensor) -> Tensor:
    """`aggregate_loss` of the entropies without the last column, as in the actor's training step."""
    bonus: Tensor = loss.aggregate_loss(entropy(logits)[:, :-1], mask)
    return bonus


def centered_advantages(rewards: Tensor) -> Tensor:
    """`compute_advantages_and_returns` with the estimator `dr_grpo`, on responses of one token."""
    return _advantages(rewards, "dr_grpo")


def grpo_advantages(rewards: Tensor) -> Tensor:
    """`compute_advantages_and_returns` with the estimator `group_norm`, on responses of one token."""
    return _advantages(rewards, "group_norm")


def rloo_advantages(rewards: Tensor) -> Tensor:
    """`compute_advantages_and_returns` with the estimator `rloo`, on responses of one token."""
    return _advantages(rewards, "rloo")


def reward_to_go(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    """`get_cumulative_returns` with nothing masked."""
    returns: Tensor = RemoteExperienceMaker.get_cumulative_returns(None, rewards, torch.ones_like(rewards), gamma)
    return returns


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    """`get_advantages_and_returns`."""
    estimates: Tensor = RemoteExperienceMaker.get_advantages_and_returns(None, values, rewards, mask, gamma, lam)[0]
    return estimates


def sft_loss(log_probs: Tensor, mask: Tensor) -> Tensor:
    """`SFTLoss`."""
    nll: Tensor = loss.SFTLoss()(log_probs, mask)
    return nll


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """`PolicyLoss`."""
    return _policy_loss(loss.PolicyLoss(clip_low, clip_high), log_probs, old_log_probs, mask, advantages)


def dual_clip_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
) -> Tensor:
    """`PolicyLoss` with its dual clip."""
    policy_loss = loss.PolicyLoss(clip_low, clip_high, dual_clip=dual_clip)
    return _policy_loss(policy_loss, log_probs, old_log_probs, mask, advantages)


def gspo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """`PolicyLoss` of type `gspo`."""
    policy_loss = loss.PolicyLoss(clip_low, clip_high, policy_loss_type="gspo")
    return _policy_loss(policy_loss, log_probs, old_log_probs, mask, advantages)


def kl_k1(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`compute_approx_kl` of kind `k1`."""
    return _kl(log_probs, ref_log_probs, "k1")


def kl_k2(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`compute_approx_kl` of kind `k2`."""
    return _kl(log_probs, ref_log_probs, "k2")


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`compute_approx_kl` of kind `k3`."""
    return _kl(log_probs, ref_log_probs, "k3")


def kl_rewards(rewards: Tensor, log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, beta: float) -> Tensor:
    """`compute_reward` on k1 of log-probs that are 0 at masked places, as the actor returns them."""
    shaped: Tensor = utils.compute_reward(rewards, beta, _kl(log_probs * mask, ref_log_probs * mask, "k1"), mask)
    return shaped


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float | None = None) -> Tensor:
    """`ValueLoss`."""
    error: Tensor = loss.ValueLoss(clip)(values, old_values, returns, mask)
    return error


def overlong_penalty(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    """What `apply_overlong_penalty` adds to rewards of 0."""
    experience = SimpleNamespace(response_length=lengths, rewards=torch.zeros(lengths.shape))
    apply_overlong_penalty([experience], max_length, buffer)
    penalties: Tensor = experience.rewards
    return penalties


def _advantages(rewards: Tensor, estimator: str) -> Tensor:
    size = rewards.shape[1]
    flat = rewards.reshape(-1)
    one_token = torch.ones_like(flat)[:, None]
    experience = SimpleNamespace(rewards=flat, index=range(len(flat)), kl=0 * one_token, action_mask=one_token, info={})
    args = SimpleNamespace(
        algo=SimpleNamespace(advantage=SimpleNamespace(estimator=estimator, gamma=1.0)),
        rollout=SimpleNamespace(n_samples_per_prompt=size),
        reward=SimpleNamespace(clip_range=None),
    )
    maker = SimpleNamespace(
        strategy=SimpleNamespace(args=args),
        advantage_estimator=estimator,
        kl_ctl=SimpleNamespace(value=0.0),
        get_cumulative_returns=lambda *given: RemoteExperienceMaker.get_cumulative_returns(None, *given),
    )
    [done] = RemoteExperienceMaker.compute_advantages_and_returns(maker, [experience])
    advantages: Tensor = done.advantages
    return advantages.reshape(-1, size)


def _policy_loss(
    policy_loss: Any, log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor
) -> Tensor:
    value: Tensor = policy_loss(log_probs, old_log_probs, advantages[:, None].expand_as(log_probs), mask)[0]
    return value


def _kl(log_probs: Tensor, ref_log_probs: Tensor, kind: str) -> Tensor:
    estimate: Tensor = utils.compute_approx_kl(log_probs, ref_log_probs, kl_estimator=kind)
    return estimate
