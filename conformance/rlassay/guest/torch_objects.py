"""What a torch subject receives for the arguments of `rlassay.guest.objects`."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from .objects import GradientDescent, LanguageModel, Tokenizer


class TorchLanguageModel(torch.nn.Module):
    """The model as a module that is called like a causal language model of the transformers library."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.embedding = torch.nn.Parameter(torch.tensor(model.embedding, dtype=torch.float32))
        self.head = torch.nn.Parameter(torch.tensor(model.head, dtype=torch.float32))
        self.config = SimpleNamespace(vocab_size=len(model.head), use_cache=False)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedding.device

    @property
    def dtype(self) -> torch.dtype:
        """What the parameters are made of."""
        return self.embedding.dtype

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **ignored: Any) -> Output:
        """Logits [B, T, V]; every token is scored by itself, so no mask is needed."""
        return Output(logits=self.embedding[input_ids] @ self.head.T)


class Output(dict[str, Any]):
    """Results by name, as items and as attributes, or by place."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, key: str | int) -> Any:
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)

    def to(self, *device: Any, **ignored: Any) -> Output:
        """Everything stays where it is: there is one device."""
        return self


class TorchTokenizer:
    """The tokenizer with the methods and attributes of one of the transformers library."""

    bos_token: str | None = None
    bos_token_id: int | None = None
    padding_side = "right"
    model_max_length = 10**9

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.data = tokenizer
        self.pad_token: str = tokenizer.padding
        self.eos_token: str = tokenizer.end
        self.vocab_size = len(tokenizer.pieces)

    @property
    def pad_token_id(self) -> int:
        """Id of the padding token, which may be set, by name too."""
        return self.data.pieces.index(self.pad_token)

    @pad_token_id.setter
    def pad_token_id(self, token: int) -> None:
        self.pad_token = self.data.pieces[token]

    @property
    def eos_token_id(self) -> int:
        """Id of the token that ends a sequence."""
        return self.data.pieces.index(self.eos_token)

    def __len__(self) -> int:
        return self.vocab_size

    def encode(self, text: str, return_tensors: str | None = None, **ignored: Any) -> Any:
        """Ids of one text, as a list or as a tensor [1, n]."""
        ids = self.data.encode(text)
        return torch.tensor([ids], dtype=torch.int64) if return_tensors == "pt" else ids

    def tokenize(self, text: str, **ignored: Any) -> list[str]:
        """Pieces of one text."""
        return [self.data.pieces[token] for token in self.data.encode(text)]

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> Any:
        """Id of a piece, or of each."""
        if isinstance(tokens, str):
            return self.data.pieces.index(tokens)
        return [self.data.pieces.index(token) for token in tokens]

    def decode(self, token_ids: Any, skip_special_tokens: bool = False, **ignored: Any) -> str:
        """Text of ids."""
        special = {self.pad_token_id, self.eos_token_id} if skip_special_tokens else set()
        return "".join(self.data.pieces[int(token)] for token in token_ids if int(token) not in special)

    def batch_decode(self, sequences: Any, **options: Any) -> list[str]:
        """Texts of several rows of ids."""
        return [self.decode(row, **options) for row in sequences]

    def __call__(
        self, text: str | Sequence[str], padding: bool | str = False, return_tensors: str | None = None, **ignored: Any
    ) -> Output:
        """Ids and attention mask of one text or of several."""
        if isinstance(text, str):
            ids = self.data.encode(text)
            if return_tensors is None:
                return Output(input_ids=ids, attention_mask=[1] * len(ids))
            text = [text]
        rows = [self.data.encode(one) for one in text]
        return self.pad({"input_ids": rows}, bool(padding) and padding != "do_not_pad", return_tensors)

    def pad(
        self, encoded: Any, padding: bool | str = True, return_tensors: str | None = None, **ignored: Any
    ) -> Output:
        """Rows of ids, padded to the longest."""
        if not isinstance(encoded, dict):
            encoded = {"input_ids": [one["input_ids"] for one in encoded]}
        rows = [[int(token) for token in row] for row in encoded["input_ids"]]
        masks = [[1] * len(row) for row in rows]
        if padding:
            width = max(map(len, rows), default=0)
            rows = [self._padded(row, width, self.pad_token_id) for row in rows]
            masks = [self._padded(row, width, 0) for row in masks]
        if return_tensors == "pt":
            return Output(input_ids=torch.tensor(rows), attention_mask=torch.tensor(masks))
        return Output(input_ids=rows, attention_mask=masks)

    def _padded(self, row: list[int], width: int, filler: int) -> list[int]:
        missing = [filler] * (width - len(row))
        return missing + row if self.padding_side == "left" else row + missing


def gradient_descent(optimizer: GradientDescent, model: torch.nn.Module) -> torch.optim.Optimizer:
    """The optimiser over the parameters of the model that was built."""
    return torch.optim.SGD(model.parameters(), lr=optimizer.learning_rate)
