"""Exact solvers behind the claims: small pure functions, in fractions wherever the answer is rational.

One module per topic. Each number here is reached by enumeration or backward induction; the tests confirm it by a second
route (a closed form, finite differences, mpmath).
"""

from rlassay_spec.exact import (
    advantage,
    bandit,
    environment,
    kl,
    log_prob,
    loss,
    moments,
    number_search,
    returns,
    sorting,
    trajectory,
)

__all__ = [
    "advantage",
    "bandit",
    "environment",
    "kl",
    "log_prob",
    "loss",
    "moments",
    "number_search",
    "returns",
    "sorting",
    "trajectory",
]
