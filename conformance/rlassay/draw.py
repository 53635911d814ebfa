"""Draw: the named choices and seeded numbers from which one case of a check is built.

A case is a function of a few small named choices (shape, regime, mask kind, …) and a seed. Naming them makes a case
readable in a report, reproducible from the report, and shrinkable: the shrinker replays the same check with one choice
made simpler and keeps what still fails (`rlassay.shrink`). Choices are stratified: k consecutive examples of a check go
through all k options of a choice, in an order that differs from block to block, so a regime is never missed by luck.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

Option = TypeVar("Option")


class Draw:
    """One example's choices.

    `seed` and `index` select the example, `forced` overrides choices by name (0 is the simplest option), `digits`
    rounds every drawn number to that many decimals.
    """

    def __init__(
        self, seed: str, index: int = 0, forced: Mapping[str, int] | None = None, digits: int | None = None
    ) -> None:
        self.seed = seed
        self.index = index
        self.forced = dict(forced or {})
        self.digits = digits
        self.choices: dict[str, int] = {}
        self.labels: dict[str, str] = {}
        self._rng: np.random.Generator | None = None

    def again(self) -> Draw:
        """The same example, from its start."""
        return Draw(self.seed, self.index, self.forced | self.choices, self.digits)

    @property
    def rng(self) -> np.random.Generator:
        """The generator of this example's numbers."""
        if self._rng is None:
            self._rng = np.random.default_rng(random.Random(f"{self.seed}:{self.index}").getrandbits(64))
        return self._rng

    def choice(self, name: str, options: Sequence[Option]) -> Option:
        """One of `options`; the first is the simplest."""
        position = self._position(name, len(options))
        option = options[position]
        self.labels[name] = str(option)
        return option

    def integer(self, name: str, low: int, high: int) -> int:
        """An integer in low..high, both included; `low` is the simplest."""
        value = low + self._position(name, high - low + 1)
        self.labels[name] = str(value)
        return value

    def normal(self, *shape: int, scale: float = 1.0, shift: float = 0.0) -> np.ndarray:
        """Normal numbers with the given standard deviation and mean."""
        return self._rounded(self.rng.normal(shift, scale, size=shape))

    def uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        """Uniform numbers in [low, high)."""
        return self._rounded(self.rng.uniform(low, high, size=shape))

    def integers(self, low: int, high: int, *shape: int) -> np.ndarray:
        """Integers in low..high, both included."""
        return self.rng.integers(low, high, size=shape, endpoint=True)

    def pick(self, options: Sequence[float], *shape: int) -> np.ndarray:
        """An array whose entries are picked independently from `options`."""
        return np.asarray(options)[self.rng.integers(0, len(options), size=shape)]

    def permutation(self, length: int) -> np.ndarray:
        """A permutation of 0..length−1, not the identity when length > 1."""
        if length < 2:
            return np.arange(length)
        order = self.rng.permutation(length)
        return np.roll(order, 1) if (order == np.arange(length)).all() else order

    def _position(self, name: str, count: int) -> int:
        if name in self.choices:
            raise ValueError(f"choice {name!r} is drawn twice in one example; give the second one another name")
        if name in self.forced:
            position = min(self.forced[name], count - 1)
        else:
            block, place = divmod(self.index, count)
            position = _order(f"{self.seed}:{name}:{block}", count)[place]
        self.choices[name] = position
        return position

    def _rounded(self, numbers: np.ndarray) -> np.ndarray:
        return numbers if self.digits is None else np.round(numbers, self.digits)


@lru_cache(maxsize=4096)
def _order(seed: str, count: int) -> list[int]:
    """The options of a choice in the order of one block; the examples of a block share it."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order
