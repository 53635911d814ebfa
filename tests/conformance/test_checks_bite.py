"""The suite bites: every check fails on an implementation that is known to be wrong, and every known fault is found.

The wrong subjects are the reference with one operation replaced by a fault: those of `rlassay.faults`, and the generic
ones planted into the reference. Which fault bites which check is searched, never listed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache, partial

import pytest
import torch

import rlassay_impl
from rlassay import shrink
from rlassay.check import Check
from rlassay.engine import run_check
from rlassay.faults import Fault, Function, all_faults, faults_of
from rlassay.faults.generic import generic_faults
from rlassay.faults.number_search import number_search
from rlassay.faults.parts import advantage, kl, log_prob, loss
from rlassay.faults.returns import gae, reward_to_go
from rlassay.faults.trajectory import response_mask
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject
from rlassay_spec.convention import CONVENTIONS, Convention, convention_from

REFERENCE: dict[str, Function] = {name: getattr(rlassay_impl, name) for name in rlassay_impl.__all__}
CHECKS = list(all_checks().values())
OPERATIONS = list(dict.fromkeys(check.operation for check in CHECKS))

EXPERIENCE: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""How often a kind of fault has been killed by a law, over all operations: what to try first."""


@pytest.fixture(autouse=True)
def _no_shrinking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "REPLAYS", 0)
    torch.set_num_threads(1)


@cache
def candidates(operation: str) -> list[Fault]:
    """All faults of an operation."""
    return [*faults_of(operation), *generic_faults(operation, REFERENCE[operation])]


def law(check: Check) -> str:
    """The part of a check's id that several operations share."""
    return check.id.partition("/")[2]


def kills(check: Check, fault: Fault, profile: str) -> bool:
    """Whether a check fails on the reference with this fault; an exception counts where the fault is that it raises."""
    subject = TorchSubject(REFERENCE | {fault.operation: fault.function}, fault.key)
    outcome = run_check(check, subject, profile).outcome
    killed = outcome == "fail" or (outcome == "error" and fault.raises)
    EXPERIENCE[law(check)][fault.id] += killed
    return killed


def first_kill(pairs: Iterable[tuple[Check, Fault]]) -> tuple[Check, Fault] | None:
    """The first pair of which the check kills the fault, tried with few examples before with many."""
    pairs = sorted(pairs, key=lambda pair: -EXPERIENCE[law(pair[0])][pair[1].id])
    for profile in ("quick", "standard"):
        for check, fault in pairs:
            if (profile == "quick" or check.examples == "profile") and kills(check, fault, profile):
                return check, fault
    return None


def sharpest_first(check: Check) -> list[Fault]:
    """The faults of a check's operations, those of its own kind first."""
    faults = [fault for operation in check.operations for fault in candidates(operation)]
    return sorted(faults, key=lambda fault: fault.kind != check.kind)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_check_of_an_operation_kills_a_fault_and_every_fault_is_killed(operation: str) -> None:
    killed = set()
    toothless = []
    for check in CHECKS:
        if check.operation != operation:
            continue
        found = first_kill((check, fault) for fault in sharpest_first(check))
        if found is None:
            toothless.append(check.id)
        else:
            killed.add(found[1].key)
    survivors = []
    concerned = [check for check in CHECKS if operation in check.operations]
    for fault in candidates(operation):
        able = [check for check in concerned if check.kind == "conformance" or fault.kind == "robustness"]
        if fault.key not in killed and first_kill((check, fault) for check in able) is None:
            survivors.append(f"{fault.key}: {fault.title}")
    assert not toothless, f"no known fault fails these checks: {toothless}"
    assert not survivors, f"no check fails on these faults: {survivors}"


def right_blocks(convention: Convention) -> dict[str, Function]:
    """What the faults are made of, with nothing exchanged."""
    declared: dict[str, Function] = {
        "centered_advantages": advantage.centred,
        "grpo_advantages": advantage.normalised,
        "rloo_advantages": advantage.leave_one_out,
        **{name: partial(kl.estimate, formula=getattr(kl, name[3:])) for name in ("kl_k1", "kl_k2", "kl_k3")},
        **{name: getattr(loss, name) for name in OPERATIONS if hasattr(loss, name)},
    }
    free = {name: getattr(log_prob, name) for name in OPERATIONS if hasattr(log_prob, name)}
    others = (reward_to_go, gae, response_mask, number_search)
    return (
        {name: partial(code, convention=convention) for name, code in declared.items()}
        | free
        | {code.__name__: code for code in others}
        | {"max_advantages": advantage.best}
    )


OTHER = convention_from(
    {
        "std_ddof": 1,
        "std_eps": 1e-4,
        "std_eps_place": "inside",
        "aggregation": "token_mean",
        "empty_rows": "dropped",
        "singleton_group": "reward",
        "k3_clamp": 5.0,
        "log_ratio_clamp": 1.0,
    }
)


@pytest.mark.parametrize("convention", [*CONVENTIONS.values(), OTHER], ids=lambda convention: convention.name)
def test_what_the_faults_are_made_of_conforms(convention: Convention) -> None:
    subject = TorchSubject(right_blocks(convention), convention=convention)
    wrong = {
        check.id: result.failure.message
        for check in CHECKS
        if not law(check).startswith("refuses-")
        and (result := run_check(check, subject, "quick")).failure
        and result.outcome not in ("not-provided", "not-declared")
    }
    assert not wrong


def test_every_fault_says_where_it_was_seen_and_completes_the_sentence() -> None:
    for fault in all_faults().values():
        assert fault.operation in REFERENCE
        assert fault.source
        assert fault.title and not fault.title.endswith("."), fault.key
