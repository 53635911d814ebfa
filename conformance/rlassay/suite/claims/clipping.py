"""Checks of the claims about the clipped surrogate.

One token per sequence at log π = −0.7, with the old log-prob that makes the ratio. Expected are the oracle's numbers
under the declared convention, which without a clamp on the log-ratio are `rlassay_spec.exact.loss.clipped` and its
slope.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rlassay.check import Trial, require
from rlassay.guest.values import Arguments
from rlassay.suite.claims.reading import Reading, read, read_gradient
from rlassay.suite.claims.weights import arguments, doubles, require_no_gradient, shares
from rlassay.suite.loss import TOPIC

CLIPPED, OBJECTIVE = "clipped_loss", "grpo_objective"
LOG_PROB = -0.7
CLIP = {"clip_low": 0.2, "clip_high": 0.2}
WIDE = {"clip_low": 0.99, "clip_high": 99.0}
"""Bounds that no ratio here reaches."""


def surrogate(ratios: npt.ArrayLike, advantages: npt.ArrayLike, clip: dict[str, float] | None = None) -> Arguments:
    """Arguments of clipped_loss for one token per sequence."""
    new = np.full((np.size(ratios), 1), LOG_PROB)
    case = arguments(new, advantages=advantages)
    old = doubles(new - np.log(np.reshape(ratios, (-1, 1))))
    return {"log_probs": case["log_probs"], "old_log_probs": old} | _rest(case) | (clip or CLIP)


def objective(ratios: Sequence[float], rewards: npt.ArrayLike, clip: dict[str, float] | None = None) -> Arguments:
    """Arguments of grpo_objective without its KL, [N, G] rewards, one token per response."""
    case = surrogate(ratios, np.zeros(len(ratios)), clip)
    new, old, mask = (case[name] for name in ("log_probs", "old_log_probs", "mask"))
    arrays = {"log_probs": new, "old_log_probs": old, "ref_log_probs": doubles(new.array), "mask": mask}
    return {**arrays, "rewards": doubles(rewards), "beta": 0.0} | (clip or CLIP)


def _rest(case: Arguments) -> Arguments:
    return {name: value for name, value in case.items() if name != "log_probs"}


def slopes(trial: Trial, case: Arguments) -> tuple[Reading, np.ndarray]:
    """Slope of each token's surrogate in log π [B], by the subject and by the oracle, divided by its share."""
    want = trial.expect(CLIPPED, case)
    assert want.pullback is not None
    _, got = read_gradient(trial, CLIPPED, case)
    share = shares(trial, case)
    with np.errstate(over="ignore"):
        slope = Reading(got.value / share, got.error / share)
    return slope[:, 0], (want.pullback(1.0).value / share)[:, 0]


def require_token(trial: Trial, ratio: float, advantage: float, clip: dict[str, float] | None = None) -> None:
    """Value and slope of the surrogate of one token.

    Raises:
        Mismatch: one is off.
    """
    case = surrogate([ratio], [advantage], clip)
    want = trial.expect(CLIPPED, case)
    assert want.pullback is not None
    value, slope = read_gradient(trial, CLIPPED, case)
    factor, place = 1 / shares(trial, case)[0, 0], f"at ρ = {ratio:g}, A = {advantage:g}"
    value.scaled(factor).require(f"surrogate {place}", want.value * factor)
    slope[0, 0].scaled(factor).require(f"slope of the surrogate {place}", want.pullback(1.0).value[0, 0] * factor)


@TOPIC.claim("P5.2", CLIPPED, title="no gradient of clipped_loss flows into its advantages: they are weights")
def constant_weight(trial: Trial) -> None:
    """∂(−ρA)/∂ log π = −ρA, and nothing in A."""
    require_no_gradient(trial, CLIPPED, surrogate([1.1, 0.9], [1, -1]), "advantages")
    for advantage in (1.0, -1.0):
        require_token(trial, 1.1, advantage)


@TOPIC.claim("P5.3", CLIPPED, title="the slope is −ρA, but 0 beyond the bound that A pushes towards")
def clipped_sides(trial: Trial) -> None:
    """Both signs of A with ρ inside, above and below: value and slope."""
    for advantage in (1.0, -1.0, 2.5, -0.4):
        for ratio in (0.5, 1.0, 1.1, 1.5):
            require_token(trial, ratio, advantage)


@TOPIC.claim("P5.3", OBJECTIVE, title="the surrogate of grpo_objective has the same four sides")
def objective_sides(trial: Trial) -> None:
    """Rewards 1, 0 in three groups whose ratios are above, below and inside."""
    trial.agree(OBJECTIVE, objective([1.5, 1.5, 0.5, 0.5, 1.1, 1.1], [(1, 0)] * 3), gradient=True)


