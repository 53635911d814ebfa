"""The hand-out: stubs that stand by themselves, a README, the visible checks, and nothing that is hidden."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlassay.cli import run
from rlassay.folder import NAME
from rlassay.grading.assignment import Assignment
from rlassay.grading.assignment_file import read_assignment
from rlassay.grading.starter import StarterError, declaration, handed_in, starter
from rlassay.guest.interfaces import INTERFACES
from rlassay.guest.interfaces.own import is_stub
from rlassay.load import NAMES
from rlassay_spec.convention import CONVENTIONS, LECTURE, convention_from
from rlassay_spec.operations import CS336_OPERATIONS, OPERATIONS
from tests.conformance.cli_support import rlassay, scripted

Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[3]
SECRET = "correct-horse-battery"
HEAD = f'title = "GRPO from scratch"\nsecret = "{SECRET}"\n'
STUB = "    raise NotImplementedError\n"


def part(operation: str, more: str = "") -> str:
    return f'[[part]]\noperation = "{operation}"\npoints = 10\n{more}\n'


def read(folder: Path, text: str) -> Assignment:
    path = folder / "a.toml"
    path.write_text(text, encoding="utf-8")
    return read_assignment(path)


def standard(folder: Path) -> Path:
    """The assignment that ships, with a secret."""
    path = folder / "assignment.toml"
    path.write_text((ROOT / "examples/assignment.toml").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "secret.txt").write_text(SECRET)
    return path


def executed(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(source, "solution.py", "exec", dont_inherit=True), namespace)  # noqa: S102 - our own text
    return namespace


def filled(source: str, body: Callable[[str, list[str]], str]) -> str:
    """The starter with a body, made of a function's name and parameters, in place of each stub's."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    assert source.count(STUB) == len(functions)
    for function in functions:
        names = [argument.arg for argument in function.args.args]
        source = source.replace(STUB, f"    {body(function.name, names)}\n", 1)
    return source


