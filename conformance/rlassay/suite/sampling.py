"""Checks of log-probs under the distribution that a sampler draws from."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor, replaced, unwrap
from rlassay.laws import Domain, Refusal
from rlassay.suite.log_prob import unread, with_ids
from rlassay.topic import Topic
from rlassay_spec.convention import Convention
from rlassay_spec.oracles.sampling import truncated_log_probs

SHAPES = (
    (1, 2, 2),
    (2, 3, 4),
    (1, 2, 5),
    (3, 2, 3),
    (4, 4, 4),
    (1, 6, 3),
    (5, 3, 2),
    (2, 4, 12),
    (9, 3, 3),
    (1, 2, 40),
)
STEP = 1 / 16
"""Logits are multiples of it and smaller than 16, which bfloat16 holds exactly: no dtype changes what is cut."""

GAPS = {"moderate": (8, 24), "flat": (2, 5), "spread": (20, 60)}
"""Distance of neighbouring logits in steps, by regime; never 0, so that no two tokens tie at a cut."""

MARGIN = 0.02
"""Least distance of top_p from every probability that it is compared with, wider than bfloat16 rounds."""

METHODS = ("top-k", "top-p", "both", "neither")


def levels(draw: Draw, kind: str, size: int) -> np.ndarray:
    """The logits of one row in falling order: distinct, centred, not more than 14 apart."""
    low, high = (min(bound, int(14 / STEP) // max(size - 1, 1)) for bound in GAPS[kind])
    falling: np.ndarray = -np.concatenate([[0], np.cumsum(draw.integers(low, high, size - 1))])
    centred: np.ndarray = (falling - falling[-1] // 2) * STEP
    return centred


def logits_and_ids(draw: Draw, shape: tuple[int, int, int]) -> Arguments:
    """Logits [B, L, V] whose rows permute and shift one of two sets of levels, and ids of any rank.

    Few sets leave few probabilities that top_p has to keep away from.
    """
    rows, length, size = shape
    kinds = draw.choice("logits", (("moderate", "flat"), ("flat", "spread"), ("moderate", "moderate")))
    sets = np.stack([levels(draw, kind, size) for kind in kinds])
    which = draw.integers(0, 1, rows, length)
    order = draw.rng.permuted(np.broadcast_to(np.arange(size), shape), axis=2)
    logits = np.empty(shape)
    np.put_along_axis(logits, order, sets[which], axis=2)
    logits += draw.pick((0.0, 0.0, 6.0, -6.0), rows, length, 1)
    return {"logits": Tensor(logits), "token_ids": Tensor(draw.integers(0, size - 1, rows, length), "int64")}


def reached(logits: np.ndarray, temperature: float, top_k: int | None) -> np.ndarray:
    """Probability of the j most likely tokens of each row [B, L, V], among its top_k."""
    falling = -np.sort(-logits / temperature, axis=-1)[..., :top_k]
    powers = np.exp(falling - falling[..., :1])
    return np.asarray(np.cumsum(powers, axis=-1) / powers.sum(axis=-1, keepdims=True))


def clear_top_p(draw: Draw, taken: np.ndarray, margin: float = MARGIN, low: float = 0.0, high: float = 1.0) -> float:
    """A threshold between two neighbours of the probabilities that are `taken`, far enough from both."""
    inside = np.unique(taken[(taken > low) & (taken < high)])
    edges = np.concatenate([[low], inside, [high]])
    below, above = edges[:-1], edges[1:]
    wide = np.flatnonzero(above - below > 2 * margin)
    place = int(draw.rng.choice(wide)) if len(wide) else int(np.argmax(above - below))
    room = min(margin, float(above[place] - below[place]) / 2)
    return float(draw.rng.uniform(below[place] + room, above[place] - room))


def truncated_case(draw: Draw, convention: Convention) -> Arguments:
    """Top-k, top-p, both or neither, at several temperatures; tokens inside and outside the set."""
    shape = draw.choice("shape", SHAPES)
    arguments = logits_and_ids(draw, shape)
    method = draw.choice("method", METHODS)
    temperature = draw.choice("temperature", (1.0, 0.5, 2.0, 0.7))
    size = shape[-1]
    top_k = draw.choice("top_k", (2, 1, 3, max(size - 1, 1), size, size + 3))
    ids = draw.choice("ids", ("inside", "any"))
    if method == "neither":
        arguments |= {} if temperature == 1.0 else {"temperature": temperature}
    if method == "top-k":
        arguments |= {"temperature": temperature, "top_k": top_k}
    if method in ("top-p", "both"):
        k = top_k if method == "both" else None
        taken = reached(arguments["logits"].array, temperature, k)
        arguments |= {"temperature": temperature, "top_k": k, "top_p": clear_top_p(draw, taken)}
    return with_ids_inside(arguments) if ids == "inside" else arguments


def with_ids_inside(arguments: Arguments) -> Arguments:
    """The arguments with the likeliest token in place of every one that is cut."""
    likeliest = arguments["logits"].array[:, :-1].argmax(axis=-1)
    ids = arguments["token_ids"].array.copy()
    cut = np.isneginf(truncated_log_probs(**unwrap(arguments)).value)
    ids[:, 1:][cut] = likeliest[cut]
    return replaced(arguments, token_ids=ids)


def asking(name: str, value: float) -> Refusal:
    """One of the sampler's parameters replaced."""

    def spoil(arguments: Arguments) -> Arguments:
        defaults = {"temperature": 1.0, "top_k": None, "top_p": None}
        tensors = {name: arguments[name] for name in ("logits", "token_ids")}
        return tensors | {key: arguments.get(key, default) for key, default in defaults.items()} | {name: value}

    return Refusal(name, spoil)


