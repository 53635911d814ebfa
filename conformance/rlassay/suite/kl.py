"""Checks of the KL estimators k1, k2 and k3."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial, require
from rlassay.comparison import require_array
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor
from rlassay.inputs import batch_shape, log_probs
from rlassay.laws import Domain
from rlassay.refusals import cut
from rlassay.topic import Topic
from rlassay_spec.convention import Convention

ESTIMATORS = ("kl_k1", "kl_k2", "kl_k3")


def pair_case(draw: Draw, convention: Convention) -> Arguments:
    """Log-probs of the policy and of the reference: near each other, far apart, equal."""
    shape = batch_shape(draw)
    policy = log_probs(draw, shape)
    kind = draw.choice("reference", ("apart", "near", "equal", "far", "very far"))
    width = {"apart": 1.0, "near": 0.05, "equal": 0.0, "far": 3.0, "very far": 7.0}[kind]
    return {"log_probs": Tensor(policy), "ref_log_probs": Tensor(policy + draw.normal(*shape, scale=width))}


def domain(operation: str) -> Domain:
    """All estimators share one domain."""
    return Domain(
        operation,
        pair_case,
        differentiable=True,
        rows=("log_probs", "ref_log_probs"),
        per_row=True,
        constants=("ref_log_probs",),
        refusals={"a-reference-of-another-length": cut("ref_log_probs")},
    )


TOPIC = Topic(*map(domain, ESTIMATORS))


@TOPIC.check(
    "kl_k3", law="never-negative", kind="robustness", title="kl_k3 is never negative, in float32 near ratio 1 too"
)
def never_negative(trial: Trial) -> None:
    """k3 = expm1(d) − d ≥ 0 with d = log π_ref − log π; exp(d) − d − 1 rounds below 0 for small d."""
    scale = 10.0 ** -trial.draw.integer("decimals", 1, 5)
    policy = log_probs(trial.draw, (2, 64))
    arguments = {
        "log_probs": Tensor(policy),
        "ref_log_probs": Tensor(policy + trial.draw.normal(2, 64, scale=scale)),
    }
    got = require_array("kl_k3", trial.call("kl_k3", arguments), (2, 64))
    require(bool(np.all(got >= 0)), f"kl_k3 gives {got.min():.3g}, but should never be negative")
