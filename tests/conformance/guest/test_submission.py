"""A submission is loaded as the modules that it is, or from the definitions in its files alone."""

from __future__ import annotations

import json
import subprocess
import sys
from textwrap import dedent
from typing import Any

import pytest

from rlassay.guest.submission import MOST_NOTES

RUN = """
import json, os, sys
from rlassay.guest.errors import TargetError
from rlassay.guest.submission import Submission, load_submission
jobs, answers = json.load(sys.stdin), []
clean = list(sys.path), list(sys.path_hooks)
for folder, target, how, interface, imports in jobs:
    os.chdir(folder)
    sys.path[:], sys.path_hooks[:] = [*imports, *clean[0]], clean[1]
    sys.path_importer_cache.clear()
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(folder):
            del sys.modules[name]
    try:
        names = ("kl_k1", "kl_k2", "entropy", "compute_entropy", "masked_mean")
        loaded = load_submission(Submission(target, interface, names, how))
        results = {}
        for name, function in loaded.functions.items():
            try: results[name] = function(*range(2))
            except Exception as error: results[name] = repr(error)
        answers.append({"results": results, "declared": loaded.declared, "names": loaded.names, "notes": loaded.notes})
    except TargetError as error:
        answers.append({"error": str(error)})
json.dump(answers, sys.stdout)
"""

PACKAGE = {
    "hw/__init__.py": "from .core import kl_k1\nfrom . import entropy_module as e\nfrom .deep.inner import kl_k2\n",
    "hw/core.py": "from .tools import SCALE\nfrom hw.tools import twice\ndef kl_k1(a, b): return twice(SCALE)\n",
    "hw/tools.py": "import sys\nsys.exit('training')\nSCALE = 21\ndef twice(x): return x * 2\n",
    "hw/entropy_module.py": "ENTROPY = 1\nprint(1/0)\n",
    "hw/deep/__init__.py": "raise RuntimeError\n",
    "hw/deep/inner.py": "from ..tools import twice\nfrom ... import nothing\ndef kl_k2(a, b): return twice(b)\n",
}

NOTEBOOK = """
# cell 1
import torch
from datasets_not_installed import load_dataset
model = load_dataset("x").cuda()
# cell 2
EPS = 1e-6
def kl_k1(a, b): return a - b + EPS
# cell 3
kl_k1(1, 2).backward()
for step in range(10**9): train(step)
# cell 4
def kl_k1(a, b): return b - a
"""

