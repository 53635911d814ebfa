"""Stand-ins carry what real code does with modules that a grader lacks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlassay.guest.stubs import install

NAMES = ("vllm", "wandb", "flash_attn", "ray", "json")


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    finders, modules = list(sys.meta_path), set(sys.modules)
    install(NAMES)
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def run(code: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "submission"}
    exec(code, namespace)  # noqa: S102 - the code is the test's own
    return namespace


REAL_CODE = {
    "names of a module": "from vllm import LLM, SamplingParams\nllm = LLM(model='x')\nout = llm.generate(['a'])",
    "a module below": "from flash_attn.bert_padding import unpad_input, pad_input",
    "a module far below": "import vllm.engine.llm_engine as e\nfrom vllm.engine.llm_engine import LLMEngine",
    "calls at import": "import wandb\nwandb.init(project='x', config={'a': 1})\nwandb.config['b'] = 2\nwandb.log({})",
    "a context": "import wandb\nwith wandb.init() as run:\n    run.log({'a': 1})",
    "a loop": "import wandb\nfor run in wandb.Api().runs('x'):\n    raise SystemExit",
    "a dunder version": "import vllm\nassert tuple(map(int, vllm.__version__.split('.'))) < (1,)",
    "annotations": (
        "import vllm\nfrom typing import Optional, Union\nX = Optional[vllm.LLM]\nY = Union[vllm.LLM, str]\n"
        "def f(a: vllm.LLM | None, b: None | vllm.LLM, c: list[vllm.LLM]) -> vllm.X[int]: ..."
    ),
    "a star": "from vllm import *",
    "an exception": "import wandb\ntry:\n    raise ValueError\nexcept (wandb.CommError, ValueError):\n    pass",
    "raising one": "import wandb\ntry:\n    raise wandb.errors.Error('x')\nexcept wandb.errors.Error:\n    pass",
    "absence is asked for": "import importlib.util\nassert importlib.util.find_spec('vllm.engine') is not None",
}


@pytest.mark.parametrize("code", REAL_CODE.values(), ids=REAL_CODE)
def test_real_code_runs_on_stand_ins(code: str) -> None:
    run(code)


def test_a_decorator_gives_the_function_back() -> None:
    found = run(
        """
import ray, wandb

@wandb.trace
def f(x): return x + 1

@ray.remote(num_gpus=1)
def g(x): return x + 2

@ray.remote
class A:
    def h(self): return 3
"""
    )
    assert (found["f"](1), found["g"](1), found["A"]().h()) == (2, 3, 3)


def test_a_subclass_has_its_own_methods_and_any_other_attribute() -> None:
    found = run(
        """
import vllm

class Mine(vllm.LLM):
    def __init__(self, x):
        super().__init__(model=x)
        self.x = x
    def twice(self): return 2 * self.x

class Generic(vllm.Base[int]): pass
"""
    )
    assert found["Mine"](3).twice() == 6
    assert found["Mine"](3).generate("a") is not None
    found["Generic"]()


def test_a_class_with_a_real_base_keeps_that_one() -> None:
    found = run("import vllm\nclass Mine(vllm.Mixin, dict): pass\nclass Two(vllm.A, vllm.B): pass\ntwo = Two()")
    assert found["Mine"](a=1) == {"a": 1}
    assert found["Mine"].__bases__ == (dict,)


def test_nothing_is_an_instance_of_a_stand_in() -> None:
    vllm = importlib.import_module("vllm")
    assert not isinstance(3, vllm.LLM)
    assert not issubclass(int, vllm.LLM)


def test_a_name_is_the_same_each_time() -> None:
    vllm = importlib.import_module("vllm")
    assert vllm.LLM is vllm.LLM
    assert vllm.LLM is not vllm.SamplingParams


def test_libraries_that_ask_what_an_object_is_learn_nothing() -> None:
    vllm = importlib.import_module("vllm")
    for name in ("__torch_function__", "__array__", "__wrapped__", "__fspath__", "__index__"):
        assert not hasattr(vllm.LLM, name)
        assert not hasattr(vllm, name)


def test_the_real_module_wins() -> None:
    assert importlib.import_module("json").loads("3") == 3


def test_a_folder_of_run_logs_is_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wandb" / "run-1").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    run("import wandb\nwandb.init()")


def test_a_module_of_the_submission_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wandb.py").write_text("def init(): return 'own'\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert run("import wandb\nx = wandb.init()")["x"] == "own"


def test_modules_that_are_not_named_are_still_missing() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("deepspeed_of_nobody")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("json.nothing")
