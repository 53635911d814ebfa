"""Checks of the claims about log-probabilities: scores, actions of many tokens, masks, other policies, temperature."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import log

import numpy as np

from rlassay.check import Trial
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.suite.claims.reading import Reading, read, read_gradient
from rlassay.suite.log_prob import TOPIC, logits_and_ids
from rlassay_spec.exact import environment, trajectory
from rlassay_spec.exact import log_prob as exact
from rlassay_spec.exact.advantage import equal_group_probability


def one_step(policy: tuple[Fraction, ...], temperature: float | None = None) -> Arguments:
    """A batch in which each action of one step is taken once: row a scores action a."""
    size = len(policy)
    logits = np.zeros((size, 2, size))
    logits[:, 0] = np.log(np.array(policy, dtype=np.float64))
    ids = np.stack([np.zeros(size, dtype=np.int64), np.arange(size)], axis=1)
    arguments: Arguments = {"logits": Tensor(logits, "float64"), "token_ids": Tensor(ids, "int64")}
    return arguments if temperature is None else arguments | {"temperature": temperature}


def scores(trial: Trial, policy: tuple[Fraction, ...]) -> Reading:
    """∇ log π(a) in the logits of the step, one row for each action a."""
    _, gradient = read_gradient(trial, "token_log_probs", one_step(policy))
    gradient[:, 1].require("gradient in the logits after the last token", 0.0)
    return gradient[:, 0]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def drawn_policy(trial: Trial) -> tuple[Fraction, ...]:
    """A policy over 2 to 4 actions with rational probabilities."""
    return exact.softmax(trial.draw.integers(1, 9, trial.draw.integer("actions", 2, 4)).tolist())


@TOPIC.claim("B3.1", "token_log_probs", examples=8, title="the gradient of −Σ log π in the logits is π − onehot")
def sft_gradient(trial: Trial) -> None:
    """L = −Σ_t log π(a*_t∣h_t), ∂L/∂z_t = π − onehot(a*_t), and 0 at the logits after the last token."""
    arguments = logits_and_ids(trial.draw)
    logits, ids = arguments["logits"].array, arguments["token_ids"].array
    policy = softmax(logits[:, :-1])
    target = np.eye(logits.shape[-1])[ids[:, 1:]]
    want = np.zeros_like(logits)
    want[:, :-1] = policy - target
    value, gradient = read_gradient(trial, "token_log_probs", arguments, -np.ones(ids[:, 1:].shape))
    gradient.require("gradient of −Σ log π in the logits", want)
    loss = value.reshaped(-1).combined(-np.ones(ids[:, 1:].size))
    loss.require("−Σ log π", -np.log((policy * target).sum(axis=-1)).sum())


@TOPIC.claim(
    "B3.2",
    "token_log_probs",
    examples=4,
    title="an action that was not demonstrated has gradient π_a, whatever it is worth",
)
def undemonstrated(trial: Trial) -> None:
    """After 12 → lower with 10 demonstrated, 11 and the excluded 13 are equally likely and get the same gradient."""
    logits = trial.draw.normal(1, 2, 16)
    logits[0, 0, 12] = logits[0, 0, 10]
    arguments: Arguments = {"logits": Tensor(logits), "token_ids": Tensor(np.array([[11, 9]]), "int64")}
    policy = softmax(arguments["logits"].array)[0, 0]
    _, gradient = read_gradient(trial, "token_log_probs", arguments, np.array([[-1.0]]))
    gradient[0, 0, [10, 12]].require("gradient of 11 and 13, which were not demonstrated", policy[[10, 12]])
    gradient[0, 0].require("gradient of −log π(10) in the logits of 1 to 16", policy - np.eye(16)[9])


@TOPIC.claim("B3.3", "action_log_probs", title="twenty steps at 0.95 succeed with probability 0.358486")
def twenty_steps(trial: Trial) -> None:
    """0.95²⁰, as the probability of one action of twenty tokens."""
    arguments: Arguments = {
        "log_probs": Tensor(np.full((1, 20), log(0.95)), "float64"),
        "action_ids": Tensor(np.zeros((1, 20)), "int64"),
        "n_actions": 1,
    }
    read(trial, "action_log_probs", arguments).exp().require("probability of twenty steps at 0.95", 0.95**20)


@TOPIC.claim("B3.5", "token_log_probs", title="a step on log π(a*) can raise an action that nobody demonstrated")
def unintended_rise(trial: Trial) -> None:
    """d log π_a = ∇ log π_a · ∇ log π_{a*}: below 0 at π = (1/2, 1/4, 1/4), above at (0.01, 0.01, 0.98)."""
    for policy in ((0.5, 0.25, 0.25), (0.01, 0.01, 0.98)):
        rational = environment.policy(policy)[0]
        gradient = scores(trial, rational)
        rates = gradient.times(gradient[0]).transposed().combined(np.ones(3))
        want = exact.log_prob_rates(rational, exact.score(rational, 0))
        rates.require(f"change of each log π when the first of {policy} is demonstrated", np.array(want, dtype=float))


@TOPIC.claim("B6.1", "token_log_probs", examples=8, title="∇π = π·∇ log π, and the score has mean 0")
def score_identity(trial: Trial) -> None:
    """Every action of the vocabulary once; ∂π comes from the quotient rule on the softmax."""
    policy = drawn_policy(trial)
    weights = np.array(policy, dtype=np.float64)
    gradient = scores(trial, policy)
    gradient.combined(weights).require("mean score", 0.0)
    derivative = np.array(exact.jacobian(policy), dtype=np.float64)
    gradient.combined(np.diag(weights)).require("π·∇ log π, action by action,", derivative)


@TOPIC.claim("B6.3", "action_log_probs", examples=8, title="an action's probability is the product of its tokens'")
def product_of_tokens(trial: Trial) -> None:
    """Three actions of one to three tokens, in any order; each token gets the whole gradient of its action."""
    actions = trial.draw.permutation(6)
    owners = np.array([0, 1, 1, 2, 2, 2])[actions]
    chances = [Fraction(int(n), 10) for n in trial.draw.integers(1, 9, 6)]
    arguments: Arguments = {
        "log_probs": Tensor(np.log([[float(p) for p in chances]]), "float64"),
        "action_ids": Tensor(owners[None], "int64"),
        "n_actions": 3,
    }
    weights = np.array([[1.0, 2.0, -3.0]])
    value, gradient = read_gradient(trial, "action_log_probs", arguments, weights)
    want = np.ones(3)
    for owner, chance in zip(owners, chances, strict=True):
        want[owner] *= float(chance)
    value[0].exp().require("probability of each action", want)
    gradient[0].require("gradient of 1, 2, −3 times the actions in their tokens", weights[0, owners])


@TOPIC.claim("P1.1", "token_log_probs", examples=4, title="probabilities of all answers of three tokens add up to 1")
def all_answers(trial: Trial) -> None:
    """Tokens are appended for certain, so p(answer) = Π_t π(u_t∣prompt, u_{<t}) with nothing else in it."""
    size, length = 3, 3
    answers = list(product(range(size), repeat=length))
    prefixes = [prefix for k in range(length + 1) for prefix in product(range(size), repeat=k)]
    table = dict(zip(prefixes, trial.draw.normal(len(prefixes), size), strict=True))
    logits = np.array([[table[answer[:k]] for k in range(length + 1)] for answer in answers])
    ids = np.array([(0, *answer) for answer in answers])
    got = read(trial, "token_log_probs", {"logits": Tensor(logits, "float64"), "token_ids": Tensor(ids, "int64")})
    chances = got.transposed().combined(np.ones(length)).exp()
    chances.combined(np.ones(len(answers))).require("sum of the probabilities of all answers", 1.0)
    picked = [np.log(softmax(table[answer[:k]])[answer[k]]) for answer in answers for k in range(length)]
    want = np.exp(np.array(picked).reshape(-1, length).sum(axis=1))
    chances.require("probability of each answer", want)


@TOPIC.claim("B6.6", "masked_log_probs", examples=4, title="what stands in prompt and tool output changes nothing")
def other_text(trial: Trial) -> None:
    """A conversation whose masked tokens and logits are replaced: same values, same gradient, 0 where masked."""
    mask = np.array([trajectory.response_mask((("user", 2), ("assistant", 2), ("tool", 1), ("assistant", 1)))])[:, 1:]
    logits, ids = trial.draw.normal(1, mask.size + 1, 5), trial.draw.integers(0, 4, 1, mask.size + 1)
    arguments: Arguments = {
        "logits": Tensor(logits, "float64"),
        "token_ids": Tensor(ids, "int64"),
        "mask": Tensor(mask.astype(float)),
    }
    policy = softmax(logits[:, :-1])
    target = np.eye(5)[ids[:, 1:]]
    value = np.where(mask, np.log((policy * target).sum(axis=-1)), 0.0)
    slope = np.zeros_like(logits)
    slope[:, :-1] = np.where(mask[..., None], target - policy, 0.0)
    other_logits, other_ids = logits.copy(), ids.copy()
    other_logits[:, :-1][mask == 0] = 40 * trial.draw.normal(int((mask == 0).sum()), 5)
    other_ids[:, 1:][mask == 0] = -100
    for name, case in (
        ("", arguments),
        (" with other masked text", replaced(arguments, logits=other_logits, token_ids=other_ids)),
    ):
        got, gradient = read_gradient(trial, "masked_log_probs", case)
        got.require(f"masked_log_probs{name}", value)
        gradient.require(f"gradient of masked_log_probs{name}", slope)


@TOPIC.claim(
    "P9.1", "token_log_probs", title="as the temperature falls, the answers of a group agree, unless the best tie"
)
def cold_groups(trial: Trial) -> None:
    """P(4 answers agree) = Σ_a π_a⁴ at temperatures 1, 1/2, …, 1/32; two answers that tie agree no more than at 1."""
    policy = exact.softmax((3, 2, 1))
    for inverse in (1, 2, 4, 8, 16, 32):
        got = read(trial, "token_log_probs", one_step(policy, 1 / inverse))
        agree = got[:, 0].scaled(4.0).exp().combined(np.ones(3))
        want = float(equal_group_probability(exact.tempered(policy, inverse), 4))
        agree.require(f"probability that 4 answers agree at temperature 1/{inverse}", want)

    for temperature in (1.0, 1 / 64):
        got = read(trial, "token_log_probs", one_step((Fraction(1, 2), Fraction(1, 2)), temperature))
        agree = got[:, 0].scaled(4.0).exp().combined(np.ones(2))
        agree.require(f"probability that 4 answers agree at temperature {temperature:g} when two tie", 1 / 8)


@TOPIC.claim("P9.3", "token_log_probs", title="as the temperature rises, the policy tends to uniform guessing")
def hot_policy(trial: Trial) -> None:
    """π_T = softmax(log π / T) at T = 10, 1000, 10⁶ for π = (8/10, 1/10, 1/10)."""
    policy = exact.softmax((8, 1, 1))
    for temperature in (10.0, 1e3, 1e6):
        got = read(trial, "token_log_probs", one_step(policy, temperature))[:, 0].exp()
        want = softmax(np.log(np.array(policy, dtype=np.float64)) / temperature)
        got.require(f"policy at temperature {temperature:g}", want)
