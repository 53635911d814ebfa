"""The inputs of truncated log-probs keep away from ties and from thresholds that rounding could cross."""

from __future__ import annotations

import numpy as np
import pytest

from rlassay.draw import Draw
from rlassay.inputs import cast
from rlassay.suite.sampling import MARGIN, METHODS, clear_top_p, reached, truncated_case
from rlassay_spec.convention import LECTURE
from rlassay_spec.oracles.sampling import truncated_log_probs

CASES = [truncated_case(Draw("margins", index), LECTURE) for index in range(200)]


def test_no_dtype_changes_the_logits() -> None:
    for arguments in CASES:
        for dtype in ("float64", "bfloat16"):
            np.testing.assert_array_equal(cast(arguments, dtype)["logits"].array, arguments["logits"].array)


def test_no_two_tokens_of_a_row_tie_even_where_bfloat16_divides_them() -> None:
    for arguments in CASES:
        logits = arguments["logits"].array / arguments.get("temperature", 1.0)
        gaps = np.diff(np.sort(logits, axis=-1), axis=-1)
        assert (gaps > 2.0**-8 * np.abs(logits).max()).all()


def test_top_p_keeps_its_distance_from_every_probability_that_it_is_compared_with() -> None:
    seen = 0
    for arguments in CASES:
        if arguments.get("top_p") is None:
            continue
        taken = reached(arguments["logits"].array, arguments["temperature"], arguments["top_k"])
        assert np.abs(taken - arguments["top_p"]).min() >= MARGIN - 1e-9
        seen += 1
    assert seen > len(CASES) / len(METHODS)


def test_tokens_stand_on_both_sides_of_the_cut() -> None:
    plain = [{name: getattr(value, "array", value) for name, value in case.items()} for case in CASES]
    cut = np.concatenate([np.isneginf(truncated_log_probs(**case).value).ravel() for case in plain])
    assert 0.1 < cut.mean() < 0.5


@pytest.mark.parametrize("taken", [[0.5, 1.0], [0.2, 0.21, 0.22, 1.0], np.linspace(0.0, 1.0, 200)])
def test_a_threshold_lies_between_two_neighbours(taken: list[float]) -> None:
    for index in range(20):
        top_p = clear_top_p(Draw("threshold", index), np.asarray(taken))
        assert 0 < top_p < 1
        assert np.abs(np.asarray(taken) - top_p).min() > 0.002
