"""torchrl's objectives for language models (tried with torchrl 0.14.1) under their default `token_mean`.

`GRPOLoss` runs whole, on an actor whose distribution gives the log-probs that are handed over; it refuses old log-probs
that carry a graph. Groups of one, whose standard deviation is NaN, are left to the caller. Generalised advantages know
no mask: rows go in without what it hides. Not mapped: the KL of `GRPOLoss`, whose mean counts masked places as 0;
`reward2go`, which raises for γ below 1e-7; `CISPOLoss`, which has no counterpart here.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torchrl.modules.distributions import LLMMaskedCategorical
from torchrl.objectives import llm
from torchrl.objectives.llm.grpo import TensorDict
from torchrl.objectives.value import functional

CONVENTION: dict[str, Any] = {
    "name": "torchrl",
    "std_ddof": 1,
    "std_eps": 1e-6,
    "std_eps_place": "floor",
    "aggregation": "token_mean",
    "singleton_group": "free",
    "old_log_probs": "caller",
}


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """`LLMMaskedCategorical.log_prob` of the shifted logits, divided by the temperature, without a mask."""
    return masked_log_probs(logits / temperature, token_ids, torch.ones_like(token_ids[:, 1:]))


def masked_log_probs(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    """`LLMMaskedCategorical.log_prob` of the shifted logits."""
    log_probs: Tensor = LLMMaskedCategorical(logits[:, :-1], mask.bool()).log_prob(token_ids[:, 1:])
    return log_probs


def entropy(logits: Tensor) -> Tensor:
    """`LLMMaskedCategorical.entropy` without a mask."""
    everywhere = torch.ones(logits.shape[:-1], dtype=torch.bool)
    entropies: Tensor = LLMMaskedCategorical(logits, everywhere).entropy()
    return entropies


def entropy_bonus(logits: Tensor, mask: Tensor) -> Tensor:
    """The entropy loss of `GRPOLoss` with a coefficient of 1, which torchrl adds with a minus."""
    distribution = LLMMaskedCategorical(logits[:, :-1], mask.bool())
    nothing = torch.zeros_like(logits[:, :-1, 0])
    losses = _losses(distribution, nothing.detach(), nothing[:, 0], entropy_bonus=True, entropy_coeff=1.0)
    bonus: Tensor = -losses.loss_entropy
    return bonus


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    """`generalized_advantage_estimate` of the masked-in steps of each row, which ends with the last of them."""
    advantages = torch.zeros_like(rewards)
    for row, shown in enumerate(mask.bool()):
        reward, value = rewards[row, shown], values[row, shown]
        following = torch.cat([value[1:], torch.zeros_like(value[:1])])
        steps = (value, following, reward, _at_the_end(reward))
        estimate, _ = functional.generalized_advantage_estimate(gamma, lam, *(step[:, None] for step in steps))
        advantages[row, shown] = estimate[:, 0]
    return advantages


def grpo_advantages(rewards: Tensor) -> Tensor:
    """`MCAdvantage` on trajectories of one step, the row as the prompt."""
    groups, size = rewards.shape
    query = torch.arange(groups).repeat_interleave(size)
    steps = {"reward": rewards.reshape(-1, 1, 1), "done": torch.ones(groups * size, 1, 1, dtype=torch.bool)}
    rollouts = TensorDict({"query": query[:, None, None], "next": steps}, batch_size=[groups * size, 1])
    scored = llm.MCAdvantage(grpo_size=size).inv(rollouts)
    advantages: Tensor = scored["advantage"]
    return advantages.reshape(groups, size)


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """The objective of `GRPOLoss`."""
    distribution = SimpleNamespace(mask=mask.bool(), log_prob=lambda tokens: log_probs)
    options = {"clip_epsilon": (clip_low, clip_high), "entropy_bonus": False}
    objective: Tensor = _losses(distribution, old_log_probs, advantages, **options).loss_objective
    return objective


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """`k3_kl_token_estimate`."""
    estimate: Tensor = llm.k3_kl_token_estimate(ref_log_probs, log_probs)
    return estimate


def _losses(distribution: Any, old_log_probs: Tensor, advantages: Tensor, **options: Any) -> Any:
    """What `GRPOLoss` returns of an actor with this distribution."""
    actor = SimpleNamespace(get_dist=lambda *_, **__: distribution)
    batch = {
        ("tokens", "full"): torch.zeros_like(old_log_probs, dtype=torch.int64),
        ("log_probs", "full"): old_log_probs,
        "advantage": advantages[:, None, None].expand(*old_log_probs.shape, 1),
    }
    return llm.GRPOLoss(actor, **options)(TensorDict(batch, batch_size=old_log_probs.shape[:1]))


def _at_the_end(rewards: Tensor) -> Tensor:
    return torch.arange(rewards.shape[-1]).expand(rewards.shape) == rewards.shape[-1] - 1
