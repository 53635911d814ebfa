"""Identification: which convention an operation follows, found from what it answers.

The choices are found group by group, each from calls that depend on no choice that is still unknown: how terms are
averaged, what the standard deviation is made of, and so on. Names are found by what they rule out. Numbers (ε, a
constant, a clamp) are found by turning the oracle round: each answer allows an interval of them, as wide as rounding
makes it, and the intervals of all answers are intersected. In the end everything that was asked, and random cases
besides, has to agree with the whole convention; else none fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlassay.guest.errors import SubjectRaised
from rlassay.identify.choices import AVERAGE, DEVIATION, ROWS, SINGLETONS, Group
from rlassay.identify.finding import Finding, Identification
from rlassay.identify.judge import contradiction_of, findings_of
from rlassay.identify.question import Probe, Question, ask
from rlassay.identify.questions import (
    cases,
    groups_of,
    has_groups_of_one,
    old_policy_questions,
    questions_about,
    random_questions,
    spread_argument,
)
from rlassay.identify.solve import Fit, fit
from rlassay.subject import Subject
from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.oracles import ORACLES, takes_convention

GUARD = 2.0**-13
"""Largest half distance between rewards below which a group may be taken for one without contrast."""

CERTAIN = 1e-9
"""Relative width of an interval that has no influence on other answers."""


def identifiable(operation: str) -> bool:
    """Whether the operation's answers depend on the convention."""
    return operation in ORACLES and takes_convention(operation) and bool(cases(operation))


def identify(operation: str, subject: Subject) -> Identification:
    """Find the convention that an operation of a subject follows."""
    with np.errstate(all="ignore"):
        return _Inquiry(operation, subject).result()


