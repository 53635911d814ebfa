"""What a subject returns is judged as it is, and its texts are bounded in the record."""

from __future__ import annotations

import pytest
import torch

from rlassay.engine import MOST_TEXT, run_check
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject


def right(log_probs: torch.Tensor, ref_log_probs: torch.Tensor) -> torch.Tensor:
    return log_probs - ref_log_probs.detach()


@pytest.mark.parametrize("imaginary", [0.0, 5.0])
def test_a_complex_number_is_not_taken_for_its_real_part(imaginary: float) -> None:
    subject = TorchSubject({"kl_k1": lambda x, ref: torch.complex(right(x, ref), torch.full_like(x, imaginary))})
    result = run_check(all_checks()["kl_k1/value"], subject, "quick")
    assert result.outcome == "fail"
    assert result.failure is not None
    assert result.failure.message.startswith("kl_k1 is complex64, but should be real")


def test_what_is_right_passes() -> None:
    assert run_check(all_checks()["kl_k1/value"], TorchSubject({"kl_k1": right}), "quick").outcome == "pass"


def test_a_huge_answer_does_not_fill_the_record() -> None:
    subject = TorchSubject({"number_search": lambda hidden, guesses: (["x" * 10**6] * 4, 0.0)})
    for check in all_checks().values():
        if check.operations == ("number_search",):
            result = run_check(check, subject, "quick")
            assert result.failure is None or len(result.failure.message) < 2 * MOST_TEXT
            assert result.failure is None or len(result.failure.got) < 2 * MOST_TEXT


def test_an_answer_that_is_coarser_than_all_its_inputs_buys_no_room_for_errors() -> None:
    subject = TorchSubject({"kl_k1": lambda x, ref: (1.02 * right(x, ref)).bfloat16()})
    checks = [check for check in all_checks().values() if check.operations == ("kl_k1",) and check.claims]
    outcomes = {check.id: run_check(check, subject, "quick") for check in checks}
    assert {result.outcome for result in outcomes.values()} == {"fail"}
    (first, *_) = outcomes.values()
    assert first.failure is not None
    assert "coarser than its arguments" in first.failure.message


def test_an_answer_in_the_dtype_of_a_coarse_input_is_judged_by_its_rounding() -> None:
    result = run_check(all_checks()["kl_k1/dtype"], TorchSubject({"kl_k1": right}), "standard")
    assert result.outcome == "pass"
