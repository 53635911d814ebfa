"""Explanations name a fault, or the convention that it amounts to, and never another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import rlassay_impl
from rlassay.explain import explain, explanations
from rlassay.faults import Fault, all_faults, faults_of
from rlassay.record import UNEXPLAINED, Explanation
from rlassay.search import AVERAGES, random_cases
from rlassay.torch_subject import TorchSubject
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention, convention_from
from rlassay_spec.operations import OPERATIONS

NAMELESS = 0.05
"""Largest share of the catalogue that may stay without a name."""

SILENT = {"token_log_probs/LP-04", "number_search/NUM-11"}
"""Faults without a name: dropout is different in every call, and explanations ask no call that must be refused."""


def subject_of(fault: Fault, declared: Convention = LECTURE) -> TorchSubject:
    """The fault as somebody who declares a convention would make it."""
    return TorchSubject({fault.operation: fault.under(declared)}, convention=declared)


def names_rightly(explanation: Explanation, fault: Fault, declared: Convention = LECTURE) -> bool:
    """Whether it names the fault, or the choice that the fault is."""
    if explanation.fault:
        return explanation.fault == fault.id
    chosen = replace(declared, **explanation.convention)  # type: ignore[arg-type]
    return bool(explanation.convention) and chosen == replace(declared, **fault.convention)


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if faults_of(name)])
def test_each_fault_of_an_operation_is_named_and_no_other_one_fits(operation: str) -> None:
    torch.set_num_threads(1)
    for fault in faults_of(operation):
        found = explanations(operation, subject_of(fault))
        named = [next(found)] if fault.convention else [explanation for explanation in found if explanation.fault]
        if fault.key in SILENT:
            assert not named
        else:
            assert [explanation for explanation in named if names_rightly(explanation, fault)] == named != [], fault.key


def test_few_faults_stay_without_a_name() -> None:
    assert set(all_faults()) >= SILENT
    assert len(SILENT) <= NAMELESS * len(all_faults())


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("grpo_advantages/ADV-14", "conforms with std_ddof=1: declare it in CONVENTION, or change it"),
        ("grpo_advantages/AD-06", "behaves like AD-06: statistics over the whole batch"),
        ("token_log_probs/LOG-01", "behaves like LOG-01: no shift: the logits at t score the token at t"),
        ("clipped_loss/LOS-44", "behaves like LOS-44: ratio ≡ 1 with a dead gradient: π over itself"),
        ("clipped_loss/LOS-45", "behaves like LOS-45: log π_old with a live gradient"),
    ],
)
def test_the_five_faults_of_the_lectures_are_named(key: str, text: str) -> None:
    fault = all_faults()[key]
    assert explain(fault.operation, subject_of(fault)).text == text


OTHERS = (
    CONVENTIONS["cs336"],
    convention_from({"aggregation": "token_mean", "empty_rows": "dropped", "std_eps": 1e-4}),
)


@pytest.mark.parametrize("operation", ["grpo_advantages", "kl_k3", "rest_loss", "grpo_loss"])
@pytest.mark.parametrize("declared", OTHERS, ids=lambda convention: convention.aggregation)
def test_a_fault_is_named_under_another_convention_too_unless_two_are_the_same_there(
    operation: str, declared: Convention
) -> None:
    for fault in faults_of(operation):
        if fault.kind == "robustness" or not fault.wrong_under(declared):
            continue
        found = explain(operation, subject_of(fault, declared))
        if found.text != UNEXPLAINED and not names_rightly(found, fault, declared):
            twin = next(other for other in faults_of(operation) if other.id == found.fault)
            back = explanations(operation, subject_of(twin, declared))
            assert fault.id in [explanation.fault for explanation in back], f"{fault.key} is called {found.text}"


def reference(name: str, declared: dict[str, Any]) -> TorchSubject:
    """The reference, which keeps to the lectures, with something else declared."""
    return TorchSubject({name: getattr(rlassay_impl, name)}, convention=convention_from(declared))


@pytest.mark.parametrize(
    ("operation", "declared", "fields"),
    [
        ("grpo_advantages", {"std_ddof": 1}, {"std_ddof": 0}),
        ("grpo_advantages", {"std_eps": 1e-3, "std_ddof": 1}, {"std_eps": 0.0, "std_ddof": 0}),
        ("sft_loss", {"aggregation": "token_mean"}, {"aggregation": "sequence_sum"}),
        ("centered_advantages", {"singleton_group": "reward"}, {"singleton_group": "zero"}),
        ("kl_k3", {"k3_clamp": 2.0}, {"k3_clamp": None}),
        ("whiten", {"std_ddof": 1, "std_eps": 1e-3}, {"std_ddof": 0, "std_eps": 0.0}),
        (
            "grpo_objective",
            {"aggregation": "token_mean", "std_ddof": 1},
            {"aggregation": "sequence_sum", "std_ddof": 0},
        ),
    ],
)
def test_a_declaration_that_is_not_followed_is_corrected(
    operation: str, declared: dict[str, Any], fields: dict[str, Any]
) -> None:
    assert explain(operation, reference(operation, declared)).convention == fields


@pytest.mark.parametrize("constant", [128.0, 1000.0, 4.0])
def test_the_constant_of_an_aggregation_is_found(constant: float) -> None:
    def loss(log_probs: Tensor, mask: Tensor) -> Tensor:
        return rlassay_impl.sft_loss(log_probs, mask) / constant

    found = explain("sft_loss", TorchSubject({"sft_loss": loss}))
    assert found.convention == {"aggregation": "constant", "aggregation_constant": constant}


def test_a_refusal_of_groups_of_one_is_a_convention() -> None:
    def refusing(rewards: Tensor) -> Tensor:
        if rewards.shape[1] == 1:
            raise ValueError("rewards: G = 1")
        return rlassay_impl.rloo_advantages(rewards)

    found = explain("rloo_advantages", TorchSubject({"rloo_advantages": refusing}))
    assert found.convention == {"singleton_group": "error"}


def raising(*_: Any) -> Tensor:
    """An implementation that breaks."""
    raise RuntimeError("dimension mismatch")


def two_faults(log_probs: Tensor, mask: Tensor) -> Tensor:
    """The sign and the mask wrong: each alone has a name, both together have none."""
    return -rlassay_impl.sft_loss(log_probs, torch.roll(mask, 1, 1)) * 2


def unheard_of(log_probs: Tensor, mask: Tensor) -> Tensor:
    """Wrong where a row's first log-prob is below −2."""
    return rlassay_impl.sft_loss(torch.where(log_probs < -2, 0.9 * log_probs, log_probs), mask)


