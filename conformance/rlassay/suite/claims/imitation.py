"""Checks of the claims about imitation: supervised fine-tuning, ReST, and REINFORCE where it is nothing else."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial
from rlassay.suite.claims.loss import ACTIONS, BANDIT, BINARY, REINFORCE, REST, SFT, weighed_with, weights
from rlassay.suite.claims.reading import read_gradient
from rlassay.suite.claims.weights import (
    LOG_PROBS,
    MASK,
    arguments,
    batch,
    path_steps,
    policy_case,
    policy_scores,
    require_logit_gradient,
    require_weights,
    shares,
)
from rlassay.suite.loss import TOPIC


@TOPIC.claim("B3.1", SFT, title="sft_loss sums −log π over the demonstrated tokens; in the logits π − onehot")
def imitation(trial: Trial) -> None:
    """Weight 1 for every token; probabilities 1/2 and 1/4 give 3·log 2; π = (1/2, 1/3, 1/6) gives (1/2, −2/3, 1/6)."""
    require_weights(trial, SFT, batch(), np.ones(4))
    require_weights(trial, SFT, arguments(np.log([[0.5, 0.25]])), [1])
    require_logit_gradient(trial, SFT, (1 / 2, 1 / 3, 1 / 6), (1,), (1,))


@TOPIC.claim("B3.2", SFT, title="an action that was not demonstrated gets its probability as gradient, good or bad")
def undemonstrated(trial: Trial) -> None:
    """π = (0.1, 0.1, 0.8), the third demonstrated: (0.1, 0.1, −0.2)."""
    require_logit_gradient(trial, SFT, (0.1, 0.1, 0.8), (2,), (1,))


@TOPIC.claim("B5.1", REST, title="rest_loss is the SFT loss of the sequences whose reward is 1")
def filtered(trial: Trial) -> None:
    """Weight 1[R = 1]: the successes for binary rewards; for graded ones 0.99 and 2 are no 1."""
    for rewards in (BINARY, (0.99, 1, 2, 0.5)):
        require_weights(trial, REST, batch(rewards=rewards), weights("rest", rewards))


@TOPIC.claim("B5.1", SFT, title="what ReST does with the kept sequences is sft_loss")
def kept_sequences(trial: Trial) -> None:
    """Weight 1 for every token of the two successes, alone in their batch."""
    require_weights(trial, SFT, arguments(LOG_PROBS[:2], MASK[:2]), weights("sft", (1, 1)))


@TOPIC.claim("B5.2", REST, title="without a success rest_loss is 0 with gradient 0, never NaN")
def nothing_kept(trial: Trial) -> None:
    """An empty data set trains nothing."""
    for rewards in ((0, 0, 0, 0), (0.5, 0, 0.99, -1)):
        trial.agree(REST, batch(rewards=rewards), gradient=True)


@TOPIC.claim("B5.3", REST, title="when everything succeeds rest_loss is plain self-distillation")
def everything_kept(trial: Trial) -> None:
    """1[R = 1] = 1 throughout."""
    require_weights(trial, REST, batch(rewards=(1, 1, 1, 1)), weights("sft"))


@TOPIC.claim("B5.3", SFT, title="self-distillation keeps every sequence, whatever it earned")
def nothing_filtered(trial: Trial) -> None:
    """Weight 1 where ReST has 1, 1, 0, 0."""
    require_weights(trial, SFT, batch(), weights("sft"))


@TOPIC.claim("B5.4", REST, title="the mean over the kept sequences is B/K times the mean over all")
def mean_over_kept(trial: Trial) -> None:
    """Two of four sequences of equal length: the gradients differ by the factor 2."""
    log_probs = np.array([[-0.3, -1.2], [-0.7, -0.1], [-2.3, -0.9], [-1.1, -0.6]])
    _, of_all = read_gradient(trial, REST, arguments(log_probs, rewards=BINARY))
    kept = arguments(log_probs[:2])
    want = -shares(trial, kept)
    of_all[:2].scaled(2.0).require("B/K times the gradient of rest_loss over all four", want)
    of_all[2:].require("gradient of rest_loss at what is not kept", 0.0)


@TOPIC.claim("B6.4", SFT, title="the masked SFT gradient times the return is the policy gradient")
def imitation_times_return(trial: Trial) -> None:
    """Return 2, π = (1/4, 3/4), first action: twice (−3/4, 3/4)."""
    steps = path_steps(trial, SFT, policy_case(BANDIT, (0,)), policy_scores(BANDIT, (0,)))[0]
    steps.scaled(-2.0).require("2 × the logit gradient of sft_loss", (-3 / 2, 3 / 2))
    require_weights(trial, SFT, batch(), np.ones(4))


def _declare_binary(operation: str, other: str) -> None:
    @TOPIC.claim("B7.1", operation, title=f"with binary rewards {operation} is {other}, in value and gradient")
    def same_step(trial: Trial) -> None:
        """R = 1[R = 1]; the rejected stay in the denominator of both."""
        method = "rest" if operation == REINFORCE else "reinforce"
        require_weights(trial, operation, batch(**weighed_with(operation, "reinforce")), weights(method))
        require_logit_gradient(
            trial, operation, BANDIT, ACTIONS, weights(method), **weighed_with(operation, "reinforce")
        )


_declare_binary(REST, REINFORCE)
_declare_binary(REINFORCE, REST)
