"""The assignment file: every field, every error with its line and a hint, and a secret that nothing tells."""

from __future__ import annotations

import json
import pickle
import traceback
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path

import pytest

from rlassay.check import PROFILES
from rlassay.grading.assignment import Assignment, Deadline, Limits, Part, seed_of
from rlassay.grading.assignment_file import AssignmentError, read_assignment
from rlassay.grading.toml_lines import toml_lines
from rlassay.suite import all_checks
from rlassay_spec.convention import CONVENTIONS, LECTURE

SECRET = "correct-horse-battery"
HEAD = f'title = "GRPO"\nsecret = "{SECRET}"\n'
PART = '[[part]]\noperation = "kl_k3"\npoints = 10\n'
EXAMPLE = Path(__file__).parents[3] / "examples/assignment.toml"


def read(folder: Path, text: str) -> Assignment:
    path = folder / "a.toml"
    path.write_text(text, encoding="utf-8")
    return read_assignment(path)


def error(folder: Path, text: str) -> str:
    """What is said of a file, after its folder; never with the secret, nor in the traceback."""
    with pytest.raises(AssignmentError) as raised:
        read(folder, text)
    assert SECRET not in "".join(traceback.format_exception(raised.value))
    return str(raised.value).removeprefix(f"{folder}/")


def test_only_a_title_a_secret_and_a_part_have_to_be_there(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + PART)
    assert (found.title, found.interface, found.convention, found.hints) == ("GRPO", "own", LECTURE, True)
    assert (found.profile, found.examples) == ("standard", PROFILES["standard"])
    assert (found.limits, found.python, found.stubs, found.deadline) == (Limits(), "", (), None)
    assert found.parts == (Part("kl_k3", Fraction(10), operation="kl_k3"),)


def test_every_field_is_read(tmp_path: Path) -> None:
    text = """
interface = "cs336"
profile = "quick"
examples = 16
hints = false
convention = { name = "course", std_ddof = 0 }
[limits]
call = 2.5
load = 30
submission = 100
cpu = 50
memory = "1.5 GiB"
tmp = "1 KiB"
unpacked = "3MiB"
files = 7
[environment]
python = "/opt/python"
stubs = ["vllm", "wandb.sdk"]
[deadline]
due = 2026-12-01T23:59:00+01:00
grace = 15
late = { per_day = 0.1, days = 3 }
[[part]]
operation = "compute_entropy"
points = 0.1
partial = "share"
visible = true
name = "entropy"
[[part]]
claim = "B9.1"
points = 5
visible = ["B9.1"]
"""
    found = read(tmp_path, HEAD + text)
    assert (found.interface, found.profile, found.examples, found.hints) == ("cs336", "quick", 16, False)
    assert (found.convention.std_ddof, found.convention.std_eps) == (0, 1e-6)
    assert found.limits == Limits(2.5, 30, 100, 50, 3 * 2**29, 2**10, 3 * 2**20, 7)
    assert (found.python, found.stubs) == ("/opt/python", ("vllm", "wandb.sdk"))
    due = datetime(2026, 12, 1, 23, 59, tzinfo=timezone(timedelta(hours=1)))
    assert found.deadline == Deadline(due, timedelta(minutes=15), Fraction(1, 10), 3)
    assert found.parts == (
        Part("entropy", Fraction(1, 10), operation="compute_entropy", partial="share", visible=True),
        Part("B9.1", Fraction(5), claim="B9.1", visible=("B9.1",)),
    )
    assert found.maximum == Fraction(51, 10)
    assert found.operations == ("compute_entropy", "grpo_advantages")


def test_late_submissions_can_be_refused(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + '[deadline]\ndue = 2026-12-01T23:59:00Z\nlate = "refuse"\n' + PART)
    assert found.deadline is not None and found.deadline.per_day is None


