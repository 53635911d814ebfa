"""Calls of the assignment's functions: by name, with structured results, and with a word on what went wrong.

The assignment's contracts are looser than those of our operations (see `rlassay_spec.operations.cs336`), so the laws of
`rlassay.laws` are not asked of its functions: dtype, refusals and NaN under the mask are nobody's promise there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlassay.check import NotDeclared, Trial, require
from rlassay.comparison import Mismatch, require_array, require_gradient, require_value
from rlassay.guest.errors import SubjectRaised
from rlassay.guest.observation import Cotangent, Observation
from rlassay.guest.values import UNIT, Arguments, Tensor, unwrap
from rlassay_spec.convention import Convention
from rlassay_spec.operations import CS336_OPERATIONS
from rlassay_spec.oracles import CS336_ORACLES
from rlassay_spec.oracles.expected import Expected

RESULTS: Mapping[str, tuple[str, ...]] = {
    "compute_group_normalized_rewards": ("advantages", "raw_rewards", "metadata"),
    "compute_group_normalized_rewards_2026": ("advantages", "metadata"),
    "compute_rollout_rewards": ("raw_rewards", "metadata"),
    "compute_grpo_clip_loss": ("loss", "metadata"),
    "compute_policy_gradient_loss": ("loss", "metadata"),
    "compute_policy_gradient_loss_2026": ("loss", "metadata"),
    "sft_microbatch_train_step": ("loss", "metadata"),
    "grpo_microbatch_train_step": ("loss", "metadata"),
    "grpo_train_step": ("loss", "metadata"),
}
"""What the functions that return a tuple return; the last is a dictionary."""


@dataclass(frozen=True)
class Suspect:
    """A way to get it wrong: what it gives for the arguments, and words that complete "this is what … gives"."""

    text: str
    value: Callable[[Arguments], Any]


Suspects = Sequence[Suspect]


def expected(operation: str, arguments: Arguments, convention: Convention, part: str | None = None) -> Expected:
    """The oracle's answer to a call, or that part of it."""
    oracle = CS336_ORACLES[operation]
    plain = unwrap(arguments)
    takes = "convention" in (oracle.__kwdefaults__ or {})
    result = oracle(**plain, convention=convention) if takes else oracle(**plain)
    answer: Expected = result[part] if isinstance(result, dict) else result
    return answer


def call(
    trial: Trial,
    operation: str,
    arguments: Arguments,
    *,
    live: tuple[str, ...] = (),
    cotangent: Cotangent | None = None,
    audit: bool = False,
    times: int = 1,
) -> Observation:
    """Call by name.

    Raises:
        NotDeclared: the function says that it does not implement this.
    """
    try:
        return trial.call(operation, arguments, live=live, cotangent=cotangent, keywords=True, audit=audit, times=times)
    except SubjectRaised as raised:
        if raised.kind == "NotImplementedError":
            raise NotDeclared(f"{operation} raises {raised}") from None
        raise


def part_of(operation: str, observed: Observation, part: str | None) -> Observation:
    """One part of a result: of a tuple by what it stands for, of a dictionary by key; the whole for None.

    Raises:
        Mismatch: the result does not have this structure, or its metadata is not a dictionary.
    """
    if part is None:
        return observed
    if operation not in RESULTS:
        got = f"{_kind(observed.value)} with {', '.join(map(repr, observed.parts)) or 'nothing in it'}"
        has = isinstance(observed.value, Mapping) and part in observed.parts
        require(has, f"{operation} returned {got}, but should return a dictionary with {part!r}")
        return observed.parts[part]
    names = RESULTS[operation]
    fits = isinstance(observed.value, tuple | list) and len(observed.parts) == len(names)
    require(fits, f"{operation} returned {_kind(observed.value)}, but should return ({', '.join(names)})")
    metadata = observed.parts[len(names) - 1].value
    message = f"{operation}: metadata is {_kind(metadata)}, but should be a dictionary"
    require(isinstance(metadata, Mapping), message)
    return observed.parts[names.index(part)]


def agree(
    trial: Trial,
    operation: str,
    arguments: Arguments,
    part: str | None = None,
    suspects: Suspects = (),
    live: tuple[str, ...] = (),
) -> Observation:
    """Require the oracle's value of a result or of one part of it.

    Raises:
        Mismatch: the value differs; the message names the suspects that give the same.
    """
    want = expected(operation, arguments, trial.convention, part)
    observed = call(trial, operation, arguments, live=live)
    require_like(label(operation, part), part_of(operation, observed, part), want, arguments, suspects)
    return observed


def agree_gradient(trial: Trial, operation: str, arguments: Arguments, part: str | None = None) -> None:
    """Require the oracle's gradient, against a random cotangent, in the argument that the contract names.

    Raises:
        Mismatch: the result has another shape, is cut off, or the gradient differs.
    """
    want = expected(operation, arguments, trial.convention, part)
    name = CS336_OPERATIONS[operation].differentiable
    assert name is not None and want.pullback is not None
    random = trial.draw.rng.uniform(0.5, 1.5, size=want.value.shape)
    weights = np.where(np.isnan(want.value), 0.0, random)
    places = RESULTS.get(operation)
    key = places.index(part) if places and part is not None else part
    observed = call(trial, operation, arguments, live=(name,), cotangent=weights if key is None else {key: weights})
    result = part_of(operation, observed, part)
    require_array(label(operation, part), result, want.value.shape)
    dtype = dtype_of(arguments[name])
    used = Tensor(weights, result.dtype if result.dtype in UNIT else dtype).array
    require_gradient(label(operation, part), name, observed, want.pullback(used), want.terms, dtype)


def require_like(name: str, got: Observation, want: Expected, arguments: Arguments, suspects: Suspects = ()) -> None:
    """`require_value`, with a column [B, 1] as good as a row [B], and a word on suspects.

    Raises:
        Mismatch: the value differs; the message names the suspects that give the same.
    """
    if isinstance(got.value, np.ndarray) and got.value.shape == (*want.value.shape, 1):
        got = replace(got, value=got.value[..., 0])
    try:
        require_value(name, got, want)
    except Mismatch as mismatch:
        raise named(mismatch, got, arguments, suspects) from None


def named(mismatch: Mismatch, got: Observation, arguments: Arguments, suspects: Suspects) -> Mismatch:
    """The mismatch, with the suspects that give what was observed in this very case."""
    plain = unwrap(arguments)
    texts = [suspect.text for suspect in suspects if _alike(got.value, suspect.value(plain))]
    if not texts:
        return mismatch
    return Mismatch(f"{mismatch.message}; this is what {' or '.join(texts)} gives", mismatch.got, mismatch.expected)


def label(operation: str, part: str | None) -> str:
    """How a message calls a part of a result."""
    return operation if part is None else f"{operation}: {part}"


def dtype_of(argument: Any) -> str:
    """Dtype of a tensor, float32 for a model."""
    return argument.dtype if isinstance(argument, Tensor) else "float32"


def _alike(got: Any, value: Any) -> bool:
    exact = np.asarray(value, dtype=np.float64)
    if not isinstance(got, np.ndarray) or got.shape != exact.shape:
        return False
    free = np.isnan(exact)
    size = float(np.max(np.abs(exact[~free]), initial=0.0))
    close = np.isclose(got.astype(np.float64), exact, rtol=1e-4, atol=1e-5 * size) | free
    return bool(close.all()) and not free.all()


def _kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"a tensor of shape {value.shape}"
    if isinstance(value, tuple):
        return f"{len(value)} values"
    return "None" if value is None else f"a {type(value).__name__}"
