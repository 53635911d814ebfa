"""Oracles of the CS336 assignment against loops, other oracles, scipy, and central differences."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from rlassay_spec.convention import CONVENTIONS, Convention
from rlassay_spec.operations import CS336_OPERATIONS, OPERATIONS, Operation
from rlassay_spec.oracles import CS336_ORACLES, ORACLES
from rlassay_spec.oracles.cs336 import (
    aggregate_loss_across_microbatch,
    compute_entropy,
    compute_group_normalized_rewards,
    compute_group_normalized_rewards_2026,
    compute_grpo_clip_loss,
    compute_naive_policy_gradient_loss,
    compute_policy_gradient_loss,
    compute_policy_gradient_loss_2026,
    compute_rollout_rewards,
    get_response_log_probs,
    grpo_microbatch_train_step,
    grpo_train_step,
    masked_mean,
    masked_normalize,
    sft_microbatch_train_step,
    tokenize_prompt_and_output,
)
from rlassay_spec.oracles.cs336.tokens import flat
from rlassay_spec.oracles.expected import Expected, FloatArray
from tests.spec.support import assert_pullback, log_probs_like

CS336 = CONVENTIONS["cs336"]
DIMS = [None, 0, 1, -1]
every_operation = pytest.mark.parametrize("operation", CS336_OPERATIONS.values(), ids=CS336_OPERATIONS)


def close(a: Any, b: Any) -> bool:
    """Equal up to float64 rounding."""
    return bool(np.allclose(a, b, rtol=1e-12, atol=1e-13))


# Contracts


@every_operation
def test_an_operation_is_filed_under_its_own_name(operation: Operation) -> None:
    assert CS336_OPERATIONS[operation.name] is operation
    assert operation.stub.__name__ == operation.name
    assert (operation.topic, operation.interface) == ("cs336", "cs336")
    assert operation.name not in OPERATIONS


def test_the_assignment_is_kept_apart_from_the_operations_of_this_project() -> None:
    assert {operation.interface for operation in OPERATIONS.values()} == {"own"}
    assert list(CS336_ORACLES) == list(CS336_OPERATIONS)
    assert not set(CS336_ORACLES) & set(ORACLES)


@every_operation
def test_the_contract_says_what_a_reader_needs(operation: Operation) -> None:
    assert operation.summary.endswith(".")
    sections = ["Source: Stanford CS336", "Special cases:", "\nShapes", "Free:"]
    places = [operation.doc.index(section) for section in sections]
    assert places == sorted(places)
    said = " ".join(operation.doc.split())
    assert f"flows into {operation.differentiable}" in said or operation.differentiable is None
    with pytest.raises(NotImplementedError):
        operation.stub(*[None] * len(operation.parameters))


@every_operation
def test_stub_and_oracle_take_the_same_arguments(operation: Operation) -> None:
    def positional(function: Callable[..., Any]) -> list[tuple[str, object]]:
        parameters = inspect.signature(function).parameters.values()
        return [(p.name, p.default) for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]

    assert positional(CS336_ORACLES[operation.name]) == positional(operation.stub)


# Means and sums


def masked_case(seed: int) -> tuple[FloatArray, np.ndarray]:
    """A tensor and a mask that leaves no row and no column empty."""
    rng = np.random.default_rng(seed)
    mask = rng.random((4, 5)) < 0.5
    mask[np.arange(5) % 4, np.arange(5)] = True
    return rng.normal(size=(4, 5)), mask


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("seed", range(3))
def test_masked_mean_is_the_mean_of_what_is_selected(dim: int | None, seed: int) -> None:
    x, mask = masked_case(seed)
    selected = np.ma.masked_array(x, ~mask).mean(axis=dim)
    assert close(masked_mean(x, mask, dim).value, np.asarray(selected))
    assert close(masked_normalize(x, mask, dim, 7.0).value, np.where(mask, x, 0).sum(axis=dim) / 7)
    assert_pullback(lambda y: masked_mean(y, mask, dim), x, seed)
    assert_pullback(lambda y: masked_normalize(y, mask, dim, 7.0), x, seed)


def test_masked_mean_of_nothing_is_free_and_leaves_the_rest_alone() -> None:
    x, mask = masked_case(0)
    mask[1] = False
    answer = masked_mean(x, mask, 1)
    assert np.isnan(answer.value[1]) and answer.scale[1] == math.inf
    assert close(np.delete(answer.value, 1), np.delete(masked_mean(x, mask | (x == 0), 1).value, 1))
    assert answer.pullback is not None
    gradient = answer.pullback(np.ones(4))
    assert np.isnan(gradient.value[1]).all() and np.isfinite(np.delete(gradient.value, 1, axis=0)).all()


def test_a_guard_in_the_denominator_is_within_eight_roundings() -> None:
    x, mask = masked_case(1)
    answer = masked_mean(x, mask, 1)
    guarded = (x * mask).sum(axis=1) / (mask.sum(axis=1) + 1e-6)
    assert (np.abs(guarded - answer.value) <= 8 * 2.0**-23 * answer.scale).all()


@pytest.mark.parametrize("oracle", [masked_mean, masked_normalize])
def test_a_mask_that_does_not_fit_is_refused(oracle: Callable[..., Expected]) -> None:
    with pytest.raises(ValueError, match=r"mask: has shape \[2, 2\], expected \[2, 3\]"):
        oracle(np.zeros((2, 3)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="mask: has entries that are neither 0 nor 1"):
        oracle(np.zeros((2, 2)), np.full((2, 2), 0.5))


@pytest.mark.parametrize("seed", range(3))
def test_aggregation_is_the_lectures_under_other_names(seed: int) -> None:
    x, mask = masked_case(seed)
    by_sequence, by_constant = (
        ORACLES["aggregate"](x, mask, mode, constant).value
        for mode, constant in (("sequence_mean", None), ("constant", 9.0))
    )
    assert close(aggregate_loss_across_microbatch(x, mask, "sequence").value, by_sequence)
    assert close(aggregate_loss_across_microbatch(x, mask, "constant", 9.0).value, 4 * by_constant)
    assert_pullback(lambda y: aggregate_loss_across_microbatch(y, mask, "sequence"), x, seed)
    assert_pullback(lambda y: aggregate_loss_across_microbatch(y, mask, "constant", 9.0), x, seed)


def test_aggregation_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="loss_normalization: is 'token' with the constant None"):
        aggregate_loss_across_microbatch(np.zeros((1, 1)), np.ones((1, 1)), "token")
    with pytest.raises(ValueError, match="loss_normalization: is 'constant' with the constant None"):
        aggregate_loss_across_microbatch(np.zeros((1, 1)), np.ones((1, 1)), "constant")


# Losses


@dataclass(frozen=True)
class Policy:
    """Log-probs, old ones with ratios on both sides of both bounds, a mask, and advantages of both signs."""

    new: FloatArray
    old: FloatArray
    mask: np.ndarray
    advantages: FloatArray

    @classmethod
    def of(cls, seed: int) -> Policy:
        rng = np.random.default_rng(seed)
        new = log_probs_like(rng, (4, 5))
        old = new - rng.choice([-0.6, -0.1, 0.05, 0.5], (4, 5)) - rng.uniform(0, 0.05, (4, 5))
        return cls(new, old, masked_case(seed)[1], np.array([[1.5], [-0.5], [0.7], [-2.0]]))


def by_hand(method: str, policy: Policy, clip: float = 0.2) -> FloatArray:
    """The loss of every token, with loops and `max` of the negated terms."""
    loss = np.zeros(policy.new.shape)
    for b, t in np.ndindex(loss.shape):
        advantage, log_ratio = policy.advantages[b, 0], policy.new[b, t] - policy.old[b, t]
        if method == "none":
            loss[b, t] = -advantage * policy.new[b, t]
            continue
        if method == "gspo":
            chosen = [policy.new[b, s] - policy.old[b, s] for s in range(loss.shape[1]) if policy.mask[b, s]]
            log_ratio = sum(chosen) / len(chosen)
        ratio = math.exp(log_ratio)
        bounded = ratio if method == "noclip" else min(max(ratio, 1 - clip), 1 + clip)
        loss[b, t] = max(-advantage * ratio, -advantage * bounded)
    return loss


@pytest.mark.parametrize("method", ["none", "noclip", "grpo", "gspo"])
@pytest.mark.parametrize("seed", range(3))
def test_each_method_of_2026_is_what_its_formula_says(method: str, seed: int) -> None:
    policy = Policy.of(seed)

    def loss(new: FloatArray, mask: np.ndarray | None = policy.mask) -> Expected:
        return compute_policy_gradient_loss_2026(policy.advantages, new, method, policy.old, 0.2, mask)

    answer = loss(policy.new)
    assert close(answer.value[policy.mask], by_hand(method, policy)[policy.mask])
    assert np.isnan(answer.value[~policy.mask]).all() and np.isinf(answer.scale[~policy.mask]).all()
    row = compute_policy_gradient_loss_2026(policy.advantages[:, 0], policy.new, method, policy.old, 0.2, policy.mask)
    assert close(row.value[policy.mask], answer.value[policy.mask])
    assert_pullback(lambda new: seen(loss(new)), policy.new, seed)
    if method != "gspo":
        assert close(loss(policy.new, None).value, by_hand(method, policy))


def seen(answer: Expected) -> Expected:
    """The answer with 0 for what is free, so that differences of it are numbers."""
    return replace(answer, value=np.nan_to_num(answer.value))


@pytest.mark.parametrize("seed", range(3))
def test_the_losses_of_2025_are_three_of_those_of_2026(seed: int) -> None:
    policy = Policy.of(seed)
    rewards = policy.advantages + 3
    answers = {
        "no_baseline": by_hand("none", replace(policy, advantages=rewards)),
        "reinforce_with_baseline": by_hand("none", policy),
        "grpo_clip": by_hand("grpo", policy, 0.3),
    }
    for loss_type, loss in answers.items():
        answer = compute_policy_gradient_loss(policy.new, loss_type, rewards, policy.advantages, policy.old, 0.3)
        assert close(answer.value, loss)
    assert close(compute_naive_policy_gradient_loss(policy.advantages, policy.new).value, by_hand("none", policy))
    assert close(compute_grpo_clip_loss(policy.advantages, policy.new, policy.old, 0.2).value, by_hand("grpo", policy))


def test_the_gradient_is_free_on_a_bound_and_nowhere_else() -> None:
    log_ratio = np.log([[1.2, 0.8, 1.0, 1.3]])
    answer = compute_grpo_clip_loss(np.array([[1.0]]), log_ratio, np.zeros((1, 4)), 0.2)
    assert answer.pullback is not None
    kink = answer.pullback(np.ones((1, 4))).kink[0]
    assert kink[0] == pytest.approx(0, abs=1e-15) and kink[1] == pytest.approx(0, abs=1e-15)
    assert (kink[2:] > 0.05).all()


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (
            {"importance_reweighting_method": "ppo"},
            "importance_reweighting_method: is 'ppo', or old_log_probs is missing",
        ),
        ({"importance_reweighting_method": "grpo"}, "importance_reweighting_method: is 'grpo', or old_log_probs"),
        (
            {"importance_reweighting_method": "grpo", "old_log_probs": np.zeros((2, 3))},
            "cliprange, response_mask: is None, expected a value for grpo",
        ),
        (
            {"importance_reweighting_method": "gspo", "old_log_probs": np.zeros((2, 3)), "cliprange": 0.2},
            "cliprange, response_mask: is None, expected a value for gspo",
        ),
    ],
)
def test_a_method_without_what_it_reads_is_refused(arguments: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ValueError, match=refusal):
        compute_policy_gradient_loss_2026(np.zeros(2), np.zeros((2, 3)), **arguments)


def test_losses_refuse_other_shapes_and_types() -> None:
    with pytest.raises(
        ValueError, match=r"raw_rewards_or_advantages: has shape \[3\], expected \[B\] or \[B, 1\], B = 2"
    ):
        compute_naive_policy_gradient_loss(np.zeros(3), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="loss_type: is 'grpo_clip', or what it reads is missing"):
        compute_policy_gradient_loss(np.zeros((2, 3)), "grpo_clip", np.zeros((2, 1)))


# Microbatch steps


@pytest.mark.parametrize("seed", range(3))
def test_a_microbatch_step_is_a_share_of_the_lectures_loss(seed: int) -> None:
    policy = Policy.of(seed)
    by_sum, by_mean = Convention(), Convention(aggregation="sequence_mean")
    flat_advantages = policy.advantages[:, 0]
    sft = ORACLES["sft_loss"](policy.new, policy.mask, convention=by_sum)
    plain = ORACLES["grpo_loss"](policy.new, policy.mask, flat_advantages, convention=by_mean)
    clipped = ORACLES["clipped_loss"](
        policy.new, policy.old, policy.mask, flat_advantages, 0.2, 0.2, convention=by_mean
    )
    own = {
        "sft": lambda new: sft_microbatch_train_step(new, policy.mask, 3, 5.0),
        "plain": lambda new: grpo_microbatch_train_step(
            new, policy.mask, 3, "reinforce_with_baseline", advantages=policy.advantages
        ),
        "clipped": lambda new: grpo_microbatch_train_step(
            new, policy.mask, 3, "grpo_clip", None, policy.advantages, policy.old, 0.2
        ),
    }
    for name, lecture, share in (("sft", sft, 15), ("plain", plain, 3), ("clipped", clipped, 3)):
        answer = own[name](policy.new)
        assert close(answer.value, lecture.value / share)
        assert answer.pullback is not None
        gradient = answer.pullback(1.0)
        assert close(gradient.value, lecture.pullback(1.0 / share).value)
        assert (gradient.scale >= np.abs(gradient.value) * (1 - 1e-12)).all()
        assert answer.scale >= abs(answer.value) * (1 - 1e-12)
        assert_pullback(own[name], policy.new, seed)


# Rewards and advantages


def reward_fn(response: str, truth: str) -> dict[str, float]:
    """The length of the response, or one more where it holds the truth."""
    return {"reward": len(response) / 4 + (truth in response), "format_reward": 9.0, "answer_reward": 9.0}


RESPONSES = ["ab", "abcd", "b", "abc", "cccc", "c", "dd", "ddc"]
TRUTHS = ["a"] * 4 + ["c"] * 4
REWARDS = np.array([1.5, 2.0, 0.25, 1.75, 2.0, 1.25, 0.5, 1.75])


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("eps", [1e-6, 0.1])
def test_advantages_are_those_of_the_group_oracles(ddof: int, eps: float) -> None:
    convention = Convention(std_ddof=ddof, std_eps=eps)
    groups = REWARDS.reshape(2, 4)
    normalised = ORACLES["grpo_advantages"](groups, convention=convention).value.ravel()
    centred = ORACLES["centered_advantages"](groups, convention=convention).value.ravel()
    assert close(compute_rollout_rewards(reward_fn, RESPONSES, TRUTHS)["raw_rewards"].value, REWARDS)
    for by_std, advantages in ((True, normalised), (False, centred)):
        answer = compute_group_normalized_rewards(reward_fn, RESPONSES, TRUTHS, 4, eps, by_std, convention=convention)
        assert close(answer["raw_rewards"].value, REWARDS)
        assert close(answer["advantages"].value, advantages)
        later = compute_group_normalized_rewards_2026(
            REWARDS, 4, "mean", eps, "std" if by_std else "none", convention=convention
        )
        assert close(later["advantages"].value, advantages)


def test_baseline_and_normalizer_are_chosen_apart() -> None:
    def advantages(baseline: str, normalizer: str) -> FloatArray:
        answer = compute_group_normalized_rewards_2026(REWARDS, 4, baseline, 0.1, normalizer, convention=CS336)
        return np.asarray(answer["advantages"].value)

    groups = REWARDS.reshape(2, 4)
    mean, deviation = groups.mean(axis=1, keepdims=True), groups.std(axis=1, ddof=1, keepdims=True)
    assert close(advantages("none", "none"), REWARDS)
    assert close(advantages("none", "std"), (groups / (deviation + 0.1)).ravel())
    assert close(advantages("none", "mean"), (groups / (mean + 0.1)).ravel())
    assert close(advantages("mean", "mean"), ((groups - mean) / (mean + 0.1)).ravel())


@pytest.mark.parametrize(
    ("rewards", "size", "baseline", "normalizer", "expected"),
    [
        ([2.0, 2.0, 2.0], 3, "mean", "std", [0.0] * 3),
        ([2.0, 2.0, 2.0], 3, "none", "std", [math.nan] * 3),
        ([2.0, 2.0, 2.0], 3, "none", "none", [2.0] * 3),
        ([2.0, 1.0], 1, "mean", "std", [math.nan] * 2),
        ([2.0, 1.0], 1, "none", "none", [2.0, 1.0]),
        ([-2.0, 1.0], 2, "mean", "mean", [math.nan] * 2),
        ([0.0, 0.0], 2, "mean", "mean", [0.0] * 2),
    ],
)
def test_groups_without_contrast_or_without_others(
    rewards: list[float], size: int, baseline: str, normalizer: str, expected: list[float]
) -> None:
    answer = compute_group_normalized_rewards_2026(
        np.array(rewards), size, baseline, 1e-6, normalizer, convention=CS336
    )
    assert np.array_equal(answer["advantages"].value, expected, equal_nan=True)


def test_a_group_size_that_does_not_divide_the_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="group_size: is 3, expected a divisor of the number of rewards, 8"):
        compute_group_normalized_rewards_2026(REWARDS, 3)


# Tokens and models


class Letters:
    """A letter is a token; its id is its place in the alphabet."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - ord("a") for letter in text]


