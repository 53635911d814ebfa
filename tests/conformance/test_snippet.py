"""The code that repeats a failing call runs as it is, and shows what the report says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rlassay.comparison import Mismatch, require_value
from rlassay.engine import run_check
from rlassay.guest.observation import Observation
from rlassay.guest.values import LAYOUTS, Tensor
from rlassay.load import load_target
from rlassay.record import Failure
from rlassay.snippet import snippet
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject
from rlassay_spec.oracles.expected import Expected

SOLUTION = """
import torch

def sft_loss(log_probs, mask):
    return -(log_probs * mask).sum(dim=1).sum()

def kl_k1(log_probs, ref_log_probs):
    return log_probs.detach() - ref_log_probs

def reinforce_loss(log_probs, mask, rewards, baselines):
    return -(torch.where(mask.bool(), log_probs, 0.0) * (rewards - baselines)[:, None]).sum(dim=1).mean()

def grpo_loss(log_probs, mask, advantages):
    return -(log_probs * mask * torch.tensor(advantages.tolist()).cuda()[:, None]).sum(dim=1).mean()

class Trainer:
    def sft_loss(self, log_probs, mask):
        return sft_loss(log_probs, mask)

table = {"sft_loss": sft_loss}
trainer = Trainer()
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for path in ("solution.py", "my-solution.py", "parts/first.py", "package/__init__.py"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(SOLUTION, encoding="utf-8")
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def failure(check: str, name: str = "solution.py") -> Failure:
    """How the target fails the check."""
    target = load_target(name)
    subject = TorchSubject(target.functions, target.name, target.convention, target.code)
    found = run_check(all_checks()[check], subject, "standard").failure
    assert found is not None
    return found


def output(code: str, folder: str = ".") -> str:
    """What the code prints when a new Python runs it in the folder."""
    path = Path(folder, "repeat_the_call.py")
    path.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, path.name], cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.stderr == ""
    return done.stdout


def test_the_code_of_a_wrong_value_prints_it() -> None:
    found = failure("sft_loss/value")
    assert "import solution as subject  # the file lies in " in found.snippet
    assert found.snippet.endswith("print(subject.sft_loss(log_probs, mask))")
    assert float(output(found.snippet).strip().removeprefix("tensor(").partition(")")[0].partition(",")[0]) == (
        pytest.approx(float(found.got), abs=1e-3)
    )


def test_the_code_of_a_wrong_gradient_prints_it_against_the_cotangent() -> None:
    code = failure("sft_loss/gradient").snippet
    assert "log_probs.requires_grad_()" in code
    assert "weights = torch.tensor(" in code
    assert output(code.replace("print(result)\n", "")).startswith("(tensor([[")


def test_the_code_of_a_dead_gradient_says_so() -> None:
    assert "no gradient: the result is cut off" in output(failure("kl_k1/gradient").snippet)


def test_the_code_of_a_constant_that_gets_a_gradient_prints_it() -> None:
    code = failure("reinforce_loss/constants").snippet
    assert "rewards.requires_grad_()" in code
    assert "torch.ones_like(result)" in code
    assert output(code).count("tensor(") == 4


def test_a_call_by_name_is_written_by_name() -> None:
    assert "subject.sft_loss(log_probs=log_probs, mask=mask)" in failure("sft_loss/keywords").snippet


@pytest.mark.parametrize(
    ("name", "line", "folder"),
    [
        ("solution", "import solution as subject", "."),
        ("parts", "import first as subject  # the file lies in ", "parts"),
        ("package", "import package as subject  # the file lies in ", "."),
        ("solution:trainer", "from solution import trainer as subject", "."),
        ("solution.py:table", "from rlassay.load import load_target", "."),
        ("my-solution.py", "from rlassay.load import load_target", "."),
        ("solution:Trainer", "from solution import Trainer\n\nsubject = Trainer()", "."),
    ],
)
def test_the_code_gets_hold_of_every_kind_of_target(name: str, line: str, folder: str) -> None:
    code = failure("sft_loss/value", name).snippet
    assert line in code
    assert output(code, folder).startswith("tensor(")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_code_makes_the_memory_layout(layout: str) -> None:
    tensor = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]]), "float32", layout)
    printed = "print(log_probs.tolist(), log_probs.is_contiguous())"
    code = snippet("kl_k1", {"log_probs": tensor}).splitlines()[:-1]
    assert output("\n".join([*code, printed])) == f"{tensor.array.tolist()} {layout == 'contiguous'}\n"


def test_an_empty_tensor_keeps_its_shape() -> None:
    code = snippet("kl_k1", {"log_probs": Tensor(np.zeros((0, 3)))}).splitlines()[:-1]
    assert output("\n".join([*code, "print(list(log_probs.shape))"])) == "[0, 3]\n"


def test_code_that_moves_its_arguments_to_a_gpu_is_told_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_gpu(*_: object) -> None:
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr("torch.Tensor.cuda", no_gpu)
    found = failure("grpo_loss/value")
    assert found.message.endswith("; rlassay judges on the CPU: take the device from the arguments")


def test_what_is_free_is_written_as_any_in_what_was_expected() -> None:
    want = Expected(np.array([np.nan, 1.0]), np.array([0.0, 1.0]), 1, None)
    with pytest.raises(Mismatch) as caught:
        require_value("kl_k1", Observation(np.array([np.nan, 2.0]), "float32"), want)
    assert (caught.value.got, caught.value.expected) == ("[nan,  2.]", "[any,  1.]")
