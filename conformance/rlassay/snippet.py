"""A failing call as text: a short form, its inputs, and Python code that repeats it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rlassay.guest.objects import GradientDescent, LanguageModel, Tokenizer
from rlassay.guest.observation import Cotangent
from rlassay.guest.values import Arguments, Tensor
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
    "from rlassay.guest.objects import GradientDescent, LanguageModel, Tokenizer",
    "from rlassay.guest.torch_objects import TorchLanguageModel, TorchTokenizer, gradient_descent",
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


LAYOUTS = {
    "contiguous": "",
    "expanded": "[:1].expand({shape})",
    "transposed": ".transpose(-1, -2).contiguous().transpose(-1, -2)",
    "strided": ".unsqueeze(-1).repeat({ones}, 2)[..., 0]",
}
"""What makes a tensor of a memory layout from a contiguous one."""


def snippet(
    operation: str,
    arguments: Arguments,
    *,
    code: str = "",
    live: tuple[str, ...] = (),
    cotangent: Cotangent | None = None,
    keywords: bool = False,
) -> str:
    """Python code that repeats the call, or nothing where the inputs are large.

    `code` are the lines that define `subject`, the module under test; the others are the options of the call. The
    functions of the CS336 assignment are called by name, and the tensor that their gradient flows into requires one,
    for those that call backward themselves.
    """
    tensors = [value for value in arguments.values() if isinstance(value, Tensor)]
    if sum(tensor.array.size for tensor in tensors) > MOST_NUMBERS:
        return ""
    assignment = CS336_OPERATIONS.get(operation)
    by_name = keywords or assignment is not None
    called = f"subject.{operation.removesuffix('_2026')}"
    call = f"{called}({', '.join(f'{name}={name}' if by_name else name for name in arguments)})"
    objects = any(type(value) in OBJECTS for value in arguments.values())
    lines = ["from math import inf, nan", "", "import torch", *(OBJECT_IMPORTS if objects else ())]
    lines += [*code.splitlines(), "", *_assignments(arguments)]
    differentiable = assignment.differentiable if assignment is not None else None
    needed = live or ((differentiable,) if differentiable is not None else ())
    lines += [f"{name}.requires_grad_()" for name in needed if name in arguments]
    if not live:
        return "\n".join([*lines, "", f"print({call})"])
    left = assignment is not None and cotangent is None
    return "\n".join(
        [*lines, "", f"result = {call}", "print(result)", *(_left(live) if left else _against(live, cotangent))]
    )


def _assignments(arguments: Arguments) -> Iterator[str]:
    written: dict[int, str] = {}
    for name, value in arguments.items():
        if isinstance(value, Tensor) and id(value) in written:
            yield f"{name} = {written[id(value)]}"
        elif isinstance(value, Tensor):
            written[id(value)] = name
            yield f"{name} = {_tensor(value)}"
        else:
            yield f"{name} = {OBJECTS.get(type(value), '{!r}').format(value)}"


def _tensor(value: Tensor) -> str:
    array = value.array
    shaped = "" if array.size else f".reshape({array.shape})"
    fits = array.ndim >= (2 if value.layout == "transposed" else 1) and array.size
    layout = LAYOUTS[value.layout if fits else "contiguous"]
    made = layout.format(shape=", ".join(map(str, array.shape)), ones=", ".join("1" * array.ndim))
    return f"torch.tensor({_literal(value)}, dtype=torch.{value.dtype}){shaped}{made}"


def _leaves(live: tuple[str, ...]) -> str:
    return f"[{', '.join(f'*{name}.parameters()' if name == 'model' else name for name in live)}]"


def _left(live: tuple[str, ...]) -> list[str]:
    """Lines that print the gradients which the call left behind."""
    return [f"print([leaf.grad for leaf in {_leaves(live)}])"]


def _against(live: tuple[str, ...], cotangent: Cotangent | None) -> list[str]:
    """Lines that print the gradients of the result, or of one part of it, against a cotangent."""
    lines = []
    if isinstance(cotangent, Mapping):
        key, cotangent = next(iter(cotangent.items()))
        lines.append(f"result = result[{key!r}]")
    weights = "torch.ones_like(result)"
    if cotangent is not None:
        weights = f"torch.tensor({_nested(np.asarray(cotangent))}, dtype=result.dtype)"
    return [
        *lines,
        "if result.requires_grad:",
        f"    weights = {weights}",
        f"    print(torch.autograd.grad(result, {_leaves(live)}, weights, allow_unused=True))",
        "else:",
        '    print("no gradient: the result is cut off from its arguments")',
    ]


def _literal(value: object) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    if value.array.size > MOST_NUMBERS:
        return f"{value.dtype} tensor of shape {value.array.shape}"
    return _nested(value.array, value.dtype)


def _nested(array: np.ndarray, dtype: str = "float64") -> str:
    if array.ndim == 0:
        return _number(array.item(), dtype)
    return f"[{', '.join(_nested(row, dtype) for row in array)}]"


def _number(value: float, dtype: str) -> str:
    """The shortest decimal that the dtype reads back as the same number."""
    if isinstance(value, bool | int) or dtype == "float64":
        return repr(value)
    return repr(float(str(np.float32(value))))
