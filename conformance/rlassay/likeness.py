"""Likeness: whether two subjects answer a call alike, within what rounding allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlassay.comparison import kink_margin, tolerance
from rlassay.guest.errors import SubjectRaised
from rlassay.guest.observation import Observation
from rlassay.search import Case, Sample
from rlassay_spec.convention import Convention
from rlassay_spec.oracles.expected import Expected


@dataclass(frozen=True)
class Reach:
    """How far two sane evaluations of a call may lie apart: the scale of what is rounded, and free gradient entries."""

    scale: float
    free: np.ndarray | bool = False


def reach_of(case: Case, declared: Convention) -> Reach:
    """The reach of a call, from what the oracle says of it."""
    want = case.answer(declared)
    if not isinstance(want, Expected):
        return Reach(1.0)
    scale = float(np.max(want.scale, initial=0.0, where=np.isfinite(want.scale)))
    cotangent = case.options.get("cotangent")
    if not case.live or want.pullback is None or cotangent is None:
        return Reach(scale)
    dtype = case.arguments[case.live[0]].dtype
    return Reach(scale, want.pullback(cotangent).kink <= kink_margin(dtype))


def same(sample: Sample, twin: Observation | SubjectRaised, reach: Reach) -> bool:
    """Whether a twin did what the sample's subject did."""
    case, seen = sample.case, sample.observed
    if isinstance(seen, SubjectRaised) or isinstance(twin, SubjectRaised):
        return isinstance(seen, SubjectRaised) and isinstance(twin, SubjectRaised) and seen.kind == twin.kind
    if not isinstance(seen.value, np.ndarray) or not isinstance(twin.value, np.ndarray):
        return bool(plain(seen.value) == plain(twin.value))
    if seen.value.shape != twin.value.shape or not _close(seen.value, twin.value, reach.scale, seen.dtype):
        return False
    if not np.isfinite(seen.value.astype(float)).all():
        return True  # formulas that agree in a NaN may share out its gradient in their own ways
    first = case.live[0] if case.live else ""
    return all(
        _close_gradients(
            seen.gradients.get(name), twin.gradients.get(name), reach if name == first else Reach(reach.scale)
        )
        for name in case.live
    )


def _close(a: np.ndarray, b: np.ndarray, scale: float, dtype: str | None) -> bool:
    a, b = a.astype(float), b.astype(float)
    largest = max(float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x))) for x in (a, b))
    allowed = float(tolerance(np.array(scale + largest), 64, dtype))
    return bool(np.allclose(a, b, rtol=1e-5, atol=allowed, equal_nan=True))


def _close_gradients(a: np.ndarray | None, b: np.ndarray | None, reach: Reach) -> bool:
    if a is None and b is None:
        return True
    a = np.zeros_like(b) if a is None else a
    b = np.zeros_like(a) if b is None else b
    if a.shape != b.shape:
        return False
    return _close(np.where(reach.free, 0, a), np.where(reach.free, 0, b), reach.scale, None)


def plain(value: Any) -> Any:
    """A result that is no array, in a form that compares: Number Search's pair, mostly."""
    try:
        feedback, reward = value
        return [str(word) for word in feedback], float(reward)
    except (TypeError, ValueError):
        return repr(value)
