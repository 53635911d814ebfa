"""Trajectories: which tokens of one the policy sampled, and all of them where the environment is small enough.

The second half is for claims, not for training: with every trajectory listed, an expectation is a sum.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from rlassay_impl.contract import check_integers


def response_mask(token_ids: Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> Tensor:
    """Which tokens the policy sampled: content and closing im_end of the assistant's turns.

        turn = im_start, role, newline, content…, im_end

    Source: RL Basics §6 (B6.5). The header, other roles' turns and what lies between turns are 0. im_start always
    opens a turn and ends an unfinished one; an unfinished turn of the assistant counts up to the padding, which is
    every trailing id < 0.
    Shapes: token_ids [B, L] → [B, L] bool.
    Raises: ValueError for another shape or ids that are not integers.
    """
    check_integers("token_ids", token_ids, B=None, L=None)

    header = [im_start, assistant, newline]
    rows = [_sampled(row, header, im_end) for row in token_ids.tolist()]
    return torch.tensor(rows, dtype=torch.bool, device=token_ids.device).reshape(token_ids.shape)


def _sampled(row: list[int], header: list[int], im_end: int) -> list[bool]:
    length = len(row)
    while length and row[length - 1] < 0:
        length -= 1

    sampled = [False] * len(row)
    content_starts = length  # of the assistant's turn that is open
    for i, token in enumerate(row[:length]):
        if token == header[0]:
            content_starts = i + 3 if row[i : i + 3] == header else length
        elif i >= content_starts:
            sampled[i] = True
            if token == im_end:
                content_starts = length
    return sampled


Number: TypeAlias = Any  # a float, a Fraction or a 0-d tensor: only sums and products are asked of it
History: TypeAlias = tuple[tuple[int, Hashable], ...]  # (action, observation) of each step so far


class Outcome(NamedTuple):
    """One way the environment can answer an action: P(o, r ∣ h, a), free of the policy's parameters."""

    probability: Number
    observation: Hashable
    reward: Number
    done: bool


Environment: TypeAlias = Callable[[History, int], Sequence[Outcome]]  # every outcome of an action after a history
Policy: TypeAlias = Callable[[History], Mapping[int, Number]]  # π(a ∣ h), a probability per action


@dataclass(frozen=True)
class Trajectory:
    """A complete trajectory τ with both factors of its probability.

        p_θ(τ) = Π_t π_θ(a_t ∣ h_t) · Π_t P(o_{t+1}, r_{t+1} ∣ h_t, a_t)

    Source: RL Basics §4 (B4.1, B4.2). With a policy of tensors, `policy_probability` carries its graph.
    """

    history: History
    rewards: tuple[Number, ...]
    policy_probability: Number
    environment_probability: Number

    @property
    def probability(self) -> Number:
        """p_θ(τ)."""
        return self.policy_probability * self.environment_probability

    @property
    def total_reward(self) -> Number:
        """R(τ) = Σ_t r_t."""
        return sum(self.rewards)


def enumerate_trajectories(
    environment: Environment, policy: Policy, start: Trajectory = Trajectory((), (), 1, 1)
) -> Iterator[Trajectory]:
    """Every complete trajectory, depth first; their probabilities add up to 1.

    Source: RL Basics §4 (B4.2). Actions that the policy's mapping leaves out are not taken.
    """
    for action, chance in policy(start.history).items():
        for outcome in environment(start.history, action):
            longer = Trajectory(
                history=(*start.history, (action, outcome.observation)),
                rewards=(*start.rewards, outcome.reward),
                policy_probability=start.policy_probability * chance,
                environment_probability=start.environment_probability * outcome.probability,
            )
            if outcome.done:
                yield longer
            else:
                yield from enumerate_trajectories(environment, policy, longer)
