"""The functions of the Stanford CS336 alignment assignment, by their own names or with `run_` before them.

A target may be a file with the functions, the assignment's file of adapters, or a package: of a package, the modules
that define one of the functions are searched too, `adapters` first. Where one function is the same thing as one of our
operations, it is offered as that operation as well, so that its laws and claims are checked too. (Our `entropy` is not
among them: it promises −inf logits, and gradients that are exact beside vanishing probabilities.)
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..errors import TargetError
from .own import is_stub

Function = Callable[..., Any]

FORM_OF_2026 = {
    "compute_group_normalized_rewards": "raw_rewards",
    "compute_policy_gradient_loss": "importance_reweighting_method",
}
"""Functions that both forms of the assignment have, and the parameter that only the form of 2026 has."""

ADAPTED = ("centered_advantages", "grpo_advantages")
"""Operations of ours that one of the functions may be the same as."""

EPS = 1e-6


def find(namespace: Mapping[str, Any], names: Iterable[str]) -> dict[str, Function]:
    """The functions in a namespace, and in the modules below it if it is a package's, by the name of the operation.

    `names` are the operations'; both forms of a function have one name in the assignment.

    Raises:
        TargetError: a module of the package defines one of the functions and does not import.
    """
    found: dict[str, Function] = {}
    names = tuple(dict.fromkeys(name.removesuffix("_2026") for name in names))
    for space in (namespace, *_modules_below(namespace, names)):
        for name in names:
            function = _function(space, name)
            if function is not None:
                found.setdefault(_form(name, function), function)
    return found | _adapted(found)


def _function(namespace: Mapping[str, Any], name: str) -> Function | None:
    """What is called so and is more than a stub; with `run_` before it in the first place."""
    candidates = (namespace.get(f"run_{name}"), namespace.get(name))
    return next((function for function in candidates if callable(function) and not is_stub(function)), None)


def _form(name: str, function: Function) -> str:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return name
    return f"{name}_2026" if FORM_OF_2026.get(name) in parameters else name


def _modules_below(namespace: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """The modules of a package whose text defines one of the functions; the others may be scripts and are not run."""
    for folder in map(Path, namespace.get("__path__", ())):
        sources = sorted(folder.rglob("*.py"), key=lambda path: (path.stem != "adapters", path))
        for source in sources:
            parts = source.relative_to(folder).with_suffix("").parts
            if parts[-1] != "__init__" and all(map(str.isidentifier, parts)) and _defines_one(source, names):
                yield vars(_imported(".".join((namespace["__name__"], *parts))))


def _defines_one(source: Path, names: tuple[str, ...]) -> bool:
    try:
        body = ast.parse(source.read_bytes()).body
    except (SyntaxError, ValueError):
        return False
    defined = {statement.name.removeprefix("run_") for statement in body if isinstance(statement, ast.FunctionDef)}
    return not defined.isdisjoint(names)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise TargetError(f"{name}: does not import: it needs {error.name}, which is not installed here") from error
    except BaseException as error:
        raise TargetError(f"{name}: does not import: {type(error).__name__}: {error}") from error


def _adapted(found: Mapping[str, Function]) -> dict[str, Function]:
    adapted: dict[str, Function] = {}
    for form, call in (
        ("compute_group_normalized_rewards", _advantages_2025),
        ("compute_group_normalized_rewards_2026", _advantages_2026),
    ):
        if form in found:
            adapted["centered_advantages"] = _bound(call, found[form], False)
            adapted["grpo_advantages"] = _bound(call, found[form], True)
    return adapted


@cache
def _bound(call: Function, *first: Any) -> Function:
    """The same object for the same function, however often it is found."""
    return partial(call, *first)


def _advantages_2025(function: Function, normalised: bool, rewards: Any) -> Any:
    _check_groups(rewards)
    values = rewards.reshape(-1).tolist()
    names = [str(b) for b in range(len(values))]
    result = function(
        reward_fn=lambda response, truth: dict.fromkeys(
            ("reward", "format_reward", "answer_reward"), values[int(response)]
        ),
        rollout_responses=names,
        repeated_ground_truths=names,
        group_size=rewards.shape[1],
        advantage_eps=EPS,
        normalize_by_std=normalised,
    )
    return result[0].reshape(rewards.shape).to(rewards.dtype)


def _advantages_2026(function: Function, normalised: bool, rewards: Any) -> Any:
    _check_groups(rewards)
    result = function(
        raw_rewards=rewards.reshape(-1),
        group_size=rewards.shape[1],
        baseline="mean",
        advantage_eps=EPS,
        advantage_normalizer="std" if normalised else "none",
    )
    return result[0].reshape(rewards.shape).to(rewards.dtype)


def _check_groups(rewards: Any) -> None:
    """What our contract asks for and the assignment does not: there are no groups of size 0 in its form.

    Raises:
        ValueError: rewards is not [N, G] with G ≥ 1, or not of a floating dtype.
    """
    if rewards.dim() != 2 or rewards.shape[1] == 0:
        raise ValueError(f"rewards: has shape {list(rewards.shape)}, expected [N, G] with G ≥ 1")
    if not rewards.is_floating_point():
        raise ValueError(f"rewards: has dtype {rewards.dtype}, expected a floating dtype")
