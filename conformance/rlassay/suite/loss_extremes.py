"""Checks of the losses far from where training should be: ratios, KL, log-probs and weights that nothing bounds."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.suite import loss, surrogate
from rlassay.suite.loss_inputs import aggregate_case
from rlassay.suite.surrogate_inputs import with_dual_clip

TOPIC, SURROGATES = loss.TOPIC, surrogate.TOPIC

DISTANCES = (6.5, 9.5, 15.5)
"""Log-ratios that nothing bounds, unless it is declared. What guards exp at 20 is left alone."""

LARGE = 60.0


def far_case(distance: float) -> Arguments:
    """A bad token with this log-ratio and a good one whose log-ratio is as far below 0: neither is clipped."""
    policy = np.array([[-0.5], [-0.5 - distance]])
    return {
        "log_probs": Tensor(policy),
        "old_log_probs": Tensor(policy[::-1]),
        "mask": Tensor(np.ones(policy.shape)),
        "advantages": Tensor(np.array([-2.0, 1.0])),
    }


@TOPIC.check(
    "clipped_loss", law="extreme-ratios", examples=1, title="clipped_loss follows the ratio as far as no clip bounds it"
)
def extreme_ratios(trial: Trial) -> None:
    """A bad token costs ρ·|Â| up to e¹⁵, a good one earns ρ·Â down to e⁻¹⁵; a declared clamp of the log-ratio holds."""
    for distance in DISTANCES:
        trial.agree("clipped_loss", far_case(distance), gradient=True)


@TOPIC.check(
    "grpo_objective",
    law="extreme-ratios",
    examples=1,
    title="grpo_objective follows the ratio as far as no clip bounds it",
)
def objective_extreme_ratios(trial: Trial) -> None:
    """The same for the group (0, 1), without KL."""
    for distance in DISTANCES:
        case = far_case(distance)
        rewards = {"rewards": Tensor(np.array([[0.0, 1.0]])), "beta": 0.0}
        policies = {name: case[name] for name in ("log_probs", "old_log_probs")}
        arguments = {**policies, "ref_log_probs": case["log_probs"], "mask": case["mask"], **rewards}
        trial.agree("grpo_objective", arguments, gradient=True)


def _declare_large(operation: str, scaled: tuple[str, ...]) -> None:
    names = " and ".join(scaled)

    @TOPIC.check(operation, law="large-numbers", examples=4, title=f"{operation} bounds neither {names}")
    def large_numbers(trial: Trial) -> None:
        """Tokens of probability e⁻⁶⁰, weights in the dozens."""
        arguments = TOPIC.domains[operation].case(trial.draw, trial.convention)
        large = {name: LARGE * arguments[name].array for name in scaled}
        trial.agree(operation, replaced(arguments, **large), gradient=True)


for _operation, _scaled in {
    "sft_loss": ("log_probs",),
    "rest_loss": ("log_probs",),
    "reinforce_loss": ("log_probs", "rewards"),
    "policy_gradient_loss": ("log_probs", "weights"),
    "grpo_loss": ("log_probs", "advantages"),
    "dr_grpo_loss": ("log_probs", "advantages"),
    "microbatch_loss": ("log_probs", "advantages"),
    "clipped_loss": ("advantages",),
}.items():
    _declare_large(_operation, _scaled)


@TOPIC.check(
    "grpo_objective",
    law="far-reference",
    examples=1,
    title="grpo_objective follows the KL as far as no clamp bounds it",
)
def far_reference(trial: Trial) -> None:
    """Equal rewards leave β·k3 alone: e⁸ − 9 at log π_ref − log π = 8, e⁻¹⁵ + 14 at −15."""
    for distance in (8.0, -15.0):
        policy = Tensor(np.full((2, 1), -16.0))
        shared = {"log_probs": policy, "old_log_probs": policy, "ref_log_probs": Tensor(policy.array + distance)}
        rest = {"mask": Tensor(np.ones((2, 1))), "rewards": Tensor(np.ones((1, 2))), "beta": 1.0}
        trial.agree("grpo_objective", {**shared, **rest}, gradient=True)


@TOPIC.check("aggregate", law="constant-ignored", examples=3, title="aggregate ignores a constant in the other modes")
def constant_ignored(trial: Trial) -> None:
    """A constant of 7 changes no sum and no mean."""
    arguments = aggregate_case(trial.draw, trial.convention)
    mode = trial.draw.choice("other mode", ("sequence_sum", "sequence_mean", "token_mean"))
    trial.agree("aggregate", arguments | {"mode": mode, "constant": 7.0}, gradient=True)


@SURROGATES.check(
    "dual_clip_loss",
    law="extreme-ratios",
    examples=1,
    title="dual_clip_loss follows the ratio as far as nothing bounds it",
)
def dual_extreme_ratios(trial: Trial) -> None:
    """As for the clipped loss, under a dual clip that no ratio reaches."""
    for distance in DISTANCES:
        trial.agree("dual_clip_loss", with_dual_clip(far_case(distance), 1e12), gradient=True)


@SURROGATES.check(
    "gspo_loss", law="extreme-ratios", examples=1, title="gspo_loss follows the ratio as far as no clip bounds it"
)
def sequence_extreme_ratios(trial: Trial) -> None:
    """Rows of one token, as for the clipped loss."""
    for distance in DISTANCES:
        trial.agree("gspo_loss", far_case(distance), gradient=True)


@SURROGATES.check(
    "importance_weights",
    law="far-below",
    examples=1,
    title="importance_weights have no lower bound and bound no log-ratio",
)
def far_below(trial: Trial) -> None:
    """e⁻²⁵ at the smallest."""
    policy = np.array([[-6.5, -9.5, -15.5, -25.5]])
    arguments = {"log_probs": Tensor(policy), "sampler_log_probs": Tensor(np.full(policy.shape, -0.5))}
    trial.agree("importance_weights", arguments | {"mask": Tensor(np.ones(policy.shape))})
