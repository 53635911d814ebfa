"""Wrong rewards and advantages."""

import torch

from tests.conformance.cs336 import plain_2026 as later
from tests.conformance.cs336.wrong.declare import wrong

GROUPS = "compute_group_normalized_rewards"


def grouped(reward_fn, rollout_responses, repeated_ground_truths, group_size, key="reward"):
    """Rewards as [N, G]."""
    pairs = zip(rollout_responses, repeated_ground_truths)
    return torch.tensor([reward_fn(*pair)[key] for pair in pairs]).reshape(-1, group_size)


@wrong(GROUPS, "advantages", "dividing by the population standard deviation, of ddof 0,")
def population_deviation(
    reward_fn, rollout_responses, repeated_ground_truths, group_size, advantage_eps, normalize_by_std
):
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
