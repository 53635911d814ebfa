"""What becomes of a notebook: its code as Python, line for line, and notes on the rest."""

from __future__ import annotations

import json

import pytest

from rlassay.grading.notebooks import to_python
from rlassay.grading.tree import SubmissionError
from tests.conformance.grading.made import notebook_of


def source_of(*cells: str | tuple[str, str]) -> str:
    return to_python(notebook_of(*cells).encode(), "hw.ipynb")[0]


def notes_of(*cells: str | tuple[str, str]) -> list[str]:
    return to_python(notebook_of(*cells).encode(), "hw.ipynb")[1]


def test_code_cells_are_kept_in_order_and_numbered_as_in_the_notebook() -> None:
    assert source_of("a = 1", ("markdown", "# Title"), ("raw", "raw"), "b = 2\nc = 3") == (
        "# %% cell 1\na = 1\n\n# %% cell 4\nb = 2\nc = 3\n\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "%matplotlib inline",
        "!pip install vllm",
        "?torch.tensor",
        "torch.tensor?",
        "torch.tensor??",
        "files = !ls",
        "t = %timeit -o f()",
        "%%time",
        "pip install torch",
    ],
)
def test_a_line_for_ipython_becomes_a_comment_in_its_place(line: str) -> None:
    assert source_of(f"{line}\nx = 1") == f"# %% cell 1\n# {line}\nx = 1\n\n"
    assert notes_of(f"{line}\nx = 1") == ["hw.ipynb: 1 lines for IPython or the shell became comments"]


@pytest.mark.parametrize(
    "code",
    [
        "x = (a\n% b)",
        "x = [\n    !1\n]",
        's = """\n%time\n!ls\n"""',
        "s = '''it's \"\n%time'''",
        "x = a \\\n% b",
        "s = 'quote \\' and # bracket ('\nx = 1",
        "# comment with ( and '\nx = 1",
        "x = y if z else w",
        'f = "?"',
        "x = a != b",
        "x = a % b",
        "",
    ],
)
def test_a_line_that_only_looks_like_one_stays(code: str) -> None:
    assert source_of(code) == f"# %% cell 1\n{code}\n\n"
    assert notes_of(code) == []


def test_a_line_for_ipython_inside_of_a_block_keeps_the_block_whole() -> None:
    source = source_of("if True:\n    !pip install x\ny = 1")
    assert source == "# %% cell 1\nif True:\n    pass  # !pip install x\ny = 1\n\n"
    compile(source, "hw.py", "exec")


def test_a_shell_line_that_goes_on_takes_its_next_lines_with_it() -> None:
    assert source_of("!pip install \\\n  a \\\n  b\nx = 1") == (
        "# %% cell 1\n# !pip install \\\n#   a \\\n#   b\nx = 1\n\n"
    )
    compile(source_of("if 1:\n    !ls \\\n  a\nx = 1"), "hw.py", "exec")


@pytest.mark.parametrize("magic", ["%%bash", "%%html", "%%writefile x.py", "%%timeit", "%%javascript"])
def test_a_cell_of_another_language_is_left_out_with_a_note(magic: str) -> None:
    assert source_of("a = 1", f"\n{magic}\nrm -rf x") == "# %% cell 1\na = 1\n\n"
    assert notes_of("a = 1", f"{magic}\nrm") == [f"hw.ipynb: cell 2 is left out, being {magic.split()[0]}"]


def test_a_timed_cell_is_kept() -> None:
    assert source_of("%%time\nx = 1") == "# %% cell 1\n# %%time\nx = 1\n\n"


def test_await_outside_of_functions_stays() -> None:
    assert "await f()" in source_of("await f()")


@pytest.mark.parametrize(
    "notebook",
    [
        {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1\n", "y = 2"]}]}]},
        {"cells": [{"cell_type": "code", "source": "x = 1\r\ny = 2"}]},
    ],
)
def test_older_and_other_forms_are_read(notebook: object) -> None:
    assert to_python(json.dumps(notebook).encode(), "hw.ipynb")[0] == "# %% cell 1\nx = 1\ny = 2\n\n"


def test_text_that_no_file_can_hold_is_replaced() -> None:
    content = b'{"cells": [{"cell_type": "code", "source": "s = \'\\ud800\'"}]}'
    assert to_python(content, "hw.ipynb")[0].encode() == b"# %% cell 1\ns = '?'\n\n"


@pytest.mark.parametrize(
    "content",
    [b"", b"not json", b"\xff\xfe", b"[]", b'{"cells": 3}', b"[" * 100_000, b'{"worksheets": [3]}x', b"null"],
)
def test_what_is_no_notebook_is_refused_with_what_to_do(content: bytes) -> None:
    with pytest.raises(SubmissionError, match=r"hw.ipynb is not a notebook: .*; save it again in Jupyter"):
        to_python(content, "hw.ipynb")


def test_a_notebook_that_is_too_large_to_read_is_refused() -> None:
    with pytest.raises(SubmissionError, match=r"it is larger than 16 MiB; clear its outputs and save it again"):
        to_python(bytes((16 << 20) + 1), "hw.ipynb")


@pytest.mark.parametrize("line", [" " * 200_000, "a, " * 100_000, "?" * 200_000, "\\" * 200_000, "'" * 200_000])
def test_a_long_line_takes_no_longer_than_it_is(line: str) -> None:
    assert len(source_of(line)) >= len(line)


def test_cells_of_the_wrong_kind_are_passed_over() -> None:
    content = json.dumps({"cells": [3, None, {}, {"cell_type": "code"}, {"cell_type": "code", "source": [1, "x"]}]})
    assert to_python(content.encode(), "hw.ipynb")[0] == "# %% cell 4\n\n\n# %% cell 5\n1x\n\n"