def test_the_checks_are_the_conformance_checks_that_a_part_needs_each_once(tmp_path: Path) -> None:
    claim = '[[part]]\nclaim = "P7.2"\npoints = 1\nname = "never negative"\n'
    found = read(tmp_path, HEAD + PART + claim)
    every = all_checks().values()
    assert [check.id for check in found.checks()] == [
        check.id
        for check in every
        if check.kind == "conformance" and (check.operation == "kl_k3" or "P7.2" in check.claims)
    ]
    assert len(found.part_checks(found.parts[1])) >= 1
    assert all("P7.2" in check.claims for check in found.part_checks(found.parts[1]))


def test_students_see_what_a_part_shows_and_nothing_else(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + PART + 'visible = ["value"]\n[[part]]\nclaim = "P7.3"\npoints = 1\nvisible = true\n')
    visible = {check.id for check in found.checks() if found.is_visible(check.id)}
    assert visible == {"kl_k3/value", *(check.id for check in found.part_checks(found.parts[1]))}
    assert not found.is_visible("kl_k3/never-negative")
    assert not found.is_visible("no such check")


def test_under_cs336_the_operations_are_the_assignments_and_what_is_adapted(tmp_path: Path) -> None:
    found = read(tmp_path, f'{HEAD}interface = "cs336"\n' + PART.replace("kl_k3", "masked_mean"))
    assert found.convention == CONVENTIONS["cs336"]
    assert {check.id for check in found.checks()} <= set(all_checks("cs336"))
    found = read(tmp_path, f'{HEAD}interface = "cs336"\n' + PART.replace("kl_k3", "grpo_advantages"))
    assert found.operations == ("grpo_advantages",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(f"{HEAD}hint = true\n{PART}", "line 3: unknown field 'hint'; did you mean hints?", id="unknown"),
        pytest.param(
            f"{HEAD}{PART}weight = 3\n",
            "line 6: unknown field 'weight'; the fields here are operation, claim, points, partial, visible, name",
            id="unknown-in-part",
        ),
        pytest.param(f"{HEAD}[limits]\ncal = 1\n{PART}", "line 4: unknown field 'cal'; did you mean call?", id="limit"),
        pytest.param(
            f"{HEAD}[environment]\nstub = []\n{PART}", "line 4: unknown field 'stub'; did you mean stubs?", id="stub"
        ),
        pytest.param(
            f'secret = "{SECRET}"\n{PART}',
            "line 1: title is missing; it should be one line of text that is not empty",
            id="no-title",
        ),
        pytest.param(
            f'title = "a\\nb"\nsecret = "{SECRET}"\n{PART}',
            "line 1: title is 'a\\nb', but should be one line of text that is not empty",
            id="title-of-two-lines",
        ),
        pytest.param(
            f'{HEAD}interface = "own336"\n{PART}', "line 3: interface is 'own336', but should be one of", id="interface"
        ),
        pytest.param(
            f'{HEAD}profile = "standart"\n{PART}',
            "line 3: profile is 'standart', but should be one of 'quick', 'standard', 'thorough'; "
            "did you mean standard?",
            id="profile",
        ),
        pytest.param(
            f"{HEAD}examples = true\n{PART}",
            "line 3: examples is true, but should be a whole number of at least 1",
            id="examples",
        ),
        pytest.param(f'{HEAD}hints = "yes"\n{PART}', "line 3: hints is 'yes', but should be true or false", id="hints"),
        pytest.param(
            f'{HEAD}convention = "lectur"\n{PART}',
            "line 3: convention: is 'lectur', expected one of 'lecture', 'cs336'",
            id="convention",
        ),
        pytest.param(
            f"{HEAD}convention = 3\n{PART}",
            "line 3: convention is 3, but should be a table of fields, or one of 'lecture', 'cs336'",
            id="convention-of-another-type",
        ),
        pytest.param(
            f"{HEAD}[convention]\nstd_eps = 1e-4\nstd_ddof = 2\n{PART}",
            "line 5: std_ddof is 2, expected one of 0, 1",
            id="convention-value",
        ),
        pytest.param(
            f"{HEAD}[convention]\nstd_dof = 1\n{PART}",
            "line 3: convention: has the field 'std_dof', expected fields among name, std_ddof",
            id="convention-field",
        ),
        pytest.param(
            f"{HEAD}[convention]\nname = 3\n{PART}",
            "line 4: name is 3, but should be one line of text that is not empty",
            id="convention-name",
        ),
        pytest.param(
            f'{HEAD}[limits]\ncall = 1.0\nmemory = "1 GB"\n{PART}',
            "line 5: memory is '1 GB', but should be a size above 0 with its unit, such as \"64 MiB\"; "
            "the units are KiB, MiB, GiB",
            id="size-unit",
        ),
        pytest.param(f"{HEAD}[limits]\ntmp = 64\n{PART}", "line 4: tmp is 64, but should be a size", id="size-number"),
        pytest.param(f'{HEAD}[limits]\ntmp = "0 MiB"\n{PART}', "line 4: tmp is '0 MiB', but should be", id="size-0"),
        pytest.param(
            f"{HEAD}[limits]\ncall = 0\n{PART}", "line 4: call is 0, but should be a number above 0", id="call-0"
        ),
        pytest.param(
            f"{HEAD}[limits]\ncall = inf\n{PART}", "line 4: call is inf, but should be a number above 0", id="call-inf"
        ),
        pytest.param(
            f"{HEAD}[limits]\nfiles = 0\n{PART}",
            "line 4: files is 0, but should be a whole number of at least 1",
            id="files",
        ),
        pytest.param(
            f"{HEAD}[limits]\ncall = 20\nload = 10\nsubmission = 15\n{PART}",
            "line 4: call is 20 s, longer than the 15 s of the whole submission; raise submission",
            id="call-longer-than-all",
        ),
        pytest.param(
            f"{HEAD}[limits]\nsubmission = 15\n{PART}",
            "line 4: load is 60 s, longer than the 15 s of the whole submission; raise submission",
            id="load-longer-than-all",
        ),
        pytest.param(
            f"{HEAD}limits = 3\n{PART}", "line 3: limits is 3, but should be a table, begun with [limits]", id="table"
        ),
        pytest.param(
            f'{HEAD}[environment]\npython = "python3.13"\n{PART}',
            "line 4: python is 'python3.13', but should be the whole path of a Python, begun with /",
            id="python",
        ),
        pytest.param(
            f'{HEAD}[environment]\nstubs = [\n  "vllm",\n  "flash-attn",\n]\n{PART}',
            "line 6: 'flash-attn' is no name of a module; write it as after import",
            id="stub-name",
        ),
        pytest.param(
            f'{HEAD}[environment]\nstubs = ["vllm",\n"vllm"]\n{PART}',
            "line 5: 'vllm' is listed twice in stubs; leave one out",
            id="stub-twice",
        ),
        pytest.param(
            f'{HEAD}[environment]\nstubs = "vllm"\n{PART}', "line 4: stubs is 'vllm', but should be a list", id="stubs"
        ),
        pytest.param(
            f'{HEAD}[deadline]\ndue = 2026-12-01T23:59:00\nlate = "refuse"\n{PART}',
            "line 4: due is 2026-12-01T23:59:00, but should be a date, a time and their offset from UTC, "
            "such as 2026-12-01T23:59:00+01:00",
            id="due-without-offset",
        ),
        pytest.param(
            f'{HEAD}[deadline]\ndue = 2026-12-01\nlate = "refuse"\n{PART}', "line 4: due is 2026-12-01, but", id="day"
        ),
        pytest.param(f'{HEAD}[deadline]\nlate = "refuse"\n{PART}', "line 3: due is missing; it should be", id="no-due"),
        pytest.param(
            f"{HEAD}[deadline]\ndue = 2026-12-01T23:59:00Z\n{PART}",
            'line 3: late is missing; it should be "refuse", or { per_day = 0.1, days = 3 }',
            id="no-late",
        ),
        pytest.param(
            f'{HEAD}[deadline]\ndue = 2026-12-01T23:59:00Z\nlate = "accept"\n{PART}',
            "line 5: late is 'accept', but should be \"refuse\", or",
            id="late",
        ),
        pytest.param(
            f"{HEAD}[deadline]\ndue = 2026-12-01T23:59:00Z\nlate = {{ per_day = 1.5, days = 3 }}\n{PART}",
            "line 5: per_day is 1.5, but should be a number above 0 and at most 1",
            id="per-day",
        ),
        pytest.param(
            f"{HEAD}[deadline]\ndue = 2026-12-01T23:59:00Z\nlate = {{ per_day = 0.5 }}\n{PART}",
            "line 5: days is missing; it should be a whole number of at least 1",
            id="days",
        ),
        pytest.param(
            f"{HEAD}[deadline]\ndue = 2026-12-01T23:59:00Z\nlate = {{ per_day = 0.5, day = 1 }}\n{PART}",
            "line 5: unknown field 'day'; did you mean days?",
            id="late-field",
        ),
        pytest.param(
            f'{HEAD}[deadline]\ndue = 2026-12-01T23:59:00Z\ngrace = -1\nlate = "refuse"\n{PART}',
            "line 5: grace is -1, but should be a whole number of at least 0",
            id="grace",
        ),
        pytest.param(
            f"{HEAD}[deadline]\nuntil = 3\n{PART}", "line 4: unknown field 'until'; the fields here are", id="deadline"
        ),
        pytest.param(
            HEAD,
            "line 1: there is no part, so there is nothing to grade; add [[part]] with operation and points",
            id="no-part",
        ),
        pytest.param(
            f"{HEAD}{PART.replace('[[part]]', '[part]')}",
            "line 3: part is a table, but should be a list of tables, each begun with [[part]]",
            id="part-as-table",
        ),
        pytest.param(
            f'{HEAD}{PART}[[part]]\noperation = "kl_3"\npoints = 1\n',
            "line 7: the interface own has no operation 'kl_3'; did you mean kl_k3?",
            id="operation",
        ),
        pytest.param(
            f"{HEAD}{PART.replace('kl_k3', 'frobnicate')}",
            "line 4: the interface own has no operation 'frobnicate'; `rlassay operations --interface own` lists them",
            id="operation-like-no-other",
        ),
        pytest.param(
            f'{HEAD}interface = "cs336"\n{PART}', "line 5: the interface cs336 has no operation 'kl_k3'", id="of-own"
        ),
        pytest.param(
            f"{HEAD}{PART.replace('kl_k3', 'masked_mean')}",
            "line 4: the interface own has no operation 'masked_mean'",
            id="of-cs336",
        ),
        pytest.param(
            f'{HEAD}[[part]]\nclaim = "B99.1"\npoints = 1\n',
            "line 4: there is no claim 'B99.1'; did you mean",
            id="claim",
        ),
        pytest.param(
            f'{HEAD}interface = "cs336"\n[[part]]\nclaim = "P7.2"\npoints = 1\n',
            "line 5: no conformance check of the interface cs336 is about claim P7.2, so nobody could earn its points; "
            "leave the part out",
            id="part-without-checks",
        ),
        pytest.param(
            f'{HEAD}{PART}claim = "B9.1"\n',
            "line 4: a part is about either an operation or a claim; give one of the two fields",
            id="both",
        ),
        pytest.param(
            f"{HEAD}[[part]]\npoints = 1\n",
            "line 3: a part is about either an operation or a claim; give one of the two fields",
            id="neither",
        ),
        pytest.param(
            f'{HEAD}{PART}{PART}name = "again"\n',
            "line 7: kl_k3 has a part already; put its points together",
            id="operation-twice",
        ),
        pytest.param(
            f'{HEAD}{PART}[[part]]\noperation = "kl_k1"\nname = "kl_k3"\npoints = 1\n',
            "line 8: another part is called 'kl_k3' already; give one of them another name",
            id="name-twice",
        ),
        pytest.param(
            f'{HEAD}[[part]]\noperation = "kl_k3"\n',
            "line 3: points is missing; it should be a number above 0",
            id="none",
        ),
        pytest.param(
            f"{HEAD}{PART.replace('10', '0')}", "line 5: points is 0, but should be a number above 0", id="points-0"
        ),
        pytest.param(
            f"{HEAD}{PART.replace('10', '-2.5')}",
            "line 5: points is -2.5, but should be a number above 0",
            id="points-",
        ),
        pytest.param(
            f"{HEAD}{PART.replace('10', 'true')}", "line 5: points is true, but should be a number", id="points-bool"
        ),
        pytest.param(
            f'{HEAD}{PART}partial = "some"\n',
            "line 6: partial is 'some', but should be one of 'all', 'share'",
            id="partial",
        ),
        pytest.param(
            f'{HEAD}{PART}visible = "all"\n', "line 6: visible is 'all', but should be true or false", id="visible"
        ),
        pytest.param(
            f'{HEAD}{PART}visible = [\n"value",\n"gradent",\n]\n',
            "line 8: no conformance check of this part is about 'gradent'; did you mean gradient?",
            id="law",
        ),
        pytest.param(
            f'{HEAD}{PART}visible = ["never-negative"]\n',
            "line 6: no conformance check of this part is about 'never-negative'",
            id="law-of-robustness",
        ),
        pytest.param(
            f'title = "GRPO\nsecret = "{SECRET}"\n',
            "line 1: is not TOML: Illegal character '\\n' in column 14; texts need quotes, and every field stands once",
            id="no-toml",
        ),
        pytest.param(f"{HEAD}[[part]]\nvisible = [", "line 4: is not TOML: Invalid value", id="no-toml-at-the-end"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_a_hint(tmp_path: Path, text: str, message: str) -> None:
    said = error(tmp_path, text)
    assert said.startswith(f"a.toml, {message}"), said


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("", "line 1: there is no secret to derive the seeds from; make one: python -c"),
        ('secret = "a secret"', "line 2: the secret has 8 characters, but should have 16; make one: python -c"),
        ('secret = "          short          "', "line 2: the secret has 5 characters, but should have 16; make one"),
        ("secret = 1234567890123456", "line 2: secret is not a text, or is empty; make one: python -c"),
        ('secret = ""', "line 2: secret is not a text, or is empty; make one: python -c"),
        (f'secret = "{SECRET}"\nsecret_file = "x"', "line 3: secret and secret_file are both given; leave one out"),
        (
            f'secret_file = "{SECRET}"',
            "line 2: the file that secret_file names beside the assignment cannot be read: No such file or",
        ),
        ('secret_file = "short.txt"', "line 2: the secret has 4 characters, but should have 16; make one"),
        ('secret_file = "binary.txt"', "line 2: the file that secret_file names beside the assignment cannot be read:"),
    ],
)
def test_a_secret_that_is_missing_or_short_is_told_without_a_word_of_it(
    tmp_path: Path, head: str, message: str
) -> None:
    (tmp_path / "short.txt").write_text("1234\n")
    (tmp_path / "binary.txt").write_bytes(b"\xff" * 40)
    said = error(tmp_path, f'title = "GRPO"\n{head}\n{PART}')
    assert said.startswith(f"a.toml, {message}"), said
    assert "1234567890123456" not in said and "a secret" not in said


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match="a.toml: cannot be read: No such file or directory; is the path right"):
        read_assignment(tmp_path / "a.toml")
    (tmp_path / "a.toml").write_bytes(b'title = "\xe4"')
    with pytest.raises(AssignmentError, match="a.toml: is not UTF-8 text: .*; save it as UTF-8"):
        read_assignment(tmp_path / "a.toml")


