"""A subject in a guest is judged as it would be in this process, and what it forges is its own failure."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlassay
import rlassay_spec
from rlassay.engine import run_check
from rlassay.faults import all_faults
from rlassay.guest.errors import SubjectRaised
from rlassay.guest.objects import LanguageModel
from rlassay.guest.observation import Observation
from rlassay.guest.packing import MOST_NAME, Opaque
from rlassay.guest.submission import MOST_TEXT
from rlassay.guest.values import Tensor
from rlassay.isolation.remote import RemoteSubject
from rlassay.isolation.session import Session
from rlassay.isolation.warm import WarmProcess
from rlassay.load import load_target
from rlassay.record import CheckResult
from rlassay.subject import SubjectGone
from rlassay.suite import all_checks
from rlassay.torch_subject import TorchSubject
from rlassay_spec.convention import CONVENTIONS, LECTURE, Convention

from .guests import linux
from .submitted import TWO, namespaces, session

EXAMPLES = 2


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProcess]:
    with WarmProcess() as process:
        yield process


def copied(package: Path, target: Path, **names: str) -> None:
    """A copy of a package's sources in which packages have other names."""
    for path in package.rglob("*"):
        if path.suffix in (".py", ".toml"):
            text = path.read_text(encoding="utf-8")
            for old, new in names.items():
                text = text.replace(old, new)
            copy = target / path.relative_to(package)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")


def outcomes(subject: Any, interface: str, operations: frozenset[str]) -> dict[str, tuple[str, str, str]]:
    """Outcome, message and what came instead, of every check of these operations."""
    found = {}
    for check in all_checks(interface).values():
        if operations.issuperset(check.operations):
            result = run_check(check, subject, EXAMPLES, 7)
            failure = result.failure
            found[check.id] = (result.outcome, failure.message, failure.got) if failure else (result.outcome, "", "")
    return found


def in_process(functions: Mapping[str, Callable[..., Any]], convention: Convention, interface: str = "own") -> Any:
    return outcomes(TorchSubject(functions, convention=convention), interface, frozenset(functions))


def remote(begun: Session, convention: Convention, interface: str = "own") -> Any:
    subject = RemoteSubject(begun, "work", convention)
    assert begun.broken is None
    return outcomes(subject, interface, subject.operations)


@linux
@namespaces
def test_the_reference_passes_every_check_as_it_does_in_this_process(warm: WarmProcess, tmp_path: Path) -> None:
    reference = importlib.import_module("rlassay_impl")
    copied(Path(reference.__file__ or "").parent, tmp_path / "source" / "reference", rlassay_impl="reference")
    functions = load_target("rlassay_impl").functions
    with session(warm, tmp_path, "from reference import *\n") as begun:
        assert set(begun.loaded.operations) == set(functions)
        assert remote(begun, LECTURE) == in_process(functions, LECTURE)
        assert begun.guests == 1


@linux
@namespaces
@pytest.mark.parametrize("name", ["plain_2025", "loops_2026"])
def test_an_assignment_of_cs336_is_judged_as_it_is_in_this_process(
    warm: WarmProcess, tmp_path: Path, name: str
) -> None:
    path = Path(__file__).parents[1] / "cs336" / f"{name}.py"
    target = load_target(str(path), "cs336")
    copied(path.parent, tmp_path / "source")
    with session(warm, tmp_path, path.read_text(encoding="utf-8"), interface="cs336") as begun:
        assert set(begun.loaded.operations) == set(target.functions)
        convention = CONVENTIONS["cs336"]
        assert remote(begun, convention, "cs336") == in_process(target.functions, convention, "cs336")


def wrong() -> dict[str, str]:
    """One known fault of every third operation."""
    first: dict[str, str] = {}
    for key, fault in all_faults().items():
        first.setdefault(fault.operation, key)
    return dict(list(first.items())[::3])


@linux
@namespaces
def test_known_faults_are_judged_as_they_are_in_this_process(warm: WarmProcess, tmp_path: Path) -> None:
    source = tmp_path / "source"
    copied(Path(rlassay.__file__).parent, source / "harness", rlassay_spec="sheet", rlassay="harness")
    copied(Path(rlassay_spec.__file__).parent, source / "sheet", rlassay_spec="sheet")
    keys = wrong()
    assert len(keys) >= 12
    text = "from harness.faults import all_faults\n" + "".join(
        f"{name} = all_faults()[{key!r}].function\n" for name, key in keys.items()
    )
    functions = {name: all_faults()[key].function for name, key in keys.items()}
    with session(warm, tmp_path, text) as begun:
        judged, known = remote(begun, LECTURE), in_process(functions, LECTURE)
    assert {name: (judged[name], known[name]) for name in known if judged[name] != known[name]} == {}
    assert sum(outcome != "pass" for outcome, _, _ in judged.values()) > len(keys)


