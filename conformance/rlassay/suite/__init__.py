"""The suite: every check, by topic."""

from __future__ import annotations

from rlassay.check import Check
from rlassay.laws import Domain
from rlassay.suite import advantage, bandit, kl, log_prob, loss, number_search, returns, sorting, trajectory
from rlassay.topic import Topic

ALL: tuple[Topic, ...] = tuple(
    module.TOPIC for module in (log_prob, trajectory, returns, advantage, loss, kl, number_search, sorting, bandit)
)


def all_checks() -> dict[str, Check]:
    """Every check by id.

    Raises:
        ValueError: two checks have one id.
    """
    checks: dict[str, Check] = {}
    for topic in ALL:
        for check in topic.checks:
            if check.id in checks:
                raise ValueError(f"two checks are called {check.id}")
            checks[check.id] = check
    return checks


def domain_of(operation: str) -> Domain | None:
    """How to draw cases of an operation, where the suite has a domain for it."""
    return next((topic.domains[operation] for topic in ALL if operation in topic.domains), None)
