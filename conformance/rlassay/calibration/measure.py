"""Measuring: the loads of all comparisons that the checks make on one subject, and what they flag."""

from __future__ import annotations

import msgspec

from rlassay.check import Check, NotDeclared
from rlassay.comparison import Mismatch, noted_loads
from rlassay.engine import examples, not_provided
from rlassay.matrix.rows import ORACLE, Entry, checks_of
from rlassay.matrix.run import Matrix
from rlassay.torch_subject import TorchSubject


class Measured(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One subject under one seed: by check, the largest share of its tolerance that a comparison used, and what was
    found, robustness that a variant has on record left out."""

    subject: str
    seed: int
    loads: dict[str, float] = {}
    findings: dict[str, str] = {}


def measure(matrix: Matrix, task: tuple[str, int, str]) -> Measured:
    """Run all checks that are about a subject, with a seed and a profile."""
    key, seed, profile = task
    entry = matrix.entries[key]
    subject = entry.make()
    measured = Measured(subject=key, seed=seed)
    for check in checks_of(entry):
        if not_provided(check, subject.operations) is None:
            _measure(measured, check, entry, subject, profile)
    return measured


def _measure(measured: Measured, check: Check, entry: Entry, subject: TorchSubject, profile: str) -> None:
    with noted_loads() as loads:
        for _, raised in examples(check, subject, profile, measured.seed, ORACLE):
            if raised is None:
                continue
            if isinstance(raised, NotDeclared) or (check.kind == "robustness" and entry.excuse(check.law)):
                return
            measured.findings.setdefault(check.id, f"{type(raised).__name__}: {raised}"[:300])
            if not isinstance(raised, Mismatch):
                break
    if loads:
        measured.loads[check.id] = max(loads)
