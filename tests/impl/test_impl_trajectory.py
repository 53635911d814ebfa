"""Response masks, and all trajectories of a small stochastic environment under a softmax policy."""

from fractions import Fraction

import pytest
import torch

from rlassay_impl import response_mask
from rlassay_impl.policy import (
    SoftmaxPolicy,
    action_advantage,
    in_floats,
    reachable_histories,
    state_value,
)
from rlassay_impl.trajectory import History, Outcome, Trajectory, enumerate_trajectories

START, END, ASSISTANT, USER, NEWLINE = 90, 91, 92, 93, 95


def masked(*ids: int) -> list[int]:
    return response_mask(torch.tensor([ids]), START, END, ASSISTANT, NEWLINE)[0].int().tolist()


def test_content_and_closing_token_of_assistant_turns_are_sampled() -> None:
    user, assistant = (START, USER, NEWLINE, 1, END), (START, ASSISTANT, NEWLINE, 2, NEWLINE, END)
    assert masked(*user, NEWLINE, *assistant, NEWLINE, *user) == [0] * 5 + [0] + [0, 0, 0, 1, 1, 1] + [0] + [0] * 5


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ((START, ASSISTANT, NEWLINE, 1, 2, -1, -1), [0, 0, 0, 1, 1, 0, 0]),
        ((START, ASSISTANT, NEWLINE, 1, START, USER, NEWLINE, 2), [0, 0, 0, 1, 0, 0, 0, 0]),
        ((START, ASSISTANT, NEWLINE, END, 3, END), [0, 0, 0, 1, 0, 0]),
        ((START, START, ASSISTANT, NEWLINE, 1, END), [0, 0, 0, 0, 1, 1]),
        ((START, ASSISTANT), [0, 0]),
        ((1, END, ASSISTANT, NEWLINE, 2), [0, 0, 0, 0, 0]),
        ((-1, -1), [0, 0]),
    ],
    ids=["unfinished", "interrupted", "empty", "opened twice", "cut off in the header", "never opened", "padding only"],
)
def test_a_turn_that_is_not_whole_counts_as_far_as_it_goes(ids: tuple[int, ...], expected: list[int]) -> None:
    assert masked(*ids) == expected


def slippery_steps(history: History, action: int) -> list[Outcome]:
    """Two steps. An action (0 or 1) slips with probability 1/4; each step that arrives at 1 earns its number."""
    done = len(history) == 1
    return [
        Outcome(chance, place, (len(history) + 1) * place, done)
        for place, chance in ((action, Fraction(3, 4)), (1 - action, Fraction(1, 4)))
    ]


HISTORIES = list(reachable_histories(slippery_steps, lambda history: range(2)))
THETA = torch.randn(len(HISTORIES), 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def softmax_policy(theta: torch.Tensor) -> SoftmaxPolicy:
    return SoftmaxPolicy(HISTORIES, range(2), theta)


def expected_reward(theta: torch.Tensor) -> torch.Tensor:
    value: torch.Tensor = state_value(in_floats(slippery_steps), softmax_policy(theta))
    return value


def test_exact_probabilities_of_all_trajectories_add_up_to_1() -> None:
    half = Fraction(1, 2)
    trajectories = list(enumerate_trajectories(slippery_steps, lambda history: {0: half, 1: half}))
    assert len(trajectories) == 16
    assert sum(t.probability for t in trajectories) == 1
    assert sum(t.probability * t.total_reward for t in trajectories) == Fraction(3, 2)


def test_softmax_probabilities_and_their_gradients_agree_with_finite_differences() -> None:
    theta = THETA.clone().requires_grad_()

    def probabilities(theta: torch.Tensor) -> torch.Tensor:
        trajectories = enumerate_trajectories(in_floats(slippery_steps), softmax_policy(theta))
        return torch.stack([trajectory.probability for trajectory in trajectories])

    assert probabilities(theta).sum().item() == pytest.approx(1, rel=1e-15)
    assert torch.autograd.gradcheck(probabilities, theta, atol=1e-9)
    assert torch.autograd.gradcheck(expected_reward, theta, atol=1e-9)


def test_the_score_of_a_trajectory_is_the_sum_of_its_actions_scores() -> None:
    theta = THETA.clone().requires_grad_()
    policy = softmax_policy(theta)
    for trajectory in enumerate_trajectories(slippery_steps, policy):
        taken = [(trajectory.history[:t], action) for t, (action, _) in enumerate(trajectory.history)]
        log_prob = torch.stack([policy.log_probs(history)[action] for history, action in taken]).sum()
        (want,) = torch.autograd.grad(log_prob, theta)
        (got,) = torch.autograd.grad(trajectory.policy_probability.log(), theta, retain_graph=True)
        torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-15)


def test_reward_times_score_is_the_gradient_in_expectation() -> None:
    theta = THETA.clone().requires_grad_()
    trajectories = list(enumerate_trajectories(in_floats(slippery_steps), softmax_policy(theta)))
    surrogate = sum(t.probability.detach() * t.total_reward * t.policy_probability.log() for t in trajectories)
    (got,) = torch.autograd.grad(surrogate, theta)
    (want,) = torch.autograd.grad(expected_reward(theta), theta)
    torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-15)


def test_advantages_are_zero_in_the_policys_mean_at_every_history() -> None:
    environment, policy = in_floats(slippery_steps), softmax_policy(THETA)
    for history in HISTORIES:
        mean = sum(p * action_advantage(environment, policy, history, a) for a, p in policy(history).items())
        assert mean.item() == pytest.approx(0, abs=1e-15)


def test_the_value_of_a_history_is_the_mean_reward_of_the_trajectories_after_it() -> None:
    environment, policy = in_floats(slippery_steps), softmax_policy(THETA)
    for history in HISTORIES:
        trajectories = enumerate_trajectories(environment, policy, Trajectory(history, (), 1, 1))
        mean = sum(t.probability * t.total_reward for t in trajectories)
        assert float(mean) == pytest.approx(float(state_value(environment, policy, history)), rel=1e-14)


def test_a_table_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"theta.shape=\[5, 3\], but should be \[H=5, A=2\]"):
        softmax_policy(torch.zeros(5, 3))