def test_prompt_and_output_are_laid_out_token_by_token() -> None:
    answer = tokenize_prompt_and_output(["ab", "c", "abc"], ["cd", "d", "a"], Letters())
    free = math.nan
    assert np.array_equal(answer["input_ids"].value, [[0, 1, 2], [2, free, free], [0, 1, 2]], equal_nan=True)
    assert np.array_equal(answer["labels"].value, [[1, 2, 3], [3, free, free], [1, 2, 0]], equal_nan=True)
    assert answer["response_mask"].value.tolist() == [[False, True, True], [True, False, False], [False, False, True]]
    assert answer["response_mask"].value.dtype == np.bool_


@dataclass(frozen=True)
class Model:
    """A model as the oracles take one."""

    embedding: FloatArray
    head: FloatArray

    @classmethod
    def from_row(cls, parameters: FloatArray, width: int) -> Model:
        embedding, head = np.split(parameters, 2)
        return cls(embedding.reshape(-1, width), head.reshape(-1, width))


@dataclass(frozen=True)
class Descent:
    """Plain gradient descent."""

    learning_rate: float


def model_of(seed: int, size: int = 4, width: int = 3) -> Model:
    rng = np.random.default_rng(seed)
    return Model(rng.normal(size=(size, width)), rng.normal(size=(size, width)))


