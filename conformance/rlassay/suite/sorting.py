"""Checks of the two rewards of the sorting task."""

from __future__ import annotations

from functools import partial

import numpy as np

from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor
from rlassay.laws import Domain, Refusal
from rlassay.topic import Topic
from rlassay_spec.convention import Convention


def sorting_case(draw: Draw, convention: Convention) -> Arguments:
    """A prompt and a response of equal length, as tensors or lists, with repeats, sorted responses among them."""
    length = draw.integer("length", 1, 12)
    prompt = draw.integers(0, draw.integer("largest", 1, 15), length)
    kind = draw.choice("response", ("any", "sorted", "same", "reversed", "constant"))
    response = {
        "any": draw.integers(0, 5, length),
        "sorted": np.sort(prompt),
        "same": prompt,
        "reversed": np.sort(prompt)[::-1],
        "constant": np.full(length, prompt[0]),
    }[kind]
    shift = draw.choice("shift", (0, 5000))
    prompt, response = prompt + shift, response + shift
    if draw.choice("type", ("list", "tensor")) == "list":
        return {"prompt": prompt.tolist(), "response": response.tolist()}
    return {"prompt": Tensor(prompt, "int64"), "response": Tensor(response, "int64")}


def domain(operation: str) -> Domain:
    """Both rewards share one domain."""
    return Domain(
        operation,
        sorting_case,
        result="number",
        refusals={
            "a-response-of-another-length": Refusal("response", _one_more),
            "a-response-that-is-too-short": Refusal("response", _one_less),
            "tensors-of-two-axes": Refusal("prompt", partial(_of_shape, (2, 3))),
            "tensors-of-no-axis": Refusal("prompt", partial(_of_shape, ())),
        },
    )


def _one_more(arguments: Arguments) -> Arguments:
    response = arguments["response"]
    if isinstance(response, Tensor):
        return arguments | {"response": response.with_array(np.append(response.array, 0))}
    return arguments | {"response": [*response, 0]}


def _one_less(arguments: Arguments) -> Arguments:
    response = arguments["response"]
    if isinstance(response, Tensor):
        return arguments | {"response": response.with_array(response.array[:-1])}
    return arguments | {"response": response[:-1]}


def _of_shape(shape: tuple[int, ...], arguments: Arguments) -> Arguments:
    return {name: Tensor(np.ones(shape), "int64") for name in arguments}


TOPIC = Topic(domain("position_reward"), domain("inclusion_order_reward"))
