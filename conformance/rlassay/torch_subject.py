"""A subject made of torch functions in this process."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from rlassay.subject import Observation, SubjectRaised
from rlassay.values import Arguments, Tensor
from rlassay_spec.convention import LECTURE, Convention

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


class TorchSubject:
    """Operations given as a mapping from name to Python function."""

    def __init__(
        self, functions: Mapping[str, Callable[..., Any]], name: str = "subject", convention: Convention = LECTURE
    ) -> None:
        self.name = name
        self.convention = convention
        self.functions = dict(functions)

    @property
    def operations(self) -> frozenset[str]:
        """Names of the operations it provides."""
        return frozenset(self.functions)

    def call(
        self,
        operation: str,
        arguments: Arguments,
        *,
        live: tuple[str, ...] = (),
        cotangent: np.ndarray | None = None,
        keywords: bool = False,
        audit: bool = False,
    ) -> Observation:
        """Call an operation (see `Subject.call`)."""
        built: dict[int, torch.Tensor] = {}
        inputs = {name: _build(value, built) for name, value in arguments.items()}
        for name in live:
            inputs[name].requires_grad_()
        before = _state(inputs) if audit else None
        function = self.functions[operation]
        result = _guarded("the call", lambda: function(**inputs) if keywords else function(*inputs.values()))
        effects = _side_effects(before, _state(inputs)) if before is not None else ()
        if not isinstance(result, torch.Tensor):
            return Observation(value=_plain(result), side_effects=effects)
        gradients = _gradients(result, {name: inputs[name] for name in live}, cotangent)
        return Observation(
            value=_numpy(result),
            dtype=NAMES.get(result.dtype, str(result.dtype).removeprefix("torch.")),
            connected=result.requires_grad,
            gradients=gradients,
            side_effects=effects,
        )


def _guarded(during: str, action: Callable[[], Any]) -> Any:
    """Run subject code; whatever it raises, SystemExit included, becomes `SubjectRaised`."""
    grad_mode = torch.is_grad_enabled()
    default_dtype = torch.get_default_dtype()
    try:
        return action()
    except BaseException as error:  # noqa: BLE001 - SystemExit and the like are the subject's doing too
        bases = tuple(base.__name__ for base in type(error).__mro__)
        lines = "".join(traceback.format_exception(error))
        raise SubjectRaised(type(error).__name__, str(error), bases, lines, during) from None
    finally:
        torch.set_grad_enabled(grad_mode)
        torch.set_default_dtype(default_dtype)


def _build(value: Any, built: dict[int, torch.Tensor]) -> Any:
    if not isinstance(value, Tensor):
        return value
    if id(value) not in built:
        built[id(value)] = _laid_out(torch.tensor(value.array, dtype=DTYPES[value.dtype]), value.layout)
    return built[id(value)]


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
    result: torch.Tensor, live: Mapping[str, torch.Tensor], cotangent: np.ndarray | None
) -> dict[str, np.ndarray | None]:
    if not live or not result.requires_grad:
        return dict.fromkeys(live)
    if cotangent is None or cotangent.shape != tuple(result.shape):
        weights = torch.ones_like(result)
    else:
        weights = torch.tensor(cotangent, dtype=result.dtype)
    leaves = tuple(live.values())
    grads = _guarded("backward", lambda: torch.autograd.grad(result, leaves, weights, allow_unused=True))
    return {name: None if grad is None else _numpy(grad) for name, grad in zip(live, grads, strict=True)}


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    if tensor.dtype.is_floating_point:
        return np.asarray(tensor.to(torch.float64).numpy(), dtype=np.float64)
    return np.asarray(tensor.numpy())


def _plain(result: Any) -> Any:
    return np.asarray(result) if isinstance(result, bool | int | float | np.generic) else result


def _state(inputs: Mapping[str, Any]) -> dict[str, bytes]:
    """Everything a well-behaved operation leaves alone, as comparable bytes."""
    tensors = {f"argument {name}": value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    state = {name: _numpy(tensor).tobytes() for name, tensor in tensors.items()}
    state["torch's random state"] = torch.get_rng_state().numpy().tobytes()
    name, keys, *rest = np.random.get_state(legacy=True)
    state["numpy's random state"] = np.asarray(keys).tobytes() + repr((name, rest)).encode()
    state["Python's random state"] = repr(random.getstate()).encode()
    return state


def _side_effects(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[str, ...]:
    return tuple(name for name, content in before.items() if after[name] != content)
