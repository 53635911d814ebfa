"""What a subject receives for arguments that are no tensors, and what is seen of what a call leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlassay.guest.objects import GradientDescent, LanguageModel, RewardFunction, Tokenizer
from rlassay.guest.observation import Observation
from rlassay.guest.torch_objects import TorchTokenizer
from rlassay.guest.values import Tensor
from rlassay.torch_subject import TorchSubject

TOKENIZER = Tokenizer(("a", "b", "ab", "<pad>", "<eos>"), "<pad>", "<eos>")


def test_a_tokenizer_takes_the_longest_piece_and_adds_nothing() -> None:
    assert TOKENIZER.encode("abba<eos>") == [2, 1, 0, 4]
    assert TOKENIZER.encode("") == []
    with pytest.raises(ValueError, match="text: has 'xa', expected a sequence of 'a', 'b'"):
        TOKENIZER.encode("bxa")


def test_a_tokenizer_is_called_like_one_of_the_transformers_library() -> None:
    tokenizer = TorchTokenizer(TOKENIZER)
    assert tokenizer("ab").input_ids == tokenizer("ab")["input_ids"] == [2]
    assert tokenizer("ab", return_tensors="pt").to("cpu").input_ids.tolist() == [[2]]
    assert tokenizer(["ab", "ba"])["input_ids"] == [[2], [1, 0]]
    batch = tokenizer(["ab", "ba"], padding=True, return_tensors="pt", add_special_tokens=False)
    assert batch["input_ids"].tolist() == [[2, 3], [1, 0]]
    assert batch.attention_mask.tolist() == [[1, 0], [1, 1]]
    tokenizer.padding_side, tokenizer.pad_token = "left", tokenizer.eos_token
    assert tokenizer.pad([tokenizer("ab"), tokenizer("ba")]).input_ids == [[4, 2], [1, 0]]
    assert tokenizer.encode("ba", return_tensors="pt").tolist() == [[1, 0]]
    assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize("aab")) == [0, 2]
    assert tokenizer.convert_tokens_to_ids("<eos>") == tokenizer.eos_token_id == tokenizer.pad_token_id == 4
    assert tokenizer.batch_decode([[2, 4]]) == ["ab<eos>"]
    assert tokenizer.decode([2, 4], skip_special_tokens=True) == "ab"
    assert len(tokenizer) == 5
    tokenizer.pad_token_id = 3
    assert tokenizer.pad_token == "<pad>"
    with pytest.raises(AttributeError, match="token_type_ids"):
        tokenizer("a").token_type_ids  # noqa: B018 - reading it is the test


def test_a_reward_function_gives_other_numbers_under_other_keys_and_knows_its_pairs() -> None:
    reward_fn = RewardFunction({("r", "t"): 0.25})
    assert reward_fn("r", "t") == {"reward": 0.25, "format_reward": 1.0, "answer_reward": -0.25}
    assert eval(repr(reward_fn))("r", "t") == reward_fn("r", "t")
    with pytest.raises(ValueError, match="reward_fn: got 't', 'r', expected a response and its ground truth"):
        reward_fn("t", "r")


def observe(function: Callable[[torch.Tensor], Any], **options: Any) -> Observation:
    """A call of a function of x, a live tensor."""
    arguments = {"x": Tensor(np.array([1.0, 2.0]))}
    return TorchSubject({"f": function}).call("f", arguments, live=("x",), **options)


def test_a_gradient_that_a_call_left_behind_is_told_from_one_that_was_asked_for() -> None:
    def steps(x: torch.Tensor) -> tuple[torch.Tensor, dict[str, int]]:
        loss = (x * x).sum()
        loss.backward()
        return loss, {"rows": 2}

    left, asked = observe(steps), observe(lambda x: (x * x).sum())
    assert left.backward and not asked.backward
    assert left.gradients["x"].tolist() == asked.gradients["x"].tolist() == [2.0, 4.0]
    assert left.parts[0].value == 5.0 and left.parts[1].value == {"rows": 2}


def test_a_part_of_a_result_is_differentiated_by_its_key() -> None:
    both = {"first": 3, "second": 5}
    seen = observe(lambda x: {key: factor * x for key, factor in both.items()}, cotangent={"second": np.ones(2)})
    assert seen.gradients["x"].tolist() == [5.0, 5.0]
    absent = observe(lambda x: (x, 1), cotangent={1: np.ones(2)})
    assert absent.gradients == {"x": None}


def test_the_parameters_of_a_model_are_seen_after_several_calls() -> None:
    model = LanguageModel(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]))

    def descend(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        sum(parameter.sum() for parameter in model.parameters()).backward()
        optimizer.step()
        optimizer.zero_grad()

    arguments = {"model": model, "optimizer": GradientDescent(model, 0.5)}
    seen = TorchSubject({"f": descend}).call("f", arguments, times=2)
    assert seen.parameters["model"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert model.embedding.tolist() == [[1.0], [2.0]]
