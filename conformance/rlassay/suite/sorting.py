"""Checks of the two rewards of the sorting task."""

from __future__ import annotations

from rlassay_spec.convention import Convention

from rlassay.draw import Draw
from rlassay.laws import Domain
from rlassay.topic import Topic
from rlassay.values import Arguments, Tensor


def sorting_case(draw: Draw, convention: Convention) -> Arguments:
    """A prompt and a response of equal length, as tensors or lists, with repeats, sorted responses among them."""
    length = draw.integer("length", 1, 6)
    prompt = draw.integers(0, draw.integer("largest", 1, 5), length)
    kind = draw.choice("response", ("any", "sorted", "same", "reversed", "constant"))
    response = {
        "any": draw.integers(0, 5, length),
        "sorted": sorted(prompt),
        "same": prompt,
        "reversed": sorted(prompt)[::-1],
        "constant": [prompt[0]] * length,
    }[kind]
    if draw.choice("type", ("list", "tensor")) == "list":
        return {"prompt": [int(n) for n in prompt], "response": [int(n) for n in response]}
    return {"prompt": Tensor(prompt, "int64"), "response": Tensor(response, "int64")}


def domain(operation: str) -> Domain:
    """Both rewards share one domain."""
    return Domain(operation, sorting_case, result="number")


TOPIC = Topic(domain("position_reward"), domain("inclusion_order_reward"))
