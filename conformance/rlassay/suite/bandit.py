"""Checks of the expected return, the bandit's gradient estimate and the variance-optimal baseline."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor
from rlassay.laws import Domain
from rlassay.refusals import longer
from rlassay.topic import Topic
from rlassay_spec.convention import Convention


def outcomes_case(draw: Draw, convention: Convention) -> Arguments:
    """Probabilities of K trajectories and their returns."""
    count = draw.integer("outcomes", 1, 9)
    return {"probabilities": Tensor(_distribution(draw, count)), "returns": Tensor(draw.normal(count))}


def bandit_case(draw: Draw, convention: Convention) -> Arguments:
    """θ as a number or a 0-d tensor, both actions, any baseline."""
    theta = float(draw.choice("theta", (0.0, -1.1, 1.5, -3.0, 9.0, -12.0)))
    action = draw.choice("action", (0, 1))
    baseline = draw.choice("baseline", (0.0, 0.5, 0.25, 1.0, -0.3))
    as_tensor = draw.choice("type", ("float", "tensor")) == "tensor"
    return {"theta": Tensor(np.array(theta)) if as_tensor else theta, "action": action, "baseline": baseline}


def optimal_case(draw: Draw, convention: Convention) -> Arguments:
    """Scores of D parameters, zero rows among them; rewards of any sign."""
    count = draw.integer("outcomes", 1, 5)
    scores = draw.normal(count, draw.integer("parameters", 1, 4))
    kind = draw.choice("scores", ("all", "one zero", "zero", "small"))
    if kind == "one zero":
        scores[0] = 0
    if kind == "zero":
        scores[:] = 0
    if kind == "small":
        scores = 1e-3 * scores
    return {
        "probabilities": Tensor(_distribution(draw, count)),
        "scores": Tensor(scores),
        "rewards": Tensor(draw.normal(count)),
    }


def _distribution(draw: Draw, count: int) -> np.ndarray:
    weights = np.exp(draw.normal(count))
    return np.asarray(weights / weights.sum())


TOPIC = Topic(
    Domain(
        "expected_return",
        outcomes_case,
        result="number",
        refusals={"returns-of-another-length": longer("returns")},
    ),
    Domain("bandit_gradient", bandit_case, result="number"),
    Domain(
        "optimal_baseline",
        optimal_case,
        result="number",
        refusals={"scores-of-another-length": longer("scores"), "rewards-of-another-length": longer("rewards")},
    ),
)


@TOPIC.check("expected_return", law="as-they-are", examples=1, title="expected_return takes probabilities as they are")
def as_they_are(trial: Trial) -> None:
    """Some that add up to 5/4, or to 3/4, are not rescaled."""
    for probabilities in ([0.5, 0.75], [0.25, 0.5]):
        arguments = {"probabilities": Tensor(np.array(probabilities)), "returns": Tensor(np.array([1.0, -2.0]))}
        trial.agree("expected_return", arguments)
