"""The record stream: what is written can be read, and what is no record is told apart from one that was cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlassay.record import Explanation, Line, RecordError, decode, encode, gather, read_record
from tests.conformance.cli_support import header, record, result


def written(folder: Path, *lines: Line) -> Path:
    """A file that holds the lines."""
    path = folder / "run.ndjson"
    path.write_bytes(b"".join(map(encode, lines)))
    return path


def complete(folder: Path) -> tuple[Path, list[Line]]:
    run = record(result("kl_k1/value"), result("kl_k3/value", "fail", got="1.0", inputs={"log_probs": "[[0.0]]"}))
    explanation = Explanation(operation="kl_k3", text="behaves like KL-01", fault="KL-01")
    assert run.footer is not None
    lines: list[Line] = [run.header, *run.checks, explanation, run.footer]
    return written(folder, *lines), lines


def test_every_line_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path, lines = complete(tmp_path)
    run = read_record(path)
    assert [run.header, *run.checks, *run.explanations, run.footer] == lines
    assert run.complete


def test_each_line_is_one_json_object_that_names_its_type(tmp_path: Path) -> None:
    path, lines = complete(tmp_path)
    texts = path.read_text().splitlines()
    assert [text.startswith('{"type":') for text in texts] == [True] * len(lines)


def test_a_stream_without_its_end_is_incomplete(tmp_path: Path) -> None:
    _, lines = complete(tmp_path)
    run = read_record(written(tmp_path, *lines[:-1]))
    assert len(run.checks) == 2
    assert not run.complete


def test_a_stream_that_lacks_checks_is_incomplete_even_with_a_footer(tmp_path: Path) -> None:
    _, lines = complete(tmp_path)
    assert not read_record(written(tmp_path, lines[0], *lines[2:])).complete


@pytest.mark.parametrize("lost", [1, 2, 40])
def test_a_stream_cut_off_in_a_line_loses_that_line_only(tmp_path: Path, lost: int) -> None:
    path, _ = complete(tmp_path)
    path.write_bytes(path.read_bytes()[:-lost])
    run = read_record(path)
    assert (len(run.checks), len(run.explanations), run.footer) == (2, 1, None)


def test_text_that_is_no_unicode_is_written_all_the_same() -> None:
    line = decode(encode(result("kl_k1/value", "error", "a lone surrogate \ud800, a null \0 and a bell \a")))
    assert line == result("kl_k1/value", "error", "a lone surrogate ?, a null \0 and a bell \a")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "run.ndjson: is empty; its run ended before the first check"),
        (b"hello\n", "run.ndjson, line 1: not a line of a record stream"),
        (b'{"type":"check"}\n', "run.ndjson, line 1: not a line of a record stream"),
        (b'{"type":"song"}\n', "run.ndjson, line 1: not a line of a record stream: Invalid value 'song'"),
        (encode(header()) + b"\xff\xfe\n", "run.ndjson, line 2: not a line of a record stream"),
        (encode(header()) + b"\n", "run.ndjson, line 2: not a line of a record stream"),
        (encode(result("kl_k1/value")), "run.ndjson: does not start with a header"),
        (encode(header(schema=99)), "has schema 99, written by rlassay 0.1.0; this one reads schema 1"),
        (encode(header()) + encode(header()), "goes on after its end; does it hold more than one run?"),
    ],
)
def test_what_is_no_record_is_refused_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "run.ndjson"
    path.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        read_record(path)
    assert message in str(caught.value)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"nowhere\.ndjson: cannot be read: No such file"):
        read_record(tmp_path / "nowhere.ndjson")


def test_a_check_after_the_footer_is_refused(tmp_path: Path) -> None:
    _, lines = complete(tmp_path)
    with pytest.raises(RecordError, match="goes on after its end"):
        gather([*lines, result("kl_k1/gradient")])
