"""Checks of reward-to-go and generalised advantage estimation."""

from __future__ import annotations

from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor
from rlassay.inputs import batch_shape, mask
from rlassay.laws import Domain
from rlassay.refusals import cut, integers, value_in
from rlassay.topic import Topic
from rlassay_spec.convention import Convention

STEP_REWARDS = ("real", "terminal", "subtasks", "first only", "decimal")
DISCOUNTS = (1.0, 0.9, 0.5, 0.0)


def step_rewards(draw: Draw, shape: tuple[int, int]) -> Tensor:
    """Rewards after each action: dense, sparse, at the end or at the start."""
    kind = draw.choice("rewards", STEP_REWARDS)
    rewards = draw.normal(*shape)
    if kind == "terminal":
        rewards[:, :-1] = 0
    if kind == "subtasks":
        rewards = 0.2 * draw.integers(0, 1, *shape)
    if kind == "first only":
        rewards[:, 1:] = 0
    if kind == "decimal":
        rewards = draw.integers(-10, 10, *shape) / 10
    return Tensor(rewards)


def reward_to_go_case(draw: Draw, convention: Convention) -> Arguments:
    """Rewards, undiscounted by default or with a discount."""
    rewards = step_rewards(draw, batch_shape(draw))
    gamma = draw.choice("gamma", (None, *DISCOUNTS))
    return {"rewards": rewards} if gamma is None else {"rewards": rewards, "gamma": gamma}


def gae_case(draw: Draw, convention: Convention) -> Arguments:
    """Rewards, values, a mask, γ and λ, which differ more often than not."""
    shape = batch_shape(draw)
    return {
        "rewards": step_rewards(draw, shape),
        "values": Tensor(draw.normal(*shape)),
        "mask": mask(draw, shape, convention),
        "gamma": draw.choice("gamma", (1.0, 0.9, 0.5, 0.0)),
        "lam": draw.choice("lam", (1.0, 0.95, 0.3, 0.0)),
    }


TOPIC = Topic(
    Domain(
        "reward_to_go",
        reward_to_go_case,
        rows=("rewards",),
        per_row=True,
        refusals={"integer-rewards": integers("rewards")},
    ),
    Domain(
        "gae",
        gae_case,
        mask="mask",
        masked=("rewards", "values"),
        rows=("rewards", "values", "mask"),
        per_row=True,
        refusals={
            "values-of-another-length": cut("values"),
            "a-mask-of-another-length": cut("mask"),
            "a-mask-that-is-not-0-or-1": value_in("mask", 0.5),
            "integer-rewards": integers("rewards"),
        },
    ),
)
