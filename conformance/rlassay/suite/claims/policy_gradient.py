"""Checks of the claims about the policy gradient, on all trajectories of a small stochastic environment."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial
from rlassay.guest.values import Arguments, Tensor
from rlassay.statistics import DESIGNS, mean_p, require_plausible
from rlassay.suite.claims.episodes import Episodes
from rlassay.suite.claims.reading import Reading, read, read_gradient
from rlassay.suite.log_prob import TOPIC
from rlassay_spec.exact import environment, trajectory


def noisy_door(trial: Trial, sampler: environment.Policy) -> tuple[Episodes, Reading, Reading]:
    """All trajectories of a stochastic environment, log π(τ) of the learner [N, T] and its gradient [N, K]."""
    episodes = Episodes(environment.NOISY_DOOR, sampler)
    value, gradient = read_gradient(trial, "masked_log_probs", episodes.arguments(environment.LEARNER))
    return episodes, value, episodes.into_parameters(gradient, episodes.places)


def slopes(episodes: Episodes) -> np.ndarray:
    """∇p_θ(τ)/p_θ(τ) [N, K] of the learner."""
    gradients = [trajectory.probability_gradient(environment.LEARNER, path) for path in episodes.paths]
    return np.asarray(np.array(gradients, dtype=np.float64) / episodes.probabilities[:, None])


TRUTH = np.array(trajectory.true_gradient(environment.NOISY_DOOR, environment.LEARNER), dtype=np.float64)
"""∇J of the learner in the stochastic environment, by backward induction."""


@TOPIC.claim(
    "B4.2", "masked_log_probs", title="∇ log p(τ) is the sum of the policy's scores, in a stochastic environment too"
)
def environment_drops_out(trial: Trial) -> None:
    """∇p_θ(τ)/p_θ(τ), with ∇p by the product rule over the policy's and the environment's factors."""
    episodes, _, gradient = noisy_door(trial, environment.LEARNER)
    gradient.require("∇ log p of each trajectory", slopes(episodes))


@TOPIC.claim("B6.2", "masked_log_probs", title="E[R·∇ log p] = ∇J over all trajectories of a stochastic environment")
def policy_gradient(trial: Trial) -> None:
    """The environment's probabilities serve to sample only; ∇J comes from backward induction, without scores."""
    episodes, _, gradient = noisy_door(trial, environment.LEARNER)
    gradient.combined(episodes.probabilities * episodes.returns).require("E[R·∇ log p]", TRUTH)


@TOPIC.check(
    "masked_log_probs",
    law="B6.2-sampled",
    claims=("B6.2",),
    examples=1,
    title="the mean of R·∇ log p over a million sampled trajectories is ∇J, within chance",
)
def sampled_policy_gradient(trial: Trial) -> None:
    """Hoeffding's bound on each parameter's entry, whose range over the trajectories is 5.2 at most."""
    episodes, _, gradient = noisy_door(trial, environment.LEARNER)
    design = DESIGNS["masked_log_probs/B6.2-sampled"]
    counts = trial.draw.rng.multinomial(design.samples, episodes.probabilities / episodes.probabilities.sum())
    mean = gradient.combined(counts / design.samples * episodes.returns)
    p_values = {}
    for k, truth in enumerate(TRUTH):
        off = abs(float(mean.value[k]) - truth) - float(mean.error[k])
        seen = f"entry {k} of the mean gradient at {float(mean.value[k]):.6g}, where {truth:.6g} is expected"
        p_values[seen] = mean_p(off, design.samples, design.width)
    require_plausible("masked_log_probs/B6.2-sampled", p_values)


@TOPIC.claim(
    "B6.7", "masked_log_probs", title="another policy's trajectories bias the gradient until π/π_old weighs them"
)
def importance_weight(trial: Trial) -> None:
    """E over π_old of R·∇ log π is another vector; with Π_t π/π_old, from both policies' log-probs, it is ∇J again."""
    episodes, new, gradient = noisy_door(trial, environment.SAMPLER)
    old = read(trial, "masked_log_probs", episodes.arguments(environment.SAMPLER))
    weights = episodes.probabilities * episodes.returns
    uncorrected = trajectory.off_policy_estimate(
        environment.NOISY_DOOR, environment.LEARNER, environment.SAMPLER, lambda path, step: path.total
    )
    gradient.combined(weights).require("uncorrected mean of R·∇ log π", np.array(uncorrected, dtype=np.float64))
    log_ratio = Reading(new.value - old.value, new.error + old.error).transposed().combined(np.ones(4))
    ratio = log_ratio.exp().reshaped(-1, 1)
    gradient.times(ratio).combined(weights).require("importance-weighted mean of R·∇ log π", TRUTH)


@TOPIC.claim("B4.2", "action_log_probs", title="log π of a trajectory leaves out what the environment has written")
def observations_belong_to_none(trial: Trial) -> None:
    """Σ_t log π(a_t∣h_t) has the probability Π_t π and the gradient ∇p_θ(τ)/p_θ(τ); observation tokens have id −1."""
    episodes = Episodes(environment.NOISY_DOOR, environment.LEARNER)
    rows = np.array(environment.LEARNER, dtype=np.float64)
    arguments = episodes.arguments(environment.LEARNER)
    following = arguments["token_ids"].array[:, 1:]
    places = episodes.places[:, :-1]
    case: Arguments = {
        "log_probs": Tensor(np.log(rows[places, following]), "float64"),
        "action_ids": Tensor(np.where(arguments["mask"].array == 1, np.arange(4) // 2, -1), "int64"),
        "n_actions": 2,
    }
    value, gradient = read_gradient(trial, "action_log_probs", case)
    own = np.array([path.chances for path in episodes.paths], dtype=np.float64).prod(axis=1)
    value.transposed().combined(np.ones(2)).exp().require("Π_t π(a_t∣h_t) of each trajectory", own)
    scores = np.eye(2)[following] - rows[places]
    weighted = gradient.reshaped(len(own), 4, 1).times(Reading(scores, np.zeros(scores.shape)))
    episodes.into_parameters(weighted, places).require("∇ log p of each trajectory", slopes(episodes))