TOPIC = Topic(
    Domain(
        "truncated_log_probs",
        truncated_case,
        differentiable=True,
        rows=("logits", "token_ids"),
        per_row=True,
        scramble=unread,
        refusals={
            "an-id-beyond-the-vocabulary": with_ids(0, beyond=True),
            "temperature-zero": asking("temperature", 0.0),
            "a-negative-temperature": asking("temperature", -1.0),
            "top-k-zero": asking("top_k", 0),
            "top-p-zero": asking("top_p", 0.0),
            "a-negative-top-p": asking("top_p", -0.5),
            "top-p-above-one": asking("top_p", 1.5),
        },
    ),
)


def _asked(arguments: Arguments, temperature: float, top_k: int | None, top_p: float | None) -> Arguments:
    return arguments | {"temperature": temperature, "top_k": top_k, "top_p": top_p}


@TOPIC.check(
    "truncated_log_probs", law="distribution", title="truncated_log_probs of all tokens are those of a distribution"
)
def distribution(trial: Trial) -> None:
    """One context, every token: the probabilities of what stays sum to 1, the others have log-prob −∞."""
    size = trial.draw.choice("size", (4, 3, 6, 9))
    one = logits_and_ids(trial.draw, (1, 2, size))["logits"].array
    ids = np.stack([np.zeros(size), np.arange(size)], axis=1)
    arguments: Arguments = {
        "logits": Tensor(np.broadcast_to(one, (size, 2, size)).copy()),
        "token_ids": Tensor(ids, "int64"),
    }
    temperature, top_k = trial.draw.choice("temperature", (0.7, 1.0, 2.0)), trial.draw.choice("top_k", (None, 2, 3))
    top_p = clear_top_p(trial.draw, reached(one, temperature, top_k))
    trial.agree("truncated_log_probs", _asked(arguments, temperature, top_k, top_p))