CASES: dict[str, tuple[dict[str, str], str, str, str, list[str]]] = {
    "module": ({"work.py": "CONVENTION = 'cs336'\ndef kl_k1(a, b): return b - a"}, "work.py", "module", "own", []),
    "definitions": (
        {"work.py": "raise SystemExit\nCONVENTION = 'cs336'\ndef kl_k1(a, b): return b - a"},
        *("work.py", "definitions", "own", []),
    ),
    "package fails as modules": (PACKAGE, "hw", "module", "own", ["."]),
    "package": (PACKAGE, "hw", "definitions", "own", ["."]),
    "package below": ({f"src/{path}": text for path, text in PACKAGE.items()}, "src/hw", "definitions", "own", []),
    "notebook": ({"notebook.py": NOTEBOOK}, "notebook.py", "definitions", "own", []),
    "folder": (
        {
            "one.py": "1/0\nfrom two import X\ndef kl_k1(a, b): return X",
            "two.py": "1/0\nX = 7\ndef kl_k2(a, b): return 2",
        },
        *(".", "definitions", "own", ["."]),
    ),
    "folder with one operation twice": (
        {"one.py": "def kl_k1(a, b): return 1", "two.py": "def kl_k1(a, b): return 2"},
        *(".", "module", "own", ["."]),
    ),
    "folder of nothing": ({"readme.txt": "no code"}, ".", "definitions", "own", ["."]),
    "cs336": (
        {"pkg/__init__.py": "1/0", "pkg/a/__init__.py": "", "pkg/a/b.py": "1/0\ndef compute_entropy(x, y): return 5"},
        *("pkg", "definitions", "cs336", ["."]),
    ),
    "syntax": ({"work.py": "def kl_k1(:"}, "work.py", "definitions", "own", []),
    "newer": ({"work.py": "type X = int\ndef kl_k1(a, b): return 1 if"}, "work.py", "definitions", "own", []),
    "not UTF-8": ({"work.py": "x = '\udcff'\ndef kl_k1(a, b): return 1"}, "work.py", "definitions", "own", []),
    "latin": (
        {"work.py": "# -*- coding: latin-1 -*-\nx = '\udcff'\ndef kl_k1(a, b): return x"},
        *("work.py", "definitions", "own", []),
    ),
    "many notes": (
        {"work.py": "".join(f"from nowhere import x{n}\n" for n in range(500)) + "def kl_k1(a, b): return 1"},
        *("work.py", "definitions", "own", []),
    ),
    "name of a library": ({"random.py": "def kl_k1(a, b): return 3"}, "random.py", "module", "own", ["."]),
    "missing": ({}, "work.py", "module", "own", []),
    "imports another": (
        {"lib/tools.py": "X = 9", "work.py": "from tools import X\ndef kl_k1(a, b): return X"},
        *("work.py", "module", "own", ["lib"]),
    ),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What comes of every case, in one process of its own."""
    jobs = []
    for name, (files, target, how, interface, imports) in CASES.items():
        folder = tmp_path_factory.mktemp(name.replace(" ", "-")).resolve()
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(dedent(text).encode(errors="surrogateescape"))
        jobs.append((str(folder), target, how, interface, [str(folder / place) for place in imports]))
    done = subprocess.run(
        [sys.executable, "-B", "-c", RUN],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(
    ("case", "results"),
    [
        ("module", {"kl_k1": 1}),
        ("definitions", {"kl_k1": 1}),
        ("package", {"kl_k1": 42, "kl_k2": 2}),
        ("package below", {"kl_k1": 42, "kl_k2": 2}),
        ("notebook", {"kl_k1": 1}),
        ("folder", {"kl_k1": 7, "kl_k2": 2}),
        ("cs336", {"compute_entropy": 5}),
        ("latin", {"kl_k1": "ÿ"}),
        ("many notes", {"kl_k1": 1}),
        ("name of a library", {"kl_k1": 3}),
        ("imports another", {"kl_k1": 9}),
    ],
)
def test_operations_are_found_and_do_what_they_do(
    answers: dict[str, dict[str, Any]], case: str, results: dict[str, Any]
) -> None:
    assert answers[case].get("results") == results, answers[case]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("package fails as modules", ["hw: does not import", "training"]),
        ("folder with one operation twice", ["kl_k1 is defined in", "one.py", "two.py"]),
        ("folder of nothing", ["holds no Python file"]),
        ("syntax", ["work.py: syntax error", "line 1", "Python 3."]),
        ("newer", ["work.py: syntax error", "Python 3."]),
        ("not UTF-8", ["work.py"]),
        ("missing", ["work.py"]),
    ],
)
def test_what_cannot_be_loaded_is_told_why(answers: dict[str, dict[str, Any]], case: str, words: list[str]) -> None:
    assert all(word in answers[case]["error"] for word in words), answers[case]


def test_what_is_left_out_is_told_with_its_file(answers: dict[str, dict[str, Any]]) -> None:
    notes = " ".join(answers["package"]["notes"])
    assert all(f"{name}: " in notes for name in ("tools.py", "entropy_module.py", "__init__.py", "inner.py"))
    assert answers["module"]["notes"] == []
    assert any("datasets_not_installed" in note for note in answers["notebook"]["notes"])
    assert len(answers["many notes"]["notes"]) == MOST_NOTES


def test_declarations_and_names_are_told(answers: dict[str, dict[str, Any]]) -> None:
    assert answers["module"]["declared"] == answers["definitions"]["declared"] == "cs336"
    assert answers["notebook"]["declared"] is None
    assert "kl_k1" in answers["notebook"]["names"]
