"""The two-armed bandit of the lecture, and the baseline of least variance."""

import math

import pytest
import torch

from rlassay_impl import bandit_gradient, expected_return, optimal_baseline

QUARTER = -math.log(3)  # σ(−ln 3) = 1/4


def test_the_four_trajectories_of_the_lecture_have_expected_return_one_half() -> None:
    probabilities = torch.tensor([0.30, 0.20, 0.25, 0.25], dtype=torch.float64)
    assert expected_return(probabilities, torch.tensor([1.0, 1.0, 0.0, 0.0])).item() == 0.5


@pytest.mark.parametrize(("baseline", "samples"), [(0.0, (0.75, 0.0)), (0.5, (0.375, 0.125)), (0.75, (0.1875, 0.1875))])
def test_every_baseline_keeps_the_mean_of_the_samples(baseline: float, samples: tuple[float, float]) -> None:
    got = [bandit_gradient(QUARTER, action, baseline) for action in (0, 1)]
    assert got == pytest.approx(samples, rel=1e-15, abs=1e-15)
    assert 0.25 * got[0] + 0.75 * got[1] == pytest.approx(0.1875, rel=1e-15)


def test_a_tensor_gives_a_tensor_without_graph_and_a_float_a_float() -> None:
    theta = torch.tensor(QUARTER, requires_grad=True)
    got = bandit_gradient(theta, 0, 0.5)
    assert isinstance(got, torch.Tensor) and got.shape == () and got.dtype == torch.float32 and not got.requires_grad
    assert isinstance(bandit_gradient(QUARTER, 0, 0.5), float)


def test_the_best_baseline_of_the_bandit_is_three_quarters() -> None:
    probabilities = torch.tensor([0.25, 0.75])
    scores, rewards = torch.tensor([[0.75], [-0.25]]), torch.tensor([1.0, 0.0])
    assert optimal_baseline(probabilities, scores, rewards) == 0.75
    assert optimal_baseline(probabilities, torch.zeros(2, 3), rewards) == 0