@TOPIC.check(
    "truncated_log_probs", law="top-k-first", title="truncated_log_probs applies top-p to what top-k left, renormalised"
)
def top_k_first(trial: Trial) -> None:
    """top_p lies between the probability of some tokens within the top k and their probability in all."""
    size = trial.draw.choice("size", (4, 5, 8))
    one = -np.arange(size) * trial.draw.choice("gap", (0.25, 0.5, 0.125))
    logits = trial.draw.rng.permuted(np.broadcast_to(one, (2, 3, size)), axis=2)
    top_k = trial.draw.integer("top_k", 2, size - 1)
    among_k = reached(one, 1.0, top_k)
    place = int(trial.draw.integers(0, top_k - 2))
    all_of_them = float(reached(one, 1.0, None)[place])
    top_p = clear_top_p(trial.draw, among_k, 0.005, low=all_of_them, high=float(among_k[place]))
    ids = Tensor(trial.draw.integers(0, size - 1, 2, 3), "int64")
    trial.agree("truncated_log_probs", _asked({"logits": Tensor(logits), "token_ids": ids}, 1.0, top_k, top_p))


@TOPIC.check(
    "truncated_log_probs", law="temperature-first", title="truncated_log_probs cuts what the temperature has changed"
)
def temperature_first(trial: Trial) -> None:
    """Levels one nat apart, at a temperature where a nucleus of the raw distribution has another size."""
    temperature, top_p = trial.draw.choice("asked", ((2.0, 0.9), (0.5, 0.7), (3.0, 0.6), (0.4, 0.8)))
    logits = trial.draw.rng.permuted(np.broadcast_to(-np.arange(6.0), (3, 3, 6)), axis=2)
    ids = Tensor(trial.draw.integers(0, 5, 3, 3), "int64")
    trial.agree("truncated_log_probs", _asked({"logits": Tensor(logits), "token_ids": ids}, temperature, None, top_p))


@TOPIC.check(
    "truncated_log_probs",
    law="greedy",
    title="truncated_log_probs of a set of one is 0 for the likeliest token and −inf for others",
)
def greedy(trial: Trial) -> None:
    """Whether top_k is 1 or top_p is less than the likeliest token's probability."""
    arguments = logits_and_ids(trial.draw, trial.draw.choice("shape", ((2, 3, 4), (3, 2, 3), (1, 4, 5))))
    top_k, top_p = trial.draw.choice("asked", ((1, None), (None, 0.01), (1, 0.5)))
    temperature = trial.draw.choice("temperature", (1.0, 0.5, 2.0))
    trial.agree("truncated_log_probs", _asked(arguments, temperature, top_k, top_p), gradient=True)


@TOPIC.check(
    "truncated_log_probs", law="nothing-cut", title="truncated_log_probs cuts nothing at top_k ≥ V and top_p = 1"
)
def nothing_cut(trial: Trial) -> None:
    """The log-probs of the model at that temperature; no token is so rare that rounding could lose it."""
    rows, length, size = trial.draw.choice("shape", ((2, 3, 4), (1, 2, 3), (3, 3, 6)))
    logits = trial.draw.uniform(-1.0, 1.0, rows, length, size)
    ids = Tensor(trial.draw.integers(0, size - 1, rows, length), "int64")
    top_k = trial.draw.choice("top_k", (None, size, size + 1, 1000))
    top_p = trial.draw.choice("top_p", (1.0, None))
    temperature = trial.draw.choice("temperature", (1.0, 0.7, 2.0))
    arguments: Arguments = {"logits": Tensor(logits), "token_ids": ids}
    trial.agree("truncated_log_probs", _asked(arguments, temperature, top_k, top_p), gradient=True)


@TOPIC.check(
    "truncated_log_probs",
    law="large-vocabulary",
    examples=2,
    title="truncated_log_probs reads all of a large vocabulary",
)
def large_vocabulary(trial: Trial) -> None:
    """Top-k and top-p of 300 tokens, the likeliest last."""
    logits = np.broadcast_to(np.linspace(-6.0, 6.0, 300), (1, 3, 300)).copy()
    top_k = trial.draw.choice("top_k", (50, None))
    top_p = clear_top_p(trial.draw, reached(logits, 0.5, top_k), 1e-3)
    ids = Tensor(trial.draw.integers(270, 299, 1, 3), "int64")
    arguments: Arguments = {"logits": Tensor(logits), "token_ids": ids}
    trial.agree("truncated_log_probs", with_ids_inside(_asked(arguments, 0.5, top_k, top_p)), gradient=True)
