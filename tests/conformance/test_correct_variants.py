"""No conformance check flags a correct implementation, however it is written. (More seeds: scripts/false_alarms.py.)"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rlassay_spec.convention import LECTURE
from rlassay_spec.oracles import ORACLES
from tests.conformance.variants import Variant, all_variants

SEEDS = 3
VARIANTS = all_variants()


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_no_conformance_check_flags_a_correct_variant(variant: Variant) -> None:
    torch.set_num_threads(1)
    flagged = [
        f"seed {seed}: {result.id}: {result.failure.message if result.failure else result.outcome}"
        for seed in range(SEEDS)
        for result in variant.findings("quick", seed, robustness=False)
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
