"""The argument checks that the operations share: what they accept, and the messages they refuse with."""

import doctest
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rlassay_impl as rl
from rlassay_impl import contract

NAN = float("nan")
LOGITS, IDS = torch.zeros(2, 4, 5), torch.zeros(2, 4, dtype=torch.int64)
X, MASK, ROW, GROUPS = torch.zeros(2, 3), torch.ones(2, 3), torch.zeros(2), torch.zeros(1, 2)
SHORT, LONG_ROW, HALF = torch.zeros(2, 2), torch.zeros(3), torch.full((2, 3), 0.5)
WHOLE_ROW, WHOLE_GROUPS = torch.ones(2, dtype=torch.int64), torch.ones(1, 2, dtype=torch.int64)
OUTSIDE = torch.full((2, 4), 5)


def test_the_example_in_the_documentation_of_check_shape_is_true() -> None:
    assert doctest.testmod(contract).failed == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rl.token_log_probs(LOGITS[0], IDS), "logits.shape=[4, 5], but should be [B, L, V]"),
        (lambda: rl.token_log_probs(LOGITS, IDS[:, 1:]), "token_ids.shape=[2, 3], but should be [B=2, L=4]"),
        (
            lambda: rl.token_log_probs(LOGITS, IDS.float()),
            "token_ids.dtype=torch.float32, but should be an integer dtype",
        ),
        (lambda: rl.token_log_probs(LOGITS, OUTSIDE), "token_ids holds 5 at an unmasked place, but should hold 0..4"),
        (lambda: rl.token_log_probs(LOGITS, IDS - 1), "token_ids holds -1 at an unmasked place, but should hold 0..4"),
        (lambda: rl.token_log_probs(LOGITS, IDS, 0.0), "temperature=0.0, but should be > 0"),
        (lambda: rl.token_log_probs(LOGITS, IDS, -1.0), "temperature=-1.0, but should be > 0"),
        (lambda: rl.token_log_probs(LOGITS, IDS, NAN), "temperature=nan, but should be > 0"),
        (lambda: rl.masked_log_probs(LOGITS, OUTSIDE, MASK), "token_ids holds 5 at an unmasked place"),
        (lambda: rl.masked_log_probs(LOGITS, IDS, torch.ones(2, 4)), "mask.shape=[2, 4], but should be [B=2, T=3]"),
        (lambda: rl.masked_log_probs(LOGITS, IDS, HALF), "mask holds 0.5, but should hold only 0 and 1"),
        (lambda: rl.entropy(IDS), "logits.dtype=torch.int64, but should be a floating-point dtype"),
        (lambda: rl.action_log_probs(X, IDS[:, 1:], 0), "n_actions=0, but should be >= 1"),
        (lambda: rl.action_log_probs(X, IDS[:, 1:] - 2, 1), "action_ids holds -2"),
        (lambda: rl.action_log_probs(X, IDS, 1), "action_ids.shape=[2, 4], but should be [B=2, T=3]"),
        (lambda: rl.response_mask(X, 1, 2, 3, 4), "token_ids.dtype=torch.float32"),
        (lambda: rl.reward_to_go(WHOLE_GROUPS), "rewards.dtype=torch.int64, but should be a floating-point dtype"),
        (lambda: rl.gae(X, SHORT, MASK, 1.0, 1.0), "values.shape=[2, 2], but should be [B=2, T=3]"),
        (lambda: rl.grpo_advantages(WHOLE_GROUPS), "rewards.dtype=torch.int64, but should be a floating-point dtype"),
        (lambda: rl.centered_advantages(ROW), "rewards.shape=[2], but should be [N, G]"),
        (lambda: rl.rloo_advantages(torch.zeros(3, 0)), "rewards.shape=[3, 0], but should be [N, G] with G >= 1"),
        (lambda: rl.max_advantages(torch.zeros(0, 0)), "rewards.shape=[0, 0], but should be [N, G] with G >= 1"),
        (lambda: rl.keep_groups(WHOLE_GROUPS), "rewards.dtype=torch.int64"),
        (lambda: rl.aggregate(X, MASK, "mean"), "mode='mean', but should be one of sequence_sum, sequence_mean"),
        (lambda: rl.aggregate(X, MASK, "constant"), "constant=None, but should be > 0"),
        (lambda: rl.aggregate(X, MASK, "constant", 0.0), "constant=0.0, but should be > 0"),
        (lambda: rl.aggregate(X, MASK, "constant", NAN), "constant=nan, but should be > 0"),
        (
            lambda: rl.aggregate(X, torch.full((2, 3), NAN), "token_mean"),
            "mask holds nan, but should hold only 0 and 1",
        ),
        (lambda: rl.sft_loss(X, 2 * MASK), "mask holds 2.0, but should hold only 0 and 1"),
        (lambda: rl.rest_loss(X, MASK, WHOLE_ROW), "rewards.dtype=torch.int64"),
        (lambda: rl.reinforce_loss(X, MASK, ROW, LONG_ROW), "baselines.shape=[3], but should be [B=2]"),
        (lambda: rl.policy_gradient_loss(X, MASK, SHORT), "weights.shape=[2, 2], but should be [B=2, T=3]"),
        (lambda: rl.grpo_loss(X, MASK, GROUPS), "advantages.shape=[1, 2], but should be [B=2]"),
        (lambda: rl.dr_grpo_loss(X, MASK, ROW, -1.0), "constant=-1.0, but should be > 0"),
        (lambda: rl.microbatch_loss(X, MASK, ROW, 0, 6), "total_sequences=0, but should be > 0"),
        (lambda: rl.clipped_loss(X, SHORT, MASK, ROW), "old_log_probs.shape=[2, 2], but should be [B=2, T=3]"),
        (lambda: rl.grpo_objective(X, X, SHORT, MASK, GROUPS, 0.1), "ref_log_probs.shape=[2, 2]"),
        (
            lambda: rl.grpo_objective(X, X, X, MASK, torch.zeros(1, 3), 0.1),
            "rewards.shape=[1, 3], but should be [N, G]",
        ),
        (lambda: rl.value_loss(X, X, SHORT, MASK), "returns.shape=[2, 2], but should be [B=2, T=3]"),
        (lambda: rl.kl_k3(X, SHORT), "ref_log_probs.shape=[2, 2], but should be [B=2, T=3]"),
        (lambda: rl.whiten(X, SHORT), "mask.shape=[2, 2], but should be [B=2, T=3]"),
        (lambda: rl.whiten(X.long(), MASK), "values.dtype=torch.int64, but should be a floating-point dtype"),
        (lambda: rl.kl_rewards(WHOLE_ROW, X, X, MASK, 0.1), "rewards.dtype=torch.int64"),
        (lambda: rl.kl_rewards(LONG_ROW, X, X, MASK, 0.1), "rewards.shape=[3], but should be [B=2]"),
        (lambda: rl.kl_rewards(ROW, X, SHORT, MASK, 0.1), "ref_log_probs.shape=[2, 2], but should be [B=2, T=3]"),
        (lambda: rl.kl_rewards(ROW, X, X, MASK, -0.1), "beta=-0.1, but should be >= 0"),
        (lambda: rl.overlong_penalty(ROW, 4, 2), "lengths.dtype=torch.float32, but should be an integer dtype"),
        (lambda: rl.overlong_penalty(-WHOLE_ROW, 4, 2), "lengths=[-1, -1], but should be >= 0"),
        (lambda: rl.overlong_penalty(WHOLE_ROW, 4, 0), "buffer=0, but should be in 1..max_length, that is 1..4"),
        (lambda: rl.overlong_penalty(WHOLE_ROW, 4, 5), "buffer=5, but should be in 1..max_length, that is 1..4"),
        (lambda: rl.truncated_log_probs(LOGITS, OUTSIDE), "token_ids holds 5 at an unmasked place"),
        (lambda: rl.truncated_log_probs(LOGITS, IDS, 0.0), "temperature=0.0, but should be > 0"),
        (lambda: rl.truncated_log_probs(LOGITS, IDS, 1.0, 0), "top_k=0, but should be None or >= 1"),
        (lambda: rl.truncated_log_probs(LOGITS, IDS, 1.0, None, 1.5), "top_p=1.5, but should be None or in (0, 1]"),
        (lambda: rl.expected_return(ROW, LONG_ROW), "returns.shape=[3], but should be [K=2]"),
        (lambda: rl.bandit_gradient(ROW, 0, 0.0), "theta.shape=[2], but should be []"),
        (lambda: rl.bandit_gradient(0.0, 2, 0.0), "action=2, but should be 0 (A) or 1 (B)"),
        (lambda: rl.optimal_baseline(ROW, X, LONG_ROW), "rewards.shape=[3], but should be [K=2]"),
        (lambda: rl.dual_clip_loss(X, SHORT, MASK, ROW), "old_log_probs.shape=[2, 2], but should be [B=2, T=3]"),
        (lambda: rl.gspo_loss(X, X, MASK, LONG_ROW), "advantages.shape=[3], but should be [B=2]"),
        (lambda: rl.entropy_bonus(LOGITS, HALF), "mask holds 0.5, but should hold only 0 and 1"),
        (lambda: rl.importance_weights(X, SHORT, MASK), "sampler_log_probs.shape=[2, 2], but should be [B=2, T=3]"),
        (lambda: rl.number_search(0, []), "hidden=0, but should be one of 1..16"),
        (lambda: rl.number_search(3, [8, 17]), "guesses=[8, 17], but should be numbers of 1..16"),
        (lambda: rl.position_reward([1, 0], [0]), "len(response)=1, but should be 2, that of the prompt"),
        (lambda: rl.inclusion_order_reward(X, [0, 1]), "prompt.shape=[2, 3], but should be [L]"),
    ],
)
def test_an_argument_that_does_not_fit_is_named_with_what_it_had_and_should_have(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(ValueError) as refused:
        call()
    assert message in str(refused.value)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float64])
