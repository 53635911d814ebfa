"""Laws: what holds of every operation, whatever it computes, and catches what examples miss.

A `Domain` describes one operation: how to draw a case, which arguments a mask hides, which may carry a graph, what
must be refused. `laws` turns it into checks. Nearly all of them transform the case and require the oracle's answer
again, so a failing law names the property that broke.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from rlassay.check import Check, Trial, require
from rlassay.draw import Draw
from rlassay.guest.errors import SubjectRaised
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.inputs import cast
from rlassay_spec.convention import Convention
from rlassay_spec.oracles.expected import Expected

Case = Callable[[Draw, Convention], Arguments]
Scramble = Callable[[Draw, Arguments, tuple[float, ...]], Arguments]

FINITE = (20.0, -20.0, 3.0, 0.0)
NONFINITE = (float("nan"), float("inf"), float("-inf"), 1e30)


@dataclass(frozen=True)
class Refusal:
    """An input that must raise ValueError: the argument it must name, and how to spoil a case."""

    argument: str
    spoil: Callable[[Arguments], Arguments]


@dataclass(frozen=True)
class Domain:
    """One operation, as the laws see it.

    `case` draws valid float32 arguments. `differentiable`: a gradient flows into the first argument. `rows` are the
    arguments whose first axis is the batch (or the instances), `per_row` tells that the result has that axis too.
    `masked` are the [B, T] arguments hidden where `mask` is 0; `scramble` replaces that rule where it is not so simple.
    `constants` may carry a graph but receive no gradient. `result`: dtype of the result, "first" for the
    first tensor's, "number" for Python numbers, "bool", "float32".
    """

    operation: str
    case: Case
    differentiable: bool = False
    mask: str | None = None
    masked: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    per_row: bool = False
    constants: tuple[str, ...] = ()
    result: str = "first"
    scramble: Scramble | None = None
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def laws(domain: Domain) -> Iterator[Check]:
    """The checks that a domain's description calls for."""
    name = domain.operation
    tensors = domain.result != "number"

    def law(identity: str, title: str, function: Callable[[Domain, Trial], None], **options: object) -> Check:
        claims = domain.claims.get(identity, ())
        run = partial(function, domain)
        return Check(f"{name}/{identity}", f"{name} {title}", (name,), run, claims, **options)  # type: ignore[arg-type]

    robust: dict[str, object] = {"kind": "robustness"}
    yield law("value", "agrees with the oracle", _value)
    yield law("keywords", "takes its arguments by name", _keywords, examples=2)
    yield law("repeat", "gives the same result when called again", _repeat)
    if tensors and domain.result != "float32":
        half: dict[str, object] = {} if domain.differentiable else robust
        yield law("dtype", "keeps float64 and float32", partial(_dtype, dtypes=("float64", "float32")))
        yield law(
            "bfloat16", "keeps bfloat16 and is as accurate as it can be", partial(_dtype, dtypes=("bfloat16",)), **half
        )
    if tensors:
        yield law("layout", "accepts non-contiguous and expanded inputs", _layout)
    if domain.differentiable:
        yield law("gradient", "has the oracle's gradient", _gradient)
    if domain.rows:
        yield law("permutation", "does not depend on the order of the rows", _permutation)
    if domain.rows and domain.per_row:
        yield law("split", "treats each row by itself", _split)
    if domain.mask:
        yield law("mask-dtype", "takes masks of bool, int and float alike", _mask_dtype)
        yield law("masked", "ignores what stands at masked places", partial(_masked, fill=FINITE))
        if domain.masked:
            yield law("padding", "is unchanged by padding that is masked out", _padding)
        yield law(
            "masked-nonfinite", "ignores NaN and inf at masked places", partial(_masked, fill=NONFINITE), **robust
        )
        yield law("all-masked", "gives 0 with zero gradient when all is masked", _all_masked, **robust)
    elif domain.scramble:
        yield law("masked", "ignores what it must not read", partial(_masked, fill=FINITE))
    if domain.constants:
        yield law("constants", f"lets no gradient into {', '.join(domain.constants)}", _constants)
    yield law("side-effects", "leaves inputs and random state alone", _side_effects, **robust)
    for identity, refusal in domain.refusals.items():
        title = f"refuses {identity.replace('-', ' ')} with a ValueError that names {refusal.argument}"
        yield law(f"refuses-{identity}", title, partial(_refuses, refusal=refusal), examples=2, **robust)


def _drawn(domain: Domain, trial: Trial) -> Arguments:
    return domain.case(trial.draw, trial.convention)


def _value(domain: Domain, trial: Trial) -> None:
    arguments = _drawn(domain, trial)
    if domain.result != "number":
        arguments = cast(arguments, trial.draw.choice("dtype", ("float32", "float64")))
    trial.agree(domain.operation, arguments)


def _gradient(domain: Domain, trial: Trial) -> None:
    arguments = cast(_drawn(domain, trial), trial.draw.choice("dtype", ("float32", "float64")))
    trial.agree(domain.operation, arguments, gradient=True)


def _keywords(domain: Domain, trial: Trial) -> None:
    trial.agree(domain.operation, _drawn(domain, trial), keywords=True)


def _repeat(domain: Domain, trial: Trial) -> None:
    arguments = _drawn(domain, trial)
    want = trial.expect(domain.operation, arguments)
    for _ in range(3):
        trial.agree(domain.operation, arguments, want)


def _dtype(domain: Domain, trial: Trial, dtypes: tuple[str, ...]) -> None:
    dtype = trial.draw.choice("dtype", dtypes)
    arguments = cast(_drawn(domain, trial), dtype)
    trial.agree(domain.operation, arguments, gradient=domain.differentiable, dtypes=_allowed(domain, arguments))


