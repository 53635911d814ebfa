"""The operations that an implementation may provide, each a typed stub with its contract as docstring.

Every operation is optional. Arguments are positional in the order of the signature, and may be given by name. For all:

- The result has the dtype and device of the first tensor, accumulated in float32 or better; bf16 and fp16 logits may
  give float32 as well.
- Inputs are not changed; the same call gives the same result; the global random state is left alone.
- The gradient flows into the first argument only, and only where the operation names one as differentiable. Everything
  else is a constant even if it carries a graph.
- What stands at a masked place, NaN and inf included, reaches nothing: no value, and a gradient of exactly 0 there.
- A row or batch without masked-in tokens gives 0 with zero gradient, still part of the graph.
- Finite unmasked inputs whose exp overflows, and NaN rewards, are outside the contract, but a NaN never reaches another
  group. B = 0, N = 0 and T = 0 are free.
- A ValueError names the argument, what it had and what was expected.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rlassay_spec.operations import (
    advantage,
    bandit,
    cs336,
    kl,
    log_prob,
    loss,
    number_search,
    returns,
    sampling,
    shaping,
    sorting,
    surrogate,
    trajectory,
)


@dataclass(frozen=True)
class Operation:
    """One row of the table: what it is called, where it belongs, what it takes and what it promises.

    `interface` is "own" for the operations of this project, else the name of the interface that they belong to.
    """

    name: str
    topic: str
    stub: Callable[..., Any]
    parameters: tuple[str, ...]
    differentiable: str | None
    interface: str = "own"

    @property
    def doc(self) -> str:
        """The whole contract."""
        return inspect.getdoc(self.stub) or ""

    @property
    def summary(self) -> str:
        """The contract's first line."""
        return self.doc.partition("\n")[0]

    @property
    def signature(self) -> inspect.Signature:
        """Parameters with their defaults and shapes."""
        return inspect.signature(self.stub)


def _operation(stub: Callable[..., Any], differentiable: str | None = None, interface: str = "own") -> Operation:
    return Operation(
        name=stub.__name__,
        topic=stub.__module__.rpartition(".")[2],
        stub=stub,
        parameters=tuple(inspect.signature(stub).parameters),
        differentiable=differentiable,
        interface=interface,
    )


_TABLE = (
    _operation(log_prob.token_log_probs, "logits"),
    _operation(log_prob.masked_log_probs, "logits"),
    _operation(log_prob.entropy, "logits"),
    _operation(log_prob.action_log_probs, "log_probs"),
    _operation(trajectory.response_mask),
    _operation(returns.reward_to_go),
    _operation(returns.gae),
    _operation(advantage.centered_advantages),
    _operation(advantage.grpo_advantages),
    _operation(advantage.rloo_advantages),
    _operation(advantage.max_advantages),
    _operation(advantage.keep_groups),
    _operation(loss.aggregate, "values"),
    _operation(loss.sft_loss, "log_probs"),
    _operation(loss.rest_loss, "log_probs"),
    _operation(loss.reinforce_loss, "log_probs"),
    _operation(loss.policy_gradient_loss, "log_probs"),
    _operation(loss.grpo_loss, "log_probs"),
    _operation(loss.dr_grpo_loss, "log_probs"),
    _operation(loss.clipped_loss, "log_probs"),
    _operation(kl.kl_k1, "log_probs"),
    _operation(kl.kl_k2, "log_probs"),
    _operation(kl.kl_k3, "log_probs"),
    _operation(loss.grpo_objective, "log_probs"),
    _operation(loss.microbatch_loss, "log_probs"),
    _operation(loss.value_loss, "values"),
    _operation(bandit.expected_return),
    _operation(bandit.bandit_gradient),
    _operation(bandit.optimal_baseline),
    _operation(number_search.number_search),
    _operation(sorting.position_reward),
    _operation(sorting.inclusion_order_reward),
    _operation(surrogate.dual_clip_loss, "log_probs"),
    _operation(surrogate.gspo_loss, "log_probs"),
    _operation(surrogate.entropy_bonus, "logits"),
    _operation(surrogate.importance_weights),
    _operation(shaping.whiten),
    _operation(shaping.kl_rewards),
    _operation(shaping.overlong_penalty),
    _operation(sampling.truncated_log_probs, "logits"),
)

OPERATIONS: Final[dict[str, Operation]] = {operation.name: operation for operation in _TABLE}
"""Every operation by name, in the order of the table."""

_CS336_TABLE = (
    _operation(cs336.tokenize_prompt_and_output, interface="cs336"),
    _operation(cs336.compute_group_normalized_rewards, interface="cs336"),
    _operation(cs336.compute_entropy, "logits", "cs336"),
    _operation(cs336.get_response_log_probs, "model", "cs336"),
    _operation(cs336.compute_naive_policy_gradient_loss, "policy_log_probs", "cs336"),
    _operation(cs336.compute_grpo_clip_loss, "policy_log_probs", "cs336"),
    _operation(cs336.compute_policy_gradient_loss, "policy_log_probs", "cs336"),
    _operation(cs336.masked_mean, "tensor", "cs336"),
    _operation(cs336.masked_normalize, "tensor", "cs336"),
    _operation(cs336.sft_microbatch_train_step, "policy_log_probs", "cs336"),
    _operation(cs336.grpo_microbatch_train_step, "policy_log_probs", "cs336"),
    _operation(cs336.compute_rollout_rewards, interface="cs336"),
    _operation(cs336.compute_group_normalized_rewards_2026, interface="cs336"),
    _operation(cs336.compute_policy_gradient_loss_2026, "policy_log_probs", "cs336"),
    _operation(cs336.aggregate_loss_across_microbatch, "per_token_policy_gradient_loss", "cs336"),
    _operation(cs336.grpo_train_step, "model", "cs336"),
)

CS336_OPERATIONS: Final[dict[str, Operation]] = {operation.name: operation for operation in _CS336_TABLE}
"""The functions of the CS336 alignment assignment by name; no operation of `OPERATIONS` is among them."""