@pytest.mark.parametrize("seed", range(3))
def test_log_probs_and_entropy_are_those_of_scipy(seed: int) -> None:
    rng, model = np.random.default_rng(seed), model_of(seed)
    ids, labels = rng.integers(0, 4, (2, 3, 5))
    answer = get_response_log_probs(model, ids, labels, True)
    logits = model.embedding[ids] @ model.head.T
    scored = np.take_along_axis(special.log_softmax(logits, axis=-1), labels[..., None], axis=-1)[..., 0]
    entropy = stats.entropy(special.softmax(logits, axis=-1), axis=-1)
    assert close(answer["log_probs"].value, scored)
    assert close(answer["token_entropy"].value, entropy)
    assert close(compute_entropy(logits).value, entropy)
    assert set(get_response_log_probs(model, ids, labels, False)) == {"log_probs"}

    def of_parameters(row: FloatArray) -> Expected:
        return get_response_log_probs(Model.from_row(row, 3), ids, labels, False)["log_probs"]

    assert_pullback(of_parameters, flat(model), seed)
    assert_pullback(compute_entropy, logits, seed)


def test_a_guarded_logarithm_is_within_eight_roundings_of_the_entropys_gradient() -> None:
    logits = np.array([[[0.0, -10.0, -20.0, -40.0, 3.0]]])
    p = special.softmax(logits, axis=-1)
    guarded = -p * (np.log(p + 1e-8) + p / (p + 1e-8))
    guarded -= p * guarded.sum(axis=-1, keepdims=True) / p.sum()
    answer = compute_entropy(logits)
    assert answer.pullback is not None
    gradient = answer.pullback(np.ones((1, 1)))
    assert (np.abs(guarded - gradient.value) <= 8 * 2.0**-23 * gradient.scale).all()


