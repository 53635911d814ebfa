"""Checks of the losses per token, in both forms of the assignment."""

from __future__ import annotations

from collections.abc import Callable

from rlassay.check import NotDeclared, Trial
from rlassay.comparison import Mismatch
from rlassay.draw import Draw
from rlassay.guest.errors import SubjectRaised
from rlassay.guest.values import Arguments, Tensor
from rlassay.suite.cs336.calls import agree, agree_gradient
from rlassay.suite.cs336.cases import clip_range, column, old, old_by_sequence, other_column, policy, precision
from rlassay.suite.cs336.loss_suspects import CLIP_SUSPECTS, NAIVE_SUSPECTS, SUSPECTS
from rlassay.topic import Topic
from rlassay_spec.convention import Convention

TOPIC = Topic()

LOSS_TYPES = ("no_baseline", "reinforce_with_baseline", "grpo_clip")
METHODS = ("none", "noclip", "grpo", "gspo")


def naive_case(draw: Draw, convention: Convention) -> Arguments:
    """Advantages of both signs."""
    log_probs, _ = policy(draw)
    rows = len(log_probs.array)
    return precision(draw, {"raw_rewards_or_advantages": column(draw, rows), "policy_log_probs": log_probs})


def clip_case(draw: Draw, convention: Convention) -> Arguments:
    """Ratios on both sides of both bounds and on them, advantages of both signs."""
    log_probs, _ = policy(draw)
    advantages, clip = column(draw, len(log_probs.array)), clip_range(draw)
    return precision(
        draw,
        {
            "advantages": advantages,
            "policy_log_probs": log_probs,
            "old_log_probs": old(draw, log_probs, advantages, clip),
            "cliprange": clip,
        },
    )


def typed_case(draw: Draw, convention: Convention, loss_type: str) -> Arguments:
    """One loss of the form of 2025; what it does not read is missing or holds other numbers."""
    log_probs, _ = policy(draw)
    return precision(draw, {"policy_log_probs": log_probs, **typed(draw, log_probs, loss_type)})


def typed(draw: Draw, log_probs: Tensor, loss_type: str) -> Arguments:
    """The arguments that choose a loss of the form of 2025 and feed it."""
    advantages, clip = column(draw, len(log_probs.array)), clip_range(draw)
    arguments: Arguments = {
        "loss_type": loss_type,
        "raw_rewards": other_column(draw, len(log_probs.array)),
        "advantages": advantages,
        "old_log_probs": old(draw, log_probs, advantages, clip),
        "cliprange": clip,
    }
    read = {
        "no_baseline": {"raw_rewards"},
        "reinforce_with_baseline": {"advantages"},
        "grpo_clip": {"advantages", "old_log_probs", "cliprange"},
    }[loss_type] | {"loss_type"}
    if draw.choice("unread", ("missing", "given")) == "missing":
        arguments = {name: value if name in read else None for name, value in arguments.items()}
    return arguments


def method_case(draw: Draw, convention: Convention, method: str) -> Arguments:
    """One method of the form of 2026; the mask is given where it is read, and sometimes where it is not."""
    log_probs, flags = policy(draw)
    advantages, clip = column(draw, len(log_probs.array)), clip_range(draw)
    by_sequence = method == "gspo"
    ratios = old_by_sequence(draw, log_probs.array) if by_sequence else old(draw, log_probs, advantages, clip)
    masked = by_sequence or draw.choice("response_mask", ("missing", "given")) == "given"
    arguments: Arguments = {
        "raw_rewards_or_advantages": advantages,
        "policy_log_probs": log_probs,
        "importance_reweighting_method": method,
        "old_log_probs": None if method == "none" else ratios,
        "cliprange": clip if method in ("grpo", "gspo") else None,
        "response_mask": flags if masked else None,
    }
    return precision(draw, arguments)


def either_shape(trial: Trial, arguments: Arguments, judge: Callable[[Arguments], object]) -> None:
    """Judge with advantages [B, 1] and, if that does not do, with [B]: the assignment leaves open which is meant.

    Raises:
        Mismatch, SubjectRaised: what went wrong with [B, 1], where [B] does not do either.
    """
    try:
        judge(arguments)
    except (Mismatch, SubjectRaised) as first:
        columns = arguments["raw_rewards_or_advantages"]
        try:
            judge(arguments | {"raw_rewards_or_advantages": columns.with_array(columns.array[:, 0])})
        except (Mismatch, SubjectRaised, NotDeclared):
            trial.arguments = arguments
            raise first from None


@TOPIC.check(
    "compute_naive_policy_gradient_loss", law="value", title="compute_naive_policy_gradient_loss is −A·log π per token"
)
def naive_value(trial: Trial) -> None:
    """The value."""
    arguments = naive_case(trial.draw, trial.convention)
    agree(trial, "compute_naive_policy_gradient_loss", arguments, suspects=NAIVE_SUSPECTS)


@TOPIC.check(
    "compute_naive_policy_gradient_loss",
    law="gradient",
    title="compute_naive_policy_gradient_loss has the oracle's gradient",
)
def naive_gradient(trial: Trial) -> None:
    """The gradient."""
    agree_gradient(trial, "compute_naive_policy_gradient_loss", naive_case(trial.draw, trial.convention))


@TOPIC.check("compute_grpo_clip_loss", law="value", title="compute_grpo_clip_loss is −min(ρ·Â, clip(ρ)·Â) per token")
def clip_value(trial: Trial) -> None:
    """The value."""
    arguments = clip_case(trial.draw, trial.convention)
    agree(trial, "compute_grpo_clip_loss", arguments, "loss", CLIP_SUSPECTS)


@TOPIC.check("compute_grpo_clip_loss", law="gradient", title="compute_grpo_clip_loss has the oracle's gradient")
def clip_gradient(trial: Trial) -> None:
    """The gradient, dead beyond a bound."""
    agree_gradient(trial, "compute_grpo_clip_loss", clip_case(trial.draw, trial.convention), "loss")


def _declare_type(loss_type: str) -> None:
    operation = "compute_policy_gradient_loss"

    @TOPIC.check(operation, law=loss_type, title=f"{operation} computes {loss_type}")
    def value(trial: Trial) -> None:
        """The value."""
        arguments = typed_case(trial.draw, trial.convention, loss_type)
        given = tuple(s for s in SUSPECTS[loss_type] if None not in arguments.values() or loss_type == "grpo_clip")
        agree(trial, operation, arguments, "loss", given)

    @TOPIC.check(operation, law=f"{loss_type}-gradient", title=f"{operation} has the oracle's gradient of {loss_type}")
    def gradient(trial: Trial) -> None:
        """The gradient."""
        agree_gradient(trial, operation, typed_case(trial.draw, trial.convention, loss_type), "loss")


def _declare_method(method: str) -> None:
    operation = "compute_policy_gradient_loss_2026"

    @TOPIC.check(operation, law=method, title=f"{operation} computes the method {method}")
    def value(trial: Trial) -> None:
        """The value."""
        arguments = method_case(trial.draw, trial.convention, method)
        either_shape(trial, arguments, lambda a: agree(trial, operation, a, "loss", SUSPECTS[method]))

    @TOPIC.check(operation, law=f"{method}-gradient", title=f"{operation} has the oracle's gradient of {method}")
    def gradient(trial: Trial) -> None:
        """The gradient."""
        arguments = method_case(trial.draw, trial.convention, method)
        either_shape(trial, arguments, lambda a: agree_gradient(trial, operation, a, "loss"))


for _loss_type in LOSS_TYPES:
    _declare_type(_loss_type)
for _method in METHODS:
    _declare_method(_method)
