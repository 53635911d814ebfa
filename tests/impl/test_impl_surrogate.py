"""The other surrogates of the reference, its entropy bonus and its importance weights: exact values and gradients."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rlassay_impl import clipped_loss, dual_clip_loss, entropy_bonus, gspo_loss, importance_weights

NAN = float("nan")
LOG_PROBS = torch.tensor([[-1.0, -2.0, -4.0], [-0.5, -0.25, -8.0]], dtype=torch.float64)
MASK = torch.tensor([[1, 0, 1], [0, 1, 0]])
ADVANTAGES = torch.tensor([1.0, -2.0], dtype=torch.float64)

Loss = Callable[[Tensor, Tensor], Tensor]
LOSSES: dict[str, Loss] = {
    "dual_clip_loss": lambda x, m: dual_clip_loss(x, LOG_PROBS - 0.1, m, ADVANTAGES),
    "gspo_loss": lambda x, m: gspo_loss(x, LOG_PROBS - 0.1, m, ADVANTAGES),
    "entropy_bonus": lambda x, m: entropy_bonus(torch.stack([x, 0 * x.detach()], dim=2), m[:, :-1]),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def old_at(ratios: list[list[float]]) -> Tensor:
    """Old log-probs that make these ratios to `LOG_PROBS`."""
    return LOG_PROBS - torch.tensor(ratios, dtype=torch.float64).log()


def test_a_bad_token_costs_at_most_the_dual_clip_and_then_has_no_gradient() -> None:
    log_probs = LOG_PROBS.clone().requires_grad_()
    old = old_at([[1.0, 9.0, 50.0], [9.0, 50.0, 9.0]])
    loss = dual_clip_loss(log_probs, old, MASK, ADVANTAGES)
    loss.backward()
    assert loss.item() == pytest.approx((-1.0 - 1.2 + 3 * 2.0) / 2, rel=1e-14)
    torch.testing.assert_close(log_probs.grad, torch.tensor([[-0.5, 0, 0], [0, 0, 0]], dtype=torch.float64))


def test_good_tokens_and_small_ratios_have_their_clipped_loss() -> None:
    old = old_at([[0.5, 2.0, 50.0], [1.1, 2.9, 0.1]])
    assert torch.equal(dual_clip_loss(LOG_PROBS, old, MASK, ADVANTAGES), clipped_loss(LOG_PROBS, old, MASK, ADVANTAGES))


def test_the_ratio_of_a_row_is_the_geometric_mean_over_its_masked_in_tokens() -> None:
    log_probs = LOG_PROBS.clone().requires_grad_()
    old = old_at([[4.0, 99.0, 0.25 * 1.1**2], [99.0, 0.5, 99.0]])
    loss = gspo_loss(log_probs, old, MASK, ADVANTAGES)
    loss.backward()
    assert loss.item() == pytest.approx((-1.1 + 2 * 0.8) / 2, rel=1e-14)
    want = torch.tensor([[-1.1 / 4, 0, -1.1 / 4], [0, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(log_probs.grad, want)


def test_rows_of_one_token_have_their_clipped_loss() -> None:
    old = old_at([[2.0, 1.0, 1.0], [1.0, 1.0, 0.9]])
    mask = torch.tensor([[1, 0, 0], [0, 0, 1]])
    one, other = gspo_loss(LOG_PROBS, old, mask, ADVANTAGES), clipped_loss(LOG_PROBS, old, mask, ADVANTAGES)
    assert one.item() == pytest.approx(other.item(), rel=1e-15)


def test_a_long_row_does_not_overflow() -> None:
    log_probs = torch.full((1, 5000), -0.5)
    assert gspo_loss(log_probs, log_probs - 1, torch.ones(1, 5000), torch.tensor([-1.0])).item() == pytest.approx(
        math.e
    )


def test_an_empty_row_counts_as_a_sequence() -> None:
    mask = torch.tensor([[1, 1, 1], [0, 0, 0]])
    for loss in (gspo_loss, dual_clip_loss):
        assert loss(LOG_PROBS[:, :1], LOG_PROBS[:, :1], mask[:, :1], torch.tensor([1.0, NAN])).item() == -0.5


def test_the_bonus_reads_the_logits_before_each_token() -> None:
    logits = torch.zeros(2, 3, 4, dtype=torch.float64)
    logits[:, 1, 0] = 100.0
    assert entropy_bonus(logits, torch.tensor([[1, 1], [0, 1]])).item() == pytest.approx(math.log(4) / 2, rel=1e-14)


def test_banned_tokens_add_nothing_to_the_bonus_and_get_no_gradient() -> None:
    logits = torch.tensor([[[0.0, -math.inf, 0.0], [NAN, NAN, NAN]]], requires_grad=True)
    bonus = entropy_bonus(logits, torch.ones(1, 1))
    bonus.backward()
    assert bonus.item() == pytest.approx(math.log(2))
    assert logits.grad is not None and not logits.grad.any()


def test_weights_are_truncated_constants_and_0_where_masked() -> None:
    log_probs = LOG_PROBS.clone().requires_grad_()
    sampler = old_at([[3.0, 1.0, 0.01], [1.0, 1.5, 1.0]]).requires_grad_()
    weights = importance_weights(log_probs, sampler, MASK)
    torch.testing.assert_close(weights, torch.tensor([[2.0, 0, 0.01], [0, 1.5, 0]], dtype=torch.float64))
    assert not weights.requires_grad
    assert importance_weights(LOG_PROBS, LOG_PROBS, MASK, 0.5).max() == 0.5


@every_loss
def test_what_is_masked_reaches_neither_value_nor_gradient(loss: Loss) -> None:
    clean = LOG_PROBS.clone().requires_grad_()
    spoilt = torch.where(MASK == 1, LOG_PROBS, NAN).requires_grad_()
    for x in (clean, spoilt):
        loss(x, MASK).backward()
    assert torch.equal(loss(clean, MASK), loss(spoilt, MASK))
    assert clean.grad is not None and spoilt.grad is not None
    assert torch.equal(clean.grad, spoilt.grad) and not spoilt.grad[MASK == 0].any()


@every_loss
def test_a_batch_without_masked_in_tokens_gives_0_in_the_graph(loss: Loss) -> None:
    log_probs = LOG_PROBS.clone().requires_grad_()
    value = loss(log_probs, 0 * MASK)
    value.backward()
    assert value.item() == 0 and log_probs.grad is not None and not log_probs.grad.any()


@pytest.mark.parametrize("loss", [dual_clip_loss, gspo_loss])
def test_log_probs_of_the_same_pass_do_not_kill_the_gradient(loss: Callable[..., Tensor]) -> None:
    log_probs = LOG_PROBS.clone().requires_grad_()
    advantages = ADVANTAGES.clone().requires_grad_()
    loss(log_probs, log_probs, MASK, advantages).backward()
    per_token = {dual_clip_loss: [[-0.5, 0, -0.5], [0, 1, 0]], gspo_loss: [[-0.25, 0, -0.25], [0, 1, 0]]}[loss]
    torch.testing.assert_close(log_probs.grad, torch.tensor(per_token, dtype=torch.float64))
    assert advantages.grad is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_the_result_has_the_dtype_of_the_first_tensor(dtype: torch.dtype) -> None:
    x, other = LOG_PROBS.to(dtype), LOG_PROBS.float()
    results = [
        dual_clip_loss(x, other, MASK, ADVANTAGES),
        gspo_loss(x, other, MASK, ADVANTAGES),
        entropy_bonus(x[:, :, None].expand(2, 3, 4), MASK[:, 1:]),
        importance_weights(x, other, MASK),
    ]
    assert [result.dtype for result in results] == [dtype] * len(results)


def test_a_dual_clip_or_a_cap_out_of_range_is_refused_by_name() -> None:
    for bound in (1.0, 0.5, NAN):
        with pytest.raises(ValueError, match=f"^dual_clip={bound}, but should be > 1"):
            dual_clip_loss(LOG_PROBS, LOG_PROBS, MASK, ADVANTAGES, dual_clip=bound)
    for cap in (0.0, -1.0, NAN):
        with pytest.raises(ValueError, match=f"^cap={cap}, but should be > 0"):
            importance_weights(LOG_PROBS, LOG_PROBS, MASK, cap)
