"""How a convention is declared, and what a wrong declaration is told."""

from typing import Any

import pytest

from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention, convention_from


def test_nothing_declared_is_the_lecture_convention() -> None:
    assert Convention() == LECTURE == CONVENTIONS["lecture"]
    assert LECTURE.declared() == {}


def test_the_cs336_convention_declares_what_the_assignment_does_differently() -> None:
    assert CONVENTIONS["cs336"].declared() == {
        "std_ddof": 1,
        "std_eps": 1e-6,
        "aggregation": "sequence_mean",
        "singleton_group": "free",
        "old_log_probs": "caller",
        "empty_mean": "free",
    }


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_name_stands_for_the_set_of_that_name(name: str) -> None:
    assert convention_from(name) is CONVENTIONS[name]
    assert CONVENTIONS[name].name == name


def test_a_mapping_gives_the_fields_that_differ() -> None:
    convention = convention_from({"aggregation": "constant", "aggregation_constant": 12})
    assert convention == Convention(name="declared", aggregation="constant", aggregation_constant=12)
    assert convention.declared() == {"aggregation": "constant", "aggregation_constant": 12}


def test_a_mapping_that_carries_a_set_s_name_starts_from_that_set() -> None:
    assert convention_from({"name": "cs336"}) == CONVENTIONS["cs336"]
    changed = convention_from({"name": "cs336", "std_ddof": 0})
    assert (changed.name, changed.std_ddof, changed.std_eps) == ("cs336, changed", 0, 1e-6)


def test_what_a_mapping_leaves_out_comes_from_the_base() -> None:
    changed = convention_from({"std_ddof": 0}, CONVENTIONS["cs336"])
    assert (changed.std_ddof, changed.std_eps, changed.singleton_group) == (0, 1e-6, "free")


def test_a_mapping_may_name_itself() -> None:
    assert convention_from({"name": "mine", "k3_clamp": 10.0}) == Convention(name="mine", k3_clamp=10.0)


def test_what_is_declared_makes_the_convention_again() -> None:
    for convention in CONVENTIONS.values():
        assert convention_from({"name": convention.name, **convention.declared()}) == convention


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("lectrue", "convention: is 'lectrue', expected one of 'lecture', 'cs336'"),
        ({"ddof": 1}, "convention: has the field 'ddof', expected fields among name, std_ddof, std_eps"),
        ({"std_ddof": 2}, "std_ddof: is 2, expected one of 0, 1"),
        ({"std_ddof": True}, "std_ddof: is True, expected one of 0, 1"),
        ({"std_eps": -1e-6}, "std_eps: is -1e-06, expected a finite number ≥ 0"),
        ({"std_eps": float("nan")}, "std_eps: is nan, expected a finite number ≥ 0"),
        ({"std_eps": "1e-6"}, "std_eps: is '1e-6', expected a finite number ≥ 0"),
        ({"std_eps": 10**400}, f"std_eps: is {10**400}, expected a finite number ≥ 0"),
        ({"std_eps_place": "outside"}, "std_eps_place: is 'outside', expected one of 'added', 'inside', 'floor'"),
        (
            {"aggregation": "mean"},
            "aggregation: is 'mean', expected one of 'sequence_sum', 'sequence_mean', 'token_mean', 'constant'",
        ),
        ({"aggregation": ["token_mean"]}, "aggregation: is ['token_mean'], expected one of 'sequence_sum'"),
        ({"aggregation": "constant"}, "aggregation_constant: is None, expected a finite number > 0"),
        ({"aggregation_constant": 0}, "aggregation_constant: is 0, expected None or a finite number > 0"),
        ({"empty_rows": "skipped"}, "empty_rows: is 'skipped', expected one of 'counted', 'dropped'"),
        (
            {"singleton_group": "nan"},
            "singleton_group: is 'nan', expected one of 'zero', 'reward', 'error', 'free'",
        ),
        ({"old_log_probs": "live"}, "old_log_probs: is 'live', expected one of 'detached', 'caller'"),
        ({"k3_clamp": 0.0}, "k3_clamp: is 0.0, expected None or a finite number > 0"),
        ({"log_ratio_clamp": float("inf")}, "log_ratio_clamp: is inf, expected None or a finite number > 0"),
        ({"empty_mean": "nan"}, "empty_mean: is 'nan', expected one of 'zero', 'free'"),
    ],
)
def test_a_wrong_declaration_is_told_what_is_allowed(declaration: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        convention_from(declaration)
    assert message in str(error.value)


def test_a_declaration_is_a_name_or_a_mapping() -> None:
    with pytest.raises(TypeError, match="convention: is int, expected a name or a mapping of fields"):
        convention_from(3)  # type: ignore[arg-type]
