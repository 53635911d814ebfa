"""Checks of tokenize_prompt_and_output, compute_entropy and get_response_log_probs."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial
from rlassay.comparison import require_value
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.suite.cs336.calls import Suspect, agree, agree_gradient, expected, label, part_of
from rlassay.suite.cs336.cases import language_model, padding_and_ending, precision, text_pairs
from rlassay.suite.log_prob import logits_and_ids
from rlassay.topic import Topic
from rlassay_spec.convention import Convention
from rlassay_spec.oracles.cs336 import get_response_log_probs, tokenize_prompt_and_output

TOPIC = Topic()

TOKENIZE = "tokenize_prompt_and_output"
LOG_PROBS = "get_response_log_probs"


def tokenize_case(draw: Draw, convention: Convention) -> Arguments:
    """Prompts and outputs of different lengths, none of them empty."""
    cutter, ending = padding_and_ending(draw)
    prompts, outputs = text_pairs(draw, draw.choice("rows", (2, 1, 3, 5)), ending)
    return {"prompt_strs": prompts, "output_strs": outputs, "tokenizer": cutter}


def entropy_case(draw: Draw, convention: Convention) -> Arguments:
    """Logits in several regimes."""
    return precision(draw, {"logits": logits_and_ids(draw)["logits"]})


def model_case(draw: Draw, convention: Convention, entropy: bool | None = None, scale: float = 1.0) -> Arguments:
    """A small model, ids and labels that have nothing to do with each other."""
    size = draw.choice("vocabulary", (3, 2, 7))
    shape = draw.choice("shape", ((2, 3), (1, 1), (1, 4), (3, 1), (2, 2), (4, 6)))
    return {
        "model": language_model(draw, size, scale),
        "input_ids": Tensor(draw.integers(0, size - 1, *shape), "int64"),
        "labels": Tensor(draw.integers(0, size - 1, *shape), "int64"),
        "return_token_entropy": draw.choice("entropy", (False, True)) if entropy is None else entropy,
    }


def _parts(a: Arguments) -> dict[str, np.ndarray]:
    return {name: part.value for name, part in tokenize_prompt_and_output(**a).items()}


def _mask(a: Arguments, first: int, last: int) -> np.ndarray:
    """The response mask with its bounds moved."""
    mask = np.zeros(_parts(a)["response_mask"].shape)
    for b, (prompt, output) in enumerate(zip(a["prompt_strs"], a["output_strs"], strict=True)):
        start = len(a["tokenizer"].encode(prompt)) - 1
        end = start + len(a["tokenizer"].encode(output))
        mask[b, max(start + first, 0) : end + last] = 1
    return mask


def _with_padding(a: Arguments) -> np.ndarray:
    mask = _parts(a)["response_mask"]
    return np.asarray(np.maximum.accumulate(mask, axis=1))


def _not_the_padding_id(a: Arguments) -> np.ndarray:
    """The mask with every token out that has the padding's id."""
    parts, tokenizer = _parts(a), a["tokenizer"]
    return np.asarray(parts["response_mask"] & (parts["labels"] != tokenizer.pieces.index(tokenizer.padding)))


TOKENIZE_SUSPECTS = {
    "input_ids": (Suspect("shifting the ids", lambda a: _parts(a)["labels"]),),
    "labels": (Suspect("labels that are not shifted", lambda a: _parts(a)["input_ids"]),),
    "response_mask": (
        Suspect("letting the prompt's last token in and the output's last out", lambda a: _mask(a, -1, -1)),
        Suspect("letting the prompt's last token in", lambda a: _mask(a, -1, 0)),
        Suspect("a mask over input_ids instead of labels", lambda a: _mask(a, 1, 1)),
        Suspect("leaving the output's first token out", lambda a: _mask(a, 1, 0)),
        Suspect("leaving the output's last token out", lambda a: _mask(a, 0, -1)),
        Suspect("letting padding in", _with_padding),
        Suspect("taking every token with the padding's id for padding", _not_the_padding_id),
        Suspect("letting prompt and output in", lambda a: _mask(a, -len(_parts(a)["labels"][0]), 0)),
    ),
}
ENTROPY_SUSPECTS = (
    Suspect("leaving the minus sign out", lambda a: -_entropy(a["logits"])),
    Suspect("a logarithm to the base 2", lambda a: _entropy(a["logits"]) / np.log(2)),
    Suspect("the mean over the vocabulary", lambda a: _entropy(a["logits"]) / a["logits"].shape[-1]),
)
LOG_PROB_SUSPECTS = (
    Suspect(
        "scoring input_ids instead of labels",
        lambda a: get_response_log_probs(a["model"], a["input_ids"], a["input_ids"], False)["log_probs"].value,
    ),
    Suspect(
        "shifting the labels once more",
        lambda a: get_response_log_probs(a["model"], a["input_ids"], _shifted(a["labels"]), False)["log_probs"].value,
    ),
    Suspect("probabilities without the logarithm", lambda a: np.exp(_log_probs(a))),
    Suspect("leaving a minus sign in", lambda a: -_log_probs(a)),
)