@pytest.mark.parametrize(
    ("implementation", "text"),
    [
        (rlassay_impl.sft_loss, UNEXPLAINED),
        (two_faults, UNEXPLAINED),
        (unheard_of, UNEXPLAINED),
        (raising, "raises RuntimeError: dimension mismatch on inputs that the contract allows"),
    ],
)
def test_nothing_is_guessed(implementation: Callable[..., Any], text: str) -> None:
    assert explain("sft_loss", TorchSubject({"sft_loss": implementation})).text == text


def test_a_fault_that_only_robustness_checks_see_is_named() -> None:
    def multiplied(log_probs: Tensor, mask: Tensor) -> Tensor:
        return -(log_probs * mask).sum() / len(mask)

    found = explain("sft_loss", TorchSubject({"sft_loss": multiplied}))
    assert found.text == "behaves like MK-13: masking by multiplication: 0·NaN is NaN"


def test_other_names_of_arguments_are_told_from_a_fault() -> None:
    def renamed(x: Tensor, m: Tensor) -> Tensor:
        return rlassay_impl.sft_loss(x, m)

    found = explain("sft_loss", TorchSubject({"sft_loss": renamed}))
    assert found.text == "takes its arguments under other names than sft_loss(log_probs, mask)"


def test_an_implementation_of_its_own_is_recognised_too() -> None:
    def of_the_batch(rewards: Tensor) -> Tensor:
        flat = rewards.flatten()
        spread = flat.std(correction=0)
        return torch.zeros_like(rewards) if spread == 0 else ((rewards - flat.mean()) / spread)

    found = explain("grpo_advantages", TorchSubject({"grpo_advantages": of_the_batch}))
    assert found.fault == "AD-06"


@pytest.mark.parametrize(
    "operation",
    ["sft_loss", "rest_loss", "reinforce_loss", "grpo_loss", "clipped_loss", "dual_clip_loss", "entropy_bonus"],
)
def test_the_cases_tell_all_averages_apart(operation: str) -> None:
    under = [replace(LECTURE, **change) for change in AVERAGES]
    answers = {
        tuple(float(case.answer(convention).value) for case in random_cases(operation, LECTURE)): convention
        for convention in under
    }
    assert len(answers) == len(under) - 1  # a token mean has no rows to count


def _turned_over(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    return (log_probs - ref_log_probs).exp() - (log_probs - ref_log_probs) - 1


def _without_temperature(logits: Tensor, token_ids: Tensor) -> Tensor:
    return torch.log_softmax(logits[:, :-1], dim=-1).gather(-1, token_ids[:, :-1, None]).squeeze(-1)


def _textbook_k1(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    return log_probs - ref_log_probs


@pytest.mark.parametrize(
    ("operation", "implementation", "texts"),
    [
        ("kl_k3", _turned_over, ("behaves like KL-03", "besides, it lets a gradient into ref_log_probs")),
        ("token_log_probs", _without_temperature, ("behaves like LOG-01", "besides, it raises TypeError")),
        ("kl_k1", _textbook_k1, ("a reference policy with a live gradient",)),
    ],
)
def test_a_second_slip_does_not_hide_the_first(
    operation: str, implementation: Callable[..., Any], texts: tuple[str, ...]
) -> None:
    found = explain(operation, TorchSubject({operation: implementation})).text
    for text in texts:
        assert text in found


def test_a_plain_factor_is_no_convention() -> None:
    def doubled(log_probs: Tensor, mask: Tensor) -> Tensor:
        return 2 * rlassay_impl.sft_loss(log_probs, mask)

    assert explain("sft_loss", TorchSubject({"sft_loss": doubled})).text == UNEXPLAINED


def test_two_faults_in_different_operations_are_both_named() -> None:
    faults = [all_faults()[key] for key in ("grpo_advantages/AD-06", "clipped_loss/LOS-52")]
    functions = {name: getattr(rlassay_impl, name) for name in rlassay_impl.__all__}
    subject = TorchSubject(functions | {fault.operation: fault.function for fault in faults})
    assert [explain(fault.operation, subject).fault for fault in faults] == ["AD-06", "LOS-52"]
