"""One call of a torch function: arguments made, results and gradients read, side effects seen."""

from __future__ import annotations

import random
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn import Module

from .errors import SubjectRaised
from .objects import GradientDescent, LanguageModel, Tokenizer
from .observation import Cotangent, Observation
from .torch_objects import TorchLanguageModel, TorchTokenizer, gradient_descent
from .values import Arguments, Tensor

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int64": torch.int64,
    "int32": torch.int32,
    "bool": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def call(
    function: Callable[..., Any],
    arguments: Arguments,
    *,
    live: tuple[str, ...] = (),
    cotangent: Cotangent | None = None,
    keywords: bool = False,
    audit: bool = False,
    times: int = 1,
) -> Observation:
    """Call a function of torch tensors with plain data (the options are those of `Subject.call`).

    Raises:
        SubjectRaised: it raised, in the call or in its backward pass.
    """
    built: dict[int, Any] = {}
    inputs = {name: _build(value, built) for name, value in arguments.items()}
    for name in live:
        inputs[name].requires_grad_()
    before = _state(inputs) if audit else None
    result: Any = None
    for _ in range(times):
        result = _guarded("the call", lambda: function(**inputs) if keywords else function(*inputs.values()))
    effects = _side_effects(before, _state(inputs)) if before is not None else ()
    leaves = {name: _leaves(inputs[name]) for name in live}
    backward = any(leaf.grad is not None for group in leaves.values() for leaf in group)

    def read() -> Observation:
        return replace(
            _observed(result),
            gradients=_left(leaves) if backward else _gradients(result, leaves, cotangent),
            side_effects=effects,
            parts=_parts(result),
            parameters={name: _flat(_leaves(value)) for name, value in inputs.items() if isinstance(value, Module)},
            backward=backward,
        )

    observation: Observation = _guarded("reading what it returned", read)
    return observation


def undo_global_settings() -> None:
    """What a target sets for the whole process when imported must not reach other operations' calls, nor an oracle."""
    torch.set_num_threads(1)
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def _observed(result: Any) -> Observation:
    if not isinstance(result, torch.Tensor):
        return Observation(value=_plain(result))
    return Observation(
        value=to_numpy(result),
        dtype=NAMES.get(result.dtype, str(result.dtype).removeprefix("torch.")),
        connected=result.requires_grad,
    )


def _parts(result: Any) -> dict[Any, Observation]:
    return {key: _observed(entry) for key, entry in _entries(result).items()}


def _entries(result: Any) -> Mapping[Any, Any]:
    """The entries of a dictionary by key, of a tuple or list by place; of anything else none."""
    if isinstance(result, Mapping):
        return result
    return dict(enumerate(result)) if isinstance(result, tuple | list) else {}


def _guarded(during: str, action: Callable[[], Any]) -> Any:
    """Run subject code; whatever it raises, SystemExit included, becomes `SubjectRaised`."""
    grad_mode = torch.is_grad_enabled()
    default_dtype = torch.get_default_dtype()
    try:
        return action()
    except SubjectRaised:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit and the like are the subject's doing too
        bases = tuple(base.__name__ for base in type(error).__mro__)
        lines = "".join(traceback.format_exception(error))
        raise SubjectRaised(type(error).__name__, _message(error), bases, lines, during) from None
    finally:
        torch.set_grad_enabled(grad_mode)
        torch.set_default_dtype(default_dtype)


def _message(error: BaseException) -> str:
    try:
        return str.__str__(str(error))
    except BaseException:  # noqa: BLE001 - the subject's __str__ may do anything
        return "(its message cannot be read)"


def _build(value: Any, built: dict[int, Any]) -> Any:
    """The argument as this library has it; one object that is passed twice is built once."""
    if id(value) not in built:
        built[id(value)] = _made(value, built)
    return built[id(value)]


def _made(value: Any, built: dict[int, Any]) -> Any:
    if isinstance(value, Tensor):
        return _laid_out(torch.tensor(value.array, dtype=DTYPES[value.dtype]), value.layout)
    if isinstance(value, LanguageModel):
        return TorchLanguageModel(value)
    if isinstance(value, GradientDescent):
        return gradient_descent(value, _build(value.model, built))
    if isinstance(value, Tokenizer):
        return TorchTokenizer(value)
    return value


