"""Which checks `-k` and `--operation` select."""

from __future__ import annotations

import pytest

from rlassay.check import Check
from rlassay.cli.selection import SelectionError, predicate, select

IDS = ["kl_k1/value", "kl_k1/P7.1", "kl_k3/value", "kl_k3/refuses-a-mask", "gae/value", "gae/gradient"]
CHECKS = {identity: Check(identity, "", (identity.partition("/")[0],), lambda trial: None) for identity in IDS}


def chosen(expression: str = "", *operations: str) -> list[str]:
    return [check.id for check in select(CHECKS, operations, expression)]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("", IDS),
        ("kl_k1", ["kl_k1/value", "kl_k1/P7.1"]),
        ("p7.1", ["kl_k1/P7.1"]),
        ("kl_k3/value", ["kl_k3/value"]),
        ("value and not gae", ["kl_k1/value", "kl_k3/value"]),
        ("gradient or P7", ["kl_k1/P7.1", "gae/gradient"]),
        ("gradient or P7 and kl", ["kl_k1/P7.1", "gae/gradient"]),
        ("(gradient or P7) and kl", ["kl_k1/P7.1"]),
        ("not (value or refuses)", ["kl_k1/P7.1", "gae/gradient"]),
        ("not not gradient", ["gae/gradient"]),
        ("k1 and(value)", ["kl_k1/value"]),
    ],
)
def test_an_expression_is_parts_of_ids_with_and_or_not(expression: str, found: list[str]) -> None:
    assert chosen(expression) == found


def test_operations_select_what_is_reported_under_them() -> None:
    assert chosen("", "gae", "kl_k1") == ["kl_k1/value", "kl_k1/P7.1", "gae/value", "gae/gradient"]
    assert chosen("value", "gae") == ["gae/value"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("kl and", "'kl and': found the end where a part of a check's id should be"),
        ("(kl", "'(kl': found the end where and, or, or ) should be"),
        ("kl)", "'kl)': found ')' where and, or, or the end should be"),
        ("kl gae", "'kl gae': found 'gae' where and, or, or the end should be"),
        ("or kl", "'or kl': found 'or' where a part of a check's id should be"),
        ("()", "'()': found ')' where a part of a check's id should be"),
        (" ", "' ': found the end where a part of a check's id should be"),
    ],
)
def test_a_malformed_expression_is_refused_with_what_should_be_there(expression: str, message: str) -> None:
    with pytest.raises(SelectionError) as caught:
        predicate(expression)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("expression", "operations", "message"),
    [
        ("klk3", (), "no check has an id that satisfies 'klk3'; did you mean kl_k3?"),
        ("kl_k3 and gradeint", (), "no check has an id that satisfies 'kl_k3 and gradeint'; did you mean gradient?"),
        ("gradient", ("kl_k1",), "no check of kl_k1 has an id that satisfies 'gradient'"),
        ("kl and gae", (), "no check has an id that satisfies 'kl and gae'"),
    ],
)
def test_nothing_selected_is_refused(expression: str, operations: tuple[str, ...], message: str) -> None:
    with pytest.raises(SelectionError) as caught:
        select(CHECKS, operations, expression)
    assert str(caught.value) == message
