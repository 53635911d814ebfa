"""A guest answers every request, whatever the submission does, and says what was wrong."""

from __future__ import annotations

import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from rlassay.guest.errors import SubjectRaised
from rlassay.guest.objects import LanguageModel
from rlassay.guest.observation import Observation
from rlassay.guest.packing import MOST_NAME, Opaque
from rlassay.guest.submission import MOST_TEXT
from rlassay.guest.values import Tensor
from rlassay.guest.wire import Channel, Closed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="guests are forked")

SECONDS = 60.0

OPERATIONS = ("kl_k1", "kl_k2", "kl_k3", "entropy")


class Served:
    """A forked process that serves, and the harness's end of the connection to it."""

    def __init__(self, folder: Path) -> None:
        from rlassay.guest import serve

        ours, theirs = socket.socketpair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the fork uses none
            self.pid = os.fork()
        if self.pid == 0:
            try:
                ours.close()
                null = os.open(os.devnull, os.O_RDWR)
                for standard in (0, 1, 2):
                    os.dup2(null, standard)
                os.chdir(folder)
                sys.path[:0] = [str(folder)]
                serve.serve(Channel(theirs, serve.convert, arguments=True))
                os._exit(0)
            finally:
                os._exit(1)
        theirs.close()
        self.channel = Channel(ours)

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        self.channel.send({"nonce": "17", "do": do, **request}, SECONDS)
        answer = self.channel.receive(SECONDS)
        assert answer.pop("nonce") == "17"
        return answer

    def load(self, target: str = "work.py", how: str = "module", interface: str = "own") -> dict[str, Any]:
        return self.ask("load", target=target, how=how, interface=interface, operations=OPERATIONS)

    def call(self, operation: str = "kl_k1", **request: Any) -> Any:
        """The observation, or what was raised."""
        defaults = {"arguments": TWO, "live": (), "cotangent": None, "keywords": False, "audit": False, "times": 1}
        answer = self.ask("call", operation=operation, **(defaults | request))
        (content,) = answer.values()
        assert {Observation: "observation", SubjectRaised: "raised"}[type(content)] in answer
        return content

    def ending(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


TWO = {"log_probs": Tensor(np.array([[-1.0, -2.0]])), "ref_log_probs": Tensor(np.array([[-1.5, -1.0]]))}

Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Guests that have a file work.py with this source."""
    made: list[Served] = []

    def begin(source: str = "", **files: str) -> Served:
        (tmp_path / "work.py").write_text(dedent(source), encoding="utf-8")
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("DUNDER", "__")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".py").write_text(dedent(text), encoding="utf-8")
        made.append(Served(tmp_path))
        return made[-1]

    yield begin
    for served in made:
        served.channel.end.close()
        with suppress(OSError):
            os.kill(served.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(served.pid, 0)


def test_a_submission_is_loaded_and_called(serve: Serve) -> None:
    guest = serve("""
        CONVENTION = {"std_ddof": 1}
        def kl_k1(log_probs, ref_log_probs): return log_probs - ref_log_probs
        def helper(): ...
        def entropy(logits): raise NotImplementedError
    """)
    loaded = guest.load()
    assert loaded["operations"] == ["kl_k1"]
    assert loaded["declared"] == {"std_ddof": 1}
    assert {"kl_k1", "helper", "entropy"} <= set(loaded["names"])
    assert loaded["notes"] == []
    assert loaded["python"] == ".".join(map(str, sys.version_info[:3]))
    assert set(loaded["libraries"]) == {"torch", "numpy"}
    observation = guest.call(live=("log_probs",), cotangent=np.array([[1.0, 3.0]]), audit=True, keywords=True)
    assert observation.value.tolist() == [[0.5, -1.0]] and observation.dtype == "float32" and observation.connected
    assert observation.gradients["log_probs"].tolist() == [[1.0, 3.0]]
    assert observation.side_effects == ()


def test_it_ends_when_the_harness_does(serve: Serve) -> None:
    guest = serve()
    guest.channel.end.close()
    assert guest.ending() == 0


def test_it_ends_at_what_is_no_message(serve: Serve) -> None:
    guest = serve()
    guest.channel.end.sendall(b"x" * 100)
    assert guest.ending() == 0


@pytest.mark.parametrize("request_", [{}, {"nonce": "1"}, {"do": "load"}, {"do": "call", "nonce": "1"}])
def test_it_ends_at_a_request_that_is_none(serve: Serve, request_: dict[str, Any]) -> None:
    guest = serve()
    guest.channel.send(request_)
    with pytest.raises(Closed):
        guest.channel.receive(SECONDS)
    assert guest.ending() == 1


def test_an_operation_that_is_not_there_is_said_to_be_missing(serve: Serve) -> None:
    guest = serve("def kl_k1(a, b): return a - b")
    assert guest.call().kind == "Missing"
    guest.load()
    for name in ("kl_k2", "__class__", "helper"):
        assert guest.call(name).kind == "Missing"
    assert isinstance(guest.call("kl_k1"), Observation)


RAISED = {
    "ValueError('no')": ("ValueError", "no"),
    "SystemExit(0)": ("SystemExit", "0"),
    "KeyboardInterrupt": ("KeyboardInterrupt", ""),
    "BaseException('x')": ("BaseException", "x"),
    "BaseExceptionGroup('g', [SystemExit()])": ("BaseExceptionGroup", "g (1 sub-exception)"),
    "GeneratorExit": ("GeneratorExit", ""),
    "RecursionError": ("RecursionError", ""),
    "ValueError('x' * 10**6)": ("ValueError", "x" * MOST_TEXT),
    "ValueError('\\ud800')": ("ValueError", "?"),
    "Mute": ("Mute", "(its message cannot be read)"),
    "Leaving": ("Leaving", "(its message cannot be read)"),
    "Lying": ("Lying", "truth"),
    "type('E' * 1000, (Exception,), {})": ("E" * MOST_NAME, ""),
}


@pytest.mark.parametrize("error", RAISED)
def test_whatever_is_raised_is_told(serve: Serve, error: str) -> None:
    guest = serve(f"""
        class Text(str):
            def __str__(self): raise SystemExit
            def __getitem__(self, place): raise SystemExit
        class Mute(Exception):
            def __str__(self): raise ValueError
        class Leaving(Exception):
            def __str__(self): raise SystemExit(3)
        class Lying(Exception):
            def __str__(self): return Text("truth")
        def kl_k1(a, b): raise {error}
        def kl_k2(a, b): return a - b
    """)
    guest.load()
    raised = guest.call()
    assert (raised.kind, raised.message, raised.during) == (*RAISED[error], "the call")
    assert "BaseException" in raised.bases and len(raised.traceback) <= MOST_TEXT
    assert isinstance(guest.call("kl_k2"), Observation)


def test_recursion_without_end_is_raised_and_the_guest_goes_on(serve: Serve) -> None:
    guest = serve("""
        def kl_k1(a, b): return kl_k1(a, b)
        def kl_k2(a, b): return a - b
    """)
    guest.load()
    assert guest.call().kind == "RecursionError"
    assert isinstance(guest.call("kl_k2"), Observation)


def test_what_backward_raises_is_told(serve: Serve) -> None:
    guest = serve("""
        import torch
        class Odd(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, grad): raise SystemExit("never")
        def kl_k1(a, b): return Odd.apply(a)
    """)
    guest.load()
    assert guest.call(live=("log_probs",)).during == "backward"


UNSENT = {
    "'x' * (5 * 2**20)": "bytes",
    "[torch.zeros(1 + 2**20, dtype=torch.float64)] * 8": "bytes",
    "torch.zeros(1).expand(10**9)": "",
    "loop": "nested",
    "Sly()": "ValueError",
}


@pytest.mark.parametrize("result", UNSENT)
def test_a_result_that_cannot_be_sent_is_that_calls_error(serve: Serve, result: str) -> None:
    guest = serve(f"""
        import resource
        import torch
        resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
        loop = []
        loop.append(loop)
        class Sly:
            @property
            def __class__(self): raise ValueError
        def kl_k1(a, b): return [{result}]
        def kl_k2(a, b): return a - b
    """)
    guest.load()
    raised = guest.call()
    assert raised.during == "reading what it returned"
    assert UNSENT[result] in str(raised)
    assert isinstance(guest.call("kl_k2"), Observation)


def test_results_of_all_sorts_are_plain_at_the_other_end(serve: Serve) -> None:
    guest = serve("""
        import collections, torch
        Pair = collections.namedtuple("Pair", "a b")
        def kl_k1(a, b):
            return Pair([a, {"x": (a > b)}], {"s": {1}, "d": object(), "n": None, 1: torch.Size([2, 3])})
    """)
    guest.load()
    first, second = guest.call().value
    assert first[0].tolist() == [[-1.0, -2.0]] and first[1]["x"][0].dtype == bool
    assert second["n"] is None and second[1] == (2, 3)
    assert [second[key].kind for key in ("s", "d")] == ["set", "object"]
    assert all(type(second[key]) is Opaque for key in ("s", "d"))


UNUSABLE = {
    "1/0": "ZeroDivisionError",
    "raise SystemExit": "__main__",
    "raise BaseException": "BaseException",
    "def f(:": "syntax error",
    "import nowhere_to_be_found": "nowhere_to_be_found, which is not installed",
    "class S(str):\n    def __str__(self): raise SystemExit\nraise ValueError(S())": "ValueError",
    "class M(type):\n    def __getattr__(c, n): raise SystemExit\nclass kl_k1(metaclass=M): pass": "cannot be read",
    "class L:\n    __call__ = print\n    def __getattr__(s, n): 1/0\nkl_k1 = L()": "cannot be read",
    "class L:\n    __call__ = print\n    class __code__: co_names = ('NotImplementedError',)\nkl_k1 = L()": "cannot be",
    "\0": "null bytes",
}


@pytest.mark.parametrize("source", UNUSABLE)
def test_what_does_not_load_is_told_why_and_the_guest_goes_on(serve: Serve, source: str) -> None:
    guest = serve(source, good="def kl_k1(a, b): return a - b")
    answer = guest.load()
    assert set(answer) == {"unusable"} and UNUSABLE[source] in answer["unusable"]
    assert isinstance(guest.call(), SubjectRaised)
    assert guest.load("good.py")["operations"] == ["kl_k1"]
    assert isinstance(guest.call(), Observation)


def test_why_it_does_not_load_is_clipped(serve: Serve) -> None:
    answer = serve("raise ValueError('x' * 10**7)").load()
    assert 0 < len(answer["unusable"]) <= MOST_TEXT


DECLARED = {
    "'cs336'": "cs336",
    "None": None,
    "{'std_ddof': 1, 'aggregation': ('a',)}": {"std_ddof": 1, "aggregation": ("a",)},
    "'x' * 10**7": None,
    "loop": None,
    "torch.zeros(10**7)": None,
    "np.zeros(10**7)": None,
    "Sly()": Opaque,
    "Table(std_ddof=1)": {"std_ddof": 1},
}


@pytest.mark.parametrize("declared", DECLARED)
def test_what_convention_says_is_told_unless_it_cannot_be(serve: Serve, declared: str) -> None:
    guest = serve(f"""
        import numpy as np
        import torch
        loop = []
        loop.append(loop)
        class Sly:
            __class__ = dict
            def keys(self): raise SystemExit
            __getitem__ = __iter__ = keys
        class Table(dict):
            def items(self): raise SystemExit
            __getitem__ = __iter__ = keys = items
        CONVENTION = {declared}
        def kl_k1(a, b): return a - b
    """)
    loaded = guest.load()
    assert loaded["operations"] == ["kl_k1"]
    want = DECLARED[declared]
    assert type(loaded["declared"]) is Opaque if want is Opaque else loaded["declared"] == want
    assert bool(loaded["notes"]) == (want is None and declared != "None")


def test_names_are_told_as_long_as_they_are_names(serve: Serve) -> None:
    guest = serve("""
        for number in range(5000): globals()[f"f{number}"] = print
        globals()["y" * 10**7] = print
        globals()[3] = print
        def kl_k1(a, b): return a - b
    """)
    names = guest.load()["names"]
    assert len(names) == 2000 and max(map(len, names)) <= 100


def test_global_settings_of_a_submission_are_undone_and_those_of_a_call_too(serve: Serve) -> None:
    guest = serve("""
        import warnings
        import numpy as np
        import torch
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)
        np.seterr(all="raise")
        warnings.simplefilter("error")
        torch.__version__ = np.__version__ = "99"
        def kl_k1(a, b):
            warnings.warn("nothing to see")
            np.zeros(1) / np.zeros(1)
            return (a * torch.ones(1)).sum()
        def kl_k2(a, b):
            torch.set_default_dtype(torch.float64)
            torch.set_grad_enabled(False)
            raise ValueError
    """)
    assert "99" not in guest.load()["libraries"].values()
    for _ in range(2):
        observation = guest.call(live=("log_probs",))
        assert (observation.dtype, observation.connected) == ("float32", True)
        assert observation.value.tolist() == -3.0
        guest.call("kl_k2")


def test_models_are_built_once_and_their_gradients_told_in_a_row(serve: Serve) -> None:
    guest = serve("def kl_k1(model, again):\n    assert model is again\n    return model.head.sum()")
    guest.load()
    model = LanguageModel(np.ones((3, 2)), np.ones((3, 2)))
    observation = guest.call(arguments={"model": model, "again": model}, live=("model",))
    assert observation.gradients["model"].tolist() == [0.0] * 6 + [1.0] * 6
    assert observation.parameters["model"].tolist() == [1.0] * 12
