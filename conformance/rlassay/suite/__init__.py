"""The suite: every check, by topic."""

from __future__ import annotations

from rlassay.check import Check
from rlassay.guest.interfaces.cs336 import ADAPTED
from rlassay.laws import Domain
from rlassay.suite import (
    advantage,
    bandit,
    claims,
    cs336,
    kl,
    log_prob,
    loss,
    loss_extremes,
    number_search,
    returns,
    sampling,
    shaping,
    sorting,
    surrogate,
    trajectory,
)
from rlassay.topic import Topic

__all__ = ["ALL", "all_checks", "claims", "domain_of", "loss_extremes"]

ALL: tuple[Topic, ...] = tuple(
    module.TOPIC
    for module in (
        log_prob,
        trajectory,
        returns,
        advantage,
        loss,
        kl,
        number_search,
        sorting,
        bandit,
        surrogate,
        shaping,
        sampling,
    )
)


def all_checks(interface: str = "own") -> dict[str, Check]:
    """Every check by id that is asked of targets under an interface.

    Under cs336 these are the checks of the assignment's functions, and those of our operations that some of them are.

    Raises:
        ValueError: two checks have one id.
    """
    checks: dict[str, Check] = {}
    for topic in ALL if interface == "own" else (*cs336.TOPICS, *ALL):
        for check in topic.checks:
            if interface == "cs336" and topic in ALL and not set(check.operations) <= set(ADAPTED):
                continue
            if check.id in checks:
                raise ValueError(f"two checks are called {check.id}")
            checks[check.id] = check
    return checks


def domain_of(operation: str) -> Domain | None:
    """How to draw cases of an operation, where the suite has a domain for it."""
    return next((topic.domains[operation] for topic in ALL if operation in topic.domains), None)
