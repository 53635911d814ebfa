"""torchtune's PPO mathematics (tried with torchtune 0.6.1), which averages over the tokens of a batch.

The functions of `torchtune.rlhf` are called as its PPO recipe calls them. Not mapped: the policy's part of `PPOLoss`,
whose clip is the same on both sides; advantages and rewards along a trajectory, whose masks know padding at the end
only, and rows that are not empty; so `whiten` is what is left of `estimate_advantages` at γ = 0.
"""

from typing import Any

import torch
from torch import Tensor
from torchtune import rlhf
from torchtune.rlhf.loss import PPOLoss

CONVENTION: dict[str, Any] = {
    "name": "torchtune",
    "std_ddof": 1,
    "std_eps": 1e-8,
    "std_eps_place": "inside",
    "aggregation": "token_mean",
}


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """`logits_to_logprobs` on the shifted logits."""
    log_probs: Tensor = rlhf.logits_to_logprobs(logits[:, :-1], token_ids[:, 1:], temperature)
    return log_probs


def kl_k1(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """The KL that `get_rewards_ppo` returns beside the rewards."""
    scores = torch.zeros_like(log_probs[:, 0])
    kl: Tensor = rlhf.get_rewards_ppo(scores, log_probs, ref_log_probs, kl_coeff=0.0)[1]
    return kl


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float | None = None) -> Tensor:
    """`PPOLoss` without a policy's part; torchtune always clips, so no clip is an infinite range."""
    ratios = torch.zeros_like(values)
    ppo_loss = PPOLoss(value_clip_range=float("inf") if clip is None else clip, value_coeff=1.0)
    loss: Tensor = ppo_loss(ratios, ratios, ratios, old_values, values, returns, mask, mask)[0]
    return loss


def whiten(values: Tensor, mask: Tensor) -> Tensor:
    """What `estimate_advantages` makes of advantages: γ = 0 and value estimates of 0 leave the rewards as such."""
    baseline = torch.zeros_like(values)
    whitened: Tensor = rlhf.estimate_advantages(baseline, values, 0.0, 0.0, masks=mask.bool())[0]
    return whitened
