"""The three KL estimates of the reference."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rlassay_impl import kl_k1, kl_k2, kl_k3


def test_in_expectation_k1_and_k3_are_the_divergence_of_the_lecture_example() -> None:
    policy, reference = torch.tensor([[0.99, 0.01]], dtype=torch.float64), torch.full((1, 2), 0.5, dtype=torch.float64)
    for kl in (kl_k1, kl_k3):
        samples = kl(policy.log(), reference.log())
        mean = (policy * samples).sum()
        assert mean.item() == pytest.approx(0.99 * math.log(1.98) + 0.01 * math.log(0.02), rel=1e-14)


def test_k2_is_half_the_square_of_k1() -> None:
    log_probs, reference = torch.tensor([[-1.0, -2.0]]), torch.tensor([[-3.0, -1.5]])
    assert kl_k1(log_probs, reference).tolist() == [[2.0, -0.5]]
    assert kl_k2(log_probs, reference).tolist() == [[2.0, 0.125]]


def test_k3_is_never_negative_in_float32_near_ratio_1() -> None:
    mantissas = torch.arange(2**14, dtype=torch.float32) / 2**14 + 1
    for exponent in range(-30, 0):
        log_ratios = torch.stack([mantissas, -mantissas]) * 2.0**exponent
        assert kl_k3(log_ratios, torch.zeros_like(log_ratios)).min() >= 0


@pytest.mark.parametrize(
    ("kl", "slope"), [(kl_k1, lambda x: torch.ones_like(x)), (kl_k2, lambda x: x), (kl_k3, lambda x: 1 - (-x).exp())]
)
def test_the_gradient_flows_into_the_policy_only(
    kl: Callable[[Tensor, Tensor], Tensor], slope: Callable[[Tensor], Tensor]
) -> None:
    log_probs = torch.tensor([[-1.0, -2.0, -0.5]], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([[-3.0, -1.5, -0.5]], dtype=torch.float64, requires_grad=True)
    kl(log_probs, reference).sum().backward()
    torch.testing.assert_close(log_probs.grad, slope((log_probs - reference).detach()), rtol=1e-14, atol=1e-15)
    assert reference.grad is None
