"""What is kept of a source when its module does not load, and what is not run."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from rlassay.guest.definitions import build, run


@pytest.fixture
def _module() -> Iterator[None]:
    """Dataclasses look their module up."""
    sys.modules["submission"] = types.ModuleType("submission")
    yield
    del sys.modules["submission"]


def loaded(source: str | bytes) -> tuple[dict[str, Any], list[str]]:
    namespace: dict[str, Any] = {"__name__": "submission"}
    text = dedent(source) if isinstance(source, str) else source
    notes = run(build(text, "hw.py"), namespace)
    return namespace, notes


def names(source: str) -> set[str]:
    return {name for name in loaded(source)[0] if not name.startswith("__")}


def dropped(source: str) -> tuple[tuple[int, int], ...]:
    return build(dedent(source), "hw.py").dropped


SCRIPT = """\
    import argparse
    import math
    import os
    from transformers_of_nobody import AutoModel, AutoTokenizer

    parser = argparse.ArgumentParser()
    args = parser.parse_args()
    LR, EPS = 1e-4, math.sqrt(2)
    HALF = EPS / 2
    device = args.device
    tokenizer = AutoTokenizer.from_pretrained("x")

    def loss(x, scale=HALF):
        return x * scale

    for step in range(10):
        print(step)
    while True:
        raise SystemExit

    class Trainer:
        rate = LR
        model = AutoModel.from_pretrained("x")

        def step(self):
            return loss(self.rate)

    Trainer().step()
    os.environ["X"] = "1"
    assert False
    if __name__ == "__main__":
        raise SystemExit