def _declare_tokenize(part: str) -> None:
    law = part.replace("_", "-")

    @TOPIC.check(TOKENIZE, law=law, title=f"{TOKENIZE} lays out {part}")
    def tokenized(trial: Trial) -> None:
        """Exactly, but for what stands in the padding."""
        arguments = tokenize_case(trial.draw, trial.convention)
        observed = agree(trial, TOKENIZE, arguments, part, TOKENIZE_SUSPECTS[part])
        if part != "response_mask":
            want = expected(TOKENIZE, arguments, trial.convention, part)
            require_value(label(TOKENIZE, part), part_of(TOKENIZE, observed, part), want, ("int64", "int32"))


for _part in TOKENIZE_SUSPECTS:
    _declare_tokenize(_part)


@TOPIC.check("compute_entropy", law="value", title="compute_entropy agrees with the oracle")
def entropy_value(trial: Trial) -> None:
    """−Σ p log p."""
    agree(trial, "compute_entropy", entropy_case(trial.draw, trial.convention), suspects=ENTROPY_SUSPECTS)


@TOPIC.check("compute_entropy", law="gradient", title="compute_entropy has the oracle's gradient")
def entropy_gradient(trial: Trial) -> None:
    """−p (log p + H)."""
    agree_gradient(trial, "compute_entropy", entropy_case(trial.draw, trial.convention))


@TOPIC.check("compute_entropy", law="large-logits", title="compute_entropy is finite and accurate for large logits")
def entropy_of_large_logits(trial: Trial) -> None:
    """Logits in the thousands, where exp overflows and most probabilities are 0."""
    arguments = entropy_case(trial.draw, trial.convention)
    agree(trial, "compute_entropy", replaced(arguments, logits=1000.0 * arguments["logits"].array))


@TOPIC.check(LOG_PROBS, law="log-probs", title=f"{LOG_PROBS} scores the labels")
def log_probs_value(trial: Trial) -> None:
    """log softmax at the labels."""
    agree(trial, LOG_PROBS, model_case(trial.draw, trial.convention), "log_probs", LOG_PROB_SUSPECTS)


@TOPIC.check(LOG_PROBS, law="token-entropy", title=f"{LOG_PROBS} gives the entropy when it is asked for")
def token_entropy(trial: Trial) -> None:
    """−Σ p log p at each position."""
    arguments = model_case(trial.draw, trial.convention, entropy=True)
    want = expected(LOG_PROBS, arguments, trial.convention, "token_entropy")
    sign = Suspect("leaving the minus sign out", lambda a: -want.value)
    agree(trial, LOG_PROBS, arguments, "token_entropy", (sign,))


@TOPIC.check(LOG_PROBS, law="gradient", title=f"{LOG_PROBS} has the oracle's gradient in the model's parameters")
def log_probs_gradient(trial: Trial) -> None:
    """Into both parameters."""
    agree_gradient(trial, LOG_PROBS, model_case(trial.draw, trial.convention), "log_probs")


@TOPIC.check(
    LOG_PROBS, law="large-logits", kind="robustness", title=f"{LOG_PROBS} is finite and accurate for large logits"
)
def log_probs_of_large_logits(trial: Trial) -> None:
    """Logits in the thousands, where most probabilities are 0."""
    agree(trial, LOG_PROBS, model_case(trial.draw, trial.convention, False, 30.0), "log_probs")


def _entropy(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    p = np.exp(shifted) / np.exp(shifted).sum(axis=-1, keepdims=True)
    return np.asarray(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=-1))


def _log_probs(a: Arguments) -> np.ndarray:
    return get_response_log_probs(a["model"], a["input_ids"], a["labels"], False)["log_probs"].value


def _shifted(ids: np.ndarray) -> np.ndarray:
    return np.concatenate([ids[:, 1:], ids[:, -1:]], axis=1)
