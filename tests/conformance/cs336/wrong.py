"""Wrong versions of single functions of the assignment, each with the check that has to see it and what that says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import plain_2025 as right
import plain_2026 as later
import torch

Function = Callable[..., Any]


@dataclass(frozen=True)
class Wrong:
    """One wrong function: the operation, the law that fails, a part of the message, the function."""

    operation: str
    law: str
    says: str
    function: Function

    @property
    def name(self) -> str:
        """For test ids."""
        return self.function.__name__


WRONG: list[Wrong] = []


def wrong(operation: str, law: str, says: str) -> Callable[[Function], Function]:
    """Declare the function below as a wrong version of an operation."""

    def declare(function: Function) -> Function:
        WRONG.append(Wrong(operation, law, says, function))
        return function

    return declare


# tokenize_prompt_and_output

TOKENIZE = "tokenize_prompt_and_output"


def laid_out(prompt_strs, output_strs, tokenizer, first=0, last=0):
    """The right result, with the bounds of the mask moved."""
    result = right.tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer)
    mask = torch.zeros_like(result["response_mask"])
    for row, (prompt, output) in enumerate(zip(prompt_strs, output_strs)):
        start = len(tokenizer.encode(prompt)) - 1
        mask[row, max(start + first, 0) : start + len(tokenizer.encode(output)) + last] = True
    return {**result, "response_mask": mask}


@wrong(TOKENIZE, "labels", "labels that are not shifted")
def labels_are_input_ids(prompt_strs, output_strs, tokenizer):
    result = right.tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer)
    return {**result, "labels": result["input_ids"]}


@wrong(TOKENIZE, "response-mask", "letting the prompt's last token in and the output's last out")
def mask_one_early(prompt_strs, output_strs, tokenizer):
    return laid_out(prompt_strs, output_strs, tokenizer, first=-1, last=-1)


@wrong(TOKENIZE, "response-mask", "a mask over input_ids instead of labels")
def mask_of_input_ids(prompt_strs, output_strs, tokenizer):
    return laid_out(prompt_strs, output_strs, tokenizer, first=1, last=1)


@wrong(TOKENIZE, "response-mask", "leaving the output's last token out")
def mask_without_the_last(prompt_strs, output_strs, tokenizer):
    return laid_out(prompt_strs, output_strs, tokenizer, last=-1)


@wrong(TOKENIZE, "response-mask", "letting padding in")
def mask_with_padding(prompt_strs, output_strs, tokenizer):
    return laid_out(prompt_strs, output_strs, tokenizer, last=1000)


@wrong(TOKENIZE, "response-mask", "taking every token with the padding's id for padding")
def mask_by_padding_id(prompt_strs, output_strs, tokenizer):
    result = laid_out(prompt_strs, output_strs, tokenizer)
    mask = result["response_mask"] & (result["labels"] != tokenizer.pad_token_id)
    return {**result, "response_mask": mask}


@wrong(TOKENIZE, "input-ids", "tokenize_prompt_and_output: input_ids")
def tokenized_together(prompt_strs, output_strs, tokenizer):
    joined = [prompt + output for prompt, output in zip(prompt_strs, output_strs)]
    ids = tokenizer(joined, padding=True, return_tensors="pt")["input_ids"]
    lengths = torch.tensor([len(tokenizer.encode(prompt)) for prompt in prompt_strs])[:, None]
    mask = (torch.arange(ids.shape[1])[None] >= lengths) & (ids != tokenizer.pad_token_id)
    return {"input_ids": ids[:, :-1], "labels": ids[:, 1:], "response_mask": mask[:, 1:]}


@wrong(TOKENIZE, "input-ids", "has dtype float32")
def float_ids(prompt_strs, output_strs, tokenizer):
    result = right.tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer)
    return {name: tensor.float() for name, tensor in result.items()}


@wrong(TOKENIZE, "labels", "should return a dictionary with 'labels'")
def three_tensors(prompt_strs, output_strs, tokenizer):
    return tuple(right.tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer).values())


# rewards and advantages

GROUPS = "compute_group_normalized_rewards"


def grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size, key="reward"):
    """Rewards as [N, G]."""
    pairs = zip(rollout_responses, repeated_ground_truths)
    return torch.tensor([reward_fn(*pair)[key] for pair in pairs]).reshape(-1, group_size)


@wrong(GROUPS, "advantages", "dividing by the population standard deviation, of ddof 0,")
def population_deviation(reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std):
    groups = grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size)
    advantages = groups - groups.mean(dim=1, keepdim=True)
    if normalize_by_std:
        advantages = advantages / (groups.std(dim=1, keepdim=True, unbiased=False) + advantage_eps)
    return advantages.flatten(), groups.flatten(), {}


@wrong(GROUPS, "advantages", "the standard deviation of the whole batch")
def deviation_of_the_batch(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
    groups = grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size)
    advantages = groups - groups.mean(dim=1, keepdim=True)
    if normalize_by_std:
        advantages = advantages / (groups.std() + advantage_eps)
    return advantages.flatten(), groups.flatten(), {}


@wrong(GROUPS, "advantages", "mean and standard deviation of the whole batch")
def statistics_of_the_batch(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
    raw = grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size).flatten()
    return (raw - raw.mean()) / (raw.std() + advantage_eps), raw, {}


@wrong(GROUPS, "advantages", "groups of every N-th rollout")
def interleaved_groups(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
    raw = grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size).flatten()
    groups = raw.reshape(group_size, -1)
    advantages = groups - groups.mean(dim=0)
    if normalize_by_std:
        advantages = advantages / (groups.std(dim=0) + advantage_eps)
    return advantages.flatten(), raw, {}


@wrong(GROUPS, "advantages", "ε inside the square root")
def epsilon_inside(reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std):
    groups = grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size)
    advantages = groups - groups.mean(dim=1, keepdim=True)
    if normalize_by_std:
        advantages = advantages / (groups.var(dim=1, keepdim=True) + advantage_eps).sqrt()
    return advantages.flatten(), groups.flatten(), {}


@wrong(GROUPS, "raw-rewards", "reading 'answer_reward' instead of 'reward'")
def answer_rewards(reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std):
    raw = grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size, "answer_reward").flatten()
    return raw, raw, {}


@wrong(GROUPS, "raw-rewards", "but should return (advantages, raw_rewards, metadata)")
def advantages_alone(reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std):
    return grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size).flatten()


@wrong(GROUPS, "advantages", "metadata is None, but should be a dictionary")
def no_metadata(reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std):
    raw = grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size).flatten()
    return raw, raw, None


@wrong(GROUPS, "advantages", "expected a response and its ground truth")
def swapped_reward_arguments(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
    raw = grouped(reward_fn, repeated_ground_truths, rollout_responses, group_size).flatten()
    return raw, raw, {}


@wrong("compute_rollout_rewards", "value", "reading 'format_reward' instead of 'reward'")
def format_rewards(reward_fn, rollout_responses, repeated_ground_truths):
    return grouped(reward_fn, rollout_responses, repeated_ground_truths, 1, "format_reward").flatten(), {}


GROUPS_2026 = "compute_group_normalized_rewards_2026"


@wrong(GROUPS_2026, "normalizer-std", "dividing by the population standard deviation, of ddof 0,")
def population_deviation_2026(raw_rewards, group_size, baseline="mean", advantage_eps=1e-6, advantage_normalizer="std"):
    groups = raw_rewards.reshape(-1, group_size)
    centred = groups - groups.mean(dim=1, keepdim=True) if baseline == "mean" else groups
    return (centred / (groups.std(dim=1, keepdim=True, unbiased=False) + advantage_eps)).flatten(), {}


@wrong(GROUPS_2026, "normalizer-none", "always normalising")
def always_normalised(raw_rewards, group_size, baseline="mean", advantage_eps=1e-6, advantage_normalizer="std"):
    return later.compute_group_normalized_rewards(raw_rewards, group_size, baseline, advantage_eps, "std")


@wrong(GROUPS_2026, "normalizer-mean", "centring without normalising")
def mean_not_known(raw_rewards, group_size, baseline="mean", advantage_eps=1e-6, advantage_normalizer="std"):
    normalizer = "none" if advantage_normalizer == "mean" else advantage_normalizer
    return later.compute_group_normalized_rewards(raw_rewards, group_size, baseline, advantage_eps, normalizer)


@wrong(GROUPS_2026, "defaults", "but should be")
def other_defaults(raw_rewards, group_size, baseline="none", advantage_eps=1e-6, advantage_normalizer="none"):
    return later.compute_group_normalized_rewards(
        raw_rewards, group_size, baseline, advantage_eps, advantage_normalizer
    )


@wrong(GROUPS_2026, "side-effects", "changed argument raw_rewards")
def centred_in_place(raw_rewards, group_size, baseline="mean", advantage_eps=1e-6, advantage_normalizer="std"):
    advantages = later.compute_group_normalized_rewards(
        raw_rewards, group_size, baseline, advantage_eps, advantage_normalizer
    )
    raw_rewards -= raw_rewards.mean() + 1
    return advantages


# entropy and log-probs


@wrong("compute_entropy", "value", "leaving the minus sign out")
def negative_entropy(logits):
    return -right.compute_entropy(logits)


@wrong("compute_entropy", "large-logits", "is nan")
def entropy_of_probabilities(logits):
    p = torch.softmax(logits, dim=-1)
    return -(p * p.log()).sum(dim=-1)


@wrong("compute_entropy", "large-logits", "is nan")
def entropy_without_a_shift(logits):
    p = logits.exp() / logits.exp().sum(dim=-1, keepdim=True)
    return -(p * torch.log_softmax(logits, dim=-1)).sum(dim=-1)


@wrong("compute_entropy", "gradient", "no gradient of compute_entropy reaches logits")
def dead_entropy(logits):
    return right.compute_entropy(logits).detach()


LOG_PROBS = "get_response_log_probs"


@wrong(LOG_PROBS, "log-probs", "scoring input_ids instead of labels")
def log_probs_of_input_ids(model, input_ids, labels, return_token_entropy=False):
    return right.get_response_log_probs(model, input_ids, input_ids, return_token_entropy)


@wrong(LOG_PROBS, "log-probs", "is")
def shifted_twice(model, input_ids, labels, return_token_entropy=False):
    log_p = torch.log_softmax(model(input_ids).logits, dim=-1)
    later_labels = torch.cat([labels[:, 1:], labels[:, -1:]], dim=1)
    return {"log_probs": log_p.gather(-1, later_labels[..., None])[..., 0]}


@wrong(LOG_PROBS, "token-entropy", "should return a dictionary with 'token_entropy'")
def no_entropy(model, input_ids, labels, return_token_entropy=False):
    return right.get_response_log_probs(model, input_ids, labels, False)


@wrong(LOG_PROBS, "gradient", "no gradient of get_response_log_probs: log_probs reaches model")
def no_grad_log_probs(model, input_ids, labels, return_token_entropy=False):
    with torch.no_grad():
        return right.get_response_log_probs(model, input_ids, labels, return_token_entropy)


@wrong(LOG_PROBS, "large-logits", "is -inf")
def log_of_softmax(model, input_ids, labels, return_token_entropy=False):
    p = torch.softmax(model(input_ids).logits, dim=-1)
    return {"log_probs": p.gather(-1, labels[..., None])[..., 0].log()}


# losses per token

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


# means and sums


@wrong("masked_mean", "value", "dividing by the number of all entries")
def mean_over_all_entries(tensor, mask, dim=None):
    return (tensor * mask).mean() if dim is None else (tensor * mask).mean(dim=dim)


@wrong("masked_mean", "value", "counting the masked-in entries of the whole mask")
def count_of_the_whole_mask(tensor, mask, dim=None):
    return (tensor * mask).sum(dim=dim) / mask.sum()


@wrong("masked_mean", "value", "has shape")
def dim_ignored(tensor, mask, dim=None):
    return (tensor * mask).sum() / mask.sum()


@wrong("masked_mean", "gradient", "the result is cut off from it")
def dead_mean(tensor, mask, dim=None):
    return right.masked_mean(tensor, mask, dim).detach()


@wrong("masked_mean", "empty", "of a row without masked-in entries is 1")
def empty_mean_of_one(tensor, mask, dim=None):
    return right.masked_mean(tensor, mask, dim).nan_to_num(1.0)


@wrong("masked_mean", "mask-dtype", "raised")
def mean_of_bool_masks(tensor, mask, dim=None):
    return right.masked_mean(tensor.masked_fill(~mask, 0.0), mask, dim)


@wrong("masked_normalize", "value", "not dividing by normalize_constant")
def constant_ignored(tensor, mask, normalize_constant=1.0, dim=None):
    return (tensor * mask).sum(dim=dim)


@wrong("masked_normalize", "value", "dividing by the number of masked-in entries")
def mean_instead(tensor, mask, normalize_constant=1.0, dim=None):
    return right.masked_mean(tensor, mask, dim)


@wrong("masked_normalize", "value", "leaving the mask out")
def mask_ignored(tensor, mask, normalize_constant=1.0, dim=None):
    return tensor.sum(dim=dim) / normalize_constant


@wrong("masked_normalize", "gradient", "the result is cut off from it")
def dead_sum(tensor, mask, normalize_constant=1.0, dim=None):
    return right.masked_normalize(tensor, mask, normalize_constant, dim).detach()


@wrong("masked_normalize", "mask-dtype", "raised")
def sum_of_bool_masks(tensor, mask, normalize_constant=1.0, dim=None):
    return right.masked_normalize(tensor.masked_fill(~mask, 0.0), mask, normalize_constant, dim)


AGGREGATE = "aggregate_loss_across_microbatch"


@wrong(AGGREGATE, "sequence", "the mean over all tokens of the microbatch")
def token_mean(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    return right.masked_mean(per_token_policy_gradient_loss, mask)


@wrong(AGGREGATE, "constant", "dividing by the number of sequences as well")
def constant_per_sequence(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    return (per_token_policy_gradient_loss * mask).sum(dim=1).mean() / (normalization_constant or 1)


@wrong(AGGREGATE, "sequence-gradient", "the result is cut off from it")
@wrong(AGGREGATE, "constant-gradient", "the result is cut off from it")
def dead_aggregate(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    return later.aggregate_loss_across_microbatch(
        per_token_policy_gradient_loss.detach(), mask, loss_normalization, normalization_constant
    )


@wrong(AGGREGATE, "mask-dtype", "raised")
def aggregate_of_bool_masks(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    return later.aggregate_loss_across_microbatch(
        per_token_policy_gradient_loss.masked_fill(~mask, 0.0), mask, loss_normalization, normalization_constant
    )
