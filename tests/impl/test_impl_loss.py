"""The losses of the reference: exact small values, gradients, masks that hide NaN, half precision."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rlassay_impl import (
    aggregate,
    clipped_loss,
    dr_grpo_loss,
    grpo_advantages,
    grpo_loss,
    grpo_objective,
    kl_k3,
    microbatch_loss,
    policy_gradient_loss,
    reinforce_loss,
    rest_loss,
    sft_loss,
    value_loss,
)

NAN, INF = float("nan"), float("inf")
LOG_PROBS = torch.tensor([[-1.0, -2.0, -4.0], [-0.5, -0.25, -8.0]])
MASK = torch.tensor([[1, 0, 1], [0, 1, 0]])
ZEROS = torch.zeros(2, 3)

Loss = Callable[[Tensor, Tensor], Tensor]
LOSSES: dict[str, Loss] = {
    "sequence_sum": lambda x, m: aggregate(x, m, "sequence_sum"),
    "sequence_mean": lambda x, m: aggregate(x, m, "sequence_mean"),
    "token_mean": lambda x, m: aggregate(x, m, "token_mean"),
    "constant": lambda x, m: aggregate(x, m, "constant", 4.0),
    "sft_loss": sft_loss,
    "rest_loss": lambda x, m: rest_loss(x, m, torch.tensor([1.0, 0.0])),
    "reinforce_loss": lambda x, m: reinforce_loss(x, m, torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.25])),
    "policy_gradient_loss": lambda x, m: policy_gradient_loss(x, m, torch.where(m == 1, 2.0, NAN)),
    "grpo_loss": lambda x, m: grpo_loss(x, m, torch.tensor([1.0, -1.0])),
    "dr_grpo_loss": lambda x, m: dr_grpo_loss(x, m, torch.tensor([1.0, -1.0]), 8.0),
    "microbatch_loss": lambda x, m: microbatch_loss(x, m, torch.tensor([1.0, -1.0]), 4, 9),
    "clipped_loss": lambda x, m: clipped_loss(x, torch.where(m == 1, -1.5, INF), m, torch.tensor([1.0, -1.0])),
    "grpo_objective": lambda x, m: grpo_objective(
        x, torch.where(m == 1, -1.5, NAN), torch.where(m == 1, -1.0, -INF), m, torch.tensor([[1.0, 0.0]]), 0.1
    ),
    "value_loss": lambda x, m: value_loss(x, torch.where(m == 1, 0.5, NAN), torch.where(m == 1, 1.0, INF), m, 0.2),
}


def value_and_gradient(loss: Loss, log_probs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    leaf = log_probs.clone().requires_grad_()
    value = loss(leaf, mask)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("sequence_sum", -2.625), ("sequence_mean", -1.375), ("token_mean", -1.75), ("constant", -0.65625)],
)
def test_each_mode_divides_by_its_own_count(mode: str, expected: float) -> None:
    assert aggregate(LOG_PROBS, MASK, mode, 4.0) == expected


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_nan_and_infinity_under_the_mask_reach_neither_value_nor_gradient(loss: Loss) -> None:
    want = value_and_gradient(loss, LOG_PROBS, MASK)
    for poison in (NAN, INF, -INF, 3e38):
        value, gradient = value_and_gradient(loss, torch.where(MASK == 1, LOG_PROBS, poison), MASK)
        assert value == want[0] and torch.equal(gradient, want[1])
        assert not gradient[MASK == 0].any() and gradient[MASK == 1].any()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_an_all_masked_batch_has_loss_0_and_gradient_0_in_the_graph(loss: Loss) -> None:
    value, gradient = value_and_gradient(loss, torch.full((2, 3), NAN), torch.zeros(2, 3))
    assert value == 0 and not gradient.any()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_inputs_may_be_strided_or_expanded_and_are_left_alone(loss: Loss) -> None:
    wide = LOG_PROBS.repeat_interleave(2, dim=1)
    before = wide.clone()
    assert loss(wide[:, ::2], MASK.T.contiguous().T) == loss(LOG_PROBS, MASK)
    row = LOG_PROBS[:1].expand(2, 3)
    assert loss(row, MASK[:1].expand(2, 3)) == loss(row.clone(), MASK[:1].repeat(2, 1))
    assert torch.equal(wide, before)


def test_4096_ones_in_bfloat16_sum_to_4096() -> None:
    ones = torch.ones(1, 4096, dtype=torch.bfloat16)
    one = ones[:, 0]
    assert aggregate(ones, ones, "sequence_sum") == 4096
    assert aggregate(ones, ones, "token_mean") == 1
    assert sft_loss(-ones, ones) == 4096
    assert grpo_loss(-ones, ones, one) == 4096
    assert clipped_loss(-ones, -ones, ones, -one) == 4096
    assert value_loss(2 * ones, ones, 0 * ones, ones) == 8192


def test_rest_is_reinforce_without_baseline_when_rewards_are_binary() -> None:
    rewards = torch.tensor([0.0, 1.0])
    rest = value_and_gradient(lambda x, m: rest_loss(x, m, rewards), LOG_PROBS, MASK)
    reinforce = value_and_gradient(lambda x, m: reinforce_loss(x, m, rewards, torch.zeros(2)), LOG_PROBS, MASK)
    assert rest[0] == reinforce[0] == 0.125 and torch.equal(rest[1], reinforce[1])
    assert rest_loss(LOG_PROBS, MASK, torch.tensor([0.99, 2.0])) == 0


def test_dr_grpo_punishes_a_token_alike_in_long_and_short_answers() -> None:
    mask = torch.tril(torch.ones(2, 100), diagonal=9) + torch.tensor([[0.0], [1.0]]) * (torch.arange(100) > 10)
    assert mask.sum(dim=1).tolist() == [10, 100]
    _, gradient = value_and_gradient(lambda x, m: dr_grpo_loss(x, m, -torch.ones(2), 128.0), -torch.ones(2, 100), mask)
    assert gradient[mask == 1].unique().tolist() == [1 / 256]


def test_the_parts_of_a_batch_add_up_to_it() -> None:
    log_probs, mask = LOG_PROBS[[0, 1, 1, 0]], MASK[[0, 1, 0, 0]]
    advantages = torch.tensor([1.0, -2.0, 0.5, 4.0])
    parts = [microbatch_loss(log_probs[s], mask[s], advantages[s], 4, 7) for s in (slice(0, 1), slice(1, 4))]
    assert sum(parts) == grpo_loss(log_probs, mask, advantages)


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "alive"),
    [(0.0, 1, True), (0.0, -1, True), (0.5, 1, False), (0.5, -1, True), (-0.5, 1, True), (-0.5, -1, False)],
)
def test_clipping_stops_the_gradient_only_where_it_would_leave_the_bounds(
    log_ratio: float, advantage: float, alive: bool
) -> None:
    old = torch.full((1, 1), -1.0, requires_grad=True)
    log_probs = torch.tensor([[-1.0 + log_ratio]], requires_grad=True)
    clipped_loss(log_probs, old, torch.ones(1, 1), torch.tensor([float(advantage)])).backward()
    want = -advantage * torch.exp(torch.tensor(log_ratio)).item() if alive else 0.0
    assert log_probs.grad is not None and log_probs.grad.item() == pytest.approx(want, rel=1e-6)
    assert old.grad is None


def test_the_two_clip_bounds_are_set_apart() -> None:
    log_probs = torch.tensor([[4.0], [0.25]], dtype=torch.float64).log()
    bounds = {"clip_low": 0.5, "clip_high": 0.25}
    rising = clipped_loss(log_probs[:1], torch.zeros(1, 1), torch.ones(1, 1), torch.tensor([1.0]), **bounds)
    falling = clipped_loss(log_probs[1:], torch.zeros(1, 1), torch.ones(1, 1), torch.tensor([-1.0]), **bounds)
    assert (rising, falling) == (-1.25, 0.5)


def test_old_log_probs_from_the_same_forward_pass_leave_the_gradient_alive() -> None:
    log_probs = LOG_PROBS.clone().requires_grad_()
    loss = clipped_loss(log_probs, log_probs, MASK, torch.tensor([1.0, -3.0]))
    loss.backward()
    assert loss == 0.5  # −½(2·1 − 1·3): every ratio is 1
    assert log_probs.grad is not None and log_probs.grad.tolist() == [[-0.5, 0, -0.5], [0, 1.5, 0]]


def test_the_objective_is_the_clipped_loss_plus_beta_times_k3() -> None:
    generator = torch.Generator().manual_seed(0)
    log_probs, old, reference = -torch.rand(3, 4, 5, generator=generator, dtype=torch.float64)
    mask = (torch.rand(4, 5, generator=generator) < 0.7).int()
    rewards = torch.tensor([[1.0, 0.0], [0.2, 0.9]], dtype=torch.float64)
    advantages = grpo_advantages(rewards).flatten()

    def parts(x: Tensor, m: Tensor) -> Tensor:
        return clipped_loss(x, old, m, advantages, 0.1, 0.3) + 0.5 * aggregate(kl_k3(x, reference), m, "sequence_sum")

    want = value_and_gradient(parts, log_probs, mask)
    got = value_and_gradient(lambda x, m: grpo_objective(x, old, reference, m, rewards, 0.5, 0.1, 0.3), log_probs, mask)
    torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-15)


def test_a_clipped_value_step_takes_the_worse_of_the_two_errors() -> None:
    values = torch.tensor([[1.0, 1.0, 0.125]], requires_grad=True)
    old, mask = torch.zeros(1, 3, requires_grad=True), torch.ones(1, 3)
    returns = torch.tensor([[2.0, -2.0, 1.0]], requires_grad=True)
    assert value_loss(values, old, returns, mask).item() == 0.5 * (1 + 9 + 0.875**2)
    loss = value_loss(values, old, returns, mask, clip=0.5)
    assert loss.item() == 0.5 * (1.5**2 + 9 + 0.875**2)
    loss.backward()
    assert values.grad is not None and values.grad.tolist() == [[0.0, 3.0, -0.875]]
    assert old.grad is None and returns.grad is None


def test_weights_are_constants_even_with_a_graph() -> None:
    weights = torch.ones(2, 3, requires_grad=True)
    row = torch.tensor([1.0, -1.0], requires_grad=True)
    groups = torch.tensor([[1.0, 0.0]], requires_grad=True)
    log_probs = LOG_PROBS.clone().requires_grad_()
    total = (
        policy_gradient_loss(log_probs, MASK, weights)
        + reinforce_loss(log_probs, MASK, row, row)
        + grpo_loss(log_probs, MASK, row)
        + dr_grpo_loss(log_probs, MASK, row, 2.0)
        + microbatch_loss(log_probs, MASK, row, 2, 3)
        + clipped_loss(log_probs, weights, MASK, row)
        + grpo_objective(log_probs, weights, weights, MASK, groups, 0.1)
    )
    total.backward()
    assert weights.grad is None and row.grad is None and groups.grad is None
