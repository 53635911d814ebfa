"""The minimal reference: every operation of the specification in torch, under the lecture convention.

One module per topic. What is here is written to be read: `rlassay check rlassay_impl` judges it like any other subject.
"""

from rlassay_impl.advantage import (
    centered_advantages,
    grpo_advantages,
    keep_groups,
    max_advantages,
    rloo_advantages,
)
from rlassay_impl.bandit import bandit_gradient, expected_return, optimal_baseline
from rlassay_impl.kl import kl_k1, kl_k2, kl_k3
from rlassay_impl.log_prob import action_log_probs, entropy, masked_log_probs, token_log_probs
from rlassay_impl.loss import (
    aggregate,
    clipped_loss,
    dr_grpo_loss,
    grpo_loss,
    grpo_objective,
    microbatch_loss,
    policy_gradient_loss,
    reinforce_loss,
    rest_loss,
    sft_loss,
    value_loss,
)
from rlassay_impl.number_search import number_search
from rlassay_impl.returns import gae, reward_to_go
from rlassay_impl.sampling import truncated_log_probs
from rlassay_impl.shaping import kl_rewards, overlong_penalty, whiten
from rlassay_impl.sorting import inclusion_order_reward, position_reward
from rlassay_impl.surrogate import dual_clip_loss, entropy_bonus, gspo_loss, importance_weights
from rlassay_impl.trajectory import response_mask

__all__ = [
    "action_log_probs",
    "aggregate",
    "bandit_gradient",
    "centered_advantages",
    "clipped_loss",
    "dr_grpo_loss",
    "dual_clip_loss",
    "entropy",
    "entropy_bonus",
    "expected_return",
    "gae",
    "grpo_advantages",
    "grpo_loss",
    "grpo_objective",
    "gspo_loss",
    "importance_weights",
    "inclusion_order_reward",
    "keep_groups",
    "kl_k1",
    "kl_k2",
    "kl_k3",
    "kl_rewards",
    "masked_log_probs",
    "max_advantages",
    "microbatch_loss",
    "number_search",
    "optimal_baseline",
    "overlong_penalty",
    "policy_gradient_loss",
    "position_reward",
    "reinforce_loss",
    "response_mask",
    "rest_loss",
    "reward_to_go",
    "rloo_advantages",
    "sft_loss",
    "token_log_probs",
    "truncated_log_probs",
    "value_loss",
    "whiten",
]
