"""A failing call as text: a short form, its inputs, and Python code that repeats it."""

from __future__ import annotations

import numpy as np

from rlassay.objects import GradientDescent, LanguageModel, Tokenizer
from rlassay.values import Arguments, Tensor
from rlassay_spec.operations import CS336_OPERATIONS

MOST_NUMBERS = 200
"""Inputs with more numbers than this are described instead of written out."""

OBJECTS = {
    LanguageModel: "TorchLanguageModel({!r})",
    Tokenizer: "TorchTokenizer({!r})",
    GradientDescent: "gradient_descent({!r}, model)",
}
"""Code that makes what a subject receives for an argument that is no tensor; of an optimiser, for one called model."""

OBJECT_IMPORTS = (
    "from rlassay.objects import GradientDescent, LanguageModel, Tokenizer",
    "from rlassay.torch_objects import TorchLanguageModel, TorchTokenizer, gradient_descent",
)


def call_text(operation: str, arguments: Arguments) -> str:
    """`operation(name[shape], …)`, one line."""
    parts = []
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            shape = ", ".join(map(str, value.array.shape))
            kind = "" if value.layout == "contiguous" else f" {value.layout}"
            parts.append(f"{name}[{shape}] {value.dtype}{kind}")
        else:
            parts.append(f"{name}={value!r}")
    return f"{operation}({', '.join(parts)})"


def inputs_text(arguments: Arguments) -> dict[str, str]:
    """Each argument's numbers as a Python literal, or a description where there are many."""
    return {name: _literal(value) for name, value in arguments.items()}


def snippet(operation: str, arguments: Arguments) -> str:
    """Python code that repeats the call, or nothing where the inputs are large.

    `subject` stands for the module under test. The functions of the CS336 assignment are called by name, and the tensor
    that their gradient flows into requires one, for those that call backward themselves.
    """
    tensors = [value for value in arguments.values() if isinstance(value, Tensor)]
    if sum(tensor.array.size for tensor in tensors) > MOST_NUMBERS:
        return ""
    objects = any(type(value) in OBJECTS for value in arguments.values())
    lines = ["import torch", "from math import inf, nan", *(OBJECT_IMPORTS if objects else ()), ""]
    assignment = CS336_OPERATIONS.get(operation)
    written: dict[int, str] = {}
    for name, value in arguments.items():
        if isinstance(value, Tensor) and id(value) in written:
            lines.append(f"{name} = {written[id(value)]}")
        elif isinstance(value, Tensor):
            written[id(value)] = name
            live = ", requires_grad=True" if assignment is not None and assignment.differentiable == name else ""
            lines.append(f"{name} = torch.tensor({_literal(value)}, dtype=torch.{value.dtype}{live})")
        else:
            lines.append(f"{name} = {OBJECTS.get(type(value), '{!r}').format(value)}")
    names = arguments if assignment is None else [f"{name}={name}" for name in arguments]
    lines += ["", f"print(subject.{operation.removesuffix('_2026')}({', '.join(names)}))"]
    return "\n".join(lines)


def _literal(value: object) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    if value.array.size > MOST_NUMBERS:
        return f"{value.dtype} tensor of shape {value.array.shape}"
    return _nested(value.array)


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _number(array.item())
    return f"[{', '.join(_nested(row) for row in array)}]"


def _number(value: float) -> str:
    """The shortest decimal that a float32 reads back as the same number, where there is one."""
    if isinstance(value, bool | int):
        return repr(value)
    if np.float64(np.float32(value)) == value:
        return repr(float(str(np.float32(value))))
    return repr(value)
