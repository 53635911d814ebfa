"""The exact versions of what is installed here for rlassay, to be installed again elsewhere."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution

NAME = re.compile(r"[A-Za-z0-9._-]+")
EXTRA = re.compile(r"\bextra\s*==")
FOR_GPUS = re.compile(r"nvidia-|cuda-|triton")
"""What builds of torch for GPUs need besides, and others do not."""


class PinError(Exception):
    """The versions are not known; says of what."""


def pins() -> dict[str, str]:
    """The version of everything that rlassay needs, and of what that needs, by name; rlassay itself is not among it.

    What is not installed here is taken for needed on other systems or Pythons alone. A version is without what marks
    one build of it, as in 2.9.0+cpu.

    Raises:
        PinError: rlassay was not installed as a package, or without torch or NumPy, so what it needs is not known.
    """
    found: dict[str, str] = {}
    waiting = _needs("rlassay")
    while waiting:
        name = waiting.pop()
        if name in found or FOR_GPUS.match(name):
            continue
        try:
            found[name] = distribution(name).version.partition("+")[0]
        except PackageNotFoundError:
            continue
        waiting += _needs(name)
    found.pop("rlassay", None)
    missing = [name for name in ("torch", "numpy") if name not in found]
    if missing:
        raise PinError(
            f"the versions of what rlassay needs are not known: {' and '.join(missing)} not among what is installed "
            "for it; install rlassay with pip, from its folder or a wheel"
        )
    return dict(sorted(found.items()))


def _needs(name: str) -> list[str]:
    """The names of all that a distribution needs, extras apart."""
    try:
        requires = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    needed = [requirement for requirement in requires if not EXTRA.search(requirement)]
    return [re.sub(r"[-_.]+", "-", match[0]).lower() for match in map(NAME.match, needed) if match]