# The training step

METHODS = ["none", "noclip", "grpo", "gspo"]


def step_case(seed: int, method: str, normalization: str, most: float) -> dict[str, Any]:
    rng, model = np.random.default_rng(seed), model_of(seed)
    prompts = ["ab", "c", "abc", "d", "da", "b", "cc", "ad"]
    batch = tokenize_prompt_and_output(prompts, RESPONSES, Letters())
    ids, labels = (np.nan_to_num(batch[name].value).astype(int) for name in ("input_ids", "labels"))
    current = get_response_log_probs(model, ids, labels, False)["log_probs"].value
    return {
        "model": model,
        "tokenizer": Letters(),
        "optimizer": Descent(0.3),
        "gradient_accumulation_steps": 4,
        "max_grad_norm": most,
        "reward_fn": reward_fn,
        "repeated_prompts": prompts,
        "rollout_responses": RESPONSES,
        "repeated_ground_truths": TRUTHS,
        "group_size": 4,
        "baseline": "mean",
        "advantage_eps": 1e-6,
        "advantage_normalizer": "std",
        "importance_reweighting_method": method,
        "old_log_probs": None if method == "none" else current - rng.choice([-0.5, 0.05, 0.4], (8, 1)),
        "cliprange": 0.2,
        "loss_normalization": normalization,
        "normalization_constant": 6.0 if normalization == "constant" else None,
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("normalization", ["sequence", "constant"])
@pytest.mark.parametrize("most", [1e9, 0.05])
def test_a_training_step_descends_the_differences_of_its_loss(method: str, normalization: str, most: float) -> None:
    case = step_case(1, method, normalization, most)
    answer = grpo_train_step(**case, convention=CS336)
    before = flat(case["model"])

    def loss(row: FloatArray) -> float:
        return float(grpo_train_step(**case | {"model": Model.from_row(row, 3)}, convention=CS336)["loss"].value)

    gradient = np.array([loss(before + step) - loss(before - step) for step in 1e-6 * np.eye(len(before))]) / 2e-6
    gradient *= min(1.0, most / (np.linalg.norm(gradient) + 1e-6))
    assert np.allclose(answer["parameters"].value, before - 0.3 * gradient, rtol=0, atol=1e-8)
    assert (answer["parameters"].scale >= np.abs(answer["parameters"].value) * 0.1).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("normalization", ["sequence", "constant"])
def test_the_loss_of_a_training_step_is_made_of_its_parts(method: str, normalization: str) -> None:
    case = step_case(2, method, normalization, 1e9)
    batch = tokenize_prompt_and_output(case["repeated_prompts"], RESPONSES, Letters())
    ids, labels = (np.nan_to_num(batch[name].value).astype(int) for name in ("input_ids", "labels"))
    mask = batch["response_mask"].value
    policy = Policy(
        get_response_log_probs(case["model"], ids, labels, False)["log_probs"].value,
        np.zeros(mask.shape) if method == "none" else case["old_log_probs"],
        mask,
        compute_group_normalized_rewards_2026(REWARDS, 4, convention=CS336)["advantages"].value[:, None],
    )
    loss = by_hand(method, policy)
    expected = loss[mask].sum() / 6
    if normalization == "sequence":
        expected = np.mean([loss[b, mask[b]].mean() for b in range(8)])
    assert close(grpo_train_step(**case, convention=CS336)["loss"].value, expected)


def test_microbatches_that_do_not_divide_the_batch_are_refused() -> None:
    case = step_case(0, "none", "sequence", 1.0) | {"gradient_accumulation_steps": 3}
    with pytest.raises(
        ValueError, match="gradient_accumulation_steps: is 3, expected a divisor of the number of rollouts"
    ):
        grpo_train_step(**case)
