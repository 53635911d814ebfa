"""The suite: every check, by topic."""

from __future__ import annotations

from rlassay.check import Check
from rlassay.laws import Domain
from rlassay.suite import advantage, bandit, kl, log_prob, loss, number_search, returns, sorting, trajectory

TOPICS = (log_prob, trajectory, returns, advantage, loss, kl, number_search, sorting, bandit)


def all_checks() -> dict[str, Check]:
    """Every check by id.

    Raises:
        ValueError: two checks have one id.
    """
    checks: dict[str, Check] = {}
    for topic in TOPICS:
        for check in topic.TOPIC.checks:
            if check.id in checks:
                raise ValueError(f"two checks are called {check.id}")
            checks[check.id] = check
    return checks


def domain_of(operation: str) -> Domain | None:
    """How to draw cases of an operation, where the suite has a domain for it."""
    for topic in TOPICS:
        if operation in topic.TOPIC.domains:
            return topic.TOPIC.domains[operation]
    return None
