"""Wrong microbatch steps."""

from tests.conformance.cs336 import plain_2025 as right
from tests.conformance.cs336.wrong.declare import wrong

SFT = "sft_microbatch_train_step"
GRPO = "grpo_microbatch_train_step"


def sft_loss(policy_log_probs, response_mask, normalize_constant):
    """Not yet divided by the accumulation steps."""
    return right.masked_normalize(-policy_log_probs, response_mask, normalize_constant, dim=-1).mean()


def grpo_loss(policy_log_probs, response_mask, loss_type, **read):
    """Not yet divided by the accumulation steps."""
    per_token, _ = right.compute_policy_gradient_loss(policy_log_probs, loss_type, **read)
    return right.masked_mean(per_token, response_mask, dim=1).mean()


@wrong(SFT, "value", "not dividing by gradient_accumulation_steps")
def sft_not_divided(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    loss = sft_loss(policy_log_probs, response_mask, normalize_constant)
    loss.backward()
    return loss, {}


@wrong(SFT, "value", "dividing by gradient_accumulation_steps twice")
def sft_divided_twice(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    loss = sft_loss(policy_log_probs, response_mask, normalize_constant) / gradient_accumulation_steps**2
    loss.backward()
    return loss, {}


@wrong(SFT, "gradient", "gradient of sft_microbatch_train_step in policy_log_probs")
def sft_differentiates_too_much(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    loss = sft_loss(policy_log_probs, response_mask, normalize_constant)
    loss.backward()
    return loss / gradient_accumulation_steps, {}


@wrong(SFT, "gradient", "it does not call backward")
def sft_without_backward(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    return sft_loss(policy_log_probs, response_mask, normalize_constant) / gradient_accumulation_steps, {}


@wrong(SFT, "value", "leaving the minus sign out")
def sft_of_the_other_sign(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    loss = -sft_loss(policy_log_probs, response_mask, normalize_constant) / gradient_accumulation_steps
    loss.backward()
    return loss, {}


@wrong(SFT, "value", "raised RuntimeError")
def sft_of_a_detached_loss(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    loss = sft_loss(policy_log_probs, response_mask, normalize_constant).detach() / gradient_accumulation_steps
    loss.backward()
    return loss, {}


@wrong(GRPO, "value", "not dividing by gradient_accumulation_steps")
def grpo_not_divided(policy_log_probs, response_mask, gradient_accumulation_steps, loss_type, **read):
    loss = grpo_loss(policy_log_probs, response_mask, loss_type, **read)
    loss.backward()
    return loss, {}


@wrong(GRPO, "value", "dividing by gradient_accumulation_steps twice")
def grpo_divided_twice(policy_log_probs, response_mask, gradient_accumulation_steps, loss_type, **read):
    loss = grpo_loss(policy_log_probs, response_mask, loss_type, **read) / gradient_accumulation_steps**2
    loss.backward()
    return loss, {}


@wrong(GRPO, "gradient", "it does not call backward")
def grpo_without_backward(policy_log_probs, response_mask, gradient_accumulation_steps, loss_type, **read):
    return grpo_loss(policy_log_probs, response_mask, loss_type, **read) / gradient_accumulation_steps, {}


@wrong(GRPO, "value", "the mean over all tokens of the microbatch")
def grpo_over_all_tokens(policy_log_probs, response_mask, gradient_accumulation_steps, loss_type, **read):
    per_token, _ = right.compute_policy_gradient_loss(policy_log_probs, loss_type, **read)
    loss = right.masked_mean(per_token, response_mask) / gradient_accumulation_steps
    loss.backward()
    return loss, {}


@wrong(GRPO, "gradient", "gradient of grpo_microbatch_train_step in policy_log_probs")
def grpo_calls_backward_twice(policy_log_probs, response_mask, gradient_accumulation_steps, loss_type, **read):
    loss = grpo_loss(policy_log_probs, response_mask, loss_type, **read) / gradient_accumulation_steps
    loss.backward(retain_graph=True)
    loss.backward()
    return loss, {}
