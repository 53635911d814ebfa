"""Checks of the dual-clipped and of the sequence-wise surrogate, the entropy bonus and truncated importance weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlassay.check import NotDeclared, Trial, expected, require
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.inputs import cast
from rlassay.laws import Case, Domain, Refusal
from rlassay.refusals import cut, longer, number, value_in
from rlassay.suite.log_prob import banned
from rlassay.suite.surrogate_inputs import (
    CAPS,
    WIDE,
    bonus_case,
    centred,
    constant_ratio,
    dual_case,
    gspo_case,
    hidden_logits,
    lengths_case,
    one_place_case,
    weights_case,
    with_dual_clip,
)
from rlassay.topic import Topic
from rlassay_spec.oracles.expected import Expected

MASK_REFUSALS = {
    "a-mask-of-another-length": cut("mask"),
    "a-mask-that-is-not-0-or-1": value_in("mask", 0.5),
}
RATIO_REFUSALS = MASK_REFUSALS | {
    "old-log-probs-of-another-length": cut("old_log_probs"),
    "advantages-of-another-length": longer("advantages"),
}


def dual_clip_of(value: float) -> Refusal:
    """A dual clip that would bound ratios that have not moved."""
    return Refusal("dual_clip", lambda arguments: with_dual_clip(arguments, value))


TOPIC = Topic(
    Domain(
        "dual_clip_loss",
        dual_case,
        differentiable=True,
        mask="mask",
        masked=("log_probs", "old_log_probs"),
        rows=("log_probs", "old_log_probs", "mask", "advantages"),
        constants=("advantages",),
        refusals=RATIO_REFUSALS | {"a-dual-clip-of-one": dual_clip_of(1.0), "a-dual-clip-below-one": dual_clip_of(0.5)},
    ),
    Domain(
        "gspo_loss",
        gspo_case,
        differentiable=True,
        mask="mask",
        masked=("log_probs", "old_log_probs"),
        rows=("log_probs", "old_log_probs", "mask", "advantages"),
        constants=("advantages",),
        refusals=RATIO_REFUSALS,
    ),
    Domain(
        "entropy_bonus",
        bonus_case,
        differentiable=True,
        mask="mask",
        rows=("logits", "mask"),
        scramble=hidden_logits,
        refusals=MASK_REFUSALS,
    ),
    Domain(
        "importance_weights",
        weights_case,
        mask="mask",
        masked=("log_probs", "sampler_log_probs"),
        rows=("log_probs", "sampler_log_probs", "mask"),
        per_row=True,
        constants=("log_probs", "sampler_log_probs"),
        refusals=MASK_REFUSALS
        | {
            "sampler-log-probs-of-another-length": cut("sampler_log_probs"),
            "a-cap-of-zero": number("cap", 0.0),
            "a-negative-cap": number("cap", -1.0),
        },
    ),
)


def of_clipped_loss(trial: Trial, arguments: Arguments, **declared: str) -> Expected:
    """What the clipped loss of the same arguments is."""
    shared = {name: value for name, value in arguments.items() if name != "dual_clip"}
    return expected("clipped_loss", shared, replace(trial.convention, **declared))  # type: ignore[arg-type]


@TOPIC.check(
    "dual_clip_loss",
    law="good-tokens",
    title="dual_clip_loss is the clipped loss wherever the advantage is not negative",
)
def good_tokens(trial: Trial) -> None:
    """−min(ρÂ, clip(ρ)Â) for Â ≥ 0, however far the ratio lies beyond the dual clip."""
    arguments = dual_case(trial.draw, trial.convention)
    arguments = replaced(arguments, advantages=np.abs(arguments["advantages"].array))
    trial.agree("dual_clip_loss", arguments, of_clipped_loss(trial, arguments), gradient=True)


@TOPIC.check(
    "dual_clip_loss", law="below-the-bound", title="dual_clip_loss is the clipped loss where no ratio reaches dual_clip"
)
def below_the_bound(trial: Trial) -> None:
    """max(S, cÂ) = S for ρ < c."""
    arguments = dual_case(trial.draw, trial.convention)
    log_ratio = arguments["log_probs"].array - arguments["old_log_probs"].array
    arguments = with_dual_clip(arguments, float(np.exp(log_ratio.max())) + 1.5)
    trial.agree("dual_clip_loss", arguments, of_clipped_loss(trial, arguments), gradient=True)


@TOPIC.check(
    "dual_clip_loss",
    law="bounded-cost",
    examples=1,
    title="a bad token costs dual_clip·|Â| and has no gradient at any ratio beyond",
)
def bounded_cost(trial: Trial) -> None:
    """Â = −2 at ρ from ½ to 100: 1.6, 2, 4, then 6 from ρ = 3 on."""
    for ratio in (0.5, 1.0, 2.0, 4.0, 20.0, 100.0):
        trial.agree("dual_clip_loss", constant_ratio((1, 1), -0.5, np.log(ratio), -2.0), gradient=True)


@TOPIC.check("gspo_loss", law="one-token-rows", title="gspo_loss of rows of one token is their clipped loss")
def one_token_rows(trial: Trial) -> None:
    """n_b = 1: s = ρ, under the aggregation sequence_sum."""
    arguments = gspo_case(trial.draw, trial.convention)
    shown = arguments["mask"].array
    arguments = replaced(arguments, mask=shown * (shown.cumsum(axis=1) == 1))
    trial.agree("gspo_loss", arguments, of_clipped_loss(trial, arguments, aggregation="sequence_sum"), gradient=True)


@TOPIC.check("gspo_loss", law="spread", title="gspo_loss does not ask how a row's log-ratio is spread over its tokens")
def spread(trial: Trial) -> None:
    """Log-ratio moved from some of a row's tokens to others: value and gradient stay."""
    arguments = cast(gspo_case(trial.draw, trial.convention), "float64")
    shown, old = arguments["mask"].array, arguments["old_log_probs"].array
    moved = old + shown * centred(trial.draw.normal(*shown.shape), shown)
    want = trial.expect("gspo_loss", arguments)
    trial.agree("gspo_loss", replaced(arguments, old_log_probs=moved), want, gradient=True)


