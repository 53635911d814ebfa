"""The table of operations, its contracts, and the oracles that belong to them."""

import inspect
from typing import Any

import numpy as np
import pytest

from rlassay_spec.operations import OPERATIONS, Operation
from rlassay_spec.oracles import ORACLES, takes_convention
from rlassay_spec.oracles.expected import Expected, cotangent_like
from tests.spec.support import answer, example

TABLE = [
    "token_log_probs",
    "masked_log_probs",
    "entropy",
    "action_log_probs",
    "response_mask",
    "reward_to_go",
    "gae",
    "centered_advantages",
    "grpo_advantages",
    "rloo_advantages",
    "max_advantages",
    "keep_groups",
    "aggregate",
    "sft_loss",
    "rest_loss",
    "reinforce_loss",
    "policy_gradient_loss",
    "grpo_loss",
    "dr_grpo_loss",
    "clipped_loss",
    "kl_k1",
    "kl_k2",
    "kl_k3",
    "grpo_objective",
    "microbatch_loss",
    "value_loss",
    "expected_return",
    "bandit_gradient",
    "optimal_baseline",
    "number_search",
    "position_reward",
    "inclusion_order_reward",
    "dual_clip_loss",
    "gspo_loss",
    "entropy_bonus",
    "importance_weights",
    "whiten",
    "kl_rewards",
    "overlong_penalty",
    "truncated_log_probs",
]

TENSOR_OPERATIONS = [name for name in TABLE if name != "number_search"]

every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
every_tensor_operation = pytest.mark.parametrize("name", TENSOR_OPERATIONS)


def test_the_operations_come_in_the_order_of_the_table() -> None:
    assert list(OPERATIONS)[: len(TABLE)] == TABLE
    assert list(ORACLES) == list(OPERATIONS)


@every_operation
def test_an_operation_is_filed_under_its_own_name(operation: Operation) -> None:
    assert OPERATIONS[operation.name] is operation
    assert operation.stub.__name__ == operation.name
    assert operation.stub.__module__ == f"rlassay_spec.operations.{operation.topic}"
    assert ORACLES[operation.name].__module__ == f"rlassay_spec.oracles.{operation.topic}"


@every_operation
def test_the_contract_says_what_a_reader_needs(operation: Operation) -> None:
    assert operation.doc.startswith(operation.summary)
    assert operation.summary.endswith(".")
    sections = ["Source:", "Special cases:", "Raises:\n    ValueError:"]
    places = [operation.doc.index(section) for section in sections]
    assert places == sorted(places)
    assert "\nShapes" in operation.doc or "\nUnits" in operation.doc
    assert f"flows into {operation.differentiable}" in operation.doc or operation.differentiable is None


@every_operation
def test_a_stub_computes_nothing(operation: Operation) -> None:
    with pytest.raises(NotImplementedError):
        operation.stub(*[None] * len(operation.parameters))


@every_operation
def test_stub_and_oracle_take_the_same_arguments(operation: Operation) -> None:
    def positional(function: Any) -> list[tuple[str, object]]:
        parameters = inspect.signature(function).parameters.values()
        return [(p.name, p.default) for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]

    assert positional(ORACLES[operation.name]) == positional(operation.stub)
    assert operation.parameters == tuple(name for name, _ in positional(operation.stub))
    assert operation.signature == inspect.signature(operation.stub)


@every_operation
def test_the_gradient_flows_into_the_first_argument_or_nowhere(operation: Operation) -> None:
    assert operation.differentiable in (None, operation.parameters[0])


@every_tensor_operation
def test_an_oracle_has_a_pullback_exactly_where_the_operation_is_differentiable(name: str) -> None:
    assert (answer(name, example(name, 0)).pullback is not None) == (OPERATIONS[name].differentiable is not None)


@every_tensor_operation
@pytest.mark.parametrize("seed", range(3))
def test_the_scale_bounds_the_value(name: str, seed: int) -> None:
    arguments = example(name, seed)
    expected = answer(name, arguments)
    exact = name in ("response_mask", "keep_groups", "position_reward", "inclusion_order_reward")
    assert expected.value.dtype in (np.float64, np.bool_)
    assert expected.scale.shape == expected.value.shape
    assert expected.terms >= 1
    assert (expected.scale == 0).all() if exact else (expected.scale >= abs(expected.value)).all()
    if expected.pullback is not None:
        gradient = expected.pullback(np.random.default_rng(seed).normal(size=expected.value.shape))
        assert gradient.value.shape == np.shape(arguments[0])
        assert (gradient.scale >= abs(gradient.value)).all()
        assert (gradient.kink >= 0).all()


@every_tensor_operation
def test_a_float32_tolerance_does_not_hide_one_percent(name: str) -> None:
    tolerance = 16 * np.finfo(np.float32).eps
    expected = answer(name, example(name, 1))
    assert (tolerance * expected.scale).max() < 0.01 * max(abs(expected.value).max(), 0.1)
    if expected.pullback is not None:
        gradient = expected.pullback(np.ones(expected.value.shape))
        assert (tolerance * gradient.scale).max() < 0.01 * abs(gradient.value).max()


@pytest.mark.parametrize("name", TABLE)
def test_an_oracle_leaves_its_inputs_alone_and_repeats_itself(name: str) -> None:
    first, second = example(name, 2), example(name, 2)
    once, again = ORACLES[name](*first), ORACLES[name](*first)
    for used, fresh in zip(first, second, strict=True):
        np.testing.assert_array_equal(used, fresh)
    if isinstance(once, Expected):
        np.testing.assert_array_equal(once.value, again.value)
        np.testing.assert_array_equal(once.scale, again.scale)
    else:
        assert once == again


def test_the_convention_reaches_the_operations_that_follow_it() -> None:
    followers = [
        "centered_advantages",
        "grpo_advantages",
        "rloo_advantages",
        "aggregate",
        "sft_loss",
        "rest_loss",
        "reinforce_loss",
        "policy_gradient_loss",
        "grpo_loss",
        "dr_grpo_loss",
        "clipped_loss",
        "kl_k3",
        "grpo_objective",
        "microbatch_loss",
        "value_loss",
        "dual_clip_loss",
        "gspo_loss",
        "entropy_bonus",
        "whiten",
    ]
    assert [name for name in TABLE if takes_convention(name)] == followers


def test_a_cotangent_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cotangent: has shape \[3\], expected \[2, 2\]"):
        cotangent_like(np.zeros(3), (2, 2))
