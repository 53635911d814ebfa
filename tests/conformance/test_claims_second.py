"""The claim checks of advantages, losses and KL estimators: right code that is declared passes, wrong code fails."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlassay.check import Check, Trial
from rlassay.draw import Draw
from rlassay.engine import run_check
from rlassay.suite import all_checks
from rlassay.suite.claims import (
    advantage,
    clipping,
    episode_steps,
    estimates,
    frozen_policy,
    groups,
    imitation,
    kl,
    lengths,
    loss,
    weights,
)
from rlassay.torch_subject import TorchSubject
from rlassay_spec import exact
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention
from tests.conformance.declared_code import VARIANTS, Functions, conforming, in_single_precision
from tests.conformance.wrong_code import BITES, RIGHT

MODULES = (advantage, groups, loss, imitation, lengths, estimates, episode_steps, clipping, frozen_policy, kl)
NAMES = {module.__name__ for module in MODULES}
CHECKS = {key: check for key, check in all_checks().items() if inspect.unwrap(check.function).__module__ in NAMES}


def outcome(check: Check, functions: Functions, convention: Convention = LECTURE, seed: int = 0) -> str:
    """What the check says about the reference with these functions in place of its own."""
    result = run_check(check, TorchSubject(RIGHT | functions, convention=convention), "quick", seed)
    detail = result.failure.traceback if result.failure and result.outcome == "harness-error" else ""
    return result.outcome + detail


def outcomes(functions: Functions, convention: Convention = LECTURE) -> dict[str, set[str]]:
    """The outcomes of all checks, each with the checks that came to it."""
    found: dict[str, set[str]] = {}
    for key, check in CHECKS.items():
        found.setdefault(outcome(check, functions, convention), set()).add(key)
    return found


@pytest.mark.parametrize("key", CHECKS)
def test_a_claim_check_passes_on_the_reference_for_twenty_seeds(key: str) -> None:
    assert {outcome(CHECKS[key], {}, seed=seed) for seed in range(20)} == {"pass"}


DECLARED = [
    LECTURE,
    Convention(name="torch's default", std_ddof=1, std_eps=1e-4),
    Convention(name="inside", std_ddof=1, std_eps=1e-3, std_eps_place="inside"),
    Convention(name="floor", std_eps=0.45, std_eps_place="floor"),
    Convention(name="a large ε", std_eps=0.5),
    Convention(name="sequence mean", aggregation="sequence_mean"),
    Convention(name="token mean", aggregation="token_mean", empty_rows="dropped"),
    Convention(name="constant", aggregation="constant", aggregation_constant=1024),
    Convention(name="constant below 1", aggregation="constant", aggregation_constant=0.5, empty_rows="dropped"),
    Convention(name="singletons keep their reward", singleton_group="reward"),
    Convention(name="singletons are an error", singleton_group="error"),
    Convention(name="clamps", k3_clamp=0.3, log_ratio_clamp=0.15),
    Convention(name="wide clamps", k3_clamp=10, log_ratio_clamp=20),
    Convention(name="the caller detaches", old_log_probs="caller"),
    CONVENTIONS["cs336"],
]
LEFT_OPEN = {
    "the caller detaches": {f"{op}/{claim}" for op in ("clipped_loss", "grpo_objective") for claim in ("P6.1", "P6.2")}
    | {"clipped_loss/P6.3"},
}
LEFT_OPEN["cs336"] = LEFT_OPEN["the caller detaches"] | {"centered_advantages/B7.5", "grpo_advantages/B7.5"}


@pytest.mark.parametrize("convention", DECLARED, ids=lambda c: c.name)
def test_no_claim_check_fails_on_right_code_that_declares_its_convention(convention: Convention) -> None:
    found = outcomes(conforming(convention), convention)
    assert found.pop("not-declared", set()) == LEFT_OPEN.get(convention.name, set())
    assert set(found) == {"pass"}, found


@pytest.mark.parametrize("convention", [DECLARED[0], DECLARED[1], DECLARED[11]], ids=lambda c: c.name)
def test_single_precision_inside_passes(convention: Convention) -> None:
    functions = {name: in_single_precision(function) for name, function in conforming(convention).items()}
    found = outcomes(functions, convention)
    found["robust"] = {key for key in found.pop("fail", set()) if CHECKS[key].kind == "robustness"}
    assert set(found) == {"pass", "robust"}, found


@pytest.mark.parametrize("operation", VARIANTS)
def test_other_formulas_of_the_same_thing_conform(operation: str) -> None:
    functions = {operation: VARIANTS[operation]}
    found = {key: outcome(c, functions) for key, c in CHECKS.items() if operation in c.operations}
    failed = {key for key, seen in found.items() if seen != "pass"}
    assert all(CHECKS[key].kind == "robustness" for key in failed), found


@pytest.mark.parametrize("factor", [math.nan, 1e300, 0.0])
def test_results_that_are_no_sensible_numbers_fail_and_are_never_an_error_of_the_harness(factor: float) -> None:
    def spoilt(operation: str) -> Callable[..., Any]:
        return lambda *arguments: RIGHT[operation](*arguments) * factor

    found = {key: outcome(c, {c.operation: spoilt(c.operation)}) for key, c in CHECKS.items()}
    silent = {key for key, seen in found.items() if seen == "pass"}
    zero_is_right = {key for key in CHECKS if key.endswith(("/B10.6", "/B10.6-float32", "/B7.5", "/B5.2"))}
    bools = {key for key in CHECKS if key.startswith("keep_groups")}
    assert set(found.values()) <= {"fail", "pass"}, found
    assert silent <= zero_is_right | bools | {"kl_k3/P7.2-float32"}, silent


@pytest.mark.parametrize("answer", [None, "higher", 1.0, torch.zeros(3), torch.zeros(2, 2, 2)], ids=str)
def test_nonsense_fails_and_is_never_an_error_of_the_harness(answer: Any) -> None:
    found = {key: outcome(c, {c.operation: lambda *arguments: answer}) for key, c in CHECKS.items()}
    assert set(found.values()) == {"fail"}, found


CASES = [(f"{operation}/{law}", name, wrong) for operation, name, wrong, text in BITES for law in text.split()]


@pytest.mark.parametrize(("key", "name", "wrong"), CASES, ids=[f"{key}: {name}" for key, name, _ in CASES])
def test_a_claim_check_fails_on_wrong_code(key: str, name: str, wrong: Callable[..., Any]) -> None:
    assert outcome(CHECKS[key], {key.split("/")[0]: wrong}) == "fail"


def test_every_claim_check_is_seen_to_fail() -> None:
    assert set(CHECKS) == {key for key, _, _ in CASES}


# The numbers that are expected under the lecture convention are the lecture's.


def trial(convention: Convention = LECTURE) -> Trial:
    return Trial(TorchSubject(RIGHT, convention=convention), Draw("numbers"))


def expected(operation: str, arguments: Any, convention: Convention = LECTURE) -> np.ndarray:
    return np.asarray(trial(convention).expect(operation, arguments).value)


def test_the_groups_of_the_table_have_the_exact_advantages() -> None:
    rules: Functions = {
        "centered_advantages": exact.advantage.centered,
        "grpo_advantages": exact.advantage.normalized,
        "max_advantages": exact.advantage.best_only,
    }
    seen = [row for row in advantage.NUMBERS if row[1] in rules]
    for _, operation, _, rewards in seen:
        want = [[float(entry) for entry in rules[operation](group)] for group in rewards]
        assert expected(operation, advantage.rewards(rewards)) == pytest.approx(np.array(want), abs=1e-14)
    assert {claim for claim, *_ in seen} >= {"B7.4", "B9.1", "B9.2", "B10.1", "B10.2", "P3.3", "P4.1", "P4.4", "P5.1"}


@pytest.mark.parametrize(("ddof", "want"), [(0, 0.999800), (1, 0.865875)])
def test_the_declared_standard_deviation_decides_what_p5_1_expects(ddof: int, want: float) -> None:
    declared = Convention(std_ddof=ddof, std_eps=1e-4)
    value = expected("grpo_advantages", advantage.rewards([(1, 1, 0, 0)]), declared)
    assert value[0] == pytest.approx([want, want, -want, -want], abs=5e-7)
    assert outcome(CHECKS["grpo_advantages/P5.1"], conforming(declared), declared) == "pass"
    assert outcome(CHECKS["grpo_advantages/P5.1"], conforming(declared)) == "fail"


@pytest.mark.parametrize(("size", "want"), [(2, 1.0), (4, 1.645032), (8, 2.026116)])
def test_the_deviation_multiplies_the_mean_gradient_by_the_factors_of_b9_6(size: int, want: float) -> None:
    assert groups.deviation_factor(trial(), size) == pytest.approx(want, abs=5e-7)


def test_a_failure_of_b9_6_names_the_factor() -> None:
    functions = {"centered_advantages": RIGHT["rloo_advantages"]}
    result = run_check(CHECKS["centered_advantages/B9.6"], TorchSubject(RIGHT | functions), "quick", 0)
    assert result.failure is not None
    assert result.failure.message == "E[ĝ]/∇J with R − mean at G = 2 is 1, but should be 0.5 (within 1.5e-06)"


def test_under_the_lecture_convention_every_sequence_weighs_the_same() -> None:
    assert (weights.shares(trial(), weights.batch())[np.array(weights.MASK) == 1] == 1 / 4).all()
    case = weights.batch(advantages=np.ones(4), constant=50.0)
    assert (weights.shares(trial(), case)[np.array(weights.MASK) == 1] == 1 / 200).all()


@pytest.mark.parametrize("a", [1.0, -1.0, 2.5, -0.4])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.1, 1.5])
def test_value_and_slope_of_the_surrogate_are_the_exact_ones(ratio: float, a: float) -> None:
    case = clipping.surrogate([ratio], [a])
    assert expected("clipped_loss", case) == pytest.approx(float(exact.loss.clipped(ratio, a)), abs=1e-14)
    _, slope = clipping.slopes(trial(), case)
    assert slope == pytest.approx([float(exact.loss.clipped_slope(ratio, a))], abs=1e-14)


def test_steps_carry_the_ratio_out_of_its_bounds() -> None:
    ends = [clipping.ratio_after(trial(), f, rate, steps)[0] for _, f, rate, steps in clipping.WALKS]
    assert ends == pytest.approx([1.761594, 1.583], abs=1e-3)


@pytest.mark.parametrize(("operation", "near", "far"), [("kl_k1", 0.198637, 0.457209), ("kl_k3", 0.005488, 4.467477)])
def test_the_standard_deviations_of_p7_3_are_those_of_the_claim(operation: str, near: float, far: float) -> None:
    for pair, want in ((kl.NEAR, near), (kl.FAR, far)):
        values = expected(operation, kl.outcomes(pair))[0]
        assert kl.spread(values, pair[0]) == pytest.approx(want, abs=5e-7)


GAUSSIAN = {
    "kl_k1": ((0, 20), (0, 2)),
    "kl_k2": ((0.0025, math.sqrt(2.01)), (0.25, math.sqrt(3))),
    "kl_k3": ((0, 1.4165745186), (0, 2 * math.sqrt(math.e - 2))),
}


@pytest.mark.parametrize("operation", GAUSSIAN)
def test_the_quadrature_gives_the_gaussian_table(operation: str) -> None:
    for shift, (bias, deviation) in zip((0.1, 1.0), GAUSSIAN[operation], strict=True):
        arguments, chances = kl.gaussian(shift)
        values = expected(operation, arguments)[0] * 2 / shift**2
        assert chances @ values - 1 == pytest.approx(bias, abs=1e-9)
        assert kl.spread(values, chances) == pytest.approx(deviation, abs=1e-9)


@pytest.mark.parametrize(
    ("operation", "estimator"), list({"kl_k1": exact.kl.k1, "kl_k2": exact.kl.k2, "kl_k3": exact.kl.k3}.items())
)
def test_the_mean_gradients_of_p7_5_are_the_exact_ones(operation: str, estimator: Any) -> None:
    for policy, reference in kl.PAIRS:
        gradient = trial().expect(operation, kl.outcomes((policy, reference))).pullback
        assert gradient is not None
        slopes = gradient(np.array([policy])).value[0]
        want = exact.kl.mean_gradient(policy, reference, estimator)
        assert slopes - np.array(policy) * slopes.sum() == pytest.approx(np.array(want), abs=1e-12)
