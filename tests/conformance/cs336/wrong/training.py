"""Wrong training steps."""

import torch

from tests.conformance.cs336 import plain_2025 as right
from tests.conformance.cs336 import plain_2026 as later
from tests.conformance.cs336.wrong.declare import wrong

STEP = "grpo_train_step"


def clip_all(model, most):
    torch.nn.utils.clip_grad_norm_(model.parameters(), most)


def divide_for_sequences(loss, steps, normalization):
    return loss / steps if normalization == "sequence" else loss


def training_step(
    *,
    advantages=later.compute_group_normalized_rewards,
    loss=later.compute_policy_gradient_loss,
    aggregate=later.aggregate_loss_across_microbatch,
    divide=divide_for_sequences,
    clip=clip_all,
    zero_grad=True,
    steps=True,
    clip_each=False,
):
    """The right step, with one of its parts exchanged."""

    def grpo_train_step(
        model,
        tokenizer,
        optimizer,
        gradient_accumulation_steps,
        max_grad_norm,
        reward_fn,
        repeated_prompts,
        rollout_responses,
        repeated_ground_truths,
        group_size,
        baseline,
        advantage_eps,
        advantage_normalizer,
        importance_reweighting_method,
        old_log_probs,
        cliprange,
        loss_normalization,
        normalization_constant,
    ):
        rewards, _ = later.compute_rollout_rewards(reward_fn, rollout_responses, repeated_ground_truths)
        weights, _ = advantages(rewards, group_size, baseline, advantage_eps, advantage_normalizer)
        batch = later.tokenize_prompt_and_output(repeated_prompts, rollout_responses, tokenizer)
        size = len(repeated_prompts) // gradient_accumulation_steps
        if zero_grad:
            optimizer.zero_grad()
        total = 0.0
        for start in range(0, len(repeated_prompts), size):
            rows = slice(start, start + size)
            part = {name: tensor[rows] for name, tensor in batch.items()}
            new = later.get_response_log_probs(model, part["input_ids"], part["labels"])["log_probs"]
            old = None if old_log_probs is None else old_log_probs[rows]
            per_token, _ = loss(
                weights[rows], new, importance_reweighting_method, old, cliprange, part["response_mask"]
            )
            one = aggregate(per_token, part["response_mask"], loss_normalization, normalization_constant)
            one = divide(one, gradient_accumulation_steps, loss_normalization)
            one.backward()
            if clip_each:
                clip(model, max_grad_norm)
            total += one.detach()
        clip(model, max_grad_norm)
        if steps:
            optimizer.step()
        return total, {}

    return grpo_train_step


def without_scaling(loss, steps, normalization):
    return loss


def scaled_twice(loss, steps, normalization):
    return loss / steps**2 if normalization == "sequence" else loss


def always_scaled(loss, steps, normalization):
    return loss / steps


def ascending(loss, steps, normalization):
    return -divide_for_sequences(loss, steps, normalization)


def token_mean(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    if loss_normalization == "sequence":
        return right.masked_mean(per_token_policy_gradient_loss, mask)
    return later.aggregate_loss_across_microbatch(
        per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant
    )


def clip_nothing(model, most):
    pass


def clip_apart(model, most):
    for parameter in model.parameters():
        torch.nn.utils.clip_grad_norm_([parameter], most)


def always_normalised(raw_rewards, group_size, baseline, advantage_eps, advantage_normalizer):
    return later.compute_group_normalized_rewards(raw_rewards, group_size, "mean", advantage_eps, "std")


def population(raw_rewards, group_size, baseline, advantage_eps, advantage_normalizer):
    groups = raw_rewards.reshape(-1, group_size)
    deviation = groups.std(dim=1, keepdim=True, unbiased=False)
    return ((groups - groups.mean(dim=1, keepdim=True)) / (deviation + advantage_eps)).flatten(), {}


def never_weighted(weights, new, method, old, cliprange, mask):
    return later.compute_policy_gradient_loss(weights, new)


def declare(name, law, says, **parts):
    step = training_step(**parts)
    step.__name__ = name
    wrong(STEP, law, says)(step)


declare("step_not_divided", "none", "not dividing by gradient_accumulation_steps", divide=without_scaling)
declare("step_divided_twice", "none", "dividing once too often", divide=scaled_twice)
declare("step_of_the_wrong_sign", "none", "ascending the loss", divide=ascending)
declare("step_per_token", "none", "the mean over all tokens of each microbatch", aggregate=token_mean)
declare("step_not_taken", "none", "taking no step", steps=False)
declare("step_with_population_deviation", "none", "the population standard deviation", advantages=population)
declare("step_without_zero_grad", "second-step", "keeping the gradient of the first step", zero_grad=False)
declare("step_without_clipping", "gradient-norm", "leaving the gradient norm unbounded", clip=clip_nothing)
declare("step_clipped_apart", "gradient-norm", "bounding the norm of each parameter by itself", clip=clip_apart)
declare("step_clipped_each_time", "gradient-norm", "but should be", clip_each=True)
declare("step_scaled_under_constant", "constant-normalization", "dividing once too often", divide=always_scaled)
declare("step_always_normalised", "normalizer-none", "but should be", advantages=always_normalised)
declare("step_normalised_by_deviation", "normalizer-mean", "but should be", advantages=always_normalised)
declare("step_with_a_baseline", "baseline-none", "but should be", advantages=always_normalised)
for _method in ("noclip", "grpo", "gspo"):
    declare(f"step_without_weights_{_method}", _method, "but should be", loss=never_weighted)


@wrong(STEP, "loss", "not dividing by gradient_accumulation_steps")
def step_that_logs_the_sum(**arguments):
    total, metadata = later.grpo_train_step(**arguments)
    return total * arguments["gradient_accumulation_steps"], metadata
