"""Token log-probs, masked log-probs, entropy and action log-probs of the reference."""

import math

import torch

from rlassay_impl import action_log_probs, entropy, masked_log_probs, token_log_probs

NAN, INF = float("nan"), float("inf")


def test_the_logits_at_t_score_the_token_at_t_plus_1() -> None:
    logits = torch.tensor([[[1.0, 3.0], [7.0, 1.0], [9.0, 9.0]]], dtype=torch.float64).log()
    got = token_log_probs(logits, torch.tensor([[0, 1, 0]]))
    torch.testing.assert_close(got.exp(), torch.tensor([[3 / 4, 7 / 8]], dtype=torch.float64), rtol=1e-15, atol=0)


def test_temperature_divides_the_logits() -> None:
    logits = torch.tensor([[[2.0 * math.log(3), 0.0], [0.0, 0.0]]], dtype=torch.float64)
    got = token_log_probs(logits, torch.tensor([[0, 0]]), temperature=2.0)
    torch.testing.assert_close(got, torch.tensor([[math.log(3 / 4)]], dtype=torch.float64), rtol=1e-15, atol=0)


def test_the_first_id_is_not_scored_and_so_may_be_anything() -> None:
    assert token_log_probs(torch.zeros(1, 2, 4), torch.tensor([[-100, 3]])).shape == (1, 1)


def test_half_precision_logits_are_scored_in_float32() -> None:
    logits = torch.randn(2, 5, 300, generator=torch.Generator().manual_seed(0)).bfloat16()
    ids = torch.arange(10).reshape(2, 5)
    assert torch.equal(token_log_probs(logits, ids), token_log_probs(logits.float(), ids).bfloat16())


def test_nothing_at_a_masked_place_reaches_value_or_gradient() -> None:
    mask = torch.tensor([[1, 0, 1, 0, 0]])
    clean = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(1))
    dirty = clean.clone()
    dirty[0, 1] = torch.tensor([NAN, INF, -INF])
    dirty[0, 3:] = NAN
    clean.requires_grad_(), dirty.requires_grad_()

    want = token_log_probs(clean, torch.tensor([[0, 2, 0, 1, 0, 0]]))
    got = masked_log_probs(dirty, torch.tensor([[-5, 2, -100, 1, 10**12, 3]]), mask)
    assert torch.equal(got, want.detach() * mask)
    got.sum().backward()
    (want * mask).sum().backward()
    assert clean.grad is not None and dirty.grad is not None
    assert torch.equal(dirty.grad, clean.grad)


def test_a_batch_without_sampled_tokens_stays_in_the_graph_with_zero_gradient() -> None:
    logits = torch.full((2, 3, 4), NAN, requires_grad=True)
    got = masked_log_probs(logits, torch.full((2, 3), -100), torch.zeros(2, 2))
    got.sum().backward()
    assert torch.equal(got, torch.zeros(2, 2)) and logits.grad is not None and not logits.grad.any()


def test_entropy_counts_a_logit_of_minus_infinity_as_probability_0() -> None:
    logits = torch.tensor([[[0.0, 0.0, -INF], [1.0, -INF, -INF], [5.0, 5.0, 5.0]]], requires_grad=True)
    got = entropy(logits)
    torch.testing.assert_close(got.detach(), torch.tensor([[math.log(2), 0.0, math.log(3)]]), rtol=1e-6, atol=0)
    got.sum().backward()
    assert logits.grad is not None and logits.grad.abs().max() < 1e-6  # all three rows are maxima or certain


def test_the_gradient_of_entropy_is_minus_p_times_log_p_plus_entropy() -> None:
    logits = torch.tensor([[[0.3, -1.0, 2.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    entropy(logits).sum().backward()
    log_probs = torch.log_softmax(logits.detach(), dim=-1)
    want = -log_probs.exp() * (log_probs + entropy(logits.detach())[..., None])
    torch.testing.assert_close(logits.grad, want, rtol=1e-13, atol=0)


def test_the_log_prob_of_an_action_is_the_sum_over_its_tokens() -> None:
    log_probs = torch.tensor([[-1.0, -2.0, NAN, -4.0, -8.0]], requires_grad=True)
    got = action_log_probs(log_probs, torch.tensor([[0, 2, -1, 0, 2]]), 4)
    assert got.tolist() == [[-5.0, 0.0, -10.0, 0.0]]
    (got * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert log_probs.grad is not None and log_probs.grad.tolist() == [[1.0, 3.0, 0.0, 1.0, 3.0]]