class Scripted:
    """A session that gives the same answer to every request."""

    broken = None

    def __init__(self, answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self.answer = answer
        self.closed = 0
        self.loaded = type("Loaded", (), {"operations": tuple(load_target("rlassay_impl").functions)})

    def call(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.answer(request)

    def close(self) -> None:
        self.closed += 1


def scripted(answer: Callable[[Mapping[str, Any]], Any]) -> tuple[RemoteSubject, Scripted]:
    begun = Scripted(answer)
    return RemoteSubject(begun, "work", LECTURE), begun  # type: ignore[arg-type]


MODEL = {"model": LanguageModel(np.ones((3, 2)), np.ones((3, 2)))}

UNFIT: dict[str, tuple[dict[str, Any], tuple[str, ...], Observation]] = {
    "no gradient": (TWO, ("log_probs",), Observation(value=1)),
    "gradient of another": (TWO, ("log_probs",), Observation(value=1, gradients={"ref_log_probs": None})),
    "gradient too many": (TWO, (), Observation(value=1, gradients={"log_probs": None})),
    "gradient of another shape": (TWO, ("log_probs",), Observation(value=1, gradients={"log_probs": np.ones(2)})),
    "gradient of numbers that are none": (
        *(TWO, ("log_probs",)),
        Observation(value=1, gradients={"log_probs": np.ones((1, 2), complex)}),
    ),
    "gradient of a model in another form": (
        *(MODEL, ("model",)),
        Observation(value=1, gradients={"model": np.ones((3, 2))}, parameters={"model": np.ones(12)}),
    ),
    "parameters of nothing": (TWO, (), Observation(value=1, parameters={"log_probs": np.ones((1, 2))})),
    "no parameters": (MODEL, (), Observation(value=1)),
    "too few parameters": (MODEL, (), Observation(value=1, parameters={"model": np.ones(11)})),
    "a dtype that is none": (TWO, (), Observation(value=np.ones(2), dtype="S1000000000")),
    "a part of a dtype that is none": (TWO, (), Observation(value=1, parts={0: Observation(value=1, dtype="x")})),
}


@pytest.mark.parametrize("name", UNFIT)
def test_an_observation_that_is_not_of_the_call_is_none(name: str) -> None:
    arguments, live, observation = UNFIT[name]
    subject, begun = scripted(lambda request: {"observation": observation})
    with pytest.raises(SubjectGone, match="sent no observation"):
        subject.call("kl_k1", arguments, live=live)
    assert begun.closed == 1


@pytest.mark.parametrize("answer", [{}, {"observation": 1}, {"raised": "text"}, {"observation": Opaque("x")}])
def test_an_answer_without_an_observation_is_none(answer: dict[str, Any]) -> None:
    subject, begun = scripted(lambda request: answer)
    with pytest.raises(SubjectGone):
        subject.call("kl_k1", TWO)
    assert begun.closed == 1


@pytest.mark.parametrize(
    "raised",
    [
        SubjectRaised("MemoryError", "", ("MemoryError", "Exception")),
        SubjectRaised("OutOfMemory", "", ("OutOfMemory", "MemoryError")),
        SubjectRaised("RuntimeError", "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried", ()),
    ],
)
def test_a_guest_without_memory_is_ended(raised: SubjectRaised) -> None:
    subject, begun = scripted(lambda request: {"raised": raised})
    with pytest.raises(SubjectGone, match="memory"):
        subject.call("kl_k1", TWO)
    assert begun.closed == 1


def test_what_was_raised_is_clipped() -> None:
    long = "x" * 10**6
    subject, _ = scripted(lambda request: {"raised": SubjectRaised(long, long, (), long, long)})
    with pytest.raises(SubjectRaised) as told:
        subject.call("kl_k1", TWO)
    raised = told.value
    lengths = [len(text) for text in (raised.kind, raised.message, raised.traceback, raised.during)]
    assert lengths == [MOST_NAME, MOST_TEXT, MOST_TEXT, MOST_NAME]


VALUES: list[Any] = [
    *(None, "x" * 10**5, True, 5, 1.5, [], (1, 2), [[1], "a"], {"a": 1}, {1: None}, Opaque("x")),
    *(np.array(1.0), np.array(np.nan), np.array(1j), np.array(True), np.zeros((0,)), np.full((3, 4), np.nan)),
    *(np.array([2**62]), np.zeros((2,) * 10), [np.zeros(3)], (["higher"], 1.0), Observation(value=1), "\ud800"),
]


GRADIENTS: list[Callable[[Any], Any]] = [
    lambda argument: None,
    lambda argument: np.zeros_like(argument.array, np.float64),
    lambda argument: np.full_like(argument.array, np.nan, np.float64),
]


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_no_forged_observation_is_an_error_of_the_harness() -> None:
    """An error of the harness excuses a check: whoever could bring one about would be marked for nothing."""
    place = iter(range(10**9))

    def answer(request: Mapping[str, Any]) -> dict[str, Any]:
        number = next(place)
        value, gradient = VALUES[number % len(VALUES)], GRADIENTS[number % len(GRADIENTS)]
        live = {name: gradient(request["arguments"][name]) for name in request["live"]}
        parts = {name: Observation(value=value, dtype="float32") for name in (0, 1, "loss")}
        dtype = ("float32", None, "complex128", "float16")[number % 4]
        return {"observation": Observation(value, dtype, number % 5 > 0, live, ("x" * MOST_NAME,), parts)}

    subject, _ = scripted(answer)
    results: list[CheckResult] = [run_check(check, subject, 3, 0) for check in all_checks().values()]
    broken = {result.id: result.failure for result in results if result.outcome in ("harness-error", "crash")}
    assert broken == {}


def test_tensors_and_the_name_of_the_module_are_handed_on() -> None:
    asked: list[Mapping[str, Any]] = []

    def answer(request: Mapping[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return {"observation": Observation(value=1, gradients={"log_probs": None})}

    subject, begun = scripted(answer)
    cotangent = np.ones((1, 2))
    options: dict[str, Any] = {"cotangent": cotangent, "keywords": True, "audit": True, "times": 3}
    assert subject.call("kl_k1", TWO, live=("log_probs",), **options).value == 1
    assert asked == [{"operation": "kl_k1", "arguments": TWO, "live": ("log_probs",), **options}]
    assert all(isinstance(tensor, Tensor) for tensor in asked[0]["arguments"].values())
    assert subject.operations == frozenset(begun.loaded.operations)
    assert subject.code("kl_k1") == "import work as subject"
    assert RemoteSubject(subject.session, "not a name", LECTURE).code("kl_k1") == ""
