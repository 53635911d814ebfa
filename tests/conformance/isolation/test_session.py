"""A session loses the calls that its submission spoils, and no others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlassay.guest.errors import SubjectRaised, TargetError
from rlassay.guest.packing import Opaque, WireError
from rlassay.guest.submission import MOST_NAMES, MOST_NOTES, MOST_TEXT
from rlassay.isolation import session as session_module
from rlassay.isolation.remote import RemoteSubject
from rlassay.isolation.session import Limits, _loaded
from rlassay.isolation.warm import WarmProcess
from rlassay.subject import SubjectGone
from rlassay_spec.convention import LECTURE

from .guests import linux
from .submitted import LIMITS, TWO, namespaces, session, value

pytestmark = linux

SHORT = Limits(call=1.0, load=60.0, total=300.0)

SOUND = "def kl_k2(a, b): return 2\n"


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProcess]:
    with WarmProcess() as process:
        yield process


DEAF = """import signal
    for number in range(1, 65):
        try: signal.signal(number, lambda *received: None)
        except (OSError, ValueError): pass
    while True:
        try: signal.pause()
        except BaseException: pass
"""


def gone(begun: Any, operation: str = "kl_k1") -> SubjectGone:
    with pytest.raises(SubjectGone) as told:
        value(begun, operation)
    return told.value


@namespaces
def test_what_is_loaded_is_told(warm: WarmProcess, tmp_path: Path) -> None:
    source = "CONVENTION = {'std_ddof': 1}\ndef kl_k2(a, b): ...\ndef kl_k1(a, b): ...\ndef unknown(): ...\n"
    with session(warm, tmp_path, source) as begun:
        assert begun.loaded.operations == ("kl_k1", "kl_k2")
        assert begun.loaded.declared == {"std_ddof": 1}
        assert set(begun.loaded.names) == {"kl_k1", "kl_k2", "unknown"}
        assert begun.loaded.notes == ()
        assert begun.loaded.libraries.keys() == {"torch", "numpy"}


@namespaces
@pytest.mark.parametrize(
    "hanging",
    [
        "while True: pass",
        "import time; time.sleep(3600)",
        DEAF,
    ],
    ids=["busy", "asleep", "deaf"],
)
def test_a_hanging_call_ends_and_the_next_goes_to_another_guest(
    warm: WarmProcess, tmp_path: Path, hanging: str
) -> None:
    with session(warm, tmp_path, f"{SOUND}def kl_k1(a, b):\n    {hanging}\n", limits=SHORT) as begun:
        begun_at = time.monotonic()
        told = gone(begun)
        assert told.late and str(told) == "gave no answer within 1 s"
        assert time.monotonic() - begun_at < 30
        assert value(begun, "kl_k2") == 2 and begun.guests == 2


@namespaces
@pytest.mark.parametrize(
    ("leaving", "words"),
    [
        ("os._exit(0)", "ended with exit status 0"),
        ("os._exit(7)", "ended with exit status 7"),
        ("os.abort()", "was killed by SIGABRT"),
        ("os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "was killed by SIGSEGV"),
        ("os.closerange(0, 1000)", ""),
    ],
)
def test_a_guest_that_leaves_is_told_of_and_the_next_call_goes_to_another(
    warm: WarmProcess, tmp_path: Path, leaving: str, words: str
) -> None:
    with session(warm, tmp_path, f"import os\n{SOUND}def kl_k1(a, b): {leaving}\n") as begun:
        told = gone(begun)
        assert words in str(told) and not told.late
        assert value(begun, "kl_k2") == 2
        assert begun.broken is None


FORGER = """
import gc, json, os, socket, struct, sys
CHANNEL = next(c for c in gc.get_objects() if type(c).__name__ == 'Channel')
def nonce():
    frame = sys._getframe()
    while frame:
        request = frame.f_locals.get('request')
        if isinstance(request, dict) and 'nonce' in request: return request['nonce']
        frame = frame.f_back
def raw(header, payload=b''):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    CHANNEL.end.sendall(struct.pack('>IQ', len(header), len(payload)) + header + payload)
def send(**answer): CHANNEL.send(answer)
def raised(message='forged'):
    from rlassay_guest.errors import SubjectRaised
    return SubjectRaised('Forged', message)
