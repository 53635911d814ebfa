"""Alike wrong behaviour: unusual mistakes that two share make a pair, common ones never do."""

from __future__ import annotations

import csv
import random
from pathlib import Path

from rlassay.grading.similarity import NOTE, SHARED, features, few, pairs, write_similarity
from rlassay.record import Explanation
from tests.conformance.cli_support import result
from tests.conformance.grading.report_support import HOSTILE, grade, run_of, store


def test_numbers_in_messages_do_not_matter() -> None:
    one = run_of([result("kl_k1/value", "fail", "kl_k1[0, 0] is -0.5, but should be 1.2e-05 (within 4.8e-06)")])
    two = run_of([result("kl_k1/value", "fail", "kl_k1[1, 3] is 17, but should be nan (exactly)")])
    assert features(one) == features(two)
    other = run_of([result("kl_k1/value", "fail", "kl_k1 has shape (2, 3), but should have (2,)")])
    assert len(features(one) & features(other)) == 1


def test_what_is_explained_is_one_feature() -> None:
    failing = [result(f"kl_k1/{law}", "fail") for law in ("value", "gradient", "dtype")]
    told = [Explanation(operation="kl_k1", text="behaves like swapped", fault="swapped")]
    assert features(run_of(failing, told)) == {"kl_k1 behaves like swapped"}
    assert len(features(run_of(failing, [Explanation(operation="kl_k1", text="no known fault matches")]))) == 6


def test_what_is_right_absent_or_ours_is_no_feature() -> None:
    outcomes = ("pass", "not-provided", "not-declared", "harness-error")
    lines = [result(f"kl_k1/{name}", name) for name in outcomes]
    lines.append(result("kl_k1/x", "timeout", "not run: kl_k1 hung or crashed in 2 earlier checks"))
    assert features(run_of(lines)) == frozenset()


def test_two_that_share_unusual_mistakes_make_a_pair() -> None:
    behaviour = {f"s{number}": frozenset({"common"}) for number in range(40)}
    behaviour["s3"] = behaviour["s31"] = frozenset({"common", "odd one", "odd two", "odd three"})
    (pair,) = pairs(behaviour)
    assert (pair.first, pair.second, pair.alike) == ("s3", "s31", 1.0)
    assert pair.shared == ("odd one", "odd three", "odd two", "common")


def test_a_fault_that_many_make_makes_no_pair() -> None:
    """All of these are exactly alike."""
    common = frozenset(f"check {number}" for number in range(30))
    for every in (2, 5, 20):
        assert pairs({f"s{number}": common if number % every == 0 else frozenset() for number in range(500)}) == []


def test_one_unusual_mistake_alone_makes_no_pair() -> None:
    behaviour = {f"s{number}": frozenset[str]() for number in range(50)}
    behaviour["s1"] = behaviour["s2"] = frozenset({"odd"})
    assert SHARED == 2
    assert pairs(behaviour) == []


def test_sharing_little_of_much_makes_no_pair() -> None:
    behaviour = {f"s{number}": frozenset[str]() for number in range(50)}
    behaviour["s1"] = frozenset({"odd 1", "odd 2", *(f"own {number}" for number in range(20))})
    behaviour["s2"] = frozenset({"odd 1", "odd 2", *(f"else {number}" for number in range(20))})
    assert pairs(behaviour) == []
    assert len(pairs(behaviour, level=0.03)) == 1


def test_people_who_err_by_themselves_make_few_pairs_and_copies_are_found_among_them() -> None:
    """500 people, each with some of 12 known faults of realistic frequency, and noise of their own; one has copied."""
    rng = random.Random(20)
    shares = [0.3, 0.2, 0.15, 0.1, 0.08, 0.06, 0.04, 0.03, 0.02, 0.01, 0.005, 0.004]
    behaviour: dict[str, frozenset[str]] = {}
    for number in range(500):
        found = {f"fault {place}" for place, share in enumerate(shares) if rng.random() < share}
        found |= {f"noise {rng.randrange(100_000)}" for _ in range(rng.randrange(3))}
        behaviour[f"s{number:03}"] = frozenset(found)
    odd = frozenset({f"unexplained {number}" for number in range(6)} | {"fault 0"})
    behaviour["s100"], behaviour["s400"] = odd, odd | {"fault 1"}
    found_pairs = pairs(behaviour)
    assert ("s100", "s400") in {(pair.first, pair.second) for pair in found_pairs}
    assert len(found_pairs) <= 20


def test_a_class_of_500_that_all_fail_everything_is_done_by_bounded_work() -> None:
    """The bound: features with few owners, and the pairs of those owners."""
    rng = random.Random(1)
    keys = [f"s{number}" for number in range(500)]
    found: dict[str, set[str]] = {key: set() for key in keys}
    for number in range(4000):
        for key in rng.sample(keys, few(500)):
            found[key].add(f"check {number}")
    assert (few(10), few(60), few(500)) == (2, 3, 5)
    assert pairs({key: frozenset(one) for key, one in found.items()}) == []


def test_the_table_names_both_and_says_that_it_is_a_hint(tmp_path: Path) -> None:
    odd = run_of([result("kl_k1/value", "error", "kl_k1 raised ValueError: =cmd in the call")])
    fine = run_of([result("kl_k1/value")])
    names = ["ada", "bob", "cyd", "dan", "eve"]
    grades = [grade(name) for name in names] + [grade("fay", status="failed")]
    folder = store(tmp_path / "results", grades, [odd, fine, odd, fine, fine, None])
    assert write_similarity(folder) == 1
    with (folder / "similarity.csv").open(encoding="utf-8-sig", newline="") as stream:
        head, row = csv.reader(stream)
    assert head == ["first", "name", "second", "name", "alike", "what both do and few others", "note"]
    assert row[:5] == ["ada", "Ada", "cyd", "Cyd", "1.00"]
    assert "kl_k1/value: error" in row[5]
    assert row[6] == NOTE
    assert "not a verdict" in NOTE
    assert "copied" not in NOTE


def test_names_and_messages_in_the_table_are_harmless(tmp_path: Path) -> None:
    odd = run_of([result("kl_k1/value", "fail", HOSTILE), result("kl_k1/dtype", "fail", "\n=1" * 300_000)])
    grades = [grade(name, name=f"={name}\r\n") for name in ("ada", "bob", "cyd")]
    folder = store(tmp_path / "results", grades, [odd, odd, run_of([result("kl_k1/value")])])
    assert write_similarity(folder) == 1
    first = (folder / "similarity.csv").read_bytes()
    assert b"\x1b" not in first and b"\x00" not in first and len(first) < 10_000
    write_similarity(folder)
    assert (folder / "similarity.csv").read_bytes() == first
    with (folder / "similarity.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.reader(stream))
    assert len(rows) == 2
    assert not [one for row in rows for one in row if one.startswith("=")]


def test_a_class_without_records_has_no_pairs(tmp_path: Path) -> None:
    assert write_similarity(store(tmp_path / "results", [grade()])) == 0