def _allowed(domain: Domain, arguments: Arguments) -> tuple[str, ...]:
    if domain.result == "bool":
        return ("bool",)
    name, first = next(iter(arguments.items()))
    return (first.dtype, "float32") if name == "logits" and first.dtype == "bfloat16" else (first.dtype,)


def _layout(domain: Domain, trial: Trial) -> None:
    layout = trial.draw.choice("layout", ("strided", "transposed", "expanded"))
    drawn = _drawn(domain, trial)
    if domain.mask is not None and layout == "expanded":
        drawn = _full_row_first(drawn, domain.mask)
    arguments = {
        name: Tensor(value.array, value.dtype, layout) if isinstance(value, Tensor) else value
        for name, value in drawn.items()
    }
    trial.agree(domain.operation, arguments, gradient=domain.differentiable)


def _full_row_first(arguments: Arguments, mask: str) -> Arguments:
    """The row that expansion repeats has a token: a batch without any is for the all-masked law alone."""
    array = arguments[mask].array
    return replaced(arguments, **{mask: np.roll(array, -int(array.any(axis=1).argmax()), axis=0)})


def _mask_dtype(domain: Domain, trial: Trial) -> None:
    arguments = _drawn(domain, trial)
    assert domain.mask is not None
    dtype = trial.draw.choice("mask dtype", ("bool", "int64", "float32", "int32"))
    changed = arguments | {domain.mask: Tensor(arguments[domain.mask].array, dtype)}
    trial.agree(domain.operation, changed, gradient=domain.differentiable, dtypes=_allowed(domain, arguments))


def _masked(domain: Domain, trial: Trial, fill: tuple[float, ...]) -> None:
    arguments = _drawn(domain, trial)
    scramble = domain.scramble or partial(_scramble, domain)
    want = trial.expect(domain.operation, arguments)
    trial.agree(domain.operation, scramble(trial.draw, arguments, fill), want, gradient=domain.differentiable)


def _scramble(domain: Domain, draw: Draw, arguments: Arguments, fill: tuple[float, ...]) -> Arguments:
    assert domain.mask is not None
    hidden = arguments[domain.mask].array == 0
    arrays = {name: np.where(hidden, draw.pick(fill, *hidden.shape), arguments[name].array) for name in domain.masked}
    return replaced(arguments, **arrays)


def _padding(domain: Domain, trial: Trial) -> None:
    arguments = _drawn(domain, trial)
    assert domain.mask is not None
    extra = trial.draw.integer("padding", 1, 3)
    rows = arguments[domain.mask].array.shape[0]
    arrays = {domain.mask: np.concatenate([arguments[domain.mask].array, np.zeros((rows, extra))], axis=1)}
    for name in domain.masked:
        old = arguments[name].array
        tail = trial.draw.pick(FINITE, rows, extra, *old.shape[2:])
        arrays[name] = np.concatenate([old, tail], axis=1)
    padded = replaced(arguments, **arrays)
    trial.agree(domain.operation, padded, gradient=domain.differentiable)


def _permutation(domain: Domain, trial: Trial) -> None:
    arguments = _drawn(domain, trial)
    order = trial.draw.permutation(len(arguments[domain.rows[0]].array))
    changed = replaced(arguments, **{name: arguments[name].array[order] for name in domain.rows})
    trial.agree(domain.operation, changed, gradient=domain.differentiable)


def _split(domain: Domain, trial: Trial) -> None:
    arguments = _drawn(domain, trial)
    want = trial.expect(domain.operation, arguments)
    for row in range(len(arguments[domain.rows[0]].array)):
        alone = replaced(arguments, **{name: arguments[name].array[row : row + 1] for name in domain.rows})
        part = Expected(want.value[row : row + 1], want.scale[row : row + 1], want.terms, None)
        trial.agree(domain.operation, alone, part)


def _all_masked(domain: Domain, trial: Trial) -> None:
    arguments = _drawn(domain, trial)
    assert domain.mask is not None
    emptied = replaced(arguments, **{domain.mask: np.zeros_like(arguments[domain.mask].array)})
    want = trial.expect(domain.operation, emptied)
    observed = trial.agree(domain.operation, emptied, want, gradient=domain.differentiable)
    if domain.differentiable:
        require(observed.connected, f"{domain.operation} of an all-masked batch is cut off from the graph")


def _constants(domain: Domain, trial: Trial) -> None:
    arguments = _drawn(domain, trial)
    first = next(iter(arguments))
    observed = trial.call(domain.operation, arguments, live=(first, *domain.constants))
    for name in domain.constants:
        gradient = observed.gradients[name]
        if gradient is not None and np.nan_to_num(gradient, nan=1.0).any():
            require(False, f"a gradient of {domain.operation} flows into {name}, which is a constant")


def _side_effects(domain: Domain, trial: Trial) -> None:
    observed = trial.call(domain.operation, _drawn(domain, trial), audit=True)
    require(not observed.side_effects, f"{domain.operation} changed {', '.join(observed.side_effects)}")


def _refuses(domain: Domain, trial: Trial, refusal: Refusal) -> None:
    require_refusal(domain.operation, trial, refusal.spoil(_drawn(domain, trial)), refusal.argument)


def require_refusal(operation: str, trial: Trial, arguments: Arguments, argument: str) -> None:
    """The call raises a ValueError whose message names the argument.

    Raises:
        Mismatch: it does not.
    """
    try:
        trial.call(operation, arguments)
    except SubjectRaised as raised:
        require("ValueError" in raised.bases, f"{operation} raised {raised}, but should raise ValueError")
        named = argument in raised.message
        require(named, f"the ValueError does not name {argument}: {raised.message or 'no message'}")
        return
    require(False, f"{operation} accepted the input, but should raise a ValueError that names {argument}")
