"""Loading a target: every way to name one, and a message for everything that can be wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlassay.guest.errors import TargetError
from rlassay.load import Target, load_target

ADVANTAGE = "def grpo_advantages(rewards):\n    return rewards\n"
LOSS = "def sft_loss(log_probs, mask):\n    return log_probs\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The current folder is an empty one; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path: str, content: str) -> str:
    """Write a file and the folders above it; returns its path."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content, encoding="utf-8")
    return path


def provided(target: Target) -> set[str]:
    return set(target.functions)


def refusal(name: str, interface: str = "own", convention: str | None = None) -> str:
    """Why a target cannot be loaded."""
    with pytest.raises(TargetError) as caught:
        load_target(name, interface, convention)
    return str(caught.value)


def test_a_target_may_be_a_file_a_folder_a_module_or_an_object() -> None:
    write("work/solution.py", ADVANTAGE)
    write("parts/first.py", ADVANTAGE)
    write("parts/second.py", LOSS)
    write("package/__init__.py", "from package.inner import *\n")
    write("package/inner.py", ADVANTAGE + f"class Trainer:\n    {LOSS.replace('    ', '        ')}")
    assert provided(load_target("work/solution.py")) == {"grpo_advantages"}
    assert provided(load_target("parts")) == {"grpo_advantages", "sft_loss"}
    assert provided(load_target("package")) == {"grpo_advantages"}
    assert provided(load_target("package.inner")) == {"grpo_advantages"}
    assert provided(load_target("package.inner:Trainer")) == {"sft_loss"}
    assert provided(load_target("package/inner.py:Trainer")) == {"sft_loss"}


def test_a_dictionary_of_functions_is_an_object_too() -> None:
    write("solution.py", f"{ADVANTAGE}table = {{'rloo_advantages': grpo_advantages}}\n")
    assert provided(load_target("solution:table")) == {"rloo_advantages"}


def test_attributes_of_an_object_that_raise_are_not_provided() -> None:
    write(
        "solution.py",
        f"class Trainer:\n    {LOSS.replace('    ', '        ')}\n    gae = property(lambda self: 1 / 0)\n",
    )
    Path("solution.py").write_text(Path("solution.py").read_text() + "trainer = Trainer()\n")
    assert provided(load_target("solution.py:trainer")) == {"sft_loss"}


def test_a_file_is_loaded_although_a_module_of_the_harness_has_its_name() -> None:
    assert provided(load_target(write("statistics.py", ADVANTAGE))) == {"grpo_advantages"}


def test_a_file_imports_what_lies_beside_it() -> None:
    write("work/helper_of_solution.py", "factor = 2\n")
    write("work/solution.py", "from helper_of_solution import factor\n" + ADVANTAGE)
    assert provided(load_target("work/solution.py")) == {"grpo_advantages"}


def test_the_hash_changes_with_the_source() -> None:
    first = load_target(write("one/solution.py", ADVANTAGE)).sha256
    second = load_target(write("two/solution.py", ADVANTAGE)).sha256
    third = load_target(write("three/solution.py", ADVANTAGE + "\n")).sha256
    assert first == second
    assert first != third


