"""Known faults of the KL estimators k1, k2 and k3."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from rlassay.check import Kind
from rlassay.faults import Faults, Function
from rlassay.faults.parts import constant, working
from rlassay.faults.parts.kl import estimate, k1, k2, k3

FAULTS = Faults()


def _fault(
    operation: str,
    identity: str,
    title: str,
    source: str,
    formula: Function,
    kind: Kind = "conformance",
    choice: dict[str, Any] | None = None,
    frozen: Function = constant,
) -> None:
    code = partial(estimate, formula=formula, frozen=frozen)
    FAULTS.add(identity, f"kl_{operation}", title, source, code, kind=kind, convention=choice)


def reversed_roles(formula: Function) -> Function:
    """π and π_ref exchanged, the gradient still into π."""
    return lambda new, ref, convention: formula(ref, new, convention)


def cut_off(formula: Function) -> Function:
    """The estimate without its graph."""
    return lambda new, ref, convention: formula(new, ref, convention).detach()


def absolute(formula: Function) -> Function:
    """The estimate without its sign."""
    return lambda new, ref, convention: formula(new, ref, convention).abs()


def weighted_by_policy(formula: Function) -> Function:
    """The estimate times π, as in a sum over the whole vocabulary."""
    return lambda new, ref, convention: new.exp() * formula(new, ref, convention)


def averaged_over_row(formula: Function) -> Function:
    """The mean over the row, the same at each token."""
    return lambda new, ref, convention: formula(new, ref, convention).mean(dim=1, keepdim=True).expand_as(new)


for _name, _formula in (("k1", k1), ("k2", k2), ("k3", k3)):
    _fault(_name, "KL-02", "an estimate without gradient", "allenai/open-instruct issue 530", cut_off(_formula))
    _fault(_name, "KLE-01", "a reference policy with a live gradient", "claim P7.1", _formula, frozen=working)
    _fault(
        _name, "KLE-02", "the estimate times π", "textbook: the sum over the vocabulary", weighted_by_policy(_formula)
    )
    _fault(_name, "KLE-03", "the mean over the row at each token", "textbook", averaged_over_row(_formula))

_fault("k1", "KLE-04", "log π_ref − log π", "textbook", reversed_roles(k1))
_fault("k1", "KLE-05", "the absolute log-ratio", "textbook", absolute(k1))
_fault("k1", "KLE-06", "the ratio minus 1", "textbook", lambda new, ref, _: torch.expm1(new - ref))
_fault("k1", "KLE-07", "the difference of the probabilities", "textbook", lambda new, ref, _: new.exp() - ref.exp())
_fault("k1", "KLE-08", "half the squared log-ratio: k2", "claim P7.1", k2)
_fault("k1", "KLE-09", "k3", "claim P7.1", k3)
_fault("k1", "KLE-10", "the quotient of the log-probs", "claim P8.6", lambda new, ref, _: new / ref)
_fault("k1", "KLE-11", "a log-ratio bounded to [−1, 1]", "textbook", lambda new, ref, _: (new - ref).clamp(-1.0, 1.0))

_fault(
    "k2", "KL-06", "the squared log-ratio without the half", "one-covenant/grail PR 42", lambda p, q, _: (p - q) ** 2
)
_fault("k2", "KLE-12", "half the absolute log-ratio", "textbook", lambda new, ref, _: 0.5 * (new - ref).abs())
_fault(
    "k2", "KLE-13", "half the square of the ratio minus 1", "textbook", lambda p, q, _: 0.5 * torch.expm1(p - q) ** 2
)
_fault(
    "k2",
    "KLE-14",
    "half the squared difference of the probabilities",
    "textbook",
    lambda p, q, _: 0.5 * (p.exp() - q.exp()) ** 2,
)
_fault("k2", "KLE-15", "half the difference of the squares", "textbook", lambda new, ref, _: 0.5 * (new**2 - ref**2))
_fault("k2", "KLE-16", "the log-ratio itself: k1", "claim P7.5", k1)
_fault("k2", "KLE-09", "k3", "claim P7.5", k3)
_fault(
    "k2",
    "KLE-17",
    "half a log-ratio whose other factor has no gradient",
    "textbook",
    lambda p, q, _: 0.5 * (p - q).detach() * (p - q),
)

_fault("k3", "KL-03", "k3 with the ratio turned over: π/π_ref", "PAE issue 8", reversed_roles(k3))
_fault("k3", "KLE-18", "no −1: r − log r", "textbook", lambda new, ref, c: k3(new, ref, c) + 1)
_fault("k3", "KLE-19", "r + log r − 1", "textbook", lambda new, ref, _: torch.expm1(ref - new) + (ref - new))
_fault("k3", "KLE-20", "r − 1", "textbook", lambda new, ref, _: torch.expm1(ref - new))
_fault("k3", "KLE-16", "the log-ratio itself: k1", "claim P7.5", k1)
_fault("k3", "KLE-08", "half the squared log-ratio: k2", "claim P7.5", k2)
_fault(
    "k3",
    "KLE-21",
    "the value of k3 with the gradient of k2",
    "textbook: straight-through estimator",
    lambda new, ref, c: k2(new, ref, c) + (k3(new, ref, c) - k2(new, ref, c)).detach(),
)
_fault(
    "k3",
    "KLE-22",
    "a ratio without gradient",
    "textbook",
    lambda new, ref, _: (ref - new).exp().detach() - (ref - new) - 1,
)
_fault("k3", "CV-23", "k3 bounded to [−5, 5]", "huggingface/trl PR 6637", k3, choice={"k3_clamp": 5.0})
_fault(
    "k3",
    "KLE-23",
    "exp(d) − d − 1, which rounds below 0 near d = 0",
    "claim P7.2",
    lambda new, ref, _: (ref - new).exp() - (ref - new) - 1,
    kind="robustness",
)
