"""Runs the checks of an assignment on a submission that answers from a guest."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict

from rlassay.check import Check
from rlassay.engine import not_provided, result_of, run_check
from rlassay.explain import TO_DECLARE, explain
from rlassay.isolation.remote import RemoteSubject
from rlassay.isolation.session import Session
from rlassay.notes import near_names
from rlassay.record import UNEXPLAINED, CheckResult, Explanation
from rlassay.runner import Strikes
from rlassay.subject import SubjectGone
from rlassay.worker import Ready
from rlassay_spec.convention import Convention, convention_from

MOST_NOTE = 1000
"""So many characters of a note are kept."""


class GuestRunner:
    """Runs checks one by one, with so many examples each, drawn from a seed (see `judge.Judging`).

    Visible checks have a seed of their own, which should be another one for each version that is handed in: what is
    shown of one version then tells nothing about the inputs of the next.

    `visible` are the ids of the checks that the student sees in full. They must come first: whoever answers them has
    not been asked the others yet, so that nothing of those can be told in an answer that is shown. `sha256` is that of
    the submission's files, `notes` are those of unpacking and loading.
    """

    def __init__(
        self,
        session: Session,
        convention: Convention,
        *,
        visible: Collection[str],
        sha256: str,
        examples: int,
        seed: int,
        visible_seed: int,
        notes: Collection[str] = (),
    ) -> None:
        self.session, self.examples = session, examples
        self.seed, self.visible_seed = seed, visible_seed
        self.visible, self.asked_hidden = frozenset(visible), False
        self.subject = RemoteSubject(session, _module(session.loading.target), convention)
        self.strikes = Strikes()
        loaded = session.loaded
        self.ready = Ready(
            operations=list(loaded.operations),
            convention=asdict(convention),
            sha256=sha256,
            python=loaded.python,
            libraries=dict(loaded.libraries),
            notes=[*notes, *loaded.notes, *_notes(session, convention)],
        )

    def run(self, check: Check) -> CheckResult:
        """The outcome of one check.

        Raises:
            IsolationError: there is no guest to be had to ask.
        """
        known = not_provided(check, self.ready.operations) or self.strikes.out(check)
        if known is not None:
            return known
        self.asked_hidden |= check.id not in self.visible
        assert not (self.asked_hidden and check.id in self.visible), "visible checks come first"
        seed = self.visible_seed if check.id in self.visible else self.seed
        result = run_check(check, self.subject, self.examples, seed)
        if self.session.broken is not None:
            raise self.session.broken
        self.strikes.count(result)
        return result

    def explain(self, operation: str) -> Explanation | None:
        """What a failing operation behaves like, or None where it hangs or crashes."""
        if self.strikes.any_of(operation):
            return None
        try:
            explanation = explain(operation, self.subject)
            explanation.text = explanation.text.replace(TO_DECLARE, "the assignment's convention is another")
            return explanation
        except SubjectGone:
            return None
        except Exception as error:  # noqa: BLE001 - a mark without an explanation is still a mark
            return Explanation(operation=operation, text=f"{UNEXPLAINED}: the search for one failed: {error!r}")


class NothingRunner:
    """Stands for a submission of which nothing can be judged, for a reason: every check finds nothing provided."""

    def __init__(self, convention: Convention, sha256: str, reason: str, notes: Collection[str] = ()) -> None:
        self.reason = reason
        self.ready = Ready(
            operations=[],
            convention=asdict(convention),
            sha256=sha256,
            python="",
            libraries={},
            notes=[*notes, reason],
        )

    def run(self, check: Check) -> CheckResult:
        """Not provided, and why."""
        return result_of(check, "not-provided", self.reason)

    def explain(self, operation: str) -> Explanation | None:
        """Nothing: there is nothing that could be asked."""
        return None


def _module(target: str) -> str:
    """The name by which a student imports what was loaded."""
    return "" if target == "." else target.replace("/", ".").removesuffix(".py")


def _notes(session: Session, convention: Convention) -> Iterator[str]:
    loaded = session.loaded
    yield from near_names(loaded.names, loaded.operations, session.loading.interface)
    if loaded.declared is None:
        return
    try:
        declared = convention_from(loaded.declared, convention)
    except (TypeError, ValueError) as error:
        yield f"its CONVENTION is not read: {error}"[:MOST_NOTE]
        return
    if declared != convention:
        yield "it declares another convention than the assignment's, which is the one that counts"
