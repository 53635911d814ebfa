"""What the hunt found does not come back."""

import tomllib
from pathlib import Path

import torch

import rlassay_impl
from rlassay.engine import run_check
from rlassay.matrix.rows import entries
from rlassay.suite import all_checks

FINDS = tomllib.loads(Path(__file__).with_name("finds.toml").read_text(encoding="utf-8"))["find"]
SUBJECTS = entries({name: getattr(rlassay_impl, name) for name in rlassay_impl.__all__}, "")


def test_finds_stay_mended() -> None:
    torch.set_num_threads(1)
    for find in FINDS:
        entry = SUBJECTS[find["subject"]]
        assert not entry.wrong
        result = run_check(all_checks()[find["check"]], entry.make(), find["profile"], find["seed"])
        assert result.outcome == "pass", (find, result.failure)
        assert find["mended"]
