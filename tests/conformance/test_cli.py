"""The command line on a scripted worker: exit codes, files, messages. What needs a real one is in test_bad_subjects."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rlassay import __version__
from rlassay.cli import run
from rlassay.record import read_record
from rlassay.suite import all_checks
from rlassay_spec.claims import load_claims
from rlassay_spec.operations import CS336_OPERATIONS, OPERATIONS
from tests.conformance.cli_support import COMMAND, rlassay, scripted

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(target: str, *options: str) -> int:
    """Judge the scripted target by the checks of kl_k1 and kl_k3."""
    return run(["check", target, "--operation", "kl_k1", "--operation", "kl_k3", *options])


def test_it_conforms_when_every_conformance_check_of_what_is_provided_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert check(scripted(monkeypatch, kl_k1="pass")) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == "conforms"
    assert "not provided: kl_k3" in captured.out
    assert captured.err == ""


@pytest.mark.parametrize("outcome", ["fail", "error", "exit 3", "hang"])
def test_one_failed_conformance_check_is_enough_not_to_conform(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, outcome: str
) -> None:
    target = scripted(monkeypatch, kl_k1="pass", kl_k3="pass", kl_k1__gradient=outcome)
    assert check(target, "--timeout", "2") == 1
    assert capsys.readouterr().out.splitlines()[-1] == "does not conform: 1 of 2 operations"


def test_a_robustness_finding_is_reported_and_decides_a_strict_run_only(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    target = scripted(monkeypatch, kl_k1="pass", **{"kl_k1__side-effects": "fail"})
    assert check(target) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "conforms, 1 robustness finding"
    assert check(target, "--strict") == 1
    assert capsys.readouterr().out.splitlines()[-1] == "does not conform strictly: 1 of 1 operation"


def test_a_failure_of_the_harness_in_a_check_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert check(scripted(monkeypatch, kl_k1="fail", kl_k1__value="harness-error")) == 3
    assert capsys.readouterr().out.splitlines()[-1] == "no verdict: rlassay itself failed in 1 check"


def test_a_failure_of_the_command_itself_is_exit_code_3(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr("rlassay.cli.check.render", broken)
    assert check(scripted(monkeypatch, kl_k1="pass")) == 3
    assert "rlassay itself failed: RuntimeError: a bug of ours. Please report it." in capsys.readouterr().err


def test_the_record_holds_every_selected_check_and_is_shown_again(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    target = scripted(monkeypatch, kl_k1="pass", kl_k1__value="fail", kl_k1__gradient="exit 3")
    check(target, "--json", "run.ndjson", "--seed", "5", "--profile", "quick", "-k", "not dtype")
    summary = capsys.readouterr().out
    found = read_record(Path("run.ndjson"))
    selected = [
        one.id for one in all_checks().values() if one.operation in ("kl_k1", "kl_k3") and "dtype" not in one.id
    ]
    assert found.complete
    assert [one.id for one in found.checks] == selected
    assert (found.header.checks, found.header.available) == (len(selected), len(all_checks()))
    assert (found.header.seed, found.header.profile, found.header.expression) == (5, "quick", "not dtype")
    assert (found.header.operations, found.header.selected) == (["kl_k1"], ["kl_k1", "kl_k3"])
    assert [explanation.operation for explanation in found.explanations] == []
    assert found.footer is not None
    assert found.footer.exit_code == 1
    assert run(["show", "run.ndjson"]) == 0
    assert capsys.readouterr().out == summary


def test_an_operation_that_fails_is_explained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    check(scripted(monkeypatch, kl_k1="fail", kl_k3="pass"), "--json", "run.ndjson")
    assert [found.operation for found in read_record(Path("run.ndjson")).explanations] == ["kl_k1"]


def test_the_record_goes_to_standard_output_and_the_summary_then_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert check(scripted(monkeypatch, kl_k1="pass"), "--json", "-") == 0
    captured = capfdbinary.readouterr()
    assert [json.loads(line)["type"] for line in captured.out.splitlines()][-1] == "footer"
    assert captured.err.decode().splitlines()[-1] == "conforms"


def test_junit_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    check(scripted(monkeypatch, kl_k1="pass", kl_k1__value="fail"), "--junit", "run.xml")
    suite = ElementTree.parse("run.xml").find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "1"


def test_known_deviations_are_drafted_then_hold_and_then_are_stale(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    target = scripted(monkeypatch, kl_k1="pass", kl_k1__value="fail", kl_k1__gradient="error")
    assert check(target, "--write-expected", "known.toml") == 1
    assert Path("known.toml").read_text().count("[[expected]]") == 2
    assert check(target, "--expected", "known.toml") == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "conforms, 2 known deviations without a reason (TODO)"
    assert "kl_k1/value: TODO: why this is accepted" in out
    mended = scripted(monkeypatch, kl_k1="pass", kl_k1__gradient="fail")
    assert check(mended, "--expected", "known.toml", "--json", "run.ndjson") == 1
    out = capsys.readouterr().out
    assert "kl_k1/value is listed as a known deviation, but it passes" in out
    assert "kl_k1/gradient is listed as a known deviation, but its outcome is fail" in out
    footer = read_record(Path("run.ndjson")).footer
    assert footer is not None
    assert footer.stale == ["kl_k1/value", "kl_k1/gradient"]


def test_a_draft_replaces_the_list_it_was_given_and_no_other_file(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    entry = '[[expected]]\nid = "kl_k1/value"\noutcome = "fail"\nreason = "as the paper has it"\n'
    Path("known.toml").write_text(entry)
    target = scripted(monkeypatch, kl_k1="pass", kl_k1__value="fail", kl_k1__gradient="fail")
    assert check(target, "--write-expected", "known.toml") == 2
    assert "--write-expected: known.toml exists already; remove it, or pass it as --expected" in capsys.readouterr().err
    assert Path("known.toml").read_text() == entry
    assert check(target, "--expected", "known.toml", "--write-expected", "known.toml") == 1
    assert entry in Path("known.toml").read_text()
    assert "TODO" in Path("known.toml").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Missing argument 'TARGET'."),
        (["x.py", "--profile", "fast"], "'fast' is not one of 'quick', 'standard', 'thorough'"),
        (["x.py", "--convention", "lecter"], "'lecter' is not one of 'lecture'"),
        (["x.py", "--interface", "none"], "'none' is not one of 'own', 'cs336'"),
        (["x.py", "--seed", "one"], "'one' is not a valid integer"),
        (["x.py", "--timeout", "0"], "0.0 is not in the range x>0"),
        (["x.py", "--operation", "kl_k4"], "there is no operation 'kl_k4'; did you mean kl_k3?"),
        (["x.py", "-k", "klk3"], "no check has an id that satisfies 'klk3'; did you mean kl_k3?"),
        (["x.py", "-k", "(kl"], "'(kl': found the end where and, or, or ) should be"),
        (["x.py", "--expected", "nowhere.toml"], "nowhere.toml: cannot be read: No such file or directory"),
        (["x.py", "--json", "no/where.ndjson"], "no/where.ndjson: cannot be written: No such file or directory"),
        (["x.py", "--junit", "."], ".: cannot be written: Is a directory"),
        (["x.py", "--write-expected", "no/where.toml"], "no/where.toml: cannot be written: No such file or directory"),
        (["x.py", "--json", "x.py"], "x.py, which is the target"),
        (["x.py", "--json", "a", "--junit", "./a"], "a, which is --junit"),
        (["x.py", "--jsn", "a"], "No such option"),
        (["x.py", "y.py"], "Got unexpected extra argument"),
    ],
)
def test_a_wrong_option_is_a_usage_error_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, options: list[str], message: str
) -> None:
    monkeypatch.setattr("rlassay.process.COMMAND", (sys.executable, "-c", "raise SystemExit('it ran')"))
    Path("x.py").write_text("x = 1\n")
    assert run(["check", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in re.sub(r"\s+", " ", captured.err)
    assert "it ran" not in captured.err
    assert Path("x.py").read_text() == "x = 1\n"


def test_a_target_that_cannot_be_loaded_is_a_usage_error_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert check(scripted(monkeypatch, unusable="x.py: syntax error \x1b[31m in line 3"), "--json", "run.ndjson") == 2
    assert capsys.readouterr().err == "Error: x.py: syntax error \\x1b[31m in line 3\n"
    assert run(["show", "run.ndjson"]) == 2
    assert "run.ndjson: is empty; its run ended before the first check" in capsys.readouterr().err


def test_nothing_to_check_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert check(scripted(monkeypatch, gae="pass")) == 2
    message = "nothing to check: the selected checks are about kl_k1, kl_k3; it provides gae"
    assert message in capsys.readouterr().err
    target = scripted(monkeypatch, kl_k1="pass")
    assert check(target, "-k", "side-effects") == 2
    assert "only robustness checks are selected, which count with --strict" in capsys.readouterr().err
    assert check(target, "-k", "side-effects", "--strict") == 0


def test_a_run_whose_checks_are_all_left_open_by_the_convention_is_no_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert check(scripted(monkeypatch, kl_k1="not-declared")) == 2
    assert capsys.readouterr().out.splitlines()[-1].startswith("nothing was checked")


@pytest.mark.parametrize(
    "arguments", [["-h"], ["--help"], ["check", "-h"], ["show", "-h"], ["claims", "-h"], ["operations", "-h"]]
)
def test_help_is_everywhere_and_gives_examples(capsys: Capture, arguments: list[str]) -> None:
    assert run(arguments) == 0
    assert "rlassay " in capsys.readouterr().out


def test_the_version_is_the_packages(capsys: Capture) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rlassay {__version__}\n"


def test_the_operations_are_listed_and_each_contract_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    assert run(["operations"]) == 0
    text = capsys.readouterr().out
    names = [line.partition("(")[0] for line in text.splitlines() if "(" in line and line[0] != " "]
    assert names == list(OPERATIONS)
    assert "grpo_advantages(rewards)\n    Reward minus the group's mean, divided by" in text
    assert "sft_loss(" in text
    assert run(["operations", "gae", "kl_k1"]) == 0
    text = capsys.readouterr().out
    assert text.index(OPERATIONS["gae"].doc) < text.index(OPERATIONS["kl_k1"].doc)
    assert run(["operations", "clipped_loss"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("clipped_loss(log_probs, old_log_probs, mask, advantages, clip_low=0.2,")
    assert OPERATIONS["clipped_loss"].doc in text
    assert "P5.3" in text
    assert run(["operations", "cliped_loss"]) == 2
    assert "there is no operation 'cliped_loss'; did you mean clipped_loss?" in capsys.readouterr().err


def test_each_interface_has_its_operations(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    assert run(["operations", "--interface", "cs336"]) == 0
    names = [line.partition("(")[0] for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert names == list(CS336_OPERATIONS)
    assert run(["operations", "masked_mean"]) == 0
    assert "rlassay check TARGET --interface cs336 --operation masked_mean" in capsys.readouterr().out
    target = scripted(monkeypatch, masked_mean="pass")
    assert run(["check", target, "--interface", "cs336", "--operation", "masked_mean"]) == 0
    assert run(["check", target, "--operation", "masked_mean"]) == 2
    assert "there is no operation 'masked_mean'" in capsys.readouterr().err


def test_the_claims_are_listed_by_lecture_and_each_is_shown_in_full(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    known = load_claims()
    assert run(["claims", "--lecture", "rl-basics"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [claim.id for claim in known.values() if claim.lecture == "rl-basics"]
    assert run(["claims", "B9.6"]) == 0
    text = capsys.readouterr().out
    claim = known["B9.6"]
    for part in (
        claim.statement,
        claim.truth,
        claim.condition,
        claim.formula,
        claim.source,
        "refuted: false as stated",
    ):
        assert part is not None
        assert part in text
    for value in (*claim.values, *claim.inside, *claim.counterexamples):
        assert f"{value.name}: {value.value}" in text
        assert f"= {value.expression}" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["B99.1"], "there is no claim 'B99.1'; did you mean B9.1"),
        (["--lecture", "x"], "the lectures are rl-basics, rl-"),
    ],
)
def test_an_unknown_claim_or_lecture_is_a_usage_error(capsys: Capture, arguments: list[str], message: str) -> None:
    assert run(["claims", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_coverage_lists_the_checks_of_each_claim_and_fails_where_there_are_none(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    known = load_claims()
    some = {claim.id: claim for claim in (known["B9.1"], known["B9.2"])}
    one = next(iter(all_checks().values()))
    monkeypatch.setattr("rlassay.cli.claims.load_claims", lambda: some)
    for asserted, code in ((["B9.1"], 1), (["B9.1", "B9.2"], 0), (["B9.1", "B9.2", "B77.1"], 1)):
        fakes = {f"x/{claim}": type(one)(f"x/{claim}", "", ("x",), one.function, (claim,)) for claim in asserted}
        monkeypatch.setattr("rlassay.cli.claims.all_checks", lambda fakes=fakes: fakes)
        assert run(["claims", "--coverage"]) == code
    text = capsys.readouterr().out
    assert "1 of 2 claims have no check: B9.2" in text
    assert "B9.1  x/B9.1" in text
    assert "all 2 claims are asserted" in text
    assert "asserted by checks, but not in the specification: B77.1" in text


def test_a_record_with_garbage_in_it_is_refused_with_the_line(capsys: Capture) -> None:
    Path("run.ndjson").write_text("hello\n")
    assert run(["show", "run.ndjson"]) == 2
    assert "run.ndjson, line 1: not a line of a record stream" in capsys.readouterr().err


def test_the_command_runs_as_a_module_without_torch_and_without_warnings(tmp_path: Path) -> None:
    assert rlassay("--version", cwd=tmp_path).stdout == f"rlassay {__version__}\n"
    program = "import sys, rlassay.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([*COMMAND[:3], "-c", program], cwd=tmp_path, check=False).returncode == 0


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "claims"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
