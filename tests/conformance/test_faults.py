"""What the known faults are made of is right, so that each is wrong in one thing. (`rlassay faults` kills them.)"""

from __future__ import annotations

from functools import partial

import pytest
import torch

import rlassay_impl
from rlassay.engine import run_check
from rlassay.faults import Function, all_faults
from rlassay.faults.number_search import number_search
from rlassay.faults.parts import advantage, kl, log_prob, loss, sampling, shaping, surrogate
from rlassay.faults.returns import gae, reward_to_go
from rlassay.faults.trajectory import response_mask
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject
from rlassay_spec.convention import CONVENTIONS, Convention, convention_from

OPERATIONS = tuple(rlassay_impl.__all__)


def right_blocks(convention: Convention) -> dict[str, Function]:
    """What the faults are made of, with nothing exchanged."""
    declared: dict[str, Function] = {
        "centered_advantages": advantage.centred,
        "grpo_advantages": advantage.normalised,
        "rloo_advantages": advantage.leave_one_out,
        "whiten": shaping.whiten,
        **{name: partial(kl.estimate, formula=getattr(kl, name[3:])) for name in ("kl_k1", "kl_k2", "kl_k3")},
        **{name: getattr(loss, name) for name in OPERATIONS if hasattr(loss, name)},
        **{name: getattr(surrogate, name) for name in ("dual_clip_loss", "gspo_loss", "entropy_bonus")},
    }
    free = {name: getattr(log_prob, name) for name in OPERATIONS if hasattr(log_prob, name)}
    others = (
        *(reward_to_go, gae, response_mask, number_search),
        *(shaping.kl_rewards, shaping.overlong_penalty, sampling.truncated_log_probs),
    )
    return (
        {name: partial(code, convention=convention) for name, code in declared.items()}
        | free
        | {code.__name__: code for code in others}
        | {"max_advantages": advantage.best, "importance_weights": surrogate.importance_weights}
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
    torch.set_num_threads(1)
    subject = TorchSubject(right_blocks(convention), convention=convention)
    wrong = {
        check.id: result.failure.message
        for check in all_checks().values()
        if not check.refuses
        and (result := run_check(check, subject, "quick")).failure
        and result.outcome not in ("not-provided", "not-declared")
    }
    assert not wrong


def test_every_fault_says_where_it_was_seen_and_completes_the_sentence() -> None:
    for fault in all_faults().values():
        assert fault.operation in OPERATIONS
        assert fault.source
        assert fault.title and not fault.title.endswith("."), fault.key