def test_the_secret_of_a_file_beside_the_assignment_is_the_same_as_one_in_it(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(f"{SECRET}\n")
    beside = read(tmp_path, f'title = "GRPO"\nsecret_file = "secret.txt"\n{PART}')
    within = read(tmp_path, HEAD + PART)
    assert seed_of(beside, "12345") == seed_of(within, "12345")
    assert beside.sha256 == within.sha256


def test_the_seed_is_the_hmac_of_the_id_under_the_secret(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + PART)
    assert seed_of(found, "12345") == 0x5615A2CEE7C3D1E1
    assert seed_of(found, "12346") != seed_of(found, "12345")
    other = read(tmp_path, HEAD.replace(SECRET, "another-secret-of-ours") + PART)
    assert seed_of(other, "12345") != seed_of(found, "12345")
    assert 0 <= seed_of(found, "M\udcfcller") < 2**64


def test_nothing_shows_the_secret_and_a_worker_still_has_it(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + PART)
    assert SECRET not in repr(found) + str(found) + repr(found.secret) + str(found.secret) + repr(vars(found))
    with pytest.raises(TypeError):
        json.dumps(found.secret)
    copy = pickle.loads(pickle.dumps(found))
    assert (copy.parts, copy.deadline, seed_of(copy, "1")) == (found.parts, found.deadline, seed_of(found, "1"))


def test_the_hash_is_of_what_is_asked_for_and_not_of_the_secret_or_of_comments(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + PART)
    assert found.sha256 == read(tmp_path, HEAD.replace(SECRET, "another-secret-of-ours") + PART).sha256
    assert found.sha256 == read(tmp_path, f"# the first\n{HEAD}{PART}").sha256
    assert found.sha256 != read(tmp_path, HEAD + PART.replace("10", "11")).sha256


def test_the_assignment_that_ships_is_read_once_it_has_a_secret(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    make = 'make one: python -c "import secrets; print(secrets.token_hex(16))" > secret.txt'
    assert error(tmp_path, text).endswith(make)
    (tmp_path / "secret.txt").write_text("0123456789abcdef0123456789abcdef\n")
    found = read(tmp_path, text)
    expected = {"response_mask", "token_log_probs", "aggregate", "grpo_advantages", "clipped_loss", "kl_k3"}
    assert set(found.operations) == expected
    assert found.maximum == 100
    assert {found.is_visible(check.id) for check in found.checks()} == {True, False}


def test_lines_are_those_of_the_values_in_every_form_that_toml_has() -> None:
    text = '''# a comment with [brackets] and "quotes
first = 1
text = """two
lines \\""" # no comment"""""
raw = \'\'\'it's
raw\'\'\'
dotted . "quoted.key" = { inner = [1, {deep = "]}#"}], other = 2 }

[table.sub] # comment
list = [ # comment ]
  1,
  "a # b",
  [2,
   3],
]
when = 2026-12-01 23:59:00+01:00
[[item]]
a = 'x'
[[item]]
a = 2
[item.sub]
b = 1
[[item.more]]
c = 1
'''
    lines = toml_lines(text)
    expected = {
        ("first",): 2,
        ("text",): 3,
        ("raw",): 5,
        ("dotted", "quoted.key"): 7,
        ("dotted", "quoted.key", "inner", 1, "deep"): 7,
        ("dotted", "quoted.key", "other"): 7,
        ("table", "sub"): 9,
        ("table", "sub", "list", 0): 11,
        ("table", "sub", "list", 1): 12,
        ("table", "sub", "list", 2, 1): 14,
        ("table", "sub", "when"): 16,
        ("item", 0, "a"): 18,
        ("item", 1): 19,
        ("item", 1, "a"): 20,
        ("item", 1, "sub", "b"): 22,
        ("item", 1, "more", 0, "c"): 24,
    }
    assert {place: lines.get(place) for place in expected} == expected
    assert toml_lines(text.replace("\n", "\r\n")) == lines