def _laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "expanded" and tensor.dim() and len(tensor):
        return tensor[:1].clone().expand_as(tensor)
    if layout == "transposed" and tensor.dim() >= 2:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "strided" and tensor.dim() >= 1:
        wide = torch.stack([tensor, torch.ones_like(tensor)], dim=-1)
        return wide[..., 0]
    return tensor


def _gradients(
    result: Any, live: Mapping[str, tuple[torch.Tensor, ...]], cotangent: Cotangent | None
) -> dict[str, np.ndarray | None]:
    parts, weights = _differentiated(result, cotangent)
    leaves = tuple(leaf for group in live.values() for leaf in group)
    if not leaves or not parts:
        return dict.fromkeys(live)
    grads = iter(_guarded("backward", lambda: torch.autograd.grad(parts, leaves, weights, allow_unused=True)))
    return {name: _row([next(grads) for _ in group], group) for name, group in live.items()}


def _differentiated(result: Any, cotangent: Cotangent | None) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The parts of the result that are differentiated and carry a graph, and what against."""
    chosen: list[tuple[Any, np.ndarray | None]] = [(result, None)]
    if isinstance(cotangent, Mapping):
        entries = _entries(result)
        chosen = [(entries.get(key), weight) for key, weight in cotangent.items()]
    elif cotangent is not None:
        chosen = [(result, cotangent)]
    parts: list[torch.Tensor] = []
    weights: list[torch.Tensor] = []
    for part, weight in chosen:
        if isinstance(part, torch.Tensor) and part.requires_grad:
            fits = weight is not None and weight.shape == tuple(part.shape)
            parts.append(part)
            weights.append(torch.tensor(weight, dtype=part.dtype) if fits else torch.ones_like(part))
    return parts, weights


def _leaves(value: Any) -> tuple[torch.Tensor, ...]:
    return tuple(value.parameters()) if isinstance(value, Module) else (value,)


def _left(live: Mapping[str, tuple[torch.Tensor, ...]]) -> dict[str, np.ndarray | None]:
    """The gradients that a call left behind."""
    return {name: _row([leaf.grad for leaf in group], group) for name, group in live.items()}


def _row(grads: Sequence[torch.Tensor | None], leaves: tuple[torch.Tensor, ...]) -> np.ndarray | None:
    """A tensor's gradient in its shape, a model's in one row; None where there is none at all."""
    if all(grad is None for grad in grads):
        return None
    filled = [torch.zeros_like(leaf) if grad is None else grad for grad, leaf in zip(grads, leaves, strict=True)]
    return to_numpy(filled[0]) if len(filled) == 1 else _flat(filled)


def _flat(tensors: Sequence[torch.Tensor]) -> np.ndarray:
    return np.concatenate([to_numpy(tensor).ravel() for tensor in tensors])


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """Its numbers, floats in float64."""
    tensor = tensor.detach().cpu()
    if tensor.dtype.is_floating_point:
        return np.asarray(tensor.to(torch.float64).numpy(), dtype=np.float64)
    return np.asarray(tensor.numpy())


def _plain(result: Any) -> Any:
    return np.asarray(result) if isinstance(result, bool | int | float | np.generic) else result


def _state(inputs: Mapping[str, Any]) -> dict[str, bytes]:
    """Everything a well-behaved operation leaves alone, as comparable bytes."""
    tensors = {f"argument {name}": value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    state = {name: to_numpy(tensor).tobytes() for name, tensor in tensors.items()}
    state["torch's random state"] = torch.get_rng_state().numpy().tobytes()
    name, keys, *rest = np.random.get_state(legacy=True)
    state["numpy's random state"] = np.asarray(keys).tobytes() + repr((name, rest)).encode()
    state["Python's random state"] = repr(random.getstate()).encode()
    return state


def _side_effects(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[str, ...]:
    return tuple(name for name, content in before.items() if after[name] != content)
