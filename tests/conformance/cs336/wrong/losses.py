"""Wrong losses per token."""

from typing import Any

import torch

from tests.conformance.cs336 import plain_2025 as right
from tests.conformance.cs336 import plain_2026 as later
from tests.conformance.cs336.wrong.declare import Function, wrong

NAIVE = "compute_naive_policy_gradient_loss"


@wrong(NAIVE, "value", "leaving the minus sign out")
def positive_loss(raw_rewards_or_advantages, policy_log_probs):
    return raw_rewards_or_advantages * policy_log_probs


@wrong(NAIVE, "gradient", "the result is cut off from it")
def detached_loss(raw_rewards_or_advantages, policy_log_probs):
    return -(raw_rewards_or_advantages * policy_log_probs).detach()


@wrong(NAIVE, "value", "has shape")
def averaged_too_soon(raw_rewards_or_advantages, policy_log_probs):
    return -(raw_rewards_or_advantages * policy_log_probs).mean(dim=-1)


CLIP = "compute_grpo_clip_loss"


def terms(advantages, log_ratio, cliprange):
    """ρ Â and clip(ρ) Â."""
    ratio = log_ratio.exp()
    return ratio * advantages, ratio.clamp(1 - cliprange, 1 + cliprange) * advantages


@wrong(CLIP, "value", "taking the larger of the two terms")
def larger_term(advantages, policy_log_probs, old_log_probs, cliprange):
    return -torch.maximum(*terms(advantages, policy_log_probs - old_log_probs, cliprange)), {}


@wrong(CLIP, "value", "taking the larger of the two terms")
def sign_pulled_through_min(advantages, policy_log_probs, old_log_probs, cliprange):
    free, bounded = terms(advantages, policy_log_probs - old_log_probs, cliprange)
    return torch.minimum(-free, -bounded), {}


@wrong(CLIP, "value", "leaving the minus sign out")
def surrogate_as_loss(advantages, policy_log_probs, old_log_probs, cliprange):
    return torch.minimum(*terms(advantages, policy_log_probs - old_log_probs, cliprange)), {}


@wrong(CLIP, "value", "the ratio π_old/π, upside down,")
def inverted_ratio(advantages, policy_log_probs, old_log_probs, cliprange):
    return -torch.minimum(*terms(advantages, old_log_probs - policy_log_probs, cliprange)), {}


@wrong(CLIP, "value", "the clipped ratio alone")
def clipped_alone(advantages, policy_log_probs, old_log_probs, cliprange):
    return -terms(advantages, policy_log_probs - old_log_probs, cliprange)[1], {}


@wrong(CLIP, "value", "the ratio without clipping")
def not_clipped(advantages, policy_log_probs, old_log_probs, cliprange):
    return -terms(advantages, policy_log_probs - old_log_probs, cliprange)[0], {}


@wrong(CLIP, "gradient", "gradient of compute_grpo_clip_loss: loss in policy_log_probs")
def live_beyond_the_bounds(advantages, policy_log_probs, old_log_probs, cliprange):
    loss, metadata = right.compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange)
    ratio = (policy_log_probs - old_log_probs).exp()
    return loss.detach() - advantages * (ratio - ratio.detach()), metadata


@wrong(CLIP, "value", "but should return (loss, metadata)")
def loss_without_metadata(advantages, policy_log_probs, old_log_probs, cliprange):
    return right.compute_grpo_clip_loss(advantages, policy_log_probs, old_log_probs, cliprange)[0]


BY_TYPE = "compute_policy_gradient_loss"


@wrong(BY_TYPE, "no_baseline", "the advantages instead of the rewards")
def always_advantages(policy_log_probs, loss_type, raw_rewards, advantages, old_log_probs, cliprange):
    weights = raw_rewards if advantages is None else advantages
    return right.compute_policy_gradient_loss(policy_log_probs, loss_type, weights, weights, old_log_probs, cliprange)


@wrong(BY_TYPE, "reinforce_with_baseline", "the rewards instead of the advantages")
def always_rewards(policy_log_probs, loss_type, raw_rewards, advantages, old_log_probs, cliprange):
    weights = advantages if raw_rewards is None else raw_rewards
    return right.compute_policy_gradient_loss(policy_log_probs, loss_type, weights, weights, old_log_probs, cliprange)


@wrong(BY_TYPE, "grpo_clip", "the ratio π_old/π, upside down,")
def inverted_by_type(policy_log_probs, loss_type, raw_rewards, advantages, old_log_probs, cliprange):
    if loss_type == "grpo_clip":
        return inverted_ratio(advantages, policy_log_probs, old_log_probs, cliprange)
    return right.compute_policy_gradient_loss(
        policy_log_probs, loss_type, raw_rewards, advantages, old_log_probs, cliprange
    )


def dead(operation: str, function: Function, law: str) -> None:
    """Declare the function with its first result detached."""

    def detached(**arguments: Any) -> Any:
        loss, metadata = function(**arguments)
        return loss.detach(), metadata

    detached.__name__ = f"detached_{law}"
    wrong(operation, f"{law}-gradient", "the result is cut off from it")(detached)


for _law in ("no_baseline", "reinforce_with_baseline", "grpo_clip"):
    dead(BY_TYPE, right.compute_policy_gradient_loss, _law)

BY_METHOD = "compute_policy_gradient_loss_2026"

for _law in ("none", "noclip", "grpo", "gspo"):
    dead(BY_METHOD, later.compute_policy_gradient_loss, _law)


def by_method(method, says, loss):
    """Declare a wrong loss for one method."""

    def changed(
        raw_rewards_or_advantages,
        policy_log_probs,
        importance_reweighting_method="none",
        old_log_probs=None,
        cliprange=None,
        response_mask=None,
    ):
        weights = raw_rewards_or_advantages.reshape(-1, 1)
        return loss(weights, policy_log_probs, old_log_probs, cliprange, response_mask), {}

    changed.__name__ = f"{method}_{loss.__name__}"
    wrong(BY_METHOD, method, says)(changed)


def without_minus(weights, new, old, cliprange, mask):
    return weights * new


def upside_down(weights, new, old, cliprange, mask):
    return -weights * (old - new).exp()


def ratio_times_log_prob(weights, new, old, cliprange, mask):
    return -weights * (new - old).exp() * new


def larger(weights, new, old, cliprange, mask):
    return -torch.maximum(*terms(weights, new - old, cliprange))


def per_token_ratio(weights, new, old, cliprange, mask):
    return -torch.minimum(*terms(weights, new - old, cliprange))


def mean_over_padding(weights, new, old, cliprange, mask):
    return -torch.minimum(*terms(weights, (new - old).mean(dim=1, keepdim=True), cliprange)).expand_as(new)


def summed_log_ratio(weights, new, old, cliprange, mask):
    log_ratio = ((new - old) * mask).sum(dim=1, keepdim=True)
    return -torch.minimum(*terms(weights, log_ratio, cliprange)).expand_as(new)


by_method("none", "leaving the minus sign out", without_minus)
by_method("noclip", "the ratio π_old/π, upside down,", upside_down)
by_method("noclip", "the weight ρ times log π", ratio_times_log_prob)
by_method("grpo", "taking the larger of the two terms", larger)
by_method("gspo", "one ratio per token", per_token_ratio)
by_method("gspo", "the mean log-ratio over padding as well", mean_over_padding)
by_method("gspo", "the sum of the log-ratios, not their mean,", summed_log_ratio)
