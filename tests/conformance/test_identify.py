"""The convention that an operation follows is found, with its numbers, or nothing is said."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import rlassay_impl
from rlassay.engine import run_check
from rlassay.explain import explain
from rlassay.faults import all_faults, faults_of
from rlassay.faults.parts import advantage, kl, loss
from rlassay.identify import identifiable, identify
from rlassay.identify.agreement import agree, declaration
from rlassay.identify.finding import Finding, Identification
from rlassay.identify.solve import simplest
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject
from rlassay.variants import Variant, all_variants
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention, convention_from
from rlassay_spec.operations import OPERATIONS
from tests.conformance.declared_code import conforming, in_single_precision

Function = Callable[..., Any]

ACCURACY = 0.5e-3
"""Largest relative error of ε that leaves three significant digits."""

SEEDS = 40
"""Random conventions for each of the operations that show most, half of them in float32 code."""

NUMBERS = {"std_eps", "aggregation_constant", "k3_clamp", "log_ratio_clamp"}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def found(operation: str, function: Function) -> Identification:
    """What is found about a function."""
    return identify(operation, TorchSubject({operation: function}))


def contradictions(identified: Identification, convention: Convention) -> dict[str, Finding]:
    """The findings in which a convention does not lie."""
    return {one.field: one for one in identified.findings if not allows(one, getattr(convention, one.field))}


def allows(finding: Finding, value: Any) -> bool:
    """Whether a finding leaves room for a value."""
    if finding.field in NUMBERS:
        number = math.inf if value is None else value
        return (finding.low or 0.0) <= number <= (math.inf if finding.high is None else finding.high)
    if finding.state == "undetermined":
        return value in finding.allowed
    return bool(finding.value in (value, "free"))


def chosen(identified: Identification) -> Convention:
    """The convention that would be declared."""
    return convention_from(dict(agree([identified]).convention))


def random_convention(seed: int) -> Convention:
    """Every field drawn, ε log-uniform from 1e-8 to 1e-2."""
    rng = np.random.default_rng(seed)

    def pick(*names: Any) -> Any:
        return names[int(rng.integers(len(names)))]

    aggregation = pick("sequence_sum", "sequence_mean", "token_mean", "constant")
    return Convention(
        name="random",
        std_ddof=pick(0, 1),
        std_eps=float(10 ** rng.uniform(-8, -2)),
        std_eps_place=pick("added", "inside", "floor"),
        aggregation=aggregation,
        aggregation_constant=float(10 ** rng.uniform(-0.5, 4)) if aggregation == "constant" else None,
        empty_rows=pick("counted", "dropped"),
        singleton_group=pick("zero", "reward", "error"),
        old_log_probs=pick("detached", "caller"),
        k3_clamp=pick(None, float(10 ** rng.uniform(-0.3, 3))),
        log_ratio_clamp=pick(None, float(10 ** rng.uniform(-0.6, 1.35))),
    )


def require_found(identified: Identification, convention: Convention, digits: float = ACCURACY) -> None:
    """Every field that shows is known, and right."""
    assert identified.verdict == "fits", identified.contradiction
    assert not contradictions(identified, convention)
    for finding in identified.findings:
        value = getattr(convention, finding.field)
        if finding.field == "empty_rows" and convention.aggregation == "token_mean":
            continue  # it has no rows to count
        if finding.field == "std_eps_place" and convention.std_eps == 0:
            continue  # there is nothing to place
        assert finding.state == "determined", finding
        if finding.field in NUMBERS and value:
            assert finding.value == pytest.approx(value, rel=digits, abs=0)
        elif finding.field != "empty_mean":
            assert finding.value == value


@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
@pytest.mark.parametrize("operation", ["grpo_advantages", "kl_k3", "clipped_loss", "sft_loss", "grpo_objective"])
def test_random_conventions_are_found(operation: str, single: bool) -> None:
    """In code that computes in the dtype it is given, ε comes out to nine digits; in float32 code to five."""
    for seed in range(SEEDS // 8 if operation == "grpo_objective" else SEEDS // 2):
        convention = random_convention(2 * seed + single)
        function = conforming(convention)[operation]
        identified = found(operation, in_single_precision(function) if single else function)
        require_found(identified, convention)
        if operation == "grpo_advantages":
            epsilon = identified.by_field["std_eps"]
            assert epsilon.value == pytest.approx(convention.std_eps, rel=1e-5 if single else 1e-9, abs=0)
            assert epsilon.low is not None and epsilon.high is not None
            assert epsilon.high - epsilon.low < 1e-4 * convention.std_eps


@pytest.mark.parametrize("operation", [name for name in conforming(LECTURE) if identifiable(name)])
def test_every_operation_that_depends_on_a_convention_shows_it(operation: str) -> None:
    for seed in range(4):
        convention = random_convention(1000 + seed)
        require_found(found(operation, conforming(convention)[operation]), convention)


BLOCKS: dict[str, Function] = {
    "grpo_advantages": advantage.normalised,
    "grpo_objective": loss.grpo_objective,
    "clipped_loss": loss.clipped_loss,
    "value_loss": loss.value_loss,
    "microbatch_loss": loss.microbatch_loss,
}


@pytest.mark.parametrize("operation", BLOCKS)
@pytest.mark.parametrize("convention", CONVENTIONS.values(), ids=CONVENTIONS)
def test_named_conventions_are_found(operation: str, convention: Convention) -> None:
    """The blocks detach and give 0 for groups of one and for empty means, which these fields leave free as well."""
    identified = found(operation, lambda *arguments: BLOCKS[operation](*arguments, convention=convention))
    kept = replace(convention, singleton_group="zero", old_log_probs="detached", empty_mean="zero")
    require_found(identified, kept)


def test_the_reference_follows_the_lectures() -> None:
    identified = [found(name, getattr(rlassay_impl, name)) for name in ("grpo_advantages", "clipped_loss", "kl_k3")]
    agreement = agree(identified)
    assert agreement.declared(LECTURE) == {}
    assert not agreement.contradictions
    assert agreement.undetermined == ["std_eps_place"]


def conforms(operation: str, function: Function, convention: Convention) -> bool:
    """Whether a function passes every conformance check of its operation, if that convention is declared."""
    subject = TorchSubject({operation: function}, convention=convention)
    outcomes = {
        run_check(check, subject, "quick").outcome
        for check in all_checks().values()
        if check.operations == (operation,) and check.kind == "conformance"
    }
    return outcomes <= {"pass", "not-declared"}


@pytest.mark.parametrize("variant", all_variants().values(), ids=all_variants())
def test_what_a_correct_variant_declares_is_found(variant: Variant) -> None:
    for operation, function in variant.functions.items():
        if identifiable(operation):
            identified = found(operation, function)
            assert identified.verdict == "fits", identified.contradiction
            wrong = contradictions(identified, variant.convention)
            if wrong:  # a number that is too small or too large for the suite to see
                assert set(wrong) <= NUMBERS
                assert conforms(operation, function, chosen(identified))


def test_a_clamp_that_no_check_reaches_is_found() -> None:
    variant = all_variants()["clipped_loss-clamp_of_no_effect"]
    assert found("clipped_loss", variant.functions["clipped_loss"]).by_field["log_ratio_clamp"].value == 20.0


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if identifiable(name) and faults_of(name)])
def test_a_wrong_implementation_is_refused_or_follows_what_is_found(operation: str) -> None:
    """Some faults are what a convention declares: a live π_old, a factor ½ that is lost and looks like a constant."""
    for fault in faults_of(operation):
        identified = found(operation, fault.under(LECTURE))
        if identified.verdict == "none":
            assert identified.contradiction is not None
            continue
        if contradictions(identified, replace(LECTURE, **fault.convention)):
            assert conforms(operation, fault.under(LECTURE), chosen(identified)), fault.key


def test_most_faults_of_conventions_are_found_as_such() -> None:
    choices = [fault for fault in all_faults().values() if fault.convention and identifiable(fault.operation)]
    assert len(choices) > 30
    for fault in choices[::3]:
        declared = chosen(found(fault.operation, fault.under(LECTURE)))
        assert declared.declared() == replace(LECTURE, **fault.convention).declared()


def centred(r: Tensor) -> Tensor:
    return r - r.mean(1, keepdim=True)


def sigma(r: Tensor) -> Tensor:
    return r.std(1, keepdim=True, correction=0)


def test_an_epsilon_of_zero_is_told_from_a_tiny_one() -> None:
    zero = found("grpo_advantages", lambda r: (centred(r) / sigma(r)).nan_to_num(nan=0.0)).by_field["std_eps"]
    tiny = found("grpo_advantages", lambda r: centred(r) / (sigma(r) + 1e-12)).by_field["std_eps"]
    assert (zero.value, zero.state) == (0.0, "determined")
    assert zero.high is not None and zero.high < 1e-12
    assert tiny.value == pytest.approx(1e-12, rel=1e-6, abs=0)


@pytest.mark.parametrize(
    ("guard", "epsilon", "state"), [(1e-8, 0.0, "interval"), (1e-8, 1e-6, "determined"), (1e-6, 1e-8, "interval")]
)
def test_a_guard_widens_the_interval_and_is_told(guard: float, epsilon: float, state: str) -> None:
    def guarded(r: Tensor) -> Tensor:
        spread = sigma(r)
        return torch.where(spread > guard, centred(r) / (spread + epsilon).clamp(min=1e-30), 0.0)

    identified = found("grpo_advantages", guarded)
    assert identified.verdict == "fits"
    assert "there may be a guard" in identified.notes[0]
    finding = identified.by_field["std_eps"]
    assert finding.state == state
    assert allows(finding, epsilon)
    assert finding.value == pytest.approx(epsilon, rel=ACCURACY, abs=0)


def test_an_epsilon_in_two_places_fits_no_convention() -> None:
    identified = found("grpo_advantages", lambda r: centred(r) / ((sigma(r) ** 2 + 1e-6).sqrt() + 1e-6))
    assert identified.verdict == "none"
    assert identified.contradiction is not None
    assert "but should be" in identified.contradiction.message
    assert identified.agreeing < identified.observations
    assert not identified.findings


@pytest.mark.parametrize("bound", [0.5, 3.7, 5.0, 10.0, 1234.5])
def test_a_clamp_of_k3_is_read_off_its_plateau(bound: float) -> None:
    def clamped(x: Tensor, ref: Tensor) -> Tensor:
        return kl.k3(x, ref.detach(), replace(LECTURE, k3_clamp=bound))

    assert found("kl_k3", clamped).by_field["k3_clamp"].value == bound


@pytest.mark.parametrize("constant", [0.37, 3.0, 5.0, 33.0, 4096.0])
def test_the_constant_of_an_average_is_found_when_it_is_the_length_of_a_call_too(constant: float) -> None:
    identified = found("sft_loss", lambda x, mask: -(x * mask).sum(1).mean().to(x.dtype) / constant)
    assert chosen(identified).declared() == {"aggregation": "constant", "aggregation_constant": constant}


@pytest.mark.parametrize("length", [lambda mask: mask.shape[1], lambda mask: mask.sum(1).max()])
def test_a_length_that_changes_from_call_to_call_is_no_constant(length: Function) -> None:
    assert found("sft_loss", lambda x, mask: -(x * mask).sum(1).mean() / length(mask)).verdict == "none"


@pytest.mark.parametrize(
    "function", [lambda r: None, lambda r: 3, torch.rand_like, lambda r: 1 / 0, lambda r: r[0], lambda r: "advantages"]
)
def test_nonsense_is_refused(function: Function) -> None:
    assert found("grpo_advantages", function).verdict == "none"


def test_groups_of_one_that_break_are_left_free() -> None:
    def breaking(r: Tensor) -> Tensor:
        if r.shape[1] == 1:
            raise RuntimeError("no group")
        return centred(r)

    identified = found("centered_advantages", breaking)
    assert identified.by_field["singleton_group"].value == "free"
    assert identified.notes == ["raises RuntimeError: no group in groups of one"]


def test_a_failed_check_is_explained_by_a_number_that_is_no_usual_one() -> None:
    odd = TorchSubject({"grpo_advantages": lambda r: centred(r) / (sigma(r) + 1.3e-3)})
    assert explain("grpo_advantages", odd).convention == {"std_eps": 1.3e-3, "std_eps_place": "added"}


def said(operation: str, **values: Any) -> Identification:
    """An identification that says so much and no more."""
    findings = [Finding(field=field, state="determined", value=value) for field, value in values.items()]
    return Identification(operation=operation, verdict="fits", findings=findings)


def test_operations_that_contradict_one_another_leave_the_field_out() -> None:
    agreement = agree([said("grpo_advantages", std_ddof=0), said("whiten", std_ddof=1), said("kl_k3", std_ddof=1)])
    assert "std_ddof" not in agreement.convention
    assert agreement.contradictions == {"std_ddof": {"0": ["grpo_advantages"], "1": ["whiten", "kl_k3"]}}


def test_a_contradiction_in_epsilon_takes_its_place_along() -> None:
    def epsilon(operation: str, value: float) -> Identification:
        identified = said(operation, std_eps_place="added")
        low, high = 0.999 * value, 1.001 * value
        identified.findings.append(Finding(field="std_eps", state="determined", value=value, low=low, high=high))
        return identified

    assert agree([epsilon("whiten", 1e-8), epsilon("grpo_advantages", 1e-4)]).convention == {}
    assert agree([epsilon("whiten", 1e-4), epsilon("grpo_advantages", 1e-4)]).convention["std_eps"] == 1e-4


def test_a_field_that_one_operation_leaves_free_is_free() -> None:
    agreement = agree([said("grpo_advantages", singleton_group="free"), said("whiten", singleton_group="zero")])
    assert agreement.convention == {"singleton_group": "free"}


def test_the_declaration_is_python_that_declares_the_convention() -> None:
    fields = {"std_ddof": 1, "std_eps": 1e-6, "aggregation": "token_mean"}
    line = declaration(dict(fields), LECTURE)
    assert line == 'CONVENTION = {"std_ddof": 1, "std_eps": 1e-06, "aggregation": "token_mean"}'
    assert ast.literal_eval(line.removeprefix("CONVENTION = ")) == fields


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [(0.999e-6, 1.001e-6, 1e-6), (3.69999, 3.70001, 3.7), (5.0, 5.0, 5.0), (2 / 3, 2 / 3, 2 / 3)],
)
def test_of_an_interval_the_simplest_number_is_named(low: float, high: float, number: float) -> None:
    assert simplest(low, high) == number


def test_what_no_convention_changes_is_not_identified() -> None:
    assert not identifiable("kl_k1")
    assert not identifiable("number_search")
    assert all("convention" in inspect.signature(block).parameters for block in BLOCKS.values())
