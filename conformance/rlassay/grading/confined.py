"""What guests of a grader are made with: a warm process that has stood the self-test, and the confinement."""

from __future__ import annotations

import gc
import json
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlassay.grading.assignment import Assignment
from rlassay.guest.confine import LEVELS, Confinement, best_level
from rlassay.guest.wire import Closed, Late, WireError
from rlassay.isolation.selftest import SelfTest, selftest
from rlassay.isolation.warm import IsolationError, WarmProcess

THREADS = 8
"""Threads that a submission may have."""

PAGE = 4096
"""Bytes of /tmp are counted in these."""

PROBE_SECONDS = 120.0
"""How long the self-test may take."""

_OWN = threading.local()


def tested_level(assignment: Assignment, level: str, private: Sequence[Path] = ()) -> SelfTest:
    """The self-test of a level on this machine; `private` are files and folders that submissions must not see.

    Raises:
        IsolationError: the level is not to be had here, or does not hold; says which one is. Or it would show what is
            private.
    """
    try:
        with WarmProcess(*filter(None, [assignment.python])) as warm:
            require_unseen(warm, level, [*assignment.files, *private])
            tested = probe(warm, assignment, level)
    except Exposed:
        raise
    except IsolationError as error:
        best, _ = best_level()
        weaker = best in LEVELS and LEVELS.index(best) > LEVELS.index(level)
        advice = f"; this machine gives {best}, which you can ask for with --isolation {best}" if weaker else ""
        raise IsolationError(f"the level {level} is not to be had: {error}{advice}") from error
    _require_held(tested)
    return tested


class Exposed(IsolationError):
    """A submission could read what it must not see."""


def require_unseen(warm: WarmProcess, level: str, private: Iterable[Path]) -> None:
    """Nothing private lies where an interpreter, and so a submission, has to read.

    Raises:
        Exposed: it does; says what, and what to do.
    """
    if level == "limits":
        return
    for path in private:
        for place in warm.view.readable:
            if path.resolve().is_relative_to(Path(place).resolve()):
                raise Exposed(
                    f"{path}: lies in {place}, which submissions can read, as {warm.python} needs it or has it on its "
                    "path; move it, or grade with another Python"
                )


def _require_held(tested: SelfTest) -> None:
    if not tested.withstood:
        broken = "; ".join(f"{name}: {what}" for name, what in tested.broken.items())
        raise IsolationError(f"the level {tested.level} does not hold on this machine: {broken}")


def warm_process(assignment: Assignment, level: str) -> WarmProcess:
    """The thread's warm process, of the assignment's interpreter: the same from one submission to the next.

    Raises:
        IsolationError: it does not start, or the level does not hold.
    """
    wanted = (assignment.python, level)
    if getattr(_OWN, "wanted", None) != wanted:
        end_warm_process()
        warm = WarmProcess(*filter(None, [assignment.python]))
        try:
            require_unseen(warm, level, assignment.files)
            _require_held(probe(warm, assignment, level))
        except BaseException:
            warm.close()
            raise
        _OWN.warm, _OWN.wanted = warm, wanted
        gc.collect()
        gc.freeze()  # what has been imported by now stays; nobody needs to look through it again and again
    kept: WarmProcess = _OWN.warm
    return kept


def end_warm_process() -> None:
    """End the thread's warm process, if it has one."""
    if getattr(_OWN, "wanted", None) is not None:
        _OWN.warm.close()
        _OWN.wanted = None


def probe(warm: WarmProcess, assignment: Assignment, level: str) -> SelfTest:
    """The self-test of a level, by a guest that is confined as the assignment's submissions are.

    Raises:
        IsolationError: the guest cannot be confined, or gives no answer.
    """

    def run(confinement: Confinement, targets: dict[str, Any]) -> Mapping[str, str]:
        guest = warm.guest(confinement, run=json.dumps(targets))
        try:
            answer: Mapping[str, str] = guest.channel.receive(PROBE_SECONDS)["attempts"]
        except (Closed, Late, WireError, KeyError) as error:
            raise IsolationError(f"the self-test gave no answer: {error!r}") from error
        finally:
            guest.end()
        return answer

    with tempfile.TemporaryDirectory(prefix="rlassay-") as scratch:
        return selftest(confinement_of(warm, assignment, level, Path(scratch), Path(scratch)), run)


def confinement_of(warm: WarmProcess, assignment: Assignment, level: str, source: Path, scratch: Path) -> Confinement:
    """The confinement of an assignment's submission, which lies in the folder `source`; its copy takes no room in /tmp
    that it may write to."""
    limits = assignment.limits
    files = [path.stat().st_size for path in source.rglob("*") if path.is_file()]
    return Confinement(
        level=level,
        source=str(source.absolute()),
        readable=warm.view.readable,
        hidden=warm.view.hidden,
        scratch=str(scratch.absolute()),
        memory=limits.memory,
        cpu=limits.cpu,
        tmp=limits.tmp + sum(-(-size // PAGE) * PAGE for size in files),
        threads=THREADS,
    )
