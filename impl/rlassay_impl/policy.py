"""Softmax policies over listed histories, and what a policy is worth: V, Q and A by complete enumeration."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from rlassay_impl.contract import check_floats
from rlassay_impl.trajectory import Environment, History, Number, Policy


class SoftmaxPolicy:
    """A softmax with its own row of logits for every history: the policy without shared parameters.

        π_θ(a ∣ h) = exp θ[h, a] / Σ_{a'} exp θ[h, a']

    Source: RL Basics §4, §6 (B4.2, B4.4, B6.2). It sees the history only, never the hidden state.
    Shapes: theta [H, A] with rows as in histories and columns as in actions; probabilities carry its graph.
    Raises: ValueError for a theta of another shape or of integers.
    """

    def __init__(self, histories: Iterable[History], actions: Sequence[int], theta: Tensor) -> None:
        self.rows = {history: row for row, history in enumerate(histories)}
        self.actions = tuple(actions)
        check_floats("theta", theta, H=len(self.rows), A=len(self.actions))
        self.theta = theta

    def log_probs(self, history: History) -> Tensor:
        """log π(· ∣ h), one entry per action, [A], in nats."""
        return torch.log_softmax(self.theta[self.rows[history]], dim=0)

    def __call__(self, history: History) -> dict[int, Tensor]:
        """π(· ∣ h), a 0-d tensor per action."""
        return dict(zip(self.actions, self.log_probs(history).exp(), strict=True))


def in_floats(environment: Environment) -> Environment:
    """The environment with probabilities as floats, for a policy of tensors: torch cannot multiply by a Fraction."""
    return lambda history, action: [
        outcome._replace(probability=float(outcome.probability)) for outcome in environment(history, action)
    ]


def action_value(environment: Environment, policy: Policy, history: History, action: int) -> Number:
    """Expected reward of an action and of the policy's play after it, exact for exact probabilities.

        Q(h, a) = Σ_{o, r} P(o, r ∣ h, a) · (r + V(h, a, o)),   V = 0 once the episode is over

    Source: RL Basics §8 (B8.1, B8.2). γ = 1. The policy need not take the action itself.
    """
    value: Number = 0
    for outcome in environment(history, action):
        later = (*history, (action, outcome.observation))
        to_come = 0 if outcome.done else state_value(environment, policy, later)
        value = value + outcome.probability * (outcome.reward + to_come)
    return value


def state_value(environment: Environment, policy: Policy, history: History = ()) -> Number:
    """Expected reward of the policy's play from a history on; from the empty history it is J(θ).

        V(h) = Σ_a π(a ∣ h) · Q(h, a)

    Source: RL Basics §4, §8 (B4.3, B8.1). With a policy of tensors, V carries its graph: ∇J is its gradient.
    """
    return sum(
        chance * action_value(environment, policy, history, action) for action, chance in policy(history).items()
    )


def action_advantage(environment: Environment, policy: Policy, history: History, action: int) -> Number:
    """How much better an action is than the policy's average; its mean over the policy's actions is 0.

        A(h, a) = Q(h, a) − V(h)

    Source: RL Basics §8 (B8.1, B8.2).
    """
    return action_value(environment, policy, history, action) - state_value(environment, policy, history)


def reachable_histories(
    environment: Environment, choices: Callable[[History], Iterable[int]], history: History = ()
) -> Iterator[History]:
    """Every history that calls for an action, shortest first along each branch.

    `choices` lists the actions taken after a history: a policy will do, or `lambda history: range(n)` for all play.
    """
    yield history
    for action in choices(history):
        for outcome in environment(history, action):
            if not outcome.done:
                yield from reachable_histories(environment, choices, (*history, (action, outcome.observation)))
