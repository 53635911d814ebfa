"""Checks of the claims of both lectures, one each, by topic; importing a module adds them to its topic's `TOPIC`.

An expected number is computed exactly, by enumeration or in fractions, from the claim itself; what the subject answers
is carried through the same sums together with the rounding error that it may have.
"""

from __future__ import annotations

from rlassay.suite.claims import (
    advantage,
    bandit,
    baseline,
    clipping,
    episode_steps,
    estimates,
    frozen_policy,
    groups,
    imitation,
    kl,
    lengths,
    log_prob,
    loss,
    number_search,
    policy_gradient,
    returns,
    sorting,
    trajectory,
)

__all__ = [
    "advantage",
    "bandit",
    "baseline",
    "clipping",
    "episode_steps",
    "estimates",
    "frozen_policy",
    "groups",
    "imitation",
    "kl",
    "lengths",
    "log_prob",
    "loss",
    "number_search",
    "policy_gradient",
    "returns",
    "sorting",
    "trajectory",
]
