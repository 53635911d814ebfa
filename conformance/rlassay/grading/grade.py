"""The grade of one submission: what its record and the assignment amount to, as it is stored and shown."""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA = 1

Status = Literal["graded", "review", "failed"]
"""`review`: rlassay itself failed in some checks, so a person has to look before the marks count. `failed`: rlassay
could not grade the submission at all; it has no marks, and none are lost."""

How = Literal["modules", "definitions", "nothing"]
"""What of a submission was judged: the modules that it is made of; their definitions alone, since they do not load; or
nothing, since there is nothing that can be."""


class PartGrade(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one part of the assignment earned; points are exact fractions, as text."""

    name: str
    points: str
    earned: str
    passed: int
    failed: int
    excused: int = 0
    provided: bool = True
    explanation: str = ""
    fault: str = ""


class Grade(msgspec.Struct, tag="grade", tag_field="type", kw_only=True, omit_defaults=True):
    """One submission's grade.

    `earned` is the sum over the parts, `penalty` the share that being late costs, `points` what is left; exact
    fractions as text. `notes` are for the student too, `alerts` for the staff alone. `seconds` are those that the
    submission made the grader wait, `cpu` its own.
    """

    schema: int
    key: str
    id: str
    name: str = ""
    files: list[str] = []
    sha256: str = ""
    assignment: str
    rlassay: str
    level: str
    status: Status
    how: How = "modules"
    points: str = "0"
    earned: str = "0"
    maximum: str
    penalty: str = "0"
    lateness: str = ""
    parts: list[PartGrade] = []
    notes: list[str] = []
    alerts: list[str] = []
    seconds: float = 0.0
    cpu: float = 0.0
