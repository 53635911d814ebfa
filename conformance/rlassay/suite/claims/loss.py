"""Checks of the claims about the weighted losses: which weight each token gets, and that nothing else reaches it.

Expected gradients are −share·w with the claim's exact weight w and the token's share in the declared aggregation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rlassay.check import Trial
from rlassay.guest.values import Arguments, replaced
from rlassay.laws import FINITE, NONFINITE
from rlassay.suite.claims.weights import (
    MASK,
    arguments,
    batch,
    require_logit_gradient,
    require_no_gradient,
    require_weights,
)
from rlassay.suite.loss import TOPIC
from rlassay_spec.exact import loss as exact
from rlassay_spec.exact import number_search

SFT, REST, REINFORCE, GRADIENT = "sft_loss", "rest_loss", "reinforce_loss", "policy_gradient_loss"
GRPO, DR_GRPO, AGGREGATE = "grpo_loss", "dr_grpo_loss", "aggregate"

BINARY = (1, 1, 0, 0)
ACTIONS = (0, 0, 1, 1)
BANDIT = (0.25, 0.75)
"""Rewards and actions of the lecture's group of four, and the policy that drew them."""


def weights(method: str, rewards: tuple[float, ...] = BINARY) -> list[float]:
    """The exact weights of a method."""
    return [float(weight) for weight in exact.weights(method, rewards)]


def weighed_with(operation: str, method: str, rewards: tuple[float, ...] = BINARY) -> dict[str, npt.ArrayLike]:
    """What an operation takes besides log-probs and mask so that it has a method's weights."""
    given = weights(method, rewards)
    others: dict[str, dict[str, npt.ArrayLike]] = {
        SFT: {},
        REST: {"rewards": rewards},
        REINFORCE: {"rewards": given, "baselines": [0.0] * len(rewards)},
        GRADIENT: {"weights": np.repeat([given], 3, axis=0).T},
        GRPO: {"advantages": given},
        DR_GRPO: {"advantages": given, "constant": 4.0},
    }
    return others[operation]


@TOPIC.claim("B6.4", REINFORCE, title="the policy gradient is the return times the masked SFT gradient")
def weighted_imitation(trial: Trial) -> None:
    """Weight R; for R = 2 and π = (1/4, 3/4) the logit gradient is (−3/2, 3/2)."""
    returns = (2.0, -0.5, 1.0, 0.25)
    require_weights(trial, REINFORCE, batch(rewards=returns, baselines=np.zeros(4)), returns)
    require_logit_gradient(trial, REINFORCE, BANDIT, (0,), (2,), rewards=[2.0], baselines=[0.0])


@TOPIC.claim("B7.2", REINFORCE, title="a failure with reward 0 leaves no trace in the gradient")
def failure_is_silent(trial: Trial) -> None:
    """Weight 0 for each of its tokens; the success beside it is learned."""
    require_weights(trial, REINFORCE, batch(rewards=(0, 1, 0, 1), baselines=np.zeros(4)), (0, 1, 0, 1))


@TOPIC.claim("P2.1", REINFORCE, title="a wrong answer gives no gradient, a batch of wrong answers none at all")
def wrong_answers(trial: Trial) -> None:
    """One of each: (−3/8, 3/8) in the logits, the right one's alone; all wrong: exactly 0."""
    require_logit_gradient(trial, REINFORCE, BANDIT, (0, 1), (1, 0), rewards=[1.0, 0.0], baselines=[0.0, 0.0])
    trial.agree(REINFORCE, batch(rewards=np.zeros(4), baselines=np.zeros(4)), gradient=True)


@TOPIC.claim("B7.3", REINFORCE, title="τ₁ and τ₂ and all their guesses have the same weight 1")
def wasted_guess(trial: Trial) -> None:
    """Four guesses each, hidden number 11, rewards 1, 1, 0, 0."""
    rewards = [float(number_search.play(11, guesses)[1]) for guesses in number_search.TAUS]
    log_probs = -np.linspace(0.2, 3.2, 16).reshape(4, 4)
    require_weights(trial, REINFORCE, arguments(log_probs, rewards=rewards, baselines=np.zeros(4)), rewards)


@TOPIC.claim("B7.4", REINFORCE, title="against its success rate a failure weighs 0 − 0.95, a success 1 − 0.05")
def relative_to_expectation(trial: Trial) -> None:
    """One rare failure, one rare success, and both again where they are common."""
    rewards, rates = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.95, 0.05, 0.05, 0.95])
    require_weights(trial, REINFORCE, batch(rewards=rewards, baselines=rates), rewards - rates)


def _declare_credit(operation: str, others: dict[str, npt.ArrayLike]) -> None:
    @TOPIC.claim("B8.13", operation, title=f"{operation} gives all guesses of τ₁ the same weight, 8 and 11 alike")
    def shared_credit(trial: Trial) -> None:
        """A baseline that is one number per trajectory assigns no credit: 1 − 1/2 for each of four guesses."""
        log_probs = np.log([[0.1, 0.2, 0.4, 0.9]])
        require_weights(trial, operation, arguments(log_probs, **others), [0.5])


_declare_credit(REINFORCE, {"rewards": [1.0], "baselines": [0.5]})
_declare_credit(GRPO, {"advantages": [0.5]})


@TOPIC.claim("B8.13", GRADIENT, title="a baseline that follows the history gives each guess of τ₁ its own weight")
def own_credit(trial: Trial) -> None:
    """1 − V(h_t) of uniform play over the candidates; the last guess could not fail and has weight 0."""
    guesses = number_search.TAUS[0]
    values = [float(number_search.uniform_success())]
    for t in (1, 2, 3):
        values.append(float(number_search.state_value(number_search.candidates(11, guesses[:t]), 4 - t)))
    per_guess = 1 - np.array([values])
    require_weights(trial, GRADIENT, arguments(np.log([[0.1, 0.2, 0.4, 0.9]]), weights=per_guess), per_guess)


