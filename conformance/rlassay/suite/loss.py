"""Checks of aggregation and of all losses over token log-probs."""

from __future__ import annotations

import numpy as np

from rlassay.check import NotDeclared, Trial, require
from rlassay.comparison import require_value
from rlassay.draw import Draw
from rlassay.guest.observation import Observation
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.laws import Case, Domain, Refusal
from rlassay.refusals import cut, integers, longer, number, shorter, value_in
from rlassay.suite.loss_inputs import (
    MODES,
    aggregate_case,
    clipped_case,
    dr_grpo_case,
    grpo_case,
    microbatch_case,
    objective_case,
    policy_case,
    reinforce_case,
    rest_case,
    value_case,
    weights_case,
)
from rlassay.topic import Topic
from rlassay_spec.convention import Convention

MASK_REFUSALS = {
    "a-mask-of-another-length": cut("mask"),
    "a-mask-that-is-not-0-or-1": value_in("mask", 0.5),
}


def domain(
    operation: str,
    case: Case,
    masked: tuple[str, ...] = ("log_probs",),
    per_row: tuple[str, ...] = (),
    constants: tuple[str, ...] = (),
    refusals: dict[str, Refusal] | None = None,
    permuted: bool = True,
) -> Domain:
    """What all losses share: a scalar, a mask, a gradient into the first argument."""
    return Domain(
        operation,
        case,
        differentiable=True,
        mask="mask",
        masked=masked,
        rows=(*masked, "mask", *per_row) if permuted else (),
        constants=constants,
        refusals=MASK_REFUSALS | (refusals or {}),
    )


TOPIC = Topic(
    domain(
        "aggregate",
        aggregate_case,
        masked=("values",),
        refusals={
            "an-unknown-mode": number("mode", "mean of means"),
            "a-missing-constant": Refusal(
                "constant", lambda a: {k: a[k] for k in ("values", "mask")} | {"mode": "constant"}
            ),
            "a-constant-of-zero": Refusal("constant", lambda a: a | {"mode": "constant", "constant": 0.0}),
            "a-negative-constant": Refusal("constant", lambda a: a | {"mode": "constant", "constant": -1.0}),
        },
    ),
    domain("sft_loss", policy_case),
    domain(
        "rest_loss",
        rest_case,
        per_row=("rewards",),
        constants=("rewards",),
        refusals={"rewards-of-another-length": longer("rewards"), "integer-rewards": integers("rewards")},
    ),
    domain(
        "reinforce_loss",
        reinforce_case,
        per_row=("rewards", "baselines"),
        constants=("rewards", "baselines"),
        refusals={
            "rewards-of-another-length": longer("rewards"),
            "baselines-of-another-length": longer("baselines"),
            "integer-rewards": integers("rewards"),
        },
    ),
    domain(
        "policy_gradient_loss",
        weights_case,
        masked=("log_probs", "weights"),
        constants=("weights",),
        refusals={"weights-of-another-length": cut("weights")},
    ),
    domain(
        "grpo_loss",
        grpo_case,
        per_row=("advantages",),
        constants=("advantages",),
        refusals={"advantages-of-another-length": longer("advantages")},
    ),
    domain(
        "dr_grpo_loss",
        dr_grpo_case,
        per_row=("advantages",),
        constants=("advantages",),
        refusals={
            "advantages-of-another-length": longer("advantages"),
            "a-constant-of-zero": number("constant", 0.0),
            "a-negative-constant": number("constant", -1.0),
        },
    ),
    domain(
        "clipped_loss",
        clipped_case,
        masked=("log_probs", "old_log_probs"),
        per_row=("advantages",),
        constants=("advantages",),
        refusals={
            "old-log-probs-of-another-length": cut("old_log_probs"),
            "advantages-of-another-length": longer("advantages"),
        },
    ),
    domain(
        "grpo_objective",
        objective_case,
        masked=("log_probs", "old_log_probs", "ref_log_probs"),
        constants=("ref_log_probs", "rewards"),
        permuted=False,
        refusals={
            "a-reference-of-another-length": cut("ref_log_probs"),
            "rewards-of-another-size": longer("rewards"),
            "too-few-rewards": shorter("rewards"),
            "integer-rewards": integers("rewards"),
        },
    ),
    domain(
        "microbatch_loss",
        microbatch_case,
        per_row=("advantages",),
        constants=("advantages",),
        refusals={"advantages-of-another-length": longer("advantages")},
    ),
    domain(
        "value_loss",
        value_case,
        masked=("values", "old_values", "returns"),
        constants=("old_values", "returns"),
        refusals={
            "old-values-of-another-length": cut("old_values"),
            "returns-of-another-length": cut("returns"),
        },
    ),
)


LONG = 4099
"""Tokens of a long row: no chunks of equal size make it up."""