@TOPIC.claim("P5.4", CLIPPED, title="clipping removes an incentive; it does not keep the ratio within its bounds")
def not_a_fence(trial: Trial) -> None:
    """Alive at A > 0, ρ < 1 − ε and at A < 0, ρ > 1 + ε; one large step, or a shared parameter, leads outside."""
    got, want = slopes(trial, surrogate([1.5, 0.5, 0.5, 1.5], [1, -1, 1, -1]))
    names = ("A = 1, ρ = 1.5 (no incentive)", "A = −1, ρ = 0.5 (no incentive)", "A = 1, ρ = 0.5", "A = −1, ρ = 1.5")
    for k, name in enumerate(names):
        got[k].require(f"slope at {name}", want[k])
    for what, factors, rate, steps in WALKS:
        ratio, right = ratio_after(trial, factors, rate, steps)
        require(abs(ratio - right) < 1e-4, f"{what} makes the ratio {ratio:.6g}, but should make it {right:.6g}")


WALKS: tuple[tuple[str, tuple[float, ...], float, int], ...] = (
    ("one step of size 4", (1.0,), 4.0, 1),
    ("a shared parameter", (1.0, 3.0), 0.1, 9),
)
"""Names, factors, step sizes and numbers of steps; the last ratio ends at 1.76 and at 1.58."""


def ratio_after(trial: Trial, factors: Sequence[float], rate: float, steps: int) -> tuple[float, float]:
    """Where gradient steps on θ carry the last of the ratios σ(f·θ)/σ(0), all with A = 1: the subject's and the exact.

    With f = 1 and 3 the second ratio soon passes 1 + ε and has no slope any more, but the steps of the first carry it
    on. Each slope is required to be the right one, so that errors do not grow.
    """
    scale = np.array(factors)
    theta = exact = 0.0
    for _ in range(steps):
        chances = _logistic(scale * theta)
        got, want = slopes(trial, surrogate(chances / 0.5, np.ones(len(scale))))
        got.require(f"slopes at the ratios {np.round(chances / 0.5, 4).tolist()}", want)
        chain = rate * scale * (1 - chances)
        theta, exact = theta - float(chain @ got.value), exact - float(chain @ want)
    ratio, right = (float(_logistic(scale[-1:] * end)[0] / 0.5) for end in (theta, exact))
    return ratio, right


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


@TOPIC.claim("P5.6", CLIPPED, title="with an unclipped ratio one batch serves further updates; clipping stops them")
def further_updates(trial: Trial) -> None:
    """Bandit, sampled at p = 1/4, now p = 3/4: ∇J = (3/16, −3/16) in the logits without clipping, 0 with it."""
    new, old, rewards = np.array([0.75, 0.25]), np.array([0.25, 0.75]), np.array([1.0, 0.0])
    scores = np.eye(2) - new
    for clip, name in ((WIDE, "wide bounds"), (CLIP, "bounds 0.8 and 1.2")):
        got, want = slopes(trial, surrogate(new / old, rewards, clip))
        steps = -old[:, None] * scores
        got.combined(steps.T).require(f"mean step with {name}", steps.T @ want)


@TOPIC.claim("P5.6", OBJECTIVE, title="grpo_objective corrects by the ratio until it is clipped")
def objective_updates(trial: Trial) -> None:
    """Ratios 3 and 1/3 of a success and a failure."""
    for clip in (WIDE, CLIP):
        trial.agree(OBJECTIVE, objective([3.0, 1 / 3], [(1, 0)], clip), gradient=True)


@TOPIC.claim("P5.7", CLIPPED, title="at ratio 1 nothing is clipped: value −A, slope −A")
def first_update(trial: Trial) -> None:
    """A = 2 and A = −3."""
    for advantage in (2.0, -3.0):
        require_token(trial, 1.0, advantage)


def declare_alive(claim: str, title: str) -> None:
    """Declare that the objective's gradient is alive at ratio 1 although its value is 0."""

    @TOPIC.claim(claim, OBJECTIVE, title=title)
    def alive(trial: Trial) -> None:
        """Rewards 1, 1, 0, 0 and 1, 0, 0, 0 at ratio 1: the advantages cancel in the value, not in the gradient."""
        trial.agree(OBJECTIVE, objective([1.0] * 8, [(1, 1, 0, 0), (1, 0, 0, 0)]), gradient=True)


declare_alive("P5.7", "at ratio 1 grpo_objective is the plain policy gradient")


@TOPIC.claim("B9.10", CLIPPED, title="at ratio 1 the loss of a centred group is 0, its gradient is not")
def zero_value(trial: Trial) -> None:
    """Advantages 1, 1, −1, −1: value 0, slopes −1, −1, 1, 1."""
    case = surrogate([1.0] * 4, [1, 1, -1, -1])
    read(trial, CLIPPED, case).require("loss of the group", 0.0)
    got, want = slopes(trial, case)
    got.require("slopes at ratio 1", want)


@TOPIC.claim("B10.6", OBJECTIVE, title="a group of equal rewards has no gradient in grpo_objective")
def equal_rewards(trial: Trial) -> None:
    """Rewards 1, 1, 1 and 0, 0, 0 at several ratios: loss 0, gradient 0."""
    trial.agree(OBJECTIVE, objective([1.0, 1.5, 0.5] * 2, [(1, 1, 1), (0, 0, 0)]), gradient=True)
