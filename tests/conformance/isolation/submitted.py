"""Submissions for tests, in guests of a real warm process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from rlassay.guest.confine import Confinement
from rlassay.guest.observation import Observation
from rlassay.guest.values import Tensor
from rlassay.isolation.session import Limits, Loading, Session
from rlassay.isolation.warm import WarmProcess
from rlassay.load import NAMES

from .guests import LEVEL, REASON

namespaces = pytest.mark.skipif(LEVEL != "namespaces", reason=REASON or "it can be had")
"""For tests that need guests of the strongest level."""

LIMITS = Limits(call=20.0, load=60.0, total=300.0)

TWO = {"log_probs": Tensor(np.array([[-1.0, -2.0]])), "ref_log_probs": Tensor(np.array([[-1.5, -1.0]]))}

REQUEST: dict[str, Any] = {
    "operation": "kl_k1",
    "arguments": TWO,
    "live": (),
    "cotangent": None,
    "keywords": False,
    "audit": False,
    "times": 1,
}


def confinement_of(warm: WarmProcess, folder: Path, **changes: Any) -> Confinement:
    """A confinement for what lies in `folder`/source."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    (folder / "source").mkdir(exist_ok=True)
    fields: dict[str, Any] = {
        "level": LEVEL,
        "source": str(folder / "source"),
        "readable": warm.view.readable,
        "hidden": warm.view.hidden,
        "scratch": str(scratch),
        "memory": 2**30,
        "cpu": 60,
        "tmp": 2**24,
        "threads": 8,
    }
    return Confinement(**(fields | changes))


@contextmanager
def session(
    warm: WarmProcess,
    folder: Path,
    source: str,
    *,
    limits: Limits = LIMITS,
    name: str = "work.py",
    interface: str = "own",
    **loading: Any,
) -> Iterator[Session]:
    """A session of a submission that is this file, in `folder`/source."""
    confinement = confinement_of(warm, folder)
    (folder / "source" / name).write_text(dedent(source), encoding="utf-8")
    begun = Session(warm, confinement, Loading(name, interface, NAMES[interface], **loading), limits)
    try:
        yield begun
    finally:
        begun.close()


def value(begun: Session, operation: str = "kl_k1") -> Any:
    """What an operation of a submission returned."""
    answer = begun.call({**REQUEST, "operation": operation})
    if "raised" in answer:
        raise answer["raised"]
    observation = answer["observation"]
    assert isinstance(observation, Observation)
    return observation.value