def test_a_convention_is_declared_in_the_file_or_asked_for() -> None:
    write("solution.py", "CONVENTION = {'std_ddof': 1}\n" + ADVANTAGE)
    assert load_target("solution.py").convention.std_ddof == 1
    assert load_target("solution.py", convention="lecture").convention.std_ddof == 0


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def broken(:\n    pass\n", "solution.py: syntax error in {path}, line 1: invalid syntax"),
        ("x = 1\nraise ValueError('no luck')\n", "solution.py: does not import: ValueError: no luck ({path}, line 2)"),
        ("import sys\nsys.exit('bye')\n", "solution.py: does not import: SystemExit: bye ({path}, line 2)"),
        ("import no_such_thing\n", "solution.py: does not import: it needs no_such_thing, which is not installed here"),
        ("import json\njson.loads('{')\n", "JSONDecodeError: Expecting property name enclosed in double quotes"),
        ("1 / 0", "ZeroDivisionError: division by zero ({path}, line 1)"),
        ("raise KeyboardInterrupt", "solution.py: does not import: KeyboardInterrupt ({path}, line 1)"),
        ("x = 1\n", "provides none of the operations; nothing to check. `rlassay operations` lists their names"),
        (
            "def grpo_advantage(r):\n    return r\n",
            "It has grpo_advantage, which is no operation: did you mean grpo_advantages?",
        ),
        ("def sft_loss(a, b):\n    raise NotImplementedError\n", "they only raise NotImplementedError: sft_loss"),
        ("grpo_advantages = 3\n", "provides none of the operations; nothing to check"),
        (f"CONVENTION = 'lecter'\n{ADVANTAGE}", "CONVENTION in solution.py: convention: is 'lecter', expected one of"),
        (f"CONVENTION = 3\n{ADVANTAGE}", "CONVENTION in solution.py: convention: is int, expected a name or a mapping"),
        (f"CONVENTION = {{'std_dof': 1}}\n{ADVANTAGE}", "has the field 'std_dof', expected fields among"),
        (f"CONVENTION = {{'std_ddof': 2}}\n{ADVANTAGE}", "std_ddof: is 2, expected one of 0, 1"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(source: str, message: str) -> None:
    path = Path(write("solution.py", source)).resolve()
    assert message.format(path=path) in refusal("solution.py")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the target's name is empty"),
        ("nowhere.py", "nowhere.py: there is no such file"),
        ("nowhere.py:Trainer", "nowhere.py: there is no such file"),
        ("no/where", "no/where: is neither an existing file or folder nor a module name"),
        ("no_such_module", "no_such_module: there is no such module here; is it installed, or is the path misspelt?"),
        ("json.no_such_module", "json.no_such_module: there is no such module here"),
        ("json:Nothing", "json:Nothing: json has no attribute 'Nothing'"),
        ("json:JSONDecoderr", "json has no attribute 'JSONDecoderr'; did you mean JSONDecoder?"),
        ("notes.txt", "notes.txt: is not a Python file; give a .py file, a folder, a module or module:object"),
        ("hollow", "hollow: holds no Python file; give a package, or a folder with .py files at its top"),
        ("binary.py", "binary.py: syntax error: source code"),
        ("latin.py", "latin.py: syntax error in "),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name: str, message: str) -> None:
    write("notes.txt", "remember the milk")
    Path("hollow").mkdir()
    Path("binary.py").write_bytes(b"\x7fELF\0\0\0")
    Path("latin.py").write_bytes("é = 1\n".encode("latin-1"))
    assert message in refusal(name)


def test_a_name_defined_in_two_files_of_a_folder_is_refused() -> None:
    write("parts/first.py", ADVANTAGE)
    write("parts/second.py", ADVANTAGE)
    where = "is defined in parts/first.py and in parts/second.py; keep one of them"
    assert refusal("parts") == f"parts: grpo_advantages {where}"


def test_a_class_with_methods_is_made_an_instance_and_one_that_needs_arguments_is_refused() -> None:
    method = "    def sft_loss(self, log_probs, mask):\n        return mask\n"
    needy = "    def __init__(self, size):\n        self.size = size\n"
    write("solution.py", f"class Trainer:\n{method}class Needy:\n{needy}{method}")
    assert load_target("solution:Trainer").functions["sft_loss"](1, 2) == 2
    message = refusal("solution.py:Needy")
    assert message.startswith("solution.py:Needy: is a class that cannot be made without arguments (TypeError: ")
    assert message.endswith("); give an instance")


def test_names_that_are_nearly_an_operations_are_noted_beside_others_that_are_right() -> None:
    source = "def grpo_advantage(r): return r\nclipped_losses = print\nCONVENTIONS = {'std_ddof': 1}\n"
    write("solution.py", LOSS + source + "def clipped_loss(): return 1\n")
    assert load_target("solution.py").notes == [
        "it has grpo_advantage, which is no operation: did you mean grpo_advantages?",
        "it has CONVENTIONS, which is not read: did you mean CONVENTION?",
    ]
    write("right.py", LOSS + "CONVENTION = {'std_ddof': 1}\nconvention = CONVENTION\n")
    assert load_target("right.py").notes == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("solutoin.py", "solutoin.py: there is no such file; did you mean solution.py?"),
        ("work/par.py", "work/par.py: there is no such file; did you mean work/parts.py?"),
        (
            "sol",
            "sol: there is no such module here; did you mean solution.py? Is it installed, or is the path misspelt?",
        ),
        ("work/pats", "is neither an existing file or folder nor a module name; did you mean work/parts.py?"),
    ],
)
def test_a_misspelt_file_is_answered_with_the_ones_beside_it(name: str, message: str) -> None:
    write("solution.py", ADVANTAGE)
    write("work/parts.py", ADVANTAGE)
    assert message in refusal(name)


def test_a_script_that_exits_is_told_where_and_what_to_do() -> None:
    source = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('x')\nparser.parse_args([])\n"
    path = Path(write("solution.py", source)).resolve()
    hint = "put the script part under `if __name__ == '__main__':`"
    assert refusal("solution.py") == f"solution.py: does not import: SystemExit: 2 ({path}, line 4); {hint}"


def test_a_file_that_asks_for_a_gpu_is_told_that_there_is_none() -> None:
    write("solution.py", "raise AssertionError('Torch not compiled with CUDA enabled')\n")
    assert refusal("solution.py").endswith("; rlassay judges on the CPU: take the device from the arguments")
