"""Calibration: what is measured, the margins that follow, and the power of the statistical checks."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rlassay.calibration.margins import margins
from rlassay.calibration.measure import Measured, measure
from rlassay.calibration.power import PLANTED, detects
from rlassay.matrix.rows import Entry
from rlassay.matrix.run import Matrix, plan
from rlassay.statistics import DESIGNS
from rlassay.torch_subject import TorchSubject
from tests.conformance.cli_support import rlassay


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    torch.set_num_threads(1)
    return plan("rlassay_impl", "quick", 0)


def with_kl(matrix: Matrix, factor: float, form: Any) -> Matrix:
    """The matrix with one more subject, whose kl_k1 is off by a factor."""
    functions = matrix.entries["reference"].make().functions

    def off(log_probs: Any, ref_log_probs: Any) -> Any:
        return factor * functions["kl_k1"](log_probs, ref_log_probs)

    def make() -> TorchSubject:
        return TorchSubject({**functions, "kl_k1": off})

    entry = Entry("off", form, "", "", ("kl_k1",), make, "")
    return replace(matrix, entries={**matrix.entries, "off": entry})


def test_correct_code_uses_little_of_its_tolerance_and_nothing_is_found_in_it(matrix: Matrix) -> None:
    measured = measure(matrix, ("kl_k1-in_double", 3, "quick"))
    assert (measured.subject, measured.seed, measured.findings) == ("kl_k1-in_double", 3, {})
    assert 0 <= measured.loads["kl_k1/value"] < 0.5


def test_the_load_of_a_fault_is_its_error_as_a_share_of_the_tolerance(matrix: Matrix) -> None:
    small = measure(with_kl(matrix, 1 + 1e-4, "variant"), ("off", 0, "quick"))
    large = measure(with_kl(matrix, 1 + 1e-2, "variant"), ("off", 0, "quick"))
    assert "is" in small.findings["kl_k1/value"]
    assert small.loads["kl_k1/value"] > 1
    assert large.loads["kl_k1/value"] / small.loads["kl_k1/value"] == pytest.approx(100, rel=0.05)


def test_robustness_that_a_variant_has_on_record_is_no_finding_and_no_load(matrix: Matrix) -> None:
    measured = measure(matrix, ("kl_k3-exp_form", 0, "quick"))
    assert not measured.findings
    assert "kl_k3/never-negative" not in measured.loads


def test_margins_are_the_nearest_of_both_sides() -> None:
    correct = [
        Measured(subject="a", seed=0, loads={"op/value": 0.05, "op/B1.1": 0.0}),
        Measured(subject="b", seed=0, loads={"op/value": 0.2}),
    ]
    faulty = [
        Measured(subject="op/F-1", seed=0, loads={"op/value": 3.0, "op/B1.1": 2.0}),
        Measured(subject="op/F-2", seed=0, loads={"op/value": 30.0}),
        Measured(subject="op/F-3", seed=0, loads={"op/value": 0.5, "op/B1.1": math.inf}),
        Measured(subject="op/F-4", seed=0, loads={"op/value": 0.9}),
    ]
    value, claim = margins(correct, faulty)
    assert (value.check, value.correct, value.nearest_correct) == ("op/value", 5, "b")
    assert (value.faulty, value.nearest_fault, value.narrow) == (3, "op/F-1", True)
    assert (claim.check, claim.correct, claim.faulty, claim.narrow) == ("op/B1.1", math.inf, math.inf, False)


def test_every_statistical_check_has_an_effect_to_be_tried_with() -> None:
    assert set(PLANTED) == set(DESIGNS)


@pytest.mark.parametrize("check", PLANTED)
def test_a_statistical_check_sees_its_effect_and_nothing_where_there_is_none(matrix: Matrix, check: str) -> None:
    for seed in range(3):
        assert detects(matrix, (check, True, seed)) == (check, True, True)
        assert detects(matrix, (check, False, seed)) == (check, False, False)


def test_the_command_measures_and_writes_what_it_measured(tmp_path: Path) -> None:
    done = rlassay("calibrate", "--seeds", "1", "--correct-only", "--json", "calibration.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 false alarms in" in done.stdout
    document = json.loads((tmp_path / "calibration.json").read_text())
    assert document["alarms"] == []
    assert {"check", "correct", "faulty"} <= set(document["margins"][0])
