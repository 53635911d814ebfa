"""The choices that correct implementations make differently, and how one declares them.

A field that is not declared has the value of the lecture. `CONVENTIONS` holds the named sets.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

ALLOWED: Final[dict[str, tuple[object, ...]]] = {
    "std_ddof": (0, 1),
    "std_eps_place": ("added", "inside", "floor"),
    "aggregation": ("sequence_sum", "sequence_mean", "token_mean", "constant"),
    "empty_rows": ("counted", "dropped"),
    "singleton_group": ("zero", "reward", "error", "free"),
    "old_log_probs": ("detached", "caller"),
    "empty_mean": ("zero", "free"),
}
"""The values of the fields that choose among names."""


@dataclass(frozen=True)
class Convention:
    """One set of declared choices.

    Attributes:
        name: what the set is called; no choice of its own.
        std_ddof: σ² divides by the number of rewards of a group, or of entries that are whitened, minus ddof.
        std_eps: ε in what normalised advantages and whitened values are divided by.
        std_eps_place: `added` σ + ε, `inside` √(σ² + ε), `floor` max(σ, ε).
        aggregation: `sequence_sum` (1/B) Σ_b Σ_t x, `sequence_mean` (1/B) Σ_b (1/n_b) Σ_t x, `token_mean` Σx / Σm,
            `constant` (1/B) Σ_b (1/C) Σ_t x.
        aggregation_constant: that C, in tokens.
        empty_rows: rows without a masked-in token are `counted` in B or `dropped` from it.
        singleton_group: the advantage of a group of one is `zero`, its `reward`, an `error` or `free`.
        old_log_probs: the gradient into them is cut (`detached`) by the operation itself, or by its `caller`.
        k3_clamp: c, where k3 is bounded to [−c, c].
        log_ratio_clamp: c, where log π − log π_old is bounded to [−c, c] before exp; the KL is not affected.
        empty_mean: the mean over no token is `zero`, or `free` to be NaN as well.

    Raises:
        ValueError: a field has a value that is not allowed; the message lists the allowed ones.
    """

    name: str = "lecture"
    std_ddof: int = 0
    std_eps: float = 0.0
    std_eps_place: str = "added"
    aggregation: str = "sequence_sum"
    aggregation_constant: float | None = None
    empty_rows: str = "counted"
    singleton_group: str = "zero"
    old_log_probs: str = "detached"
    k3_clamp: float | None = None
    log_ratio_clamp: float | None = None
    empty_mean: str = "zero"

    def __post_init__(self) -> None:
        for field, allowed in ALLOWED.items():
            value = getattr(self, field)
            if type(value) is not type(allowed[0]) or value not in allowed:
                raise ValueError(f"{field}: is {value!r}, expected one of {', '.join(map(repr, allowed))}")
        if not _is_number(self.std_eps) or self.std_eps < 0:
            raise ValueError(f"std_eps: is {self.std_eps!r}, expected a finite number ≥ 0")
        for field in ("aggregation_constant", "k3_clamp", "log_ratio_clamp"):
            value = getattr(self, field)
            if value is not None and (not _is_number(value) or value <= 0):
                raise ValueError(f"{field}: is {value!r}, expected None or a finite number > 0")
        if self.aggregation == "constant" and self.aggregation_constant is None:
            raise ValueError("aggregation_constant: is None, expected a finite number > 0 for aggregation 'constant'")

    def declared(self) -> dict[str, Any]:
        """The fields, without the name, that differ from the lecture convention."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "name" and getattr(self, field.name) != field.default
        }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


LECTURE: Final = Convention()
"""What holds where nothing is declared."""

CONVENTIONS: Final[dict[str, Convention]] = {
    "lecture": LECTURE,
    "cs336": Convention(
        name="cs336",
        std_ddof=1,
        std_eps=1e-6,
        aggregation="sequence_mean",
        singleton_group="free",
        old_log_probs="caller",
        empty_mean="free",
    ),
}
"""The named sets."""


def convention_from(declaration: Mapping[str, Any] | str, base: Convention = LECTURE) -> Convention:
    """The convention that a name, or a mapping from fields to values, stands for.

    Args:
        declaration: a name of `CONVENTIONS`, or a mapping of the fields that differ from `base`. A mapping whose `name`
            is one of `CONVENTIONS` starts from that set; any other name is a label.
        base: what holds for the fields that are not declared.

    Raises:
        ValueError: the name, a field or a value is unknown; the message lists what is allowed.
        TypeError: the declaration is neither a string nor a mapping.
    """
    if isinstance(declaration, str):
        if declaration not in CONVENTIONS:
            raise ValueError(f"convention: is {declaration!r}, expected one of {', '.join(map(repr, CONVENTIONS))}")
        return CONVENTIONS[declaration]
    if not isinstance(declaration, Mapping):
        raise TypeError(f"convention: is {type(declaration).__name__}, expected a name or a mapping of fields")
    known = [field.name for field in fields(Convention)]
    for field_name in declaration:
        if field_name not in known:
            raise ValueError(f"convention: has the field {field_name!r}, expected fields among {', '.join(known)}")
    name = declaration.get("name")
    base = CONVENTIONS.get(name, base) if isinstance(name, str) else base
    changed = replace(base, **declaration)
    if name is None or (name in CONVENTIONS and changed != base):
        return replace(changed, name="declared" if base == LECTURE else f"{base.name}, changed")
    return changed