@pytest.fixture
def handout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hand-out of the assignment that ships, in the folder where the student works."""
    assert run(["starter", "--assignment", str(standard(tmp_path)), "--out", str(tmp_path / "handout")]) == 0
    monkeypatch.chdir(tmp_path / "handout")
    return tmp_path / "handout"


def test_what_is_handed_out_is_not_written_yet(handout: Path) -> None:
    done = rlassay("check", "solution.py", cwd=handout)
    assert done.returncode == 2
    names = "token_log_probs, response_mask, grpo_advantages, aggregate, clipped_loss, kl_k3"
    assert f"Not written yet, they only raise NotImplementedError: {names}" in done.stderr


def test_written_by_the_reference_it_passes_the_visible_checks_and_no_others_run(handout: Path) -> None:
    source = (handout / "solution.py").read_text(encoding="utf-8")
    solved = filled(source, lambda name, names: f"return rlassay_impl.{name}({', '.join(names)})")
    (handout / "solution.py").write_text(f"{solved}\n\nimport rlassay_impl\n", encoding="utf-8")
    done = rlassay("check", "solution.py", "--profile", "quick", cwd=handout)
    assert done.returncode == 0, done.stdout
    visible = (handout / NAME).read_text().count("    ")
    assert re.search(rf"{visible} of \d+ checks \(listed in rlassay.toml\)", " ".join(done.stdout.split()))
    assert done.stdout.splitlines()[-1].startswith("conforms")


@pytest.mark.parametrize(
    ("name", "code"), [("kl_k3", 2), ("grpo_advantages", 1)], ids=["of which all is hidden", "of which some is visible"]
)
def test_what_is_written_is_judged_by_what_is_visible_of_it(handout: Path, name: str, code: int) -> None:
    source = (handout / "solution.py").read_text(encoding="utf-8")
    start = source.index(f"def {name}(")
    (handout / "solution.py").write_text(source[:start] + source[start:].replace(STUB, "    return None\n", 1))
    done = rlassay("check", "solution.py", "--profile", "quick", cwd=handout)
    assert done.returncode == code, done.stdout + done.stderr


def test_the_files_tell_neither_the_secret_nor_a_hidden_check(handout: Path, tmp_path: Path) -> None:
    asked = read_assignment(tmp_path / "assignment.toml")
    files = {path.name: path.read_text(encoding="utf-8") for path in handout.iterdir()}
    assert set(files) == {"solution.py", "README.md", NAME}
    everything = "".join(files.values())
    assert SECRET not in everything and "secret" not in everything.replace("secrets", "")
    told = set(re.findall(r"[a-z0-9_]+/[A-Za-z0-9.-]+", everything))
    visible = {check.id for check in asked.checks() if asked.is_visible(check.id)}
    hidden = {check.id for check in asked.checks()} - visible
    assert visible and hidden
    assert visible <= told and not hidden & told


def test_the_readme_says_what_to_do_what_it_is_worth_and_by_when(handout: Path) -> None:
    readme = (handout / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# GRPO from scratch\n")
    assert "| clipped_loss | `clipped_loss` | 25 | the share of checks that pass | 3 of " in readme
    assert "| kl_k3 | `kl_k3` | 15 | passing all checks | 0 of " in readme
    assert "| total | | 100 | | |" in readme
    assert (
        "Hand in until 2026-12-01 23:59+01:00. 15 more minutes cost nothing. "
        "Then each begun day costs 10 % of the points; after 3 days there are none left." in readme
    )
    assert "    rlassay check solution.py\n" in readme
    assert "- `grpo_advantages/B9.1`: " in readme
    assert "- `singleton_group`: zero" in readme


@pytest.mark.parametrize(
    ("deadline", "text"),
    [
        ("", ""),
        ('[deadline]\ndue = 2026-12-01T23:59:00Z\nlate = "refuse"\n', "What comes later earns no points."),
        (
            "[deadline]\ndue = 2026-12-01T23:59:00Z\nlate = { per_day = 0.125, days = 1 }\n",
            "Then each begun day costs 12.5 % of the points; after 1 day there are none left.",
        ),
    ],
)
def test_the_readme_tells_each_late_rule(tmp_path: Path, deadline: str, text: str) -> None:
    readme = starter(read(tmp_path, HEAD + deadline + part("kl_k3")))["README.md"]
    assert text in readme
    assert ("## Deadline" in readme) == bool(deadline)


def test_without_visible_checks_the_readme_says_so_and_the_command_too(tmp_path: Path) -> None:
    files = starter(read(tmp_path, HEAD + part("kl_k3")))
    assert "None of them can be seen." in files["README.md"]
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace(STUB, "    return log_probs\n"), encoding="utf-8")
    done = rlassay("check", "solution.py", cwd=tmp_path)
    assert done.returncode == 2
    assert f"{NAME}, line 4: none of the selected checks is among the 0 that are listed" in done.stderr


def test_every_operation_has_a_stub_with_its_contract_that_stands_by_itself(tmp_path: Path) -> None:
    source = starter(read(tmp_path, HEAD + "".join(map(part, OPERATIONS))))["solution.py"]
    assert "rlassay" not in source
    namespace = executed(source)
    for name, operation in OPERATIONS.items():
        stub = namespace[name]
        assert is_stub(stub), name
        assert inspect.getdoc(stub) == operation.doc
        assert str(inspect.signature(stub)) == str(operation.signature)
    assert INTERFACES["own"].find(namespace, NAMES["own"]) == {}
    assert "sequence_sum   (1/B) Σ_b Σ_t x" in source, "what the losses have in common is part of their contract"


@pytest.mark.parametrize("year", ["", "_2026"])
def test_under_cs336_the_stubs_have_the_names_and_signatures_of_that_assignment(tmp_path: Path, year: str) -> None:
    both = {name.removesuffix("_2026") for name in CS336_OPERATIONS if name.endswith("_2026")}
    wanted = [
        name
        for name in CS336_OPERATIONS
        if name.removesuffix("_2026") not in both or name.endswith("_2026") == bool(year)
    ]
    asked = read(tmp_path, f'{HEAD}interface = "cs336"\n' + "".join(map(part, wanted)))
    namespace = executed(starter(asked)["solution.py"])
    for name in wanted:
        stub = namespace[name.removesuffix("_2026")]
        assert is_stub(stub)
        assert str(inspect.signature(stub)) == str(CS336_OPERATIONS[name].signature)
    provided = INTERFACES["cs336"].find(executed(filled(starter(asked)["solution.py"], lambda *_: "return 0")), wanted)
    assert set(wanted) <= set(provided)


@pytest.mark.parametrize(("more", "form"), [("", "_2026"), (part("compute_group_normalized_rewards"), "")])
def test_what_is_adapted_is_handed_in_as_the_function_that_it_comes_from(tmp_path: Path, more: str, form: str) -> None:
    asked = read(tmp_path, f'{HEAD}interface = "cs336"\n{part("grpo_advantages")}{more}')
    assert [operation.name for operation in handed_in(asked)] == [f"compute_group_normalized_rewards{form}"]
    row = "| grpo_advantages | `compute_group_normalized_rewards` | 10 | passing all checks | 0 of "
    assert row in starter(asked)["README.md"]


def test_two_forms_of_one_function_cannot_be_handed_out(tmp_path: Path) -> None:
    forms = "".join(part(f"compute_policy_gradient_loss{form}") for form in ("", "_2026"))
    asked = read(tmp_path, f'{HEAD}interface = "cs336"\n{forms}')
    message = (
        "a.toml: asks for compute_policy_gradient_loss in its form of 2025 and in that of 2026, "
        "which one file cannot hold; leave out the part of one form"
    )
    with pytest.raises(StarterError, match=re.escape(message)):
        starter(asked)


def test_the_command_judges_a_hand_out_of_cs336_without_an_option(tmp_path: Path) -> None:
    asked = read(tmp_path, f'{HEAD}interface = "cs336"\n' + part("masked_normalize", "visible = true"))
    for name, text in starter(asked).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert rlassay("check", "solution.py", cwd=tmp_path).returncode == 2
    body = "return (tensor * mask).sum(dim) / normalize_constant if dim is not None else "
    solved = filled(starter(asked)["solution.py"], lambda *_: f"{body}(tensor * mask).sum() / normalize_constant")
    (tmp_path / "solution.py").write_text(solved, encoding="utf-8")
    done = rlassay("check", "solution.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cs336 interface" in done.stdout


@pytest.mark.parametrize(
    ("interface", "convention", "line"),
    [
        ("own", "", ""),
        ("cs336", "", ""),
        ("own", 'convention = "cs336"', 'CONVENTION = "cs336"'),
        ("cs336", 'convention = "lecture"', 'CONVENTION = "lecture"'),
        ("own", "convention = { std_ddof = 1 }", 'CONVENTION = {"std_ddof": 1}'),
        ("cs336", 'convention = { name = "course", std_eps = 0.1 }', 'CONVENTION = {"name": "course", "std_eps": 0.1}'),
        ("own", 'convention = { name = "cs336", std_ddof = 0 }', 'CONVENTION = {"name": "cs336, changed", '),
    ],
)
def test_the_file_declares_the_assignments_convention(
    tmp_path: Path, interface: str, convention: str, line: str
) -> None:
    operation = {"own": "kl_k3", "cs336": "masked_mean"}[interface]
    asked = read(tmp_path, f'{HEAD}interface = "{interface}"\n{convention}\n{part(operation)}')
    source = starter(asked)["solution.py"]
    assert line in source and ("CONVENTION = " in source) == bool(line) == bool(declaration(asked))
    base = CONVENTIONS.get(interface, LECTURE)
    assert convention_from(executed(source).get("CONVENTION", {}), base).declared() == asked.convention.declared()


def test_a_bar_in_a_name_does_not_break_the_table(tmp_path: Path) -> None:
    readme = starter(read(tmp_path, HEAD + part("kl_k3", 'name = "k3 | KL"')))["README.md"]
    assert "| k3 \\| KL | `kl_k3` | 10 |" in readme


def test_a_folder_with_something_in_it_is_not_overwritten(tmp_path: Path, capsys: Capture) -> None:
    path, out = standard(tmp_path), tmp_path / "handout"
    out.mkdir()
    (out / "solution.py").write_text("mine")
    assert run(["starter", "--assignment", str(path), "--out", str(out)]) == 2
    assert f"{out}: is there already and not an empty folder; name another with --out" in capsys.readouterr().err
    assert [file.read_text() for file in out.iterdir()] == ["mine"]
    assert run(["starter", "--assignment", str(path), "--out", str(out / "solution.py")]) == 2


def test_an_assignment_that_cannot_be_used_is_told(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.toml"
    path.write_text(HEAD)
    assert run(["starter", "--assignment", str(path), "--out", str(tmp_path / "handout")]) == 2
    assert "a.toml, line 1: there is no part" in capsys.readouterr().err
    assert not (tmp_path / "handout").exists()


def test_the_files_that_are_written_are_named(tmp_path: Path, capsys: Capture) -> None:
    assert run(["starter", "--assignment", str(standard(tmp_path)), "--out", str(tmp_path / "new/handout")]) == 0
    written = [str(tmp_path / "new/handout" / name) for name in ("solution.py", "README.md", NAME)]
    assert capsys.readouterr().out.splitlines() == written


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a solution to judge, whose worker is scripted."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("check = []", "line 1: unknown field 'check'; did you mean checks?"),
        ('\nchecks = "kl_k3/value"', "line 2: checks is 'kl_k3/value', but should be a list of texts"),
        (
            'interface = "cs366"',
            "line 1: interface is 'cs366', but should be one of 'own', 'cs336'; did you mean cs336",
        ),
        ('checks = [\n"kl_k3/valeu"]', "line 2: no check is called 'kl_k3/valeu'; did you mean kl_k3/value?"),
        ("checks = [", "line 1: is not TOML: "),
    ],
)
def test_a_file_rlassay_toml_that_cannot_be_used_is_told(here: Path, capsys: Capture, text: str, message: str) -> None:
    (here / NAME).write_text(text)
    (here / "solution.py").write_text("")
    assert run(["check", "solution.py"]) == 2
    assert f"{NAME}, {message}" in capsys.readouterr().err


def test_options_choose_among_the_checks_that_are_listed(here: Path, capsys: Capture) -> None:
    (here / NAME).write_text('checks = ["kl_k3/value", "kl_k3/dtype", "kl_k1/value"]')
    (here / "solution.py").write_text("def kl_k3(log_probs, ref_log_probs):\n    return None\n")
    assert run(["check", "solution.py", "--operation", "kl_k3", "-k", "value"]) == 1
    assert re.search(r"1 of \d+ checks \(value, listed in rlassay.toml\)", " ".join(capsys.readouterr().out.split()))
    assert run(["check", "solution.py", "-k", "entropy"]) == 2
    assert "none of the selected checks is among the 3 that are listed" in capsys.readouterr().err


def test_a_file_elsewhere_says_nothing_about_a_target(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / NAME).write_text('checks = ["kl_k3/value"]')
    assert run(["check", scripted(monkeypatch, kl_k1="pass"), "--operation", "kl_k1"]) == 0
    assert "listed in" not in capsys.readouterr().out