def test_a_mask_may_be_bool_int_or_float(dtype: torch.dtype) -> None:
    mask = torch.tensor([[1, 0, 1]]).to(dtype)
    assert rl.sft_loss(torch.tensor([[-1.0, -2.0, -4.0]]), mask) == 5.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_the_result_has_the_dtype_of_the_first_tensor_whatever_the_others_have(dtype: torch.dtype) -> None:
    first, other = torch.full((2, 3), -1.0, dtype=dtype), torch.full((2, 3), -1.5, dtype=torch.float64)
    groups, row = other[:1, :2], other[:, 0]
    results: list[Tensor] = [
        rl.token_log_probs(first[:, :, None].expand(2, 3, 4), IDS[:, 1:]),
        rl.masked_log_probs(first[:, :, None].expand(2, 3, 4), IDS[:, 1:], MASK[:, 1:]),
        rl.entropy(first[:, :, None]),
        rl.action_log_probs(first, IDS[:, 1:], 2),
        rl.reward_to_go(first),
        rl.gae(first, other, MASK, 0.9, 0.8),
        rl.centered_advantages(first),
        rl.grpo_advantages(first),
        rl.rloo_advantages(first),
        rl.max_advantages(first),
        *(rl.aggregate(first, MASK, mode, 2.0) for mode in ("sequence_sum", "sequence_mean", "token_mean", "constant")),
        rl.sft_loss(first, MASK),
        rl.rest_loss(first, MASK, row),
        rl.reinforce_loss(first, MASK, row, row),
        rl.policy_gradient_loss(first, MASK, other),
        rl.grpo_loss(first, MASK, row),
        rl.dr_grpo_loss(first, MASK, row, 8.0),
        rl.clipped_loss(first, other, MASK, row),
        rl.grpo_objective(first, other, other, MASK, groups, 0.1),
        rl.microbatch_loss(first, MASK, row, 4, 12),
        rl.value_loss(first, other, other, MASK, 0.2),
        *(kl(first, other) for kl in (rl.kl_k1, rl.kl_k2, rl.kl_k3)),
        rl.whiten(first, MASK),
        rl.kl_rewards(first[:, 0], other, other, MASK, 0.1),
        rl.truncated_log_probs(first[:, :, None].expand(2, 3, 4), IDS[:, 1:], 0.7, 2, 0.9),
        rl.expected_return(first[0], other[0]),
        rl.optimal_baseline(first[0], other.T, other[0]),
    ]
    assert [result.dtype for result in results] == [dtype] * len(results)


def test_batches_without_sequences_or_tokens_have_loss_0() -> None:
    for shape in ((0, 3), (2, 0)):
        log_probs, mask = torch.zeros(shape, requires_grad=True), torch.zeros(shape)
        for mode in ("sequence_sum", "sequence_mean", "token_mean", "constant"):
            assert rl.aggregate(log_probs, mask, mode, 2.0) == 0
        assert rl.microbatch_loss(log_probs, mask, torch.zeros(shape[0]), 4, 4) == 0
        assert rl.clipped_loss(log_probs, log_probs, mask, torch.zeros(shape[0])) == 0
        assert rl.reward_to_go(torch.zeros(shape)).shape == shape
        assert rl.response_mask(torch.zeros(shape, dtype=torch.int64), 1, 2, 3, 4).shape == shape
        assert rl.action_log_probs(log_probs, torch.zeros(shape, dtype=torch.int64), 2).shape == (shape[0], 2)
    assert rl.token_log_probs(torch.zeros(2, 1, 3), IDS[:, :1]).shape == (2, 0)
    assert rl.grpo_advantages(torch.zeros(0, 4)).shape == (0, 4)
