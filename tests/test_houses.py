"""Who may import whom: the implementation and the specification never meet, and nothing drags torch in unasked."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOUSES = {
    "spec/rlassay_spec": {"rlassay_spec", "numpy", "scipy"},
    "impl/rlassay_impl": {"rlassay_impl", "numpy", "torch"},
    "conformance/rlassay": {
        *("rlassay", "rlassay_spec"),
        *("torch", "numpy", "scipy", "pytest", "hypothesis", "rich", "click", "msgspec"),
    },
}
GUEST = ROOT / "conformance/rlassay/guest"  # runs beside submissions, so nothing that they may not see is near it
OPTIONAL = {  # what an extra brings, or who asked for a platform's files has; each in the one module that needs it
    "conformance/rlassay/grading/cluster.py": {"distributed"},
    "conformance/rlassay/grading/gradescope_export.py": {"yaml"},
}
ADAPTERS = ROOT / "impl/rlassay_impl/libraries"  # each named after the one library that it may import besides


def allowed_to(path: Path, house: str) -> set[str]:
    """What a module may import besides the standard library."""
    if path.is_relative_to(GUEST):
        return {"numpy", "torch"}
    own = {path.stem} if path.parent == ADAPTERS else set()
    return HOUSES[house] | own | OPTIONAL.get(str(path.relative_to(ROOT)), set())


MODULES = [
    pytest.param(path, allowed_to(path, house), id=str(path.relative_to(ROOT)))
    for house in HOUSES
    for path in sorted((ROOT / house).rglob("*.py"))
]


def imported_roots(source: str) -> set[str]:
    """The top-level names that a module imports anywhere in its body, also by `import_module("name")`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                names.update(alias.name for alias in aliases)
            case ast.ImportFrom(module=str(module), level=0):
                names.add(module)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                names.add(module)
    return {name.partition(".")[0] for name in names if not name.startswith(".")}


@pytest.mark.parametrize(("path", "allowed"), MODULES)
def test_a_module_imports_only_what_its_house_may(path: Path, allowed: set[str]) -> None:
    foreign = imported_roots(path.read_text(encoding="utf-8")) - sys.stdlib_module_names - allowed
    assert not foreign, f"{path.name} imports {sorted(foreign)}; its house may import {sorted(allowed)}"


@pytest.mark.parametrize("path", sorted(GUEST.rglob("*.py")), ids=lambda path: str(path.relative_to(GUEST)))
def test_a_guest_s_module_imports_nothing_from_outside_its_folder(path: Path) -> None:
    depth = len(path.relative_to(GUEST).parts)
    imports = (
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
    )
    assert all(node.level <= depth for node in imports)


@pytest.mark.parametrize("house", HOUSES)
def test_each_house_is_furnished(house: str) -> None:
    assert list((ROOT / house).rglob("*.py")), f"{house} holds no module, so its rule was tested on nothing"


@pytest.mark.parametrize(
    "source",
    [
        "import torch",
        "import torch.nn as nn",
        "from torch import nn",
        "from torch.nn import functional",
        "def f():\n    import torch",
        "import importlib\nimportlib.import_module('torch.nn')",
        "from importlib import import_module\nimport_module('torch', None)",
        "__import__('torch')",
    ],
)
def test_every_way_to_import_is_seen(source: str) -> None:
    assert imported_roots(source) - sys.stdlib_module_names == {"torch"}


def test_relative_imports_stay_in_their_house() -> None:
    assert imported_roots("from . import kl\nfrom .loss import sft_loss\nfrom .. import shapes") == set()


def run_python(program: str, folder: Path) -> str:
    """Run a program in a fresh interpreter in an empty folder; its standard output, stripped."""
    command = [sys.executable, "-W", "error", "-c", program]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.parametrize(
    "module", ["rlassay", "rlassay.plugin", "rlassay_spec", "rlassay_spec.oracles", "rlassay_spec.claims"]
)
def test_importing_the_harness_or_the_specification_leaves_torch_alone(module: str, tmp_path: Path) -> None:
    assert run_python(f"import sys, {module}; print('torch' in sys.modules)", tmp_path) == "False"


def test_the_pytest_plugin_imports_nothing_but_pytest(tmp_path: Path) -> None:
    program = """
import sys, pytest
before = set(sys.modules)
import rlassay.plugin
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new - sys.stdlib_module_names))
"""
    assert run_python(program, tmp_path) == "['rlassay']"


def test_a_pytest_run_that_does_not_use_the_plugin_pays_no_torch(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
    program = """
import sys, pytest
code = pytest.main(["-q", "-p", "no:cacheprovider"])
print(int(code), "rlassay.plugin" in sys.modules, "torch" in sys.modules)
"""
    assert run_python(program, tmp_path).splitlines()[-1] == "0 True False"