@TOPIC.claim("B9.5", GRPO, title="grpo_loss is −mean over the group of Â·Σ log π")
def group_loss(trial: Trial) -> None:
    """Rewards 1, 1, 0, 0 at π = (1/4, 3/4): logit gradient (−1/2, 1/2); lengths enter as declared, here not at all."""
    require_weights(trial, GRPO, batch(**weighed_with(GRPO, "grpo")), weights("grpo"))
    require_logit_gradient(trial, GRPO, BANDIT, ACTIONS, weights("grpo"), **weighed_with(GRPO, "grpo"))


@TOPIC.claim("B10.5", DR_GRPO, title="dr_grpo_loss divides each masked sum by C, then averages over the group")
def constant_loss(trial: Trial) -> None:
    """Whatever the lengths; C = 4 and C = 50."""
    for constant in (4.0, 50.0):
        case = batch(advantages=weights("dr_grpo"), constant=constant)
        require_weights(trial, DR_GRPO, case, weights("dr_grpo"))
    require_logit_gradient(trial, DR_GRPO, BANDIT, ACTIONS, weights("dr_grpo"), **weighed_with(DR_GRPO, "dr_grpo"))


METHODS = ((REST, "rest"), (REINFORCE, "reinforce"), (GRPO, "grpo"), (DR_GRPO, "dr_grpo"))


def _declare_form(operation: str, method: str) -> None:
    @TOPIC.claim("B11.1", operation, title=f"{operation} is the weighted sum of log-probs with the weight of {method}")
    def one_form(trial: Trial) -> None:
        """w = 1[R = 1], R, (R − R̄)/σ or R − R̄ on rewards that tell them apart."""
        rewards = (1.0, 0.25, 0.0, 1.0)
        given = weighed_with(operation, method, rewards)
        require_weights(trial, operation, batch(**given), weights(method, rewards))


for _operation, _method in METHODS:
    _declare_form(_operation, _method)


@TOPIC.claim("B11.1", GRADIENT, title="policy_gradient_loss is every method, given its weights")
def all_forms(trial: Trial) -> None:
    """SFT, ReST, REINFORCE, GRPO and Dr. GRPO by weight alone."""
    rewards = (1.0, 0.25, 0.0, 1.0)
    for method in ("sft", *(method for _, method in METHODS)):
        require_weights(trial, GRADIENT, batch(**weighed_with(GRADIENT, method, rewards)), weights(method, rewards))


@TOPIC.claim("B10.8", REINFORCE, title="equal rewards train REINFORCE, unless they are 0")
def equal_rewards(trial: Trial) -> None:
    """1, 1, 1, 1 has weight 1 throughout; 0, 0, 0, 0 none."""
    require_weights(trial, REINFORCE, batch(rewards=np.ones(4), baselines=np.zeros(4)), np.ones(4))
    trial.agree(REINFORCE, batch(rewards=np.zeros(4), baselines=np.zeros(4)), gradient=True)


@TOPIC.claim("B8.16", REINFORCE, title="without a baseline a shift of the rewards changes every single estimate")
def shifted_rewards(trial: Trial) -> None:
    """Rewards 1, 0 less 1: the success has weight 0, the failure −1."""
    for shift in (0.0, 1.0):
        rewards = np.array([1.0, 0.0, 1.0, 0.0]) - shift
        require_weights(trial, REINFORCE, batch(rewards=rewards, baselines=np.zeros(4)), rewards)


def _declare_constant(operation: str, name: str) -> None:
    @TOPIC.claim("P5.2", operation, title=f"no gradient of {operation} flows into its {name}: they are weights")
    def constant_weight(trial: Trial) -> None:
        """∂(−Â log π)/∂ log π = −Â, and nothing in Â."""
        case = batch(**weighed_with(operation, "grpo"))
        require_no_gradient(trial, operation, case, name)
        require_weights(trial, operation, case, weights("grpo"))


for _operation, _name in ((GRPO, "advantages"), (DR_GRPO, "advantages"), (GRADIENT, "weights")):
    _declare_constant(_operation, _name)


def _declare_masked(operation: str, case: Arguments, hidden: tuple[str, ...]) -> None:
    def scrambled(trial: Trial, fill: tuple[float, ...]) -> None:
        want = trial.expect(operation, case)
        masked = np.array(MASK) == 0
        for value in fill:
            arrays = {name: np.where(masked, value, case[name].array) for name in hidden}
            trial.agree(operation, replaced(case, **arrays), want, gradient=True)

    @TOPIC.claim("B6.6", operation, title=f"{operation} does not depend on what stands at masked places")
    def finite(trial: Trial) -> None:
        """Other numbers there change neither value nor gradient, and the gradient there is 0."""
        scrambled(trial, FINITE)

    @TOPIC.check(
        operation,
        law="B6.6-nonfinite",
        claims=("B6.6",),
        kind="robustness",
        examples=1,
        title=f"{operation} ignores NaN and infinities at masked places",
    )
    def nonfinite(trial: Trial) -> None:
        """0·NaN is NaN: masking has to select, not to multiply."""
        scrambled(trial, NONFINITE)


for _operation in (SFT, REINFORCE, GRADIENT, GRPO):
    _hidden = ("log_probs", "weights") if _operation == GRADIENT else ("log_probs",)
    _declare_masked(_operation, batch(**weighed_with(_operation, "grpo")), _hidden)
_case = batch()
_declare_masked(AGGREGATE, {"values": _case["log_probs"], "mask": _case["mask"], "mode": "token_mean"}, ("values",))
