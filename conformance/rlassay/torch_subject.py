"""A subject made of torch functions in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlassay.guest.observation import Cotangent, Observation
from rlassay.guest.torch_call import call
from rlassay.guest.values import Arguments
from rlassay_spec.convention import LECTURE, Convention


class TorchSubject:
    """Operations given as a mapping from name to Python function; `code` says how other code gets hold of one."""

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        name: str = "subject",
        convention: Convention = LECTURE,
        code: Callable[[str], str] | None = None,
    ) -> None:
        self.name = name
        self.convention = convention
        self.functions = dict(functions)
        self._code = code

    @property
    def operations(self) -> frozenset[str]:
        """Names of the operations it provides."""
        return frozenset(self.functions)

    def code(self, operation: str) -> str:
        """Python lines after which `subject` has the operation (see `Reachable.code`)."""
        return self._code(operation) if self._code is not None else ""

    def call(
        self,
        operation: str,
        arguments: Arguments,
        *,
        live: tuple[str, ...] = (),
        cotangent: Cotangent | None = None,
        keywords: bool = False,
        audit: bool = False,
        times: int = 1,
    ) -> Observation:
        """Call an operation (see `Subject.call`)."""
        function = self.functions[operation]
        return call(
            function,
            arguments,
            live=live,
            cotangent=cotangent,
            keywords=keywords,
            audit=audit,
            times=times,
        )
