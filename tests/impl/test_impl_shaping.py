"""Whitening, KL rewards and the penalty for length of the reference."""

import torch

from rlassay_impl import kl_rewards, overlong_penalty, whiten

NAN, INF = float("nan"), float("inf")


def test_masked_in_entries_have_mean_0_and_deviation_1_over_the_batch() -> None:
    values = torch.randn(3, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 5
    mask = torch.tensor([[1, 1, 0, 0, 1, 0, 1], [0] * 7, [1] * 7]).bool()
    got = whiten(values, mask)
    torch.testing.assert_close(got[mask].mean(), torch.tensor(0.0, dtype=torch.float64), rtol=0, atol=1e-14)
    torch.testing.assert_close(got[mask].std(correction=0), torch.tensor(1.0, dtype=torch.float64))
    assert not got[~mask].any()


def test_equal_entries_are_exactly_0_even_where_their_mean_rounds() -> None:
    assert not whiten(torch.full((1, 7), 0.1), torch.ones(1, 7)).any()
    assert not whiten(torch.tensor([[3.0, 4.0]]), torch.tensor([[0, 1]])).any()


def test_whitening_keeps_its_digits_at_any_size() -> None:
    want = torch.tensor([[-(1.5**0.5), 0.0, 1.5**0.5]])
    for size in (1e-30, 1.0, 1e30):
        torch.testing.assert_close(whiten(size * torch.tensor([[1.0, 2.0, 3.0]]), torch.ones(1, 3)), want)


def test_what_stands_at_masked_places_reaches_nothing() -> None:
    mask = torch.tensor([[1, 0, 1], [0, 0, 0]])
    dirty = torch.tensor([[-1.0, NAN, -3.0], [INF, -INF, NAN]])
    clean = torch.tensor([[-1.0, 0.0, -3.0], [0.0, 0.0, 0.0]])
    reward = torch.tensor([1.0, NAN])
    assert torch.equal(whiten(dirty, mask), whiten(clean, mask))
    assert torch.equal(kl_rewards(reward, dirty, dirty, mask, 0.1), torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))


def test_the_reward_joins_the_penalty_of_the_last_token() -> None:
    mask = torch.tensor([[0, 1, 1, 0], [1, 0, 1, 1]])
    log_probs, ref = torch.full((2, 4), -1.0), torch.full((2, 4), -3.0)
    got = kl_rewards(torch.tensor([10.0, 20.0]), log_probs, ref, mask, 0.5)
    assert torch.equal(got, torch.tensor([[0.0, -1.0, 9.0, 0.0], [-1.0, 0.0, -1.0, 19.0]]))


def test_rewards_and_whitened_values_are_constants() -> None:
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert not whiten(x, torch.ones(2, 3)).requires_grad
    assert not kl_rewards(x[:, 0], x, x, torch.ones(2, 3), 0.1).requires_grad


def test_the_penalty_falls_from_0_to_minus_1_inside_the_buffer() -> None:
    got = overlong_penalty(torch.tensor([0, 12, 13, 14, 16, 17, 99]), 16, 4)
    assert torch.equal(got, torch.tensor([0.0, 0.0, -0.25, -0.5, -1.0, -1.0, -1.0]))


def test_the_penalty_is_float32_whatever_the_lengths_are() -> None:
    for dtype in (torch.uint8, torch.int16, torch.int32, torch.int64):
        got = overlong_penalty(torch.tensor([1, 9], dtype=dtype), 10, 4)
        assert got.dtype == torch.float32
        assert torch.equal(got, torch.tensor([0.0, -0.75]))