class _Inquiry:
    """What is known so far: a convention, and the `corners` between which it lies as far as numbers are uncertain."""

    def __init__(self, operation: str, subject: Subject) -> None:
        self.operation, self.subject = operation, subject
        self.known = LECTURE
        self.corners: list[Convention] = [LECTURE]
        self.fits: dict[Group, list[Fit]] = {}
        self.asked: dict[Group, list[Probe]] = {}
        self.probes: list[Probe] = []
        self.unexplained: tuple[Probe, ...] = ()
        self.notes: list[str] = []
        self.others: list[Finding] = []

    def result(self) -> Identification:
        """Ask, solve and verify."""
        groups = groups_of(self.operation)
        for place, group in enumerate(groups, start=1):
            if not self._find(group, groups[place:]):
                break
        else:
            self._find_old_log_probs()
        drawn = [probe for probe in self._ask(random_questions(self.operation)) if not self._excused(probe)]
        self.probes += drawn
        leaks = dict.fromkeys(name for probe in drawn for name in probe.leaks)
        if leaks:
            self.notes.append(f"lets a gradient into {' and '.join(leaks)}, which should be detached")
        misses = [probe for probe in self.probes if probe in self.unexplained or not self._agrees(probe)]
        found = Identification(
            operation=self.operation,
            verdict="none" if misses else "fits",
            observations=len(self.probes),
            agreeing=len(self.probes) - len(misses),
            notes=self.notes,
        )
        if misses:
            found.closest = self.known.declared()
            found.contradiction = contradiction_of(misses, self.known)
            return found
        for group, fits in self.fits.items():
            found.findings += findings_of(group, fits, self.known, [*self.asked[group], *drawn])
        found.findings += self.others
        return found

    def _ask(self, questions: Sequence[Question]) -> list[Probe]:
        return [ask(self.subject, question) for question in questions]

    def _find(self, group: Group, later: tuple[Group, ...]) -> bool:
        """Learn what a group of choices is; False where none of them explains what is asked about it."""
        probes = self._without_excused(group, self._ask(questions_about(self.operation, group, self.known, later)))
        if not probes:
            return True
        fits = self._fits(group, probes)
        if group is DEVIATION and not fits:
            probes, fits = self._above_guard(probes)
        self.probes += probes
        self.asked[group], self.fits[group] = probes, fits
        if fits:
            self._learn(fits[0])
            return True
        closest = self._closest(group, probes)
        self.known = closest.at(self.known)
        self.corners, self.unexplained = [self.known], closest.misses
        return False

    def _learn(self, best: Fit) -> None:
        ends = [best.at(self.known)]
        if not math.isinf(best.high) and best.high - best.low > CERTAIN * max(best.low, CERTAIN):
            ends = best.ends(self.known)
        self.known = ends[0]
        self.corners = list(dict.fromkeys([*ends, *(best.at(corner) for corner in self.corners)]))

    def _fits(self, group: Group, probes: Sequence[Probe]) -> list[Fit]:
        """The choices that all probes allow: of those that leave something free only what they alone allow.

        How uncertain the numbers are that are known counts where it has to, as it costs time.
        """
        left: list[Fit] = []
        for corners in ([self.known], self.corners)[: len(self.corners)]:
            if not left:
                fits = [fit(option, probes, corners) for option in group.options]
                left = [one for one in fits if not one.misses]
        strict = [one for one in left if "free" not in one.option.change.values()]
        if group is AVERAGE:
            strict = [one for one in left if not one.option.number]
        return strict or left

    def _closest(self, group: Group, probes: Sequence[Probe]) -> Fit:
        """The choice that the fewest probes contradict."""
        fits = [fit(option, probes, self.corners, thorough=True) for option in group.options]
        return min(fits, key=lambda one: len(one.misses))

    def _above_guard(self, probes: list[Probe]) -> tuple[list[Probe], list[Fit]]:
        """Leave out the smallest distances of rewards, as few as will do, where code often answers 0 by a guard."""
        name = spread_argument(self.operation)
        spreads = [float(np.abs(probe.question.arguments[name].array).max()) for probe in probes]
        limits = [spread for spread in sorted(set(spreads))[1:] if spread <= GUARD]
        found: tuple[list[Probe], list[Fit]] = (probes, [])
        first, last = 0, len(limits) - 1
        while first <= last:
            middle = (first + last) // 2
            kept = [probe for probe, spread in zip(probes, spreads, strict=True) if spread >= limits[middle]]
            fits = self._fits(DEVIATION, kept)
            if fits:
                found, last = (kept, fits), middle - 1
            else:
                first = middle + 1
        if found[1]:
            self.notes.append(f"answers otherwise where σ is below about {limits[first]:.0e}: there may be a guard")
        return found

    def _without_excused(self, group: Group, probes: list[Probe]) -> list[Probe]:
        """Leave out calls that no check makes: batches without a token, and groups of one where none is answered."""
        if group is ROWS:
            empty = [probe for probe in probes if probe.raised and not probe.question.arguments["mask"].array.any()]
            self.notes += [f"raises {probe.observed} where no token is masked in" for probe in empty]
            return [probe for probe in probes if probe not in empty]
        breaks = bool(probes) and all(probe.raised and not probe.refused for probe in probes)
        if group is SINGLETONS and breaks:
            self._leave_singletons_free(probes)
            return []
        return probes

    def _leave_singletons_free(self, raising: list[Probe]) -> None:
        self.notes.append(f"raises {raising[0].observed} in groups of one")
        self.known = replace(self.known, singleton_group="free")
        self.corners = [replace(corner, singleton_group="free") for corner in self.corners]
        self.others.append(Finding(field="singleton_group", state="determined", value="free", separating=len(raising)))

    def _find_old_log_probs(self) -> None:
        """A gradient that arrives in π_old shows that its caller has to cut it."""
        questions, same_pass = old_policy_questions(self.operation)
        probes = [probe for probe in self._ask(questions) if probe.seen is not None and self._alive(probe)]
        if not probes:
            return
        flows = any(probe.leaks for probe in probes)
        value = "caller" if flows else "detached"
        self.known = replace(self.known, old_log_probs=value)
        self.corners = [replace(corner, old_log_probs=value) for corner in self.corners]
        self.others.append(Finding(field="old_log_probs", state="determined", value=value, separating=len(probes)))
        if not flows:
            self.probes += self._ask(same_pass)

    def _agrees(self, probe: Probe) -> bool:
        return probe.fits([self.known]) or probe.fits(self.corners)

    def _excused(self, probe: Probe) -> bool:
        """Whether the call raised on groups of one, which are left free."""
        if self.known.singleton_group != "free" or not probe.raised:
            return False
        return has_groups_of_one(probe.question.arguments)

    def _alive(self, probe: Probe) -> bool:
        first = probe.question.live[0]
        observed = probe.observed
        assert not isinstance(observed, SubjectRaised)
        gradient = observed.gradients.get(first)
        return gradient is not None and bool(gradient.any())
