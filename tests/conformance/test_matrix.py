"""The matrix: fingerprints, rows, what they amount to, and the command that makes it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import rlassay_impl
from rlassay import variants
from rlassay.faults import Function, all_faults, unexpressed
from rlassay.faults.parts import advantage, statistics
from rlassay.guest.values import Tensor
from rlassay.matrix import run as running
from rlassay.matrix.fingerprint import fingerprint
from rlassay.matrix.memory import Memory
from rlassay.matrix.page import page
from rlassay.matrix.rows import Entry, Row, assess, entries
from rlassay.matrix.run import Matrix, Start, continued, plan, read_rows, run
from rlassay.matrix.verdict import judged, must_kill, read_killers
from rlassay.torch_subject import TorchSubject
from rlassay.variants import LAPSES, all_variants
from rlassay_spec.convention import LECTURE, convention_from
from tests.conformance.cli_support import COMMAND, rlassay, wait_for

REFERENCE: dict[str, Function] = {name: getattr(rlassay_impl, name) for name in rlassay_impl.__all__}
ENTRIES = entries(REFERENCE, "the reference")
KNOWN = ENTRIES["grpo_advantages/AD-06"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def entry(function: Function, form: Any = "fault", **options: Any) -> Entry:
    """A subject whose kl_k1 is this function."""

    def make() -> TorchSubject:
        return TorchSubject({**REFERENCE, "kl_k1": function}, "kl_k1/X")

    return Entry("kl_k1/X", form, "a title", "a source", ("kl_k1",), make, "print", **options)


def half(log_probs: Any, ref_log_probs: Any) -> Any:
    return 0.5 * (log_probs - ref_log_probs.detach())


def crashing(log_probs: Any, ref_log_probs: Any) -> Any:
    raise RuntimeError("a shape does not fit")


def test_the_catalogue_is_large_and_its_fingerprints_differ_within_an_operation() -> None:
    assert len(all_faults()) >= 250
    assert len(all_variants()) >= 105
    prints = [(e.operations, e.fingerprint) for e in ENTRIES.values() if e.form == "fault"]
    assert len(set(prints)) == len(prints)


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    code = (
        "from rlassay.faults import all_faults; from rlassay.matrix.fingerprint import fingerprint;"
        "print(fingerprint(all_faults()['grpo_advantages/AD-06'].code, {}))"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert prints == {KNOWN.fingerprint}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (partial(half, 1), partial(half, 2)),
        (
            partial(advantage.centred, baseline=statistics.median),
            partial(advantage.centred, baseline=statistics.best_of),
        ),
        (torch.exp, torch.neg),
        ({"std_ddof": 0}, {"std_ddof": 1}),
    ],
)
def test_things_that_differ_have_other_fingerprints(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_a_fingerprint_changes_with_a_part_that_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {key: entry.fingerprint for key, entry in ENTRIES.items()}
    changed = eval("lambda r: r.median(dim=1, keepdim=True).values + 0", vars(statistics))
    changed.__module__ = statistics.__name__
    monkeypatch.setattr(statistics, "mean", changed)
    after = entries(REFERENCE, "the reference")
    differing = {key for key in before if before[key] != after[key].fingerprint}
    assert "grpo_advantages/AD-12" in differing
    assert "grpo_advantages/AD-06" not in differing
    assert 0 < len(differing) < 60


def test_a_row_counts_examples_and_shows_the_smallest_one() -> None:
    row = assess(KNOWN, "quick", 0)
    assert row.kills["grpo_advantages/B9.8"] == 1
    assert 1 <= row.kills["grpo_advantages/value"] <= 4
    assert not row.errors
    assert row.example is not None
    assert row.example.right and row.example.right != row.example.faulty
    assert "rewards" in row.example.inputs


def test_the_oracles_memory_gives_their_answers() -> None:
    memory = Memory()
    arguments = {"rewards": Tensor(torch.tensor([[1.0, 0.0, 0.5]]).numpy())}
    for _ in range(2):
        answer = memory("grpo_advantages", arguments, LECTURE)
        assert answer.value.round(6).tolist() == [[1.224745, -1.224745, 0.0]]
    assert len(memory.answers) == 1
    memory("grpo_advantages", arguments, convention_from({"std_ddof": 1}))
    assert len(memory.answers) == 2


def verdict_of(*subjects: Entry, recorded: dict[str, list[str]] | None = None) -> Any:
    rows = [assess(subject, "quick", 0) for subject in subjects]
    return judged(rows, {subject.key: subject for subject in subjects}, recorded or {})


def test_a_fault_that_a_check_sees_is_killed_and_one_that_raises_is_not() -> None:
    seen = {"kl_k1/X": ["value"]}
    assert verdict_of(entry(half), recorded=seen).survivors == []
    assert verdict_of(entry(crashing), recorded=seen).survivors == ["kl_k1/X"]
    assert verdict_of(entry(crashing, raises=True), recorded=seen).survivors == []


def test_robustness_kills_faults_of_robustness_alone_and_refusals_those_that_would_refuse() -> None:
    def accepting(log_probs: Any, ref_log_probs: Any) -> Any:
        if log_probs.shape != ref_log_probs.shape:
            return log_probs
        return REFERENCE["kl_k1"](log_probs, ref_log_probs)

    assert verdict_of(entry(accepting, kind="robustness", validates=True)).survivors == []
    assert verdict_of(entry(accepting, kind="robustness")).survivors == ["kl_k1/X"]
    assert verdict_of(entry(accepting, validates=True)).survivors == ["kl_k1/X"]


def test_what_is_on_record_as_having_to_kill_a_fault_must_do_so() -> None:
    assert verdict_of(entry(half)).lost == {"kl_k1/X": ["(not on record)"]}
    assert verdict_of(entry(half), recorded={"kl_k1/X": ["value", "B0.0"]}).lost == {"kl_k1/X": ["B0.0"]}


def test_a_variant_is_flagged_by_conformance_and_by_robustness_that_it_has_no_excuse_for() -> None:
    assert verdict_of(entry(half, form="variant")).flagged["kl_k1/X"][0] == "kl_k1/value"
    assert "kl_k1/value" in verdict_of(entry(crashing, form="variant")).flagged["kl_k1/X"]

    def unvalidated(log_probs: Any, ref_log_probs: Any) -> Any:
        return log_probs - ref_log_probs.detach()

    flagged = verdict_of(entry(unvalidated, form="variant")).flagged["kl_k1/X"]
    assert "kl_k1/refuses-a-reference-of-another-length" in flagged
    assert all(identity.startswith("kl_k1/refuses-") for identity in flagged)
    assert not verdict_of(entry(unvalidated, form="variant", excuse=all_variants()["kl_k1-in_double"].excuse)).flagged


def test_checks_that_kill_nothing_are_found_where_all_subjects_ran() -> None:
    alone = verdict_of(entry(half), recorded={"kl_k1/X": ["value"]})
    assert "kl_k1/all-masked" not in alone.toothless
    assert {"kl_k1/side-effects", "kl_k1/constants"} <= set(alone.toothless)
    assert "kl_k1/value" not in alone.toothless
    assert not alone.green


def test_a_failure_of_the_harness_is_neither_a_kill_nor_green() -> None:
    broken = Row(subject="kl_k1/X", form="fault", fingerprint="", errors={"kl_k1/value": "ZeroDivisionError: 0"})
    found = judged([broken], {"kl_k1/X": entry(half)}, {"kl_k1/X": []})
    assert found.broken == {"kl_k1/X": ["kl_k1/value"]}
    assert found.survivors == ["kl_k1/X"]


def test_every_lapse_of_a_variant_is_known_and_only_its_own_excuse_it() -> None:
    for variant in all_variants().values():
        assert set(variant.lapses) <= set(LAPSES), variant.id
        assert variant.excuse("refuses-a-mask")
        assert not variant.excuse("value")


def test_what_must_kill_it_is_on_record_for_every_known_fault() -> None:
    recorded = read_killers()
    assert set(recorded) == set(all_faults())
    assert all(recorded.values())


def test_no_public_report_is_forgotten() -> None:
    """Their ids are numbered within a family; each is a fault, is one with a fault, or is left out with a reason."""
    same, outside = unexpressed()
    left_out = [*same, *(identity for ids in outside.values() for identity in ids)]
    known = {fault.id for fault in all_faults().values()}
    assert not known & set(left_out)
    assert set(same.values()) <= set(all_faults())
    families = {identity[:2] for identity in left_out} | {"CL", "PL", "VL"}
    numbered = sorted(i for i in known | set(left_out) if i[:2] in families and i[2:3] == "-" and i[3:].isdigit())
    last = {identity[:2]: int(identity[3:]) for identity in numbered}
    assert numbered == sorted(f"{family}-{n:02}" for family, most in last.items() for n in range(1, most + 1))
    assert len(numbered) == 130


def test_no_legitimate_choice_is_forgotten() -> None:
    left_out = [identity for ids in variants.unexpressed().values() for identity in ids]
    stood_for = {variant.seen for variant in all_variants().values() if variant.seen.startswith("CV-")}
    assert not stood_for & set(left_out)
    assert sorted({*stood_for, *left_out}) == [f"CV-{n:02}" for n in range(1, 66)]


@pytest.fixture
def matrix() -> Matrix:
    start = Start(suite="s", reference="rlassay_impl", sha256="r", profile="quick", seed=0, versions={})
    chosen = ("kl_k1/KLE-07", "kl_k1/KLE-08", "kl_k1-in_double")
    return Matrix(start, {key: ENTRIES[key] for key in chosen})


def rerun(matrix: Matrix, record: Path) -> list[str]:
    """What has to run beside what is on record; that is put on record too."""
    kept = read_rows(record, matrix)
    missing = [key for key in matrix.entries if key not in kept]
    with continued(record, matrix, kept) as stream:
        for row in run(matrix, missing, jobs=1):
            running.write(stream, row)
    return missing


def test_only_a_changed_fault_runs_again(matrix: Matrix, tmp_path: Path) -> None:
    record = tmp_path / "matrix.ndjson"
    assert rerun(matrix, record) == list(matrix.entries)
    assert rerun(matrix, record) == []
    key = "kl_k1/KLE-08"
    changed = Matrix(matrix.start, {**matrix.entries, key: replace(matrix.entries[key], fingerprint="other")})
    assert rerun(changed, record) == [key]
    suite = Matrix(replace_start(matrix.start, suite="another"), matrix.entries)
    assert rerun(suite, record) == list(matrix.entries)


def replace_start(start: Start, **changes: Any) -> Start:
    fields = {name: getattr(start, name) for name in start.__struct_fields__}
    return Start(**{**fields, **changes})


def test_a_run_that_was_cut_off_goes_on_where_it_stopped(matrix: Matrix, tmp_path: Path) -> None:
    record = tmp_path / "matrix.ndjson"
    rerun(matrix, record)
    lines = record.read_bytes().splitlines(keepends=True)
    record.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    assert rerun(matrix, record) == list(matrix.entries)[1:]


def test_a_file_that_is_no_record_is_refused(matrix: Matrix, tmp_path: Path) -> None:
    record = tmp_path / "notes.txt"
    record.write_text("shopping list\n")
    with pytest.raises(running.MatrixError, match="is not the record of a matrix"):
        read_rows(record, matrix)
    assert record.read_text() == "shopping list\n"


def test_several_processes_give_the_rows_of_one(matrix: Matrix) -> None:
    real = plan("rlassay_impl", "quick", 0)
    keys = list(matrix.entries)

    def kills(rows: Any) -> dict[str, dict[str, int]]:
        return {row.subject: row.kills for row in rows}

    assert kills(run(real, keys, jobs=2)) == kills(run(real, keys, jobs=1))


def test_the_page_names_every_fault_with_what_must_kill_it() -> None:
    chosen = {key: ENTRIES[key] for key in ("grpo_advantages/AD-06", "kl_k1/GEN-01", "kl_k1-in_double")}
    rows = [assess(each, "quick", 0) for each in chosen.values()]
    text = page(rows, chosen)
    assert "- 1 known faults: 1 killed" in text
    assert "- 1 variants: 0 flagged" in text
    assert (
        f"| AD-06 | statistics over the whole batch | grpo-flat issue 2 | {', '.join(must_kill(rows[0], KNOWN))} |"
        in text
    )
    assert "| GEN-01 | a result cut off from the graph | kl_k1 |" in text


def test_the_documentation_lists_the_catalogue_as_it_is() -> None:
    text = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
    recorded = read_killers()
    faults = [each for each in ENTRIES.values() if each.form == "fault"]
    for each in faults:
        title = f"{each.title} †: {each.declares}" if each.declares else each.title
        cells = (each.key.partition("/")[2], title, each.source, ", ".join(recorded[each.key]))
        assert "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" in text, each.key
    for each in ENTRIES.values():
        if each.form == "variant":
            assert f"| {each.key} | {each.title.replace('|', chr(92) + '|')} |" in text, each.key
    assert f"- {len(faults)} known faults: {len(faults)} killed" in text


def test_one_fault_is_shown_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    done = rlassay("faults", "grpo_advantages/AD-06", "--profile", "quick", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("statistics over the whole batch", "grpo-flat issue 2", "grpo_advantages/value", "right", "faulty"):
        assert text in done.stdout
    assert "1 of 1 faults killed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("AD-6",), "there is no fault or variant 'AD-6'; did you mean AD-06?"),
        (("AD-06", "--page", "page.md"), "--page and --killers need the whole matrix"),
        (("AD-06", "--reference", "no_such_module"), "there is no such module"),
        (("AD-06", "--json", "same", "--page", "same"), "would overwrite"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = rlassay("faults", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_the_subjects_are_listed_without_running(tmp_path: Path) -> None:
    done = rlassay("faults", "AD-06", "--list", cwd=tmp_path)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()][:2] == [
        "centered_advantages/AD-06",
        "grpo_advantages/AD-06",
    ]


def members(session: int) -> set[int]:
    """The processes of a session that run."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.add(int(path.parent.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which processes run")
def test_a_run_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    command = [*COMMAND, "faults", "token_log_probs", "--jobs", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_for(lambda: len(members(process.pid)) >= 5, "the run and its four processes are there")
        process.kill()
    wait_for(lambda: not members(process.pid), "all processes of the run have ended")


def test_nothing_is_kept_of_a_subject_that_an_interruption_fell_into() -> None:
    def interrupted(matrix: Matrix, task: int) -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # as a subject's call would take it
            return task
        return -1

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        list(running.in_parallel(None, interrupted, [1], 1))  # type: ignore[arg-type]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_broken_line_of_a_record_costs_that_row_alone(matrix: Matrix, tmp_path: Path) -> None:
    record = tmp_path / "matrix.ndjson"
    rerun(matrix, record)
    lines = record.read_bytes().splitlines(keepends=True)
    record.write_bytes(b"".join([*lines[:2], b"{broken\n", *lines[3:]]))
    assert rerun(matrix, record) == [list(matrix.entries)[1]]
