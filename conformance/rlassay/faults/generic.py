"""Faults of a generic kind, to be planted into any right implementation of any operation.

    for fault in generic_faults("sft_loss", right_sft_loss):
        fault.function(log_probs, mask)     # wrong in exactly one way

What an operation's domain says (masked arguments, constants, …) decides which of them it can have. Here are those about
results, dtypes, state, names and refusals; those about masks and rows are in `generic_rows`.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlassay.faults import Fault, Function, generic_rows
from rlassay.faults.planting import (
    Call,
    Generics,
    anything,
    differentiable,
    numbers,
    planted,
    refusing,
    spoilt,
    tensors,
)
from rlassay.laws import Domain
from rlassay.suite import domain_of

GENERICS = Generics()
generic = GENERICS.generic


def generic_faults(operation: str, right: Function) -> list[Fault]:
    """Every generic fault that an operation can have, planted into a right implementation of it."""
    domain = domain_of(operation) or Domain(operation, lambda draw, convention: {}, result="other")
    return [
        Fault(
            kind.id,
            operation,
            kind.title,
            "generic",
            planted(kind.plant, domain, right),
            kind=kind.kind,
            raises=kind.raises,
            validates=True,
        )
        for kind in (*GENERICS.generics, *generic_rows.GENERICS.generics)
        if kind.applies(domain)
    ]


@generic("GEN-01", "a result cut off from the graph", differentiable)
def _detached(call: Call) -> Any:
    return call.run().detach()


@generic("GEN-02", "a gradient twice as large", differentiable)
def _double_gradient(call: Call) -> Any:
    result = call.run()
    return 2 * result - result.detach()


@generic("GEN-03", "a gradient of the wrong sign", differentiable)
def _negated_gradient(call: Call) -> Any:
    result = call.run()
    return 2 * result.detach() - result


@generic("GEN-04", "float64 whatever comes in", numbers)
def _always_double(call: Call) -> Any:
    return call.run().double()


@generic("GEN-05", "float32 whatever comes in", tensors)
def _always_single(call: Call) -> Any:
    return call.run().float()


@generic("GEN-06", "a result that passed through bfloat16", numbers)
def _through_bfloat16(call: Call) -> Any:
    result = call.run()
    return result.bfloat16().to(result.dtype)


@generic("GEN-07", "numbers of another dtype than float32 mistaken", tensors)
def _single_only(call: Call) -> Any:
    result = call.run()
    return result if result.dtype == torch.float32 else spoilt(result)


@generic("GEN-08", "None", anything)
def _none(call: Call) -> Any:
    call.run()


@generic("GEN-09", "a pair of result and statistics", numbers)
def _pair(call: Call) -> Any:
    return call.run(), {}


@generic("GEN-10", "a result with one axis more", numbers)
def _extra_axis(call: Call) -> Any:
    return call.run().unsqueeze(0)


@generic("GEN-11", "a list of numbers, not a tensor", numbers)
def _list(call: Call) -> Any:
    return call.run().tolist()


def audited(domain: Domain) -> bool:
    """Operations to which the laws apply."""
    return domain.result != "other"


@generic("GEN-12", "inputs changed in place", audited, kind="robustness")
def _in_place(call: Call) -> Any:
    result = call.run()
    for tensor in call.tensors.values():
        tensor.data.add_(1)
    return result


@generic("GEN-13", "torch's random state moved on", audited, kind="robustness")
def _torch_random(call: Call) -> Any:
    torch.rand(())
    return call.run()


@generic("GEN-14", "numpy's random state moved on", audited, kind="robustness")
def _numpy_random(call: Call) -> Any:
    np.random.rand()
    return call.run()


@generic("GEN-15", "Python's random state moved on", audited, kind="robustness")
def _python_random(call: Call) -> Any:
    random.random()
    return call.run()


@generic("GEN-16", "the first result for inputs of this shape, given again", anything)
def _remembered(call: Call) -> Any:
    key = tuple((name, tuple(tensor.shape), tensor.dtype) for name, tensor in call.tensors.items())
    result = call.run()
    if not isinstance(result, Tensor) or not result.dtype.is_floating_point:
        return call.memory.setdefault(key, result)
    first = call.memory.setdefault(key, result.detach().clone())
    return result - result.detach() + first


@generic("GEN-17", "another result at every second call", anything)
def _second_call(call: Call) -> Any:
    call.memory["calls"] = call.memory.get("calls", 0) + 1
    return call.run() if call.memory["calls"] % 2 else spoilt(call.run())


def in_storage_order(tensor: Tensor) -> Tensor:
    """The tensor as its memory would read without its strides, the gradient as it should be."""
    memory = torch.tensor([], dtype=tensor.dtype).set_(tensor.untyped_storage())
    if tensor.is_contiguous() or memory.numel() < tensor.numel():
        return tensor
    misread = memory[: tensor.numel()].reshape(tensor.shape).clone()
    return tensor + (misread - tensor.detach()) if tensor.dtype.is_floating_point else misread


@generic("GEN-18", "inputs read in storage order", lambda domain: domain.result in ("first", "bool", "float32"))
def _storage_order(call: Call) -> Any:
    return call.run(**{name: in_storage_order(tensor) for name, tensor in call.tensors.items()})


@generic("GEN-19", "arguments of other names", audited, raises=True)
def _other_names(call: Call) -> Any:
    if call.by_name:
        raise TypeError("got an unexpected keyword argument")
    return call.run()


@generic("GEN-41", "whatever comes in, accepted", refusing, kind="robustness")
def _accepting(call: Call) -> Any:
    try:
        return call.run()
    except ValueError:
        return torch.zeros(())


@generic("GEN-42", "a TypeError where a ValueError is asked for", refusing, kind="robustness")
def _type_error(call: Call) -> Any:
    try:
        return call.run()
    except ValueError as error:
        raise TypeError(str(error)) from error


@generic("GEN-43", "a ValueError that does not say which argument", refusing, kind="robustness")
def _nameless(call: Call) -> Any:
    try:
        return call.run()
    except ValueError:
        raise ValueError("bad input") from None
