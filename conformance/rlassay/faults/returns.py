"""Known faults of reward-to-go and generalised advantage estimation."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlassay.check import Kind
from rlassay.faults import Faults, Function
from rlassay.faults.parts import constant, everything, hide, multiply_out, same

FAULTS = Faults()


def reward_to_go(rewards: Tensor, gamma: float = 1.0, *, discount: Function = same, finish: Function = same) -> Tensor:
    """Right, unless a part is exchanged."""
    received = constant(rewards)
    following = torch.zeros_like(received[:, 0])
    columns = []
    for t in reversed(range(received.shape[1])):
        following = received[:, t] + discount(gamma) * following
        columns.append(following)
    return torch.as_tensor(finish(torch.stack(columns[::-1], dim=1))).to(rewards.dtype)


def gae(
    rewards: Tensor,
    values: Tensor,
    mask: Tensor,
    gamma: float,
    lam: float,
    *,
    visible: Function = same,
    cover: Function = hide,
    value_seen: Function = same,
    last_value: Function = lambda last: torch.zeros_like(last),
    carry: Function = lambda shown, new, old: torch.where(shown, new, old),
    finish: Function = lambda advantages, values: advantages,
) -> Tensor:
    """Right, unless a part is exchanged."""
    shown = visible(mask != 0)
    r, v = cover(constant(rewards), shown), value_seen(cover(constant(values), shown))
    next_value, next_advantage = last_value(v[:, -1]), torch.zeros_like(r[:, 0])
    columns = []
    for t in reversed(range(r.shape[1])):
        advantage = r[:, t] + gamma * next_value - v[:, t] + gamma * lam * next_advantage
        columns.append(advantage)
        next_advantage = carry(shown[:, t], advantage, next_advantage)
        next_value = carry(shown[:, t], v[:, t], next_value)
    advantages = finish(torch.stack(columns[::-1], dim=1), v)
    return hide(advantages, mask != 0).to(rewards.dtype)


def _to_go(identity: str, title: str, source: str, **parts: Any) -> None:
    FAULTS.add(identity, "reward_to_go", title, source, partial(reward_to_go, **parts))


def _gae(identity: str, title: str, source: str, kind: Kind = "conformance", **parts: Any) -> None:
    FAULTS.add(identity, "gae", title, source, partial(gae, **parts), kind=kind)


_to_go("RET-01", "an undiscounted sum: γ is ignored", "textbook", discount=lambda gamma: 1.0)
_to_go("RET-02", "γ² for γ", "textbook", discount=lambda gamma: gamma**2)
_to_go("RE-04", "the whole return at every step", "huggingface/deep-rl-class PR 70", finish=lambda g: g[:, :1] + 0 * g)
_to_go(
    "RET-03",
    "rewards after the next step only: an action's own reward is missing",
    "claim B8.12",
    finish=lambda g: torch.cat([g[:, 1:], torch.zeros_like(g[:, :1])], dim=1),
)
_to_go("RET-04", "whitened returns", "drl-zh issue 5", finish=lambda g: (g - g.mean()) / (g.std(correction=0) + 1e-8))


@FAULTS.fault("RE-03", "reward_to_go", "returns that run on into the next row", "skrl issue 449")
def _across_rows(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    return reward_to_go(rewards.reshape(1, -1), gamma).reshape(rewards.shape)


@FAULTS.fault("RE-06", "reward_to_go", "the step's own reward", "rlhf-book PR 216")
def _immediate(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    return rewards.detach().clone()


@FAULTS.fault("RE-13", "reward_to_go", "the last reward at every step", "areal-project/AReaL issue 1661")
def _last_only(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    left = torch.arange(rewards.shape[1] - 1, -1, -1)
    return (constant(rewards)[:, -1:] * float(gamma) ** left).to(rewards.dtype)


@FAULTS.fault("RET-05", "reward_to_go", "rewards up to the step, not from it on", "textbook")
def _past(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    return reward_to_go(rewards.flip(1), gamma).flip(1)


@FAULTS.fault("RET-06", "reward_to_go", "a discount that counts from the start of the episode", "textbook")
def _from_the_start(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    powers = float(gamma) ** torch.arange(rewards.shape[1])
    return reward_to_go(constant(rewards) * powers).to(rewards.dtype)


@FAULTS.fault("RET-07", "reward_to_go", "a default discount of 0.99", "textbook")
def _other_default(rewards: Tensor, gamma: float = 0.99) -> Tensor:
    return reward_to_go(rewards, gamma)


@FAULTS.fault("RET-18", "reward_to_go", "rewards to go without the action's own, discounted from it on", "claim B8.12")
def _without_own(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    return (reward_to_go(rewards, gamma) - rewards).detach()


@FAULTS.fault("RET-19", "reward_to_go", "the undiscounted return of the episode at every step", "claim B8.12")
def _episode_return(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    return constant(rewards).sum(dim=1, keepdim=True).expand(rewards.shape).to(rewards.dtype)


@FAULTS.fault("RET-08", "reward_to_go", "a sum over the rows instead of the steps", "textbook")
def _over_rows(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    return reward_to_go(rewards.T, gamma).T


@FAULTS.fault("RE-01", "gae", "values of masked steps, from which their predecessors bootstrap", "alibaba/ROLL PR 447")
def _masked_values_bootstrap(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    covered = hide(constant(rewards), mask != 0).to(rewards.dtype)
    return gae(covered, values, mask, gamma, lam, visible=everything)


_gae("RE-07", "rewards and values of masked steps as of any other", "rlhf-book PR 216", visible=everything)
_gae(
    "RE-02",
    "a return that starts again at every masked step",
    "verl-project/verl PR 6376",
    carry=lambda shown, new, old: torch.where(shown, new, 0.0),
)
_gae(
    "RET-09",
    "masked steps that are steps of value and reward 0",
    "verl-project/verl PR 50",
    carry=lambda shown, new, old: new,
)
_gae(
    "RET-10",
    "the last value, from which the end of the episode bootstraps",
    "textbook",
    last_value=same,
)
_gae("RET-11", "returns: the value is added again", "textbook", finish=torch.add)
_gae(
    "RE-09",
    "each step compared with the value of the step before",
    "huggingface/trl issue 44",
    value_seen=lambda v: torch.cat([v[:, :1], v[:, :-1]], dim=1),
)
_gae(
    "MK-13",
    "masking by multiplication: 0·NaN is NaN",
    "alibaba/ROLL PR 447",
    kind="robustness",
    cover=multiply_out,
    carry=lambda shown, new, old: new * shown + old * ~shown,
)


@FAULTS.fault("RE-06", "gae", "the step's own reward minus its value", "rlhf-book PR 216")
def _immediate_advantage(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    return hide(constant(rewards) - constant(values), mask != 0).to(rewards.dtype)


@FAULTS.fault("RET-12", "gae", "γ and λ exchanged", "textbook")
def _exchanged(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    return gae(rewards, values, mask, lam, gamma)


@FAULTS.fault("RET-13", "gae", "λ = 1 whatever is asked: reward-to-go minus value", "textbook")
def _lambda_one(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    return gae(rewards, values, mask, gamma, 1.0)


@FAULTS.fault("RET-14", "gae", "the one-step error δ: λ is ignored", "textbook")
def _lambda_zero(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    return gae(rewards, values, mask, gamma, 0.0)


@FAULTS.fault("RET-15", "gae", "errors summed with λ^k instead of (γλ)^k", "textbook")
def _without_gamma(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    shown = mask != 0
    error = gae(rewards, values, mask, gamma, 0.0)
    return gae(error, torch.zeros_like(error), shown, 1.0, lam)


@FAULTS.fault("RET-16", "gae", "the value of the next step added without discount", "textbook")
def _undiscounted_value(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    error = gae(rewards, values, mask, 1.0, 0.0)
    return gae(error, torch.zeros_like(error), mask, gamma, lam)


@FAULTS.fault("RET-20", "gae", "values of 0: discounted returns", "textbook")
def _no_values(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    return gae(rewards, torch.zeros_like(values), mask, gamma, lam)


@FAULTS.fault("RET-17", "gae", "whitened advantages", "textbook: a step of its own")
def _whitened(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    raw, shown = gae(rewards, values, mask, gamma, lam), mask != 0
    count = shown.sum().clamp(min=1)
    mean = raw.sum() / count
    deviation = (hide(raw - mean, shown).square().sum() / count).sqrt()
    return hide((raw - mean) / (deviation + 1e-8), shown).to(rewards.dtype)


@FAULTS.fault("RE-03", "gae", "estimates that run on into the next row", "skrl issue 449")
def _gae_across_rows(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> Tensor:
    one_row = (1, rewards.numel())
    run_on = gae(rewards.reshape(one_row), values.reshape(one_row), mask.reshape(one_row), gamma, lam)
    return run_on.reshape(rewards.shape)