def kl_k2(a, b): return 2
def kl_k1(a, b):
"""

FORGED = {
    "early without a nonce": "send(raised=raised())",
    "with another nonce": "send(nonce='0' * 16, raised=raised())",
    "with a part of the nonce": "send(nonce=nonce()[:8], raised=raised())",
    "with a nonce of bytes": "send(nonce=nonce().encode(), raised=raised())",
    "with a nonce that is an array": "import numpy as np; send(nonce=np.zeros(2), raised=raised())",
    "with a nonce that is nothing": "send(nonce=None, raised=raised())",
    "with a nonce that is a list": "send(nonce=[nonce()], raised=raised())",
    "garbage": "CHANNEL.end.sendall(os.urandom(4096))",
    "no JSON": "raw(b'garbage')",
    "no table": "raw({'list': []})",
    "a huge announcement": "CHANNEL.end.sendall(struct.pack('>IQ', 2**32 - 1, 2**60) + bytes(100))",
    "nesting": "raw(b'{\"list\":[' * 10**5)",
    "a nonce and nothing": "send(nonce=nonce())",
    "an observation that is a number": "send(nonce=nonce(), observation=1)",
    "what was raised as text": "send(nonce=nonce(), raised='x')",
    "a tensor": "import rlassay_guest.values as v; send(nonce=nonce(), x=v.Tensor(v.np.ones(1)))",
}


@namespaces
@pytest.mark.parametrize("how", FORGED)
def test_a_guest_that_forges_loses_that_call_only(warm: WarmProcess, tmp_path: Path, how: str) -> None:
    with session(warm, tmp_path, f"{FORGER}    {FORGED[how]}\n") as begun:
        subject = RemoteSubject(begun, "work", LECTURE)
        assert value(begun, "kl_k2") == 2
        for guests in (2, 3):
            with pytest.raises(SubjectGone):
                subject.call("kl_k1", TWO)
            assert subject.call("kl_k2", TWO).value == 2
            assert begun.guests == guests
        assert begun.broken is None


@namespaces
def test_a_guest_that_answers_twice_is_believed_once_and_then_ended(warm: WarmProcess, tmp_path: Path) -> None:
    with session(warm, tmp_path, f"{FORGER}    send(nonce=nonce(), raised=raised()); return 5\n") as begun:
        with pytest.raises(SubjectRaised, match="forged"):
            value(begun)
        assert "was ended" in str(gone(begun, "kl_k2"))
        assert value(begun, "kl_k2") == 2 and begun.guests == 2


@namespaces
def test_a_guest_that_dribbles_is_late(warm: WarmProcess, tmp_path: Path) -> None:
    dribble = "import time\n    for byte in b'\\0' * 10**6: CHANNEL.end.sendall(b'\\0'); time.sleep(0.01)"
    with session(warm, tmp_path, f"{FORGER}    {dribble}\n", limits=SHORT) as begun:
        # twelve zero bytes announce an empty message, which is none
        assert "was ended: it sent what is no message" in str(gone(begun))
    dribble = "import time\n    for byte in b'\\0' * 10**6: CHANNEL.end.sendall(b'\\1'); time.sleep(0.1)"
    with session(warm, tmp_path, f"{FORGER}    {dribble}\n", limits=SHORT) as begun:
        assert gone(begun).late


@namespaces
def test_all_of_the_time_together_is_limited(warm: WarmProcess, tmp_path: Path) -> None:
    with session(warm, tmp_path, f"{SOUND}def kl_k1(a, b):\n    while True: pass\n", limits=SHORT) as begun:
        begun.left = 1.5
        assert str(gone(begun)) == "gave no answer within 1 s"
        begun.left = 60.0
        assert value(begun, "kl_k2") == 2
        begun.left = 0.5
        assert str(gone(begun)) == "has used up its 300 s"
        for operation in ("kl_k1", "kl_k2"):
            told = gone(begun, operation)
            assert told.late and "was not asked: the 300 s" in str(told)
        assert begun.guests == 2


@namespaces
def test_the_number_of_guests_is_limited(warm: WarmProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "MOST_GUESTS", 3)
    with session(warm, tmp_path, f"import os\n{SOUND}def kl_k1(a, b): os._exit(0)\n") as begun:
        for _ in range(3):
            assert "exit status 0" in str(gone(begun))
        told = gone(begun, "kl_k2")
        assert "3 processes" in str(told) and begun.guests == 3


@namespaces
def test_a_submission_that_does_not_load_is_told_why(warm: WarmProcess, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="ZeroDivisionError"), session(warm, tmp_path, "1/0"):
        pass
    with (
        pytest.raises(SubjectGone, match="exit status 3 while it was loaded"),
        session(warm, tmp_path, "import os; os._exit(3)"),
    ):
        pass
    limits = Limits(call=1.0, load=0.5, total=300.0)
    with (
        pytest.raises(SubjectGone, match="within 0.5 s while it was loaded") as told,
        session(warm, tmp_path, "while True: pass", limits=limits),
    ):
        pass
    assert told.value.late
    with pytest.raises(TargetError, match="its process"), session(warm, tmp_path, f"{FORGER}    ...\nraw(b'[]')"):
        pass


@namespaces
def test_a_submission_that_loads_only_once_loses_what_comes_after(warm: WarmProcess, tmp_path: Path) -> None:
    """Whatever it makes that depend on: here, on the number of its process, which no two guests need to share."""
    source = f"import os\n{SOUND}def kl_k1(a, b): os._exit(0)\n"
    with session(warm, tmp_path, source) as begun:
        (tmp_path / "source" / "work.py").write_text("1/0")
        gone(begun)
        assert "loaded at first, but not again" in str(gone(begun, "kl_k2"))
        (tmp_path / "source" / "work.py").write_text("def kl_k1(a, b): return 1")
        with pytest.raises(SubjectRaised, match="Missing"):
            value(begun, "kl_k2")
        assert value(begun) == 1


@namespaces
def test_a_closed_session_answers_from_another_guest(warm: WarmProcess, tmp_path: Path) -> None:
    source = "n = 0\ndef kl_k1(a, b):\n    global n\n    n += 1\n    return n\n"
    with session(warm, tmp_path, source) as begun:
        assert [value(begun) for _ in range(3)] == [1, 2, 3]
        begun.close()
        begun.close()
        assert value(begun) == 1
        assert begun.cpu > 0 and 0 < begun.left < LIMITS.total


@namespaces
def test_stubs_imports_and_definitions_reach_the_guest(warm: WarmProcess, tmp_path: Path) -> None:
    library = tmp_path / "source" / "lib"
    library.mkdir(parents=True)
    (library / "tools.py").write_text("X = 4\n1/0\n")
    source = "import vllm\nfrom tools import X\nvllm.LLM('x')\nraise SystemExit\ndef kl_k1(a, b): return X\n"
    more: dict[str, Any] = {"stubs": ("vllm",), "imports": ("lib",)}
    with session(warm, tmp_path, source, how="definitions", **more) as begun:
        assert value(begun) == 4
        assert any("left out" in note for note in begun.loaded.notes)


GOOD: dict[str, Any] = {
    "operations": ["kl_k2", "kl_k1"],
    "declared": None,
    "names": ["a"],
    "notes": [],
    "python": "3.11",
    "libraries": {"torch": "2"},
}


def test_an_answer_about_loading_is_taken_in_the_suites_order_and_clipped() -> None:
    answer = GOOD | {"operations": ["b", "z", "a", "b"], "names": ["n"] * 10**5, "notes": ["x" * 10**6] * 10**3}
    loaded = _loaded(answer, ("a", "b", "c"))
    assert loaded.operations == ("a", "b")
    assert len(loaded.names) == MOST_NAMES and len(loaded.notes) == MOST_NOTES
    assert {len(note) for note in loaded.notes} == {MOST_TEXT}


@pytest.mark.parametrize("field", [field for field in GOOD if field != "declared"])
@pytest.mark.parametrize("wrong", [None, 1, "text!", [1], {"a": 1}, {1: "a"}, Opaque("x"), (), [["a"]]], ids=repr)
def test_an_answer_about_loading_that_is_none_is_an_error(field: str, wrong: Any) -> None:
    if field == "python" and isinstance(wrong, str):
        pytest.skip("a text is what it should be")
    with pytest.raises(WireError):
        _loaded(GOOD | {field: wrong}, ("a",))
    with pytest.raises(WireError):
        _loaded({name: value for name, value in GOOD.items() if name != field}, ("a",))
