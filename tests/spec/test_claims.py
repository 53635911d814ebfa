"""Every stated value is what its expression yields, and a claims file with a fault is told what is wrong."""

from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import pytest

from rlassay_spec.claims import VERDICTS, Claim, ClaimError, Value, load_claims
from rlassay_spec.claims.evaluation import evaluate, mismatch
from rlassay_spec.operations import OPERATIONS

CLAIMS = load_claims()
VALUES = [
    pytest.param(value, id=f"{claim.id}-{kind}-{n}")
    for claim in CLAIMS.values()
    for kind, values in (("value", claim.values), ("inside", claim.inside), ("counterexample", claim.counterexamples))
    for n, value in enumerate(values, start=1)
]

GOOD = """
lecture = "rl-basics"
letter = "B"

[[claim]]
id = "B3.3"
section = "3 · Supervised fine-tuning"
statement = "Twenty steps at 0.95 each
succeed in 36 of 100 cases."
formula = "0.95²⁰"
verdict = "holds"
source = "section 3"
operations = ["action_log_probs"]

[[claim.value]]
name = "success rate"
value = "0.358486"
expression = "0.95**20"
printed = "0.36"
""".replace('"Twenty', '"""Twenty').replace('cases."', 'cases."""')

QUALIFIED = (
    GOOD.replace('verdict = "holds"', 'verdict = "refuted"\ncondition = "never"\ntruth = "it fails"')
    + """
[[claim.inside]]
name = "inside"
value = "1"
expression = "1"

[[claim.counterexample]]
name = "outside"
value = "2"
expression = "2"
"""
)


def load(folder: Path, text: str) -> dict[str, Claim]:
    file = folder / "some.toml"
    file.write_text(text, encoding="utf-8")
    return load_claims([file])


# ------------------------------------------------------------------------------------------------- the two lectures


@pytest.mark.parametrize("value", VALUES)
def test_a_stated_value_is_what_its_expression_yields(value: Value) -> None:
    assert mismatch(value) is None


def test_both_lectures_are_there_in_order() -> None:
    lectures = [claim.lecture for claim in CLAIMS.values()]
    assert lectures == sorted(lectures)
    assert set(lectures) == {"rl-basics", "rl-in-practice"}


def test_the_running_numbers_of_a_section_have_no_gap() -> None:
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for identifier in CLAIMS:
        section, _, number = identifier.partition(".")
        numbers[section].append(int(number))
    assert numbers == {section: list(range(1, len(found) + 1)) for section, found in numbers.items()}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_a_claim_speaks_of_operations_that_exist(claim: Claim) -> None:
    assert set(claim.operations) <= set(OPERATIONS)
    assert len(set(claim.operations)) == len(claim.operations)


def test_the_only_operations_of_the_lectures_topics_without_a_claim_are_those_no_lecture_speaks_of() -> None:
    spoken_of = {operation for claim in CLAIMS.values() for operation in claim.operations}
    elsewhere = {"surrogate", "shaping", "sampling", "cs336"}
    of_the_lectures = {name for name, operation in OPERATIONS.items() if operation.topic not in elsewhere}
    assert of_the_lectures - spoken_of == {"entropy", "gae", "microbatch_loss", "value_loss"}


def test_every_verdict_occurs() -> None:
    assert {claim.verdict for claim in CLAIMS.values()} == set(VERDICTS)


def test_the_values_of_an_inside_and_a_counterexample_are_not_the_same_computation() -> None:
    for claim in CLAIMS.values():
        assert not {v.expression for v in claim.inside} & {v.expression for v in claim.counterexamples}, claim.id


# ------------------------------------------------------------------------------------------------------- the loader


def test_a_claim_is_read_field_by_field(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD) == {
        "B3.3": Claim(
            id="B3.3",
            lecture="rl-basics",
            section="3 · Supervised fine-tuning",
            statement="Twenty steps at 0.95 each succeed in 36 of 100 cases.",
            formula="0.95²⁰",
            verdict="holds",
            source="section 3",
            operations=("action_log_probs",),
            asserted_by="conformance",
            condition=None,
            truth=None,
            values=(Value("success rate", "0.358486", "0.95**20", "0.36"),),
            inside=(),
            counterexamples=(),
        )
    }


def test_a_refuted_claim_carries_what_is_true_instead(tmp_path: Path) -> None:
    claim = load(tmp_path, QUALIFIED)["B3.3"]
    assert (claim.condition, claim.truth) == ("never", "it fails")
    assert claim.inside == (Value("inside", "1", "1"),)
    assert claim.counterexamples == (Value("outside", "2", "2"),)


def test_a_claim_without_an_operation_is_asserted_by_the_specification(tmp_path: Path) -> None:
    text = GOOD.replace('["action_log_probs"]', '[]\nasserted_by = "spec"')
    assert load(tmp_path, text)["B3.3"].asserted_by == "spec"