def long_case(operation: str, draw: Draw, convention: Convention) -> Arguments:
    """One sequence of 4099 tokens, a prime, whose terms are all alike, in bfloat16."""
    case = TOPIC.domains[operation].case(draw, convention)
    long: Arguments = {}
    for name, value in case.items():
        if not isinstance(value, Tensor):
            long[name] = value
            continue
        shape = (1, LONG) if value.array.ndim == 2 and name != "rewards" else (1,) * value.array.ndim
        fill = {"log_probs": -1.0, "old_log_probs": -1.0, "baselines": 0.0, "old_values": 0.0, "returns": 2.0}
        long[name] = Tensor(np.full(shape, fill.get(name, 1.0)), "bfloat16")
    return long | {name: LONG for name in ("total_tokens",) if name in long}


@TOPIC.check("microbatch_loss", law="parts", title="microbatch_loss of the parts of a batch adds up to its grpo_loss")
def parts(trial: Trial) -> None:
    """Σ_parts L_part = L_GRPO, however the batch is cut; each part's gradient is its share of the whole's."""
    whole = grpo_case(trial.draw, trial.convention)
    mask_array = whole["mask"].array
    want = trial.expect("grpo_loss", whole)
    rows = len(mask_array) if trial.convention.empty_rows == "counted" else int(mask_array.any(axis=1).sum())
    totals = {"total_sequences": rows, "total_tokens": int(mask_array.sum())}
    cut_at = trial.draw.integer("cut", 1, max(1, len(mask_array) - 1))
    value = 0.0
    for part in (slice(0, cut_at), slice(cut_at, None)):
        arguments: Arguments = replaced(whole, **{name: tensor.array[part] for name, tensor in whole.items()}) | totals
        if not arguments["mask"].array.any():
            continue
        observed = trial.agree("microbatch_loss", arguments, gradient=True)
        value += float(observed.value)
    got = Observation(np.array(value), "float32")
    require_value("the sum of microbatch_loss over the parts", got, want)


@TOPIC.check(
    "clipped_loss", law="frozen-old", title="clipped_loss lets no gradient into old_log_probs that carry a graph"
)
def frozen_old(trial: Trial) -> None:
    """∂L/∂log π_old = 0 although the caller did not detach it."""
    _frozen_old("clipped_loss", clipped_case, trial)


@TOPIC.check("clipped_loss", law="same-pass", title="clipped_loss is alive when old and new log-probs are one tensor")
def same_pass(trial: Trial) -> None:
    """Ratio 1 in value, gradient −Â as if log π_old were a constant."""
    _same_pass("clipped_loss", clipped_case, trial)


@TOPIC.check(
    "grpo_objective", law="frozen-old", title="grpo_objective lets no gradient into old_log_probs that carry a graph"
)
def objective_frozen_old(trial: Trial) -> None:
    """∂L/∂log π_old = 0 although the caller did not detach it."""
    _frozen_old("grpo_objective", objective_case, trial)


@TOPIC.check(
    "grpo_objective", law="same-pass", title="grpo_objective is alive when old and new log-probs are one tensor"
)
def objective_same_pass(trial: Trial) -> None:
    """Ratio 1 in value, the surrogate's gradient as if log π_old were a constant."""
    _same_pass("grpo_objective", objective_case, trial)


def _require_detaching(trial: Trial) -> None:
    if trial.convention.old_log_probs == "caller":
        raise NotDeclared("old_log_probs are detached by the caller, so the operation never sees them with a graph")


def _frozen_old(operation: str, case: Case, trial: Trial) -> None:
    _require_detaching(trial)
    arguments = case(trial.draw, trial.convention)
    observed = trial.call(operation, arguments, live=("log_probs", "old_log_probs"))
    gradient = observed.gradients["old_log_probs"]
    dead = gradient is None or not gradient.any()
    require(dead, f"a gradient of {operation} flows into old_log_probs, which is a constant")


def _same_pass(operation: str, case: Case, trial: Trial) -> None:
    _require_detaching(trial)
    arguments = case(trial.draw, trial.convention)
    arguments["old_log_probs"] = arguments["log_probs"]
    trial.agree(operation, arguments, gradient=True)


ACCUMULATING = tuple(name for name in TOPIC.domains if name != "grpo_objective")


def _declare(operation: str) -> None:
    @TOPIC.check(
        operation,
        law="accumulation",
        examples=len(MODES) if operation == "aggregate" else 1,
        title=f"{operation} accumulates 4099 equal bfloat16 terms in float32 or better",
    )
    def accumulation(trial: Trial) -> None:
        """A running bfloat16 sum of ones stops at 256."""
        trial.agree(operation, long_case(operation, trial.draw, trial.convention), gradient=True)


for _operation in ACCUMULATING:
    _declare(_operation)
