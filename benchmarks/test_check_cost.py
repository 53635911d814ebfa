"""What `rlassay check` of the reference costs beyond importing torch, by profile; each timed run is also checked.

    python -m pytest benchmarks --benchmark-columns=min,median

The aim is at most 5 ms of CPU a check for quick and 20 ms for standard, on one core.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from rlassay.engine import run_check
from rlassay.load import load_target
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject


@pytest.mark.parametrize("profile", ["quick", "standard"])
def test_cost_of_checking_the_reference(benchmark: BenchmarkFixture, profile: str) -> None:
    torch.set_num_threads(1)
    subject = TorchSubject(load_target("rlassay_impl").functions)
    checks = [check for check in all_checks().values() if set(check.operations) <= subject.operations]

    def judge() -> Counter[str]:
        return Counter(run_check(check, subject, profile).outcome for check in checks)

    judge_started = time.process_time()
    outcomes = benchmark.pedantic(judge, rounds=1, warmup_rounds=0)
    benchmark.extra_info["cpu_seconds"] = round(time.process_time() - judge_started, 2)
    benchmark.extra_info["checks"] = len(checks)
    assert outcomes == {"pass": len(checks)}
