"""Oracle of a whole training step, under plain gradient descent."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.oracles.cs336.losses import importance_weighted
from rlassay_spec.oracles.cs336.means import GUARD, aggregate_loss_across_microbatch
from rlassay_spec.oracles.cs336.rewards import (
    RewardFunction,
    compute_group_normalized_rewards_2026,
    compute_rollout_rewards,
)
from rlassay_spec.oracles.cs336.steps import composed
from rlassay_spec.oracles.cs336.tokens import (
    LinearModel,
    Tokenizer,
    flat,
    model_log_probs,
    tokenize_prompt_and_output,
)
from rlassay_spec.oracles.expected import Expected, FloatArray, Gradient
from rlassay_spec.oracles.inputs import floats


class Descent(Protocol):
    """θ ← θ − learning_rate · g."""

    @property
    def learning_rate(self) -> float:
        """Step size."""
        ...


def grpo_train_step(
    model: LinearModel,
    tokenizer: Tokenizer,
    optimizer: Descent,
    gradient_accumulation_steps: int,
    max_grad_norm: float,
    reward_fn: RewardFunction,
    repeated_prompts: Sequence[str],
    rollout_responses: Sequence[str],
    repeated_ground_truths: Sequence[str],
    group_size: int,
    baseline: str,
    advantage_eps: float,
    advantage_normalizer: str,
    importance_reweighting_method: str,
    old_log_probs: npt.ArrayLike | None,
    cliprange: float | None,
    loss_normalization: str,
    normalization_constant: float | None,
    *,
    convention: Convention = LECTURE,
) -> dict[str, Expected]:
    """Loss of the whole batch, and both parameters after the step, one after the other.

    The number of microbatches changes nothing.
    """
    if len(repeated_prompts) % gradient_accumulation_steps:
        raise ValueError(
            f"gradient_accumulation_steps: is {gradient_accumulation_steps}, expected a divisor of the number of "
            f"rollouts, {len(repeated_prompts)}"
        )
    batch = tokenize_prompt_and_output(repeated_prompts, rollout_responses, tokenizer)
    input_ids, labels = (np.nan_to_num(batch[name].value).astype(np.int64) for name in ("input_ids", "labels"))
    mask = batch["response_mask"].value
    rewards = compute_rollout_rewards(reward_fn, rollout_responses, repeated_ground_truths)["raw_rewards"].value
    advantages = compute_group_normalized_rewards_2026(
        rewards, group_size, baseline, advantage_eps, advantage_normalizer, convention=convention
    )["advantages"]
    scored = model_log_probs(model, input_ids, labels)
    old = None if old_log_probs is None else floats("old_log_probs", old_log_probs, "BT", mask.shape)
    per_token = importance_weighted(
        importance_reweighting_method,
        advantages.value,
        scored.value,
        old,
        cliprange,
        mask,
        np.maximum(advantages.scale, np.abs(advantages.value)),
        scored.scale,
    )
    aggregated = aggregate_loss_across_microbatch(per_token.value, mask, loss_normalization, normalization_constant)
    loss = composed(per_token, aggregated)
    assert loss.pullback is not None and scored.pullback is not None
    into_log_probs = loss.pullback(1.0)
    exact, rounding = scored.pullback(into_log_probs.value), scored.pullback(into_log_probs.scale)
    gradient = Gradient(exact.value, exact.scale + rounding.scale, exact.kink)
    step, step_scale = _bounded(gradient, max_grad_norm)
    before = flat(model)
    after = before - optimizer.learning_rate * step
    scale = np.abs(before) + optimizer.learning_rate * step_scale
    terms = max(mask.size, scored.terms)
    return {"loss": Expected(loss.value, loss.scale, terms), "parameters": Expected(after, scale, terms)}


def _bounded(gradient: Gradient, most: float) -> tuple[FloatArray, FloatArray]:
    """g · min(1, most / (‖g‖ + 1e-6)); without that 1e-6 is as right."""
    norm = float(np.linalg.norm(gradient.value))
    factor = min(1.0, most / (norm + 1e-6))
    if norm == 0 or factor == 1:
        return gradient.value, gradient.scale
    loss_of_digits = np.abs(gradient.value) * (float(np.linalg.norm(gradient.scale)) + GUARD) / norm
    return factor * gradient.value, factor * (gradient.scale + loss_of_digits)
