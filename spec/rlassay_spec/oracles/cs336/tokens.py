"""Oracles of tokenisation, and of the log-probs of a model that is linear in each of its two parameters."""

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.expected import Expected, FloatArray, Gradient, exactly
from rlassay_spec.oracles.inputs import ids_of
from rlassay_spec.oracles.log_prob import entropy, token_log_probs

GUARDED_LOGARITHM: Final = 20 * 1e-8 / (8 * 2.0**-23)
"""What 1e-8 beside p in a logarithm changes in the gradient at most, where |log p| < 20, in eight float32 roundings."""


class Tokenizer(Protocol):
    """Whatever turns text into token ids."""

    def encode(self, text: str) -> list[int]:
        """The ids, without any token that does not stand in the text."""
        ...


class LinearModel(Protocol):
    """A language model whose logits are head · embedding[id]; embedding and head are [V, D]."""

    @property
    def embedding(self) -> FloatArray:
        """First parameter."""
        ...

    @property
    def head(self) -> FloatArray:
        """Second parameter."""
        ...


def tokenize_prompt_and_output(
    prompt_strs: Sequence[str], output_strs: Sequence[str], tokenizer: Tokenizer
) -> dict[str, Expected]:
    """Prompt and output one after the other; NaN, for free, where only padding has a say."""
    prompts = [tokenizer.encode(text) for text in prompt_strs]
    outputs = [tokenizer.encode(text) for text in output_strs]
    width = max(len(prompt) + len(output) for prompt, output in zip(prompts, outputs, strict=True))
    shape = (len(prompts), width - 1)
    input_ids, labels, mask = np.full(shape, math.nan), np.full(shape, math.nan), np.zeros(shape, dtype=np.bool_)
    for b, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
        ids = prompt + output
        input_ids[b, : len(ids) - 1] = ids[:-1]
        labels[b, : len(ids) - 1] = ids[1:]
        mask[b, max(len(prompt) - 1, 0) : len(ids) - 1] = True
    return {"input_ids": exactly(input_ids), "labels": exactly(labels), "response_mask": exactly(mask)}


def compute_entropy(logits: npt.ArrayLike) -> Expected:
    """−Σ p log p; where p vanishes, log(p + 1e-8) has a gradient that is as good."""
    own = entropy(logits)
    into_logits = own.pullback
    assert into_logits is not None

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        into = into_logits(cotangent)
        guarded = GUARDED_LOGARITHM * np.abs(np.asarray(cotangent, dtype=np.float64))[..., None]
        return Gradient(into.value, into.scale + guarded, into.kink)

    return Expected(own.value, own.scale, own.terms, pullback)


def get_response_log_probs(
    model: LinearModel, input_ids: npt.ArrayLike, labels: npt.ArrayLike, return_token_entropy: bool
) -> dict[str, Expected]:
    """log softmax of the model's logits at the labels; the pullback leads into both parameters, one after the other."""
    ids = ids_of("input_ids", input_ids, "BT")
    scored = model_log_probs(model, ids, ids_of("labels", labels, "BT", ids.shape))
    if not return_token_entropy:
        return {"log_probs": scored}
    logits, sizes = _logits(model, ids)
    own = entropy(logits)
    return {"log_probs": scored, "token_entropy": Expected(own.value, own.scale + sizes, own.terms + _width(model))}


def model_log_probs(model: LinearModel, ids: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> Expected:
    """Log-probs of labels [B, T] under the model's logits at ids [B, T]."""
    logits, sizes = _logits(model, ids)
    after = np.concatenate([logits, np.zeros_like(logits[:, :1])], axis=1)
    scored = token_log_probs(after, np.concatenate([labels[:, :1], labels], axis=1))
    into_logits = scored.pullback
    assert into_logits is not None

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        into = into_logits(cotangent)
        return _into_parameters(model, ids, into.value[:, :-1], into.scale[:, :-1] * (1 + sizes[..., None]))

    return Expected(scored.value, scored.scale + sizes, scored.terms + _width(model), pullback)


def flat(model: LinearModel) -> FloatArray:
    """Both parameters in one row, the embedding first."""
    return np.concatenate([model.embedding.ravel(), model.head.ravel()])


def _width(model: LinearModel) -> int:
    return int(model.head.shape[1])


def _logits(model: LinearModel, ids: npt.NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Logits [B, T, V], and per row of them [B, T] what their rounding is proportional to."""
    rows = model.embedding[ids]
    return rows @ model.head.T, (np.abs(rows) @ np.abs(model.head).T).max(axis=-1)


def _into_parameters(model: LinearModel, ids: npt.NDArray[np.int64], logits: FloatArray, sizes: FloatArray) -> Gradient:
    def both(along: FloatArray, embedding: FloatArray, head: FloatArray) -> FloatArray:
        into_embedding = np.zeros_like(embedding)
        np.add.at(into_embedding, ids, along @ head)
        into_head = np.einsum("btv,btd->vd", along, embedding[ids])
        return np.concatenate([into_embedding.ravel(), into_head.ravel()])

    value = both(logits, model.embedding, model.head)
    scale = both(sizes, np.abs(model.embedding), np.abs(model.head))
    return Gradient(value, scale, np.full(value.shape, np.inf))
