"""No conformance check flags a correct implementation, however it is written. (More seeds: `rlassay calibrate`.)"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rlassay_impl
from rlassay.engine import run_check
from rlassay.suite import all_checks
from rlassay.variants import Variant, all_variants
from rlassay_spec.convention import LECTURE
from rlassay_spec.oracles import ORACLES

SEEDS = 3
VARIANTS = all_variants()
REFERENCE = {name: getattr(rlassay_impl, name) for name in rlassay_impl.__all__}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_no_conformance_check_flags_a_correct_variant(variant: Variant) -> None:
    torch.set_num_threads(1)
    subject = variant.beside(REFERENCE)
    flagged = [
        f"seed {seed}: {result.id}: {result.failure.message if result.failure else result.outcome}"
        for seed in range(SEEDS)
        for check in all_checks().values()
        if set(check.operations) & set(variant.functions) and check.kind == "conformance"
        if (result := run_check(check, subject, "quick", seed)).outcome not in ("pass", "not-provided", "not-declared")
    ]
    assert not flagged


def test_the_variants_cover_many_styles_and_conventions() -> None:
    declared = {field for variant in VARIANTS.values() for field in variant.convention.declared()}
    assert len(VARIANTS) >= 40
    assert declared >= set(vars(LECTURE)) - {"name", "empty_mean"}


def test_an_advantage_that_vanishes_by_cancellation_need_not_be_exactly_zero() -> None:
    """Rewards (−1, 0, 1): the middle advantage is 0, but a mean taken in thirds is off by a rounding."""
    arguments = {
        "log_probs": np.log([[0.5], [0.25], [0.4]]),
        "old_log_probs": np.log([[0.5], [0.2], [0.4]]),
        "ref_log_probs": np.log([[0.5], [0.25], [0.4]]),
        "mask": np.ones((3, 1)),
        "rewards": np.array([[-1.0, 0.0, 1.0]]),
    }
    want = ORACLES["grpo_objective"](**arguments, beta=0.0)
    gradient = want.pullback(np.array(1.0))
    assert gradient.value[1, 0] == 0
    assert gradient.scale[1, 0] > 0
