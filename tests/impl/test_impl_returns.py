"""Reward-to-go and generalised advantage estimates of the reference."""

import torch

from rlassay_impl import gae, reward_to_go

NAN = float("nan")


def test_reward_to_go_sums_what_follows_and_discounts_it() -> None:
    rewards = torch.tensor([[0.25, 0.0, 0.5], [0.0, 0.0, 1.0]])
    assert reward_to_go(rewards).tolist() == [[0.75, 0.5, 0.5], [1.0, 1.0, 1.0]]
    assert reward_to_go(rewards, 0.5).tolist() == [[0.375, 0.25, 0.5], [0.25, 0.5, 1.0]]


def test_gae_is_the_discounted_sum_of_one_step_errors() -> None:
    generator = torch.Generator().manual_seed(0)
    rewards, values = torch.randn(2, 3, 5, generator=generator, dtype=torch.float64)
    gamma, lam = 0.9, 0.7
    errors = rewards + gamma * torch.nn.functional.pad(values[:, 1:], (0, 1)) - values
    want = torch.stack([sum((gamma * lam) ** k * errors[:, t + k] for k in range(5 - t)) for t in range(5)], dim=1)
    torch.testing.assert_close(gae(rewards, values, torch.ones(3, 5), gamma, lam), want, rtol=1e-13, atol=1e-15)


def test_gae_treats_masked_steps_as_if_they_were_not_there() -> None:
    rewards, values = torch.tensor([[9.0, 1.0, NAN, 2.0, NAN]]), torch.tensor([[NAN, 0.5, 7.0, 0.25, NAN]])
    mask = torch.tensor([[False, True, False, True, False]])
    got = gae(rewards, values, mask, 0.5, 0.5)
    short = gae(rewards[mask][None], values[mask][None], torch.ones(1, 2), 0.5, 0.5)
    assert got[~mask].tolist() == [0, 0, 0] and torch.equal(got[mask], short[0])


def test_half_precision_rewards_are_summed_in_float32() -> None:
    ones = torch.ones(1, 4096, dtype=torch.bfloat16)
    assert reward_to_go(ones)[0, 0] == 4096
    assert gae(ones, torch.zeros_like(ones), ones, 1.0, 1.0)[0, 0] == 4096
