"""Checks of the microbatch steps, which call backward themselves."""

from __future__ import annotations

from functools import partial

import numpy as np

from rlassay.check import Trial, require
from rlassay.comparison import require_gradient
from rlassay.draw import Draw
from rlassay.guest.values import Arguments
from rlassay.suite.cs336.calls import Suspect, Suspects, agree, call, dtype_of, expected, part_of
from rlassay.suite.cs336.cases import policy, precision
from rlassay.suite.cs336.losses import LOSS_TYPES, typed
from rlassay.topic import Topic
from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.operations import CS336_OPERATIONS
from rlassay_spec.oracles.cs336 import compute_policy_gradient_loss

TOPIC = Topic()

SFT = "sft_microbatch_train_step"
GRPO = "grpo_microbatch_train_step"


def sft_case(draw: Draw, convention: Convention) -> Arguments:
    """With a constant or without, of one step or of several."""
    log_probs, flags = policy(draw)
    constant = draw.choice("constant", (None, 4.0, 0.5))
    arguments: Arguments = {
        "policy_log_probs": log_probs,
        "response_mask": flags,
        "gradient_accumulation_steps": draw.choice("steps", (2, 1, 4)),
    }
    return precision(draw, arguments if constant is None else arguments | {"normalize_constant": constant})


def grpo_case(draw: Draw, convention: Convention) -> Arguments:
    """Each loss type, of one step or of several."""
    log_probs, flags = policy(draw)
    return precision(
        draw,
        {
            "policy_log_probs": log_probs,
            "response_mask": flags,
            "gradient_accumulation_steps": draw.choice("steps", (2, 1, 4)),
            **typed(draw, log_probs, draw.choice("loss_type", LOSS_TYPES)),
        },
    )


def _right(operation: str, a: Arguments) -> float:
    return float(expected(operation, a, LECTURE).value)


def _over_all_tokens(a: Arguments) -> float:
    steps, mask = a["gradient_accumulation_steps"], a["response_mask"]
    read = {name: a[name] for name in CS336_OPERATIONS["compute_policy_gradient_loss"].parameters}
    return float(compute_policy_gradient_loss(**read).value[mask].mean() / steps)


def suspects_of(operation: str) -> Suspects:
    """Wrong scales and signs."""
    right = partial(_right, operation)
    own = {
        SFT: Suspect("not dividing by normalize_constant", lambda a: right(a) * a.get("normalize_constant", 1.0)),
        GRPO: Suspect("the mean over all tokens of the microbatch", _over_all_tokens),
    }
    return (
        Suspect("not dividing by gradient_accumulation_steps", lambda a: right(a) * a["gradient_accumulation_steps"]),
        Suspect("dividing by gradient_accumulation_steps twice", lambda a: right(a) / a["gradient_accumulation_steps"]),
        Suspect("leaving the minus sign out", lambda a: -right(a)),
        Suspect("not dividing by the number of sequences", lambda a: right(a) * len(a["response_mask"])),
        own[operation],
    )


def _declare(operation: str) -> None:
    case = sft_case if operation == SFT else grpo_case
    suspects = suspects_of(operation)

    @TOPIC.check(operation, law="value", title=f"{operation} returns the loss it differentiates")
    def value(trial: Trial) -> None:
        """The value."""
        agree(trial, operation, case(trial.draw, trial.convention), "loss", suspects, ("policy_log_probs",))

    @TOPIC.check(operation, law="gradient", title=f"{operation} calls backward and leaves the oracle's gradient")
    def gradient(trial: Trial) -> None:
        """What stands in policy_log_probs.grad afterwards."""
        arguments = case(trial.draw, trial.convention)
        want = expected(operation, arguments, trial.convention)
        assert want.pullback is not None
        observed = call(trial, operation, arguments, live=("policy_log_probs",))
        part_of(operation, observed, "loss")
        called = f"{operation} leaves no gradient in policy_log_probs.grad: it does not call backward"
        require(observed.backward, called)
        dtype = dtype_of(arguments["policy_log_probs"])
        require_gradient(operation, "policy_log_probs", observed, want.pullback(np.array(1.0)), want.terms, dtype)


for _operation in (SFT, GRPO):
    _declare(_operation)