"""


def test_a_script_is_reduced_to_its_imports_constants_and_definitions() -> None:
    namespace, notes = loaded(SCRIPT)
    assert {name for name in namespace if not name.startswith("__")} == (
        {"argparse", "math", "os", "LR", "EPS", "HALF", "loss", "Trainer"}
    )
    assert namespace["Trainer"]().step() == pytest.approx(1e-4 * 2**0.5 / 2)
    assert not hasattr(namespace["Trainer"], "model")
    assert notes == [
        "left out, not being imports, constants or definitions: lines 6-7, 10-11, 16-19, 23, 28-30",
        *(
            f"line 4: `from transformers_of_nobody import {name}` failed: "
            "ModuleNotFoundError: No module named 'transformers_of_nobody'"
            for name in ("AutoModel", "AutoTokenizer")
        ),
    ]


def test_building_runs_nothing(tmp_path: Path) -> None:
    target = tmp_path / "made"
    build(f"import os\ndef f(x=open({str(target)!r}, 'w')): ...\nX = [open({str(target)!r}, 'w')]\n", "hw.py")
    assert not target.exists()


CONSTANTS = [
    ("X = 3", 3),
    ("X: int = 3", 3),
    ("X = Y = 3", 3),
    ("A, *X = 1, 2, 3", [2, 3]),
    ("X = [1]\nX += [2]", [1, 2]),
    ("X = {'a': (1, -2.5), **{}}", {"a": (1, -2.5)}),
    ("X = {i: i * i for i in range(3) if i}", {1: 1, 2: 4}),
    ("N = 2\nX = 'a' if N > 1 and not N == 3 else 'b'", "a"),
    ("N = 2\nX = f'{N:03d}'", "002"),
    ("X = (1, 2, 3)[1:][0]", 2),
    ("import math as m\nX = m.floor(2.5)", 2),
    ("from math import floor\nX = floor(2.5)", 2),
    ("import os\nX = os.environ.get('OF_NOBODY', 3)", 3),
    ("from functools import partial\ndef f(a, b): return a - b\nX = partial(f, 5)(2)", None),
    ("X = (lambda a: undefined(a)) and 3", 3),
    ("from collections import namedtuple\nX = namedtuple('P', 'a b')._fields", ("a", "b")),
]


@pytest.mark.parametrize(("source", "value"), CONSTANTS)
def test_an_assignment_of_a_plain_expression_is_kept(source: str, value: object) -> None:
    if value is None:
        assert "X" not in names(source)
    else:
        assert loaded(source)[0]["X"] == value


@pytest.mark.parametrize(
    "source",
    [
        "X = input()",
        "X = open('x')",
        "X = __import__('os')",
        "X = exec('1')",
        "X = unknown",
        "X = unknown.attribute",
        "X = [print(1)]",
        "X = [unknown(i) for i in range(3)]",
        "X = f'{input()}'",
        "X = (y := 3)",
        "import os\nX = os.system('true')",
        "import os\nX = os.environ.get(input())",
        "def f(): return 1\nX = f()",
        "class C: pass\nX = C()",
        "X = lambda a=input(): a",
        "X = await f()",
        "X += 1",
        "import os\nos.x = 3",
        "d = {}\nd['a'] = 3",
        "X = (yield 3)",
    ],
)
def test_an_assignment_that_would_do_something_is_left_out(source: str) -> None:
    assert "X" not in names(source)
    last = len(source.splitlines())
    assert dropped(source) == ((last, last),)


def test_a_default_that_would_do_something_becomes_none() -> None:
    found, _ = loaded("def f(a, b=input(), *, c=open('x'), d=4, e): return a, b, c, d, e\n")
    assert found["f"](1, e=5) == (1, None, None, 4, 5)


@pytest.mark.usefixtures("_module")
def test_a_dataclass_keeps_its_fields_and_can_make_constants() -> None:
    found, notes = loaded(
        """
        from __future__ import annotations
        from dataclasses import dataclass, field

        @dataclass(frozen=True)
        class Config:
            "What to do."
            required: Missing
            rate: float = 0.5
            names: list[str] = field(default_factory=list)
            model: object = load()

            @property
            def twice(self): return 2 * self.rate

        CONFIG = Config(3, rate=0.25)
        """
    )
    assert (found["CONFIG"].required, found["CONFIG"].twice, found["CONFIG"].names) == (3, 0.5, [])
    assert notes == ["left out, not being imports, constants or definitions: line 11"]


def test_a_decorator_that_fails_is_taken_off() -> None:
    found, notes = loaded(
        """
        import functools

        @app.function(gpu="A100")
        def f(x): return x

        @functools.cache
        def g(x): return x

        @trace
        class C:
            @classmethod
            def one(cls): return 1

            @trace
            def two(self): return 2

            @property
            def three(self): return 3
        """
    )
    assert (found["f"](1), found["g"](2)) == (1, 2)
    assert (found["C"].one(), found["C"]().two(), found["C"]().three) == (1, 2, 3)
    assert hasattr(found["g"], "cache_info")
    assert notes == [
        "line 5: f is taken without its decorators: NameError: name 'app' is not defined",
        "line 11: C is taken without its decorators: NameError: name 'trace' is not defined",
    ]


def test_a_definition_that_fails_takes_no_other_with_it() -> None:
    found, notes = loaded("import of_nobody\nclass A(of_nobody.B): ...\ndef f(x: of_nobody.C): return x\n")
    assert found["f"](3) == 3
    assert notes[1] == "line 2: A failed: NameError: name 'of_nobody' is not defined"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("try:\n    import of_nobody\n    X = 1\nexcept ImportError:\n    X = 2", {"X"}),
        ("try:\n    import math\nexcept ImportError:\n    math = None\nelse:\n    X = 1", {"math", "X"}),
        ("try:\n    main()\nexcept Exception:\n    X = 1", set()),
        ("try:\n    def f(): ...\nfinally:\n    print(1)", {"f"}),
        ("try:\n    import math\n    math.of_nobody()\nfinally:\n    print(1)", {"math"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    X = 1\nelse:\n    Y = 1", {"TYPE_CHECKING", "Y"}),
        ("import typing\nif typing.TYPE_CHECKING:\n    X = 1", {"typing"}),
        ("import sys\nif sys.version_info > (3, 0):\n    X = 1\nelse:\n    Y = 1", {"sys", "X"}),
        ("if unknown():\n    X = 1", set()),
        ("if 1:\n    print(1)", set()),
        ("if __name__ == '__main__':\n    X = 1", set()),
        ("if 1:\n    pass\nelif 2:\n    X = 1\nelse:\n    print(1)", set()),
        ("from math import *\nX = sqrt", {"X", "sqrt", "pi"}),
    ],
)
def test_what_is_tried_or_depends_on_a_condition(source: str, expected: set[str]) -> None:
    found = names(source)
    assert found >= expected
    assert {"X", "Y"} & found <= expected


@pytest.mark.parametrize(
    "source",
    ["if __name__ == '__main__':\n    main()", "'doc'", "pass", "x: int", "from __future__ import annotations"],
)
def test_what_would_not_do_anything_is_not_reported(source: str) -> None:
    assert dropped(source) == ()


def test_many_lines_that_are_left_out_are_not_all_named() -> None:
    _, notes = loaded("".join(f"print({n})\nX{n} = 1\n" for n in range(30)))
    assert notes[0].endswith("21, 23, and 18 more")


def test_functions_keep_their_lines_and_file() -> None:
    found, _ = loaded("print(1)\n\n\ndef f():\n    return 1\n")
    assert (found["f"].__code__.co_firstlineno, found["f"].__code__.co_filename) == (4, "hw.py")


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("X = 'é'".encode(), "é"),
        (b"\xef\xbb\xbfX = 1", 1),
        (b"# -*- coding: latin-1 -*-\nX = '\xe9'", "é"),
        (b"X = 1\r\n", 1),
    ],
)
def test_a_source_is_decoded_as_python_does(source: bytes, value: object) -> None:
    assert loaded(source)[0]["X"] == value


PYTHON = f"Python {sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(
    "source",
    [
        b"def f(:\n",
        b"X = '\xe9'",
        b"# coding: of-nobody\n",
        b"X = 1\x00",
        "type = match = 1\nX = = 2",
        "def f():\n" + "".join(f"{' ' * depth}if 1:\n" for depth in range(1, 120)),
        "X = " + "(" * 5000 + ")" * 5000,
        "X = " + "-" * 200_000 + "1",
        "X = " + "a." * 20_000 + "a",
        "def f():\n    nonlocal x\n",
    ],
)
def test_a_source_that_this_python_cannot_read_is_a_syntax_error_that_says_which_it_is(source: str | bytes) -> None:
    with pytest.raises(SyntaxError, match=PYTHON):
        build(source, "hw.py")


def test_a_source_that_is_too_much_for_some_pythons_is_read_or_refused() -> None:
    try:
        assert names("if 0:\n  X = 1\n" + "elif 0:\n  X = 1\n" * 5000 + "else:\n  Y = 1\n") == {"Y"}
    except SyntaxError as error:
        assert PYTHON in error.msg


@pytest.mark.parametrize("raised", ["raise SystemExit", "raise KeyboardInterrupt", "raise GeneratorExit"])
def test_whatever_an_import_raises_is_noted(raised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helper_of_hw.py").write_text(raised)
    monkeypatch.syspath_prepend(tmp_path)
    found, notes = loaded("import helper_of_hw\ndef f(): return 1\n")
    assert found["f"]() == 1
    assert notes == [f"line 1: `import helper_of_hw` failed: {raised.split()[1]}: "]


def test_an_error_that_cannot_be_shown_is_noted_by_its_type() -> None:
    source = """
        class Bad(Exception):
            def __str__(self): raise ValueError
        class Meta(type):
            def __new__(*a): raise Bad
        class C(metaclass=Meta): ...
    """
    assert loaded(source)[1] == ["line 6: C failed: Bad"]
