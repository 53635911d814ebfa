"""What grading a class costs with the real command on all cores, by profile; each mark of the timed run is checked.

    python -m pytest benchmarks/test_grading_cost.py --benchmark-columns=min

The aim on two cores is at least 60 submissions a minute in the standard profile and 200 in quick, once the graders have
started. `python benchmarks/grading_load.py 500` grades a class with hostile submissions in it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from grading_load import compare, grade, write_folder
from pytest_benchmark.fixture import BenchmarkFixture

CLASS = {"quick": 100, "standard": 50}


@pytest.mark.parametrize("profile", ["quick", "standard"])
def test_cost_of_grading_a_class(benchmark: BenchmarkFixture, tmp_path: Path, profile: str) -> None:
    assignment, made = write_folder(tmp_path, CLASS[profile], profile, hostile=False)
    report = benchmark.pedantic(grade, args=(tmp_path, made), rounds=1, warmup_rounds=0)
    compare(tmp_path, assignment, made, report)
    benchmark.extra_info["per_minute"] = round(report.per_minute)
    benchmark.extra_info["cpu_seconds_each"] = round(report.cpu / report.submissions, 2)
    benchmark.extra_info["memory"] = report.memory
    assert report.wrong == []