@pytest.mark.parametrize(
    ("had", "instead", "message"),
    [
        ("formula =", "formulla =", "some.toml: claim B3.3: unknown field 'formulla'; the fields are id, section"),
        ('source = "section 3"\n', "", "some.toml: claim B3.3: source is missing; a claim must have it"),
        ('"section 3"', '" "', "some.toml: claim B3.3: source is ' ', but should be a text that is not empty"),
        ('id = "B3.3"\n', "", "some.toml: claim number 1 (no id): id is missing; a claim must have it"),
        ('"B3.3"', '"P3.3"', "id is 'P3.3', but should be B<section>.<number>, for example B2.1"),
        ('"B3.3"', '"B3.x"', "id is 'B3.x', but should be B<section>.<number>"),
        ('"holds"', '"true"', "verdict is 'true', but should be one of holds, conditional, refuted, measured"),
        ('"holds"', '"refuted"', "condition is missing; a refuted claim must have it"),
        ('"holds"', '"conditional"\ncondition = "x"', "truth is missing; a conditional claim must have it"),
        ('"holds"', '"refuted"\ncondition = "x"\ntruth = "y"', "inside is missing; a refuted claim must have it"),
        ('"holds"', '"holds"\ntruth = "y"', "truth is 'given', but should be left out: the claim is 'holds'"),
        ('["action_log_probs"]', "[]", "operations is [], but should be at least one operation, or [] together"),
        ('["action_log_probs"]', '["x"]\nasserted_by = "spec"', "operations is ['x'], but should be at least one"),
        ('["action_log_probs"]', '"kl_k1"', "operations is 'kl_k1', but should be a list of texts"),
        ("operations =", 'asserted_by = "me"\noperations =', "asserted_by is 'me', but should be one of conformance"),
        ('name = "success rate"\n', "", "some.toml: claim B3.3: value 1: name is missing; a value must have it"),
        ("expression = ", "code = ", "claim B3.3: value 1: unknown field 'code'; the fields are name, value"),
        ('"0.358486"', "0.358486", "claim B3.3: value 1: value is 0.358486, but should be a text"),
        ("[[claim.value]]", "[claim.value]", "value is {'name': 'success rate', "),
        ('lecture = "rl-basics"\n', "", "some.toml: lecture is None, but should be a text that is not empty"),
        ('letter = "B"', 'letter = "B"\nauthor = "x"', "some.toml: unknown field 'author'; the fields are lecture"),
    ],
)
def test_a_fault_in_a_file_is_named(tmp_path: Path, had: str, instead: str, message: str) -> None:
    assert had in GOOD
    with pytest.raises(ClaimError) as caught:
        load(tmp_path, GOOD.replace(had, instead, 1))
    assert message in str(caught.value)


def test_a_fault_in_the_syntax_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ClaimError, match=r"^some.toml: is not TOML: .*line 10\b"):
        load(tmp_path, GOOD.replace('formula = "0.95²⁰"', 'formula = "0.95²⁰'))


def test_a_claim_that_holds_needs_a_value(tmp_path: Path) -> None:
    with pytest.raises(ClaimError, match=r"claim B3\.3: value is missing; a claim that holds must have it"):
        load(tmp_path, GOOD[: GOOD.index("[[claim.value]]")])


def test_a_refuted_claim_needs_a_counterexample(tmp_path: Path) -> None:
    with pytest.raises(ClaimError, match=r"claim B3\.3: counterexample is missing; a refuted claim must have it"):
        load(tmp_path, QUALIFIED[: QUALIFIED.index("[[claim.counterexample]]")])


def test_an_id_may_be_used_once(tmp_path: Path) -> None:
    with pytest.raises(ClaimError, match=r"some\.toml: claim B3\.3: id is used twice, but should be unique"):
        load(tmp_path, GOOD + GOOD[GOOD.index("[[claim]]") :])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClaimError, match=r"^none.toml: cannot be read: "):
        load_claims([tmp_path / "none.toml"])


def test_bytes_that_are_not_utf_8_are_named(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_bytes(b"\xff")
    with pytest.raises(ClaimError, match=r"^some.toml: is not TOML: "):
        load_claims([tmp_path / "some.toml"])


# --------------------------------------------------------------------------------------------------- the evaluation


def test_numbers_in_an_expression_are_exact() -> None:
    assert evaluate("1/3 + 0.05") == Fraction(1, 3) + Fraction(1, 20)
    assert evaluate("tuple(k / 2 for k in range(2))") == (0, Fraction(1, 2))
    assert evaluate("sqrt(9/4)") == Fraction(3, 2)


@pytest.mark.parametrize(
    ("stated", "expression"),
    [
        ("15/16", "15/16"),
        ("sqrt(3)/2", "3 / (2 * sqrt(3))"),
        ("0.36", "0.95**20"),
        ("-0.58", "-1/sqrt(3)"),
        ("(1, -1/2, (True, 'higher'))", "(1, -1/2, [True, 'higher'])"),
        ("(0.13,)", "(1/8,)"),
        ("0", "0"),
    ],
)
def test_a_value_that_agrees_is_accepted(stated: str, expression: str) -> None:
    assert mismatch(Value("x", stated, expression)) is None


@pytest.mark.parametrize(
    ("stated", "expression"),
    [
        ("15/16", "15/16 + 1/10**30"),
        ("sqrt(3)/2", "sqrt(3)/2 * (1 + 1/10**11)"),
        ("0.358486", "0.95**20 + 0.000001"),
        ("0.58", "-1/sqrt(3)"),
        ("(1, 2)", "(1, 2, 3)"),
        ("(1, 2)", "1"),
        ("(1, 2)", "(1, 3)"),
        ("0", "1/10**20 * sqrt(2)"),
        ("0.0", "(0, 0)"),
        ("0.0", "float('nan')"),
        ("0", "float('nan')"),
        ("sqrt(2)", "(1, 2)"),
        ("True", "False"),
    ],
)
def test_a_value_that_differs_is_reported(stated: str, expression: str) -> None:
    message = mismatch(Value("x", stated, expression))
    assert message is not None
    assert message.startswith(f"x: {expression} is ")
    assert message.endswith(f", but should be {stated}")


def test_the_printed_number_is_compared_as_well() -> None:
    assert mismatch(Value("x", "0.358486", "0.95**20", printed="0.36")) is None
    assert mismatch(Value("x", "0.358486", "0.95**20", printed="0.35")) is not None
