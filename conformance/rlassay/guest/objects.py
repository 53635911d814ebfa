"""Arguments that are no tensors, as plain data: a reward function, a tokenizer, a language model and its optimiser.

A subject receives what its library makes of them (`rlassay.guest.torch_objects`), the oracles take them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .values import rounded


@dataclass(frozen=True, eq=False)
class RewardFunction:
    """Rewards of responses, given with their ground truths; what it says besides "reward" is another number.

    Raises:
        ValueError: it is called with anything else than a response and its ground truth.
    """

    rewards: Mapping[tuple[str, str], float]

    def __call__(self, response: str, ground_truth: str) -> dict[str, float]:
        reward = self.rewards.get((response, ground_truth))
        if reward is None:
            raise ValueError(f"reward_fn: got {response!r}, {ground_truth!r}, expected a response and its ground truth")
        return {"reward": reward, "format_reward": 1.0, "answer_reward": -reward}

    def __repr__(self) -> str:
        return (
            f"lambda response, truth: {{'reward': (reward := {dict(self.rewards)!r}[response, truth]), "
            "'format_reward': 1.0, 'answer_reward': -reward}"
        )


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """Cuts a text into the longest pieces from left to right; a piece's id is its place.

    No token is added at either end. `padding` and `end` are the pieces that pad and that end a sequence.
    """

    pieces: tuple[str, ...]
    padding: str
    end: str

    def encode(self, text: str) -> list[int]:
        """The ids of a text.

        Raises:
            ValueError: the text holds something that is no piece.
        """
        ids: list[int] = []
        place = 0
        while place < len(text):
            fitting = [piece for piece in self.pieces if text.startswith(piece, place)]
            if not fitting:
                raise ValueError(
                    f"text: has {text[place:]!r}, expected a sequence of {', '.join(map(repr, self.pieces))}"
                )
            longest = max(fitting, key=len)
            ids.append(self.pieces.index(longest))
            place += len(longest)
        return ids


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A model whose logits after a token are head · embedding[token], in float32; both parameters are [V, D]."""

    embedding: np.ndarray
    head: np.ndarray

    def __post_init__(self) -> None:
        for name in ("embedding", "head"):
            object.__setattr__(self, name, rounded(np.asarray(getattr(self, name)), "float32"))

    def with_parameters(self, parameters: np.ndarray) -> LanguageModel:
        """The same model with other parameters, given in one row, the embedding first."""
        first = self.embedding.size
        return LanguageModel(
            parameters[:first].reshape(self.embedding.shape), parameters[first:].reshape(self.head.shape)
        )

    def __repr__(self) -> str:
        return f"LanguageModel(embedding={self.embedding.tolist()}, head={self.head.tolist()})"


@dataclass(frozen=True)
class GradientDescent:
    """An optimiser of a model that subtracts learning_rate · gradient."""

    model: LanguageModel
    learning_rate: float

    def __repr__(self) -> str:
        return f"GradientDescent(model, {self.learning_rate})"
