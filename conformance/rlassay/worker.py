"""The worker process: loads the target and runs checks one by one as its parent asks.

A check that never returns or kills its process costs the worker, not the run: the parent starts another one and goes
on (`rlassay.runner`). Requests come as JSON lines on standard input, answers leave as JSON lines on what was standard
output; the subject's own prints are discarded. (This guards a run against accidents. Untrusted submissions need the
isolation of grading.)
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import asdict
from typing import IO

import msgspec

from rlassay.engine import run_check
from rlassay.record import CheckResult, Explanation


class Setup(msgspec.Struct, tag="setup"):
    """First request: what to load and under which settings."""

    target: str
    interface: str
    convention: str | None
    profile: str
    seed: int


class Run(msgspec.Struct, tag="run"):
    """Run one check."""

    check: str


class Explain(msgspec.Struct, tag="explain"):
    """Say what a failing operation behaves like."""

    operation: str


class Ready(msgspec.Struct, tag="ready", tag_field="type"):
    """Answer to a setup that worked."""

    operations: list[str]
    convention: dict[str, str | int | float | None]
    sha256: str
    libraries: dict[str, str]


class Unusable(msgspec.Struct, tag="unusable", tag_field="type"):
    """Answer to a setup that did not: the message of the TargetError."""

    message: str


Request = Setup | Run | Explain
Answer = Ready | Unusable | CheckResult | Explanation


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until the input ends."""
    import torch

    from rlassay.explain import explain
    from rlassay.load import load_target
    from rlassay.subject import TargetError
    from rlassay.suite import all_checks
    from rlassay.torch_subject import TorchSubject

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")

    def answer(message: Answer) -> None:
        answers.write(msgspec.json.encode(message) + b"\n")
        answers.flush()

    decoder = msgspec.json.Decoder(Request)
    setup = decoder.decode(requests.readline())
    assert isinstance(setup, Setup)
    try:
        target = load_target(setup.target, setup.interface, setup.convention)
    except TargetError as error:
        answer(Unusable(str(error)))
        return
    subject = TorchSubject(target.functions, target.name, target.convention)
    checks = all_checks()
    answer(Ready(sorted(subject.operations), asdict(subject.convention), target.sha256, _versions()))
    for line in requests:
        request = decoder.decode(line)
        if isinstance(request, Run):
            answer(run_check(checks[request.check], subject, setup.profile, setup.seed))
        elif isinstance(request, Explain):
            answer(explain(request.operation, subject))


def _versions() -> dict[str, str]:
    import numpy
    import torch

    return {"torch": str(torch.__version__), "numpy": numpy.__version__}


def main() -> None:
    """Serve on the inherited standard streams, with the subject's own output silenced."""
    answers = os.fdopen(os.dup(1), "wb")
    requests = os.fdopen(os.dup(0), "rb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    sys.path[:] = [entry for entry in sys.path if entry != ""]
    serve(requests, answers)


if __name__ == "__main__":
    main()