@TOPIC.check("gspo_loss", law="length", examples=2, title="gspo_loss normalises by the number of masked-in tokens")
def length(trial: Trial) -> None:
    """The log-ratio 0.1 at 1, 2, 5 and 8 tokens gives s = e^0.1 each time, and a gradient of s·Â/n at each token."""
    trial.agree("gspo_loss", lengths_case(trial.draw), gradient=True)


@TOPIC.check("entropy_bonus", law="uniform", title="entropy_bonus of V equal logits counts log V for each token")
def uniform(trial: Trial) -> None:
    """H = log V, aggregated: positive, in nats, over the L − 1 places that predict a token."""
    arguments = bonus_case(trial.draw, trial.convention)
    flat = replaced(arguments, logits=np.zeros_like(arguments["logits"].array))
    mask, size = arguments["mask"].array, arguments["logits"].array.shape[-1]
    mode = trial.convention.aggregation
    constant = {"constant": trial.convention.aggregation_constant} if mode == "constant" else {}
    values = Tensor(np.full(mask.shape, np.log(size)), "float64")
    mean = trial.expect("aggregate", {"values": values, "mask": arguments["mask"], "mode": mode, **constant})
    want = trial.expect("entropy_bonus", flat)
    trial.agree("entropy_bonus", flat, Expected(mean.value, want.scale, want.terms))


@TOPIC.check("entropy_bonus", law="position", title="entropy_bonus of one token reads the logits that predict it")
def position(trial: Trial) -> None:
    """Entropy at the place before the token alone: next to none is left at the other places."""
    trial.agree("entropy_bonus", one_place_case(trial.draw), gradient=True)


@TOPIC.check("entropy_bonus", law="banned-tokens", title="entropy_bonus takes −inf logits as probability 0")
def bonus_of_banned_tokens(trial: Trial) -> None:
    """H = −Σ p log p with 0·log 0 = 0."""
    trial.agree("entropy_bonus", banned(trial.draw, bonus_case(trial.draw, trial.convention)))


@TOPIC.check(
    "entropy_bonus",
    law="banned-tokens-gradient",
    kind="robustness",
    title="entropy_bonus has a finite gradient beside −inf logits",
)
def bonus_gradient_beside_banned_tokens(trial: Trial) -> None:
    """The gradient in the allowed logits is that of the distribution over them."""
    arguments = banned(trial.draw, bonus_case(trial.draw, trial.convention))
    gradient = trial.call("entropy_bonus", arguments, live=("logits",)).gradients["logits"]
    allowed = np.isfinite(arguments["logits"].array)
    finite = gradient is not None and bool(np.isfinite(gradient)[allowed].all())
    require(finite, "no finite gradient of entropy_bonus reaches the logits beside a −inf")


@TOPIC.check(
    "entropy_bonus",
    law="extreme-logits",
    kind="robustness",
    title="entropy_bonus is finite and accurate for logits in the thousands",
)
def bonus_of_extreme_logits(trial: Trial) -> None:
    """H → log of the number of largest logits."""
    arguments = bonus_case(trial.draw, trial.convention)
    trial.agree("entropy_bonus", replaced(arguments, logits=1000.0 * arguments["logits"].array))


@TOPIC.check("entropy_bonus", law="padding", title="entropy_bonus is unchanged by padding that is masked out")
def bonus_padding(trial: Trial) -> None:
    """More columns with mask 0."""
    arguments = bonus_case(trial.draw, trial.convention)
    logits, shown = arguments["logits"].array, arguments["mask"].array
    extra = trial.draw.integer("padding", 1, 3)
    padded = replaced(
        arguments,
        logits=np.concatenate([logits, trial.draw.normal(len(logits), extra, logits.shape[2])], axis=1),
        mask=np.concatenate([shown, np.zeros((len(shown), extra))], axis=1),
    )
    trial.agree("entropy_bonus", padded, gradient=True)


@TOPIC.check("importance_weights", law="at-the-cap", title="importance_weights grow up to the cap and stay there")
def at_the_cap(trial: Trial) -> None:
    """w = ρ below the cap, however small, and the cap itself on it and beyond; not 0, not ρ, not 1."""
    cap = trial.draw.choice("cap", CAPS)
    bound = 2.0 if cap is None else cap
    ratios = bound * np.array([[0.01, 0.5, 0.9, 1.0, 1.1, 3.0, 100.0]])
    policy = -trial.draw.uniform(0.1, 2.0, *ratios.shape)
    arguments: Arguments = {
        "log_probs": Tensor(policy),
        "sampler_log_probs": Tensor(policy - np.log(ratios)),
        "mask": Tensor(np.ones_like(ratios)),
    }
    arguments = arguments if cap is None else arguments | {"cap": cap}
    scale = trial.expect("importance_weights", arguments).scale
    trial.agree("importance_weights", arguments, Expected(np.minimum(ratios, bound), scale))


@TOPIC.check("importance_weights", law="on-policy", title="importance_weights of a policy's own samples are 1")
def on_policy(trial: Trial) -> None:
    """log π = log μ: 1 at each token under the mask, or the cap where that is smaller."""
    arguments = weights_case(trial.draw, trial.convention)
    arguments["sampler_log_probs"] = arguments["log_probs"]
    shown = arguments["mask"].array
    scale = trial.expect("importance_weights", arguments).scale
    trial.agree("importance_weights", arguments, Expected(min(1.0, arguments.get("cap", 2.0)) * shown, scale))


def _require_detaching(trial: Trial) -> None:
    if trial.convention.old_log_probs == "caller":
        raise NotDeclared("old_log_probs are detached by the caller, so the operation never sees them with a graph")


def _declare_old(operation: str, case: Case) -> None:
    @TOPIC.check(
        operation, law="frozen-old", title=f"{operation} lets no gradient into old_log_probs that carry a graph"
    )
    def frozen_old(trial: Trial) -> None:
        """∂L/∂log π_old = 0 although the caller did not detach it."""
        _require_detaching(trial)
        arguments = case(trial.draw, trial.convention)
        observed = trial.call(operation, arguments, live=("log_probs", "old_log_probs"))
        gradient = observed.gradients["old_log_probs"]
        dead = gradient is None or not gradient.any()
        require(dead, f"a gradient of {operation} flows into old_log_probs, which is a constant")

    @TOPIC.check(operation, law="same-pass", title=f"{operation} is alive when old and new log-probs are one tensor")
    def same_pass(trial: Trial) -> None:
        """Ratio 1 in value, the gradient as if log π_old were a constant."""
        _require_detaching(trial)
        arguments = case(trial.draw, trial.convention)
        arguments["old_log_probs"] = arguments["log_probs"]
        trial.agree(operation, arguments, gradient=True)


def _declare_accumulation(operation: str, arguments: Arguments) -> None:
    count = arguments["mask"].array.size

    @TOPIC.check(
        operation,
        law="accumulation",
        examples=1,
        title=f"{operation} accumulates {count} equal bfloat16 terms in float32 or better",
    )
    def accumulation(trial: Trial) -> None:
        """A running bfloat16 sum of ones stops at 256."""
        trial.agree(operation, cast(arguments, "bfloat16"), gradient=True)


_declare_old("dual_clip_loss", dual_case)
_declare_old("gspo_loss", gspo_case)
_declare_accumulation("dual_clip_loss", constant_ratio((1, 4099), -1.0, 0.0, 1.0) | WIDE)
_declare_accumulation("gspo_loss", constant_ratio((1, 4099), -1.0, 1.0, 1.0) | WIDE)
_declare_accumulation("entropy_bonus", {"logits": Tensor(np.zeros((1, 1025, 2))), "mask": Tensor(np.ones((1, 1024)))})
