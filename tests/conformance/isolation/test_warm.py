"""The warm process gives guests that find nothing but what they should, and its end is an error that says so."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rlassay.isolation import warm as warm_module
from rlassay.isolation.warm import ENVIRONMENT, IsolationError, WarmProcess

from .guests import linux
from .submitted import confinement_of, namespaces, session, value

pytestmark = linux

MARK = f"warm-{os.getpid()}"


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProcess]:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setitem(ENVIRONMENT, "MARK", MARK)
    monkeypatch.setenv("LEAKED", "secret")
    with WarmProcess() as process:
        monkeypatch.delenv("LEAKED")
        yield process
    monkeypatch.undo()
    assert marked() == set()


def marked() -> set[int]:
    """Processes that come from the module's warm process."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"MARK={MARK}".encode() in entry.read_bytes():
                found.add(int(entry.parent.name))
    return found


def ask(warm: WarmProcess, folder: Path, expression: str, setup: str = "") -> object:
    """What an expression gives in a guest."""
    source = f"import os, sys\n{setup}\ndef kl_k1(a, b): return {expression}\n"
    with session(warm, folder, source) as begun:
        return value(begun)


@namespaces
def test_a_guest_has_a_clean_environment(warm: WarmProcess, tmp_path: Path) -> None:
    found = ask(warm, tmp_path, "dict(os.environ)")
    assert isinstance(found, dict)
    expected = {**ENVIRONMENT, "MARK": MARK, "TMPDIR": "/tmp", "HOME": "/tmp"}
    assert {name: text for name, text in found.items() if expected.get(name) != text}.keys() <= {
        *("PYTHONUSERBASE", "LC_CTYPE"),
        *(name for name in found if name.startswith(("KMP_", "TORCH", "PYTORCH", "TRITON")) and name not in os.environ),
    }
    assert expected.keys() <= found.keys()
    assert "secret" not in found.values()


@namespaces
def test_a_guest_has_no_descriptor_but_its_own_connection(warm: WarmProcess, tmp_path: Path) -> None:
    with open(os.devnull) as held, session(warm, tmp_path / "..", "def kl_k1(a, b): return 1", name="other.py"):
        os.set_inheritable(held.fileno(), True)
        found = ask(warm, tmp_path, "{n: os.readlink(f'/proc/self/fd/{n}') for n in FDS()}", FDS)
    assert isinstance(found, dict)
    assert [found.pop(standard) for standard in (0, 1, 2)] == ["/dev/null"] * 3
    assert len(found) == 1 and next(iter(found.values())).startswith("socket:")


FDS = """
def FDS():
    there = []
    for number in range(1000):
        try: os.fstat(number); there.append(number)
        except OSError: pass
    return there
"""


@namespaces
def test_nothing_of_rlassay_is_loaded_or_to_be_had(warm: WarmProcess, tmp_path: Path) -> None:
    loaded = ask(warm, tmp_path, "sorted(name for name in sys.modules if 'rlassay' in name)")
    assert isinstance(loaded, list)
    assert {name.partition(".")[0] for name in loaded if "editable" not in name} == {"rlassay_guest"}
    setup = """
def tried():
    import importlib, pkgutil
    told = {}
    for name in ('rlassay', 'rlassay_spec', 'rlassay_impl', 'rlassay.suite', 'rlassay_spec.oracles', 'conformance',
                 'rlassay_guest.torch_call', 'torch', 'numpy'):
        try: told[name] = importlib.import_module(name).__name__
        except Exception as error: told[name] = type(error).__name__
    told['found'] = [m.name for m in pkgutil.iter_modules() if m.name.startswith('rlassay')]
    return told
"""
    found = ask(warm, tmp_path, "tried()", setup)
    assert isinstance(found, dict)
    assert [found.pop(name) for name in ("torch", "numpy")] == ["torch", "numpy"]
    found.pop("rlassay_guest.torch_call")
    assert found.pop("found") == []
    assert set(found.values()) <= {"ModuleNotFoundError", "ImportError", "PermissionError"}


@namespaces
def test_every_guest_hashes_and_draws_alike(warm: WarmProcess, tmp_path: Path) -> None:
    drawn = "[hash('x'), random.random(), float(np.random.rand()), float(torch.rand(())), list({'a', 'b', 'c', 'd'})]"
    setup = "import random\nimport numpy as np\nimport torch"
    first, second = (ask(warm, tmp_path, drawn, setup) for _ in range(2))
    assert first == second


@namespaces
def test_guests_share_nothing(warm: WarmProcess, tmp_path: Path) -> None:
    setup = (
        "import torch\n"
        "before = (os.path.exists('/tmp/left'), getattr(torch, 'left', 0))\n"
        "torch.left = 1\n"
        "open('/tmp/left', 'w').close()\n"
    )
    for _ in range(2):
        assert ask(warm, tmp_path, "before", setup) == (False, 0)


@namespaces
def test_a_guest_takes_one_thread_and_sees_few_processes(warm: WarmProcess, tmp_path: Path) -> None:
    threads, processes = ask(  # type: ignore[misc]
        warm, tmp_path, "(torch.get_num_threads(), [n for n in os.listdir('/proc') if n.isdigit()])", "import torch"
    )
    assert threads == 1 and len(processes) <= 3


@namespaces
def test_a_guest_is_ended_with_all_that_it_started(warm: WarmProcess, tmp_path: Path) -> None:
    setup = """
import signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def fork():
    for _ in range(3):
        try: child = os.fork()
        except OSError: return 'refused'
        if child == 0:
            os.setsid()
            time.sleep(3600)
    return 'forked'
"""
    with session(warm, tmp_path, f"import os\n{setup}\ndef kl_k1(a, b): return fork()\n") as begun:
        assert value(begun) in ("refused", "forked")
        assert len(marked()) > 1
    assert marked() == {warm.process.pid}


def test_a_confinement_that_is_not_to_be_had_is_an_error(warm: WarmProcess, tmp_path: Path) -> None:
    for changes in ({"level": "none such"}, {"source": str(tmp_path / "missing")}):
        with pytest.raises(IsolationError, match="cannot be confined"):
            warm.guest(confinement_of(warm, tmp_path, **changes))
    assert marked() == {warm.process.pid}


@namespaces
def test_a_submission_larger_than_it_may_be_is_an_error_that_says_so(warm: WarmProcess, tmp_path: Path) -> None:
    confinement = confinement_of(warm, tmp_path, tmp=2**16)
    (tmp_path / "source" / "large.bin").write_bytes(bytes(2**20))
    with pytest.raises(IsolationError, match="tmp"):
        warm.guest(confinement)


@namespaces
def test_a_dead_warm_process_is_an_isolation_error_each_time(tmp_path: Path) -> None:
    process = WarmProcess()
    with session(process, tmp_path, "def kl_k1(a, b): return 1") as begun:
        assert value(begun) == 1
        os.kill(process.process.pid, signal.SIGKILL)
        with suppress(IsolationError):
            while value(begun) == 1:
                pass  # until the kernel has ended them both
        for _ in range(3):
            with pytest.raises(IsolationError, match="warm process"):
                value(begun)
        assert isinstance(begun.broken, IsolationError)
        with pytest.raises(IsolationError, match="warm process"):
            process.guest(begun.confinement)
    process.close()
    process.close()
    with pytest.raises(IsolationError, match="warm process"):
        process.guest(begun.confinement)


@namespaces
def test_the_end_of_the_warm_process_ends_its_guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "MARK", MARK)
    before = marked()
    process = WarmProcess()
    guest = process.guest(confinement_of(process, tmp_path))
    assert len(marked() - before) > 1
    os.kill(process.process.pid, signal.SIGKILL)
    assert guest.channel.end.recv(1) == b""
    process.close()
    guest.channel.end.close()
    for _ in range(1000):
        if marked() == before:
            break
        time.sleep(0.02)
    assert marked() == before


def fake(folder: Path, script: str) -> str:
    """A program that is no such Python as is needed."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable} -S\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_python_without_torch_is_an_error_that_says_so(tmp_path: Path) -> None:
    script = f"import os, sys\nos.execv({sys.executable!r}, [{sys.executable!r}, '-I', '-S', *sys.argv[1:]])"
    with pytest.raises(IsolationError, match=r"No module named '(numpy|torch)'; does it have torch and numpy\?"):
        WarmProcess(fake(tmp_path, script))


@pytest.mark.parametrize("python", ["/nowhere/python", os.devnull])
def test_a_python_that_is_none_is_an_error_that_names_it(python: str) -> None:
    with pytest.raises(IsolationError, match=f"{python}: cannot be started"):
        WarmProcess(python)


def test_a_program_that_is_no_python_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IsolationError, match="ended: sorry"):
        WarmProcess(fake(tmp_path, "import sys\nsys.exit('sorry')"))


def test_a_program_that_never_answers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_module, "START_SECONDS", 0.5)
    with pytest.raises(IsolationError, match="does not answer"):
        WarmProcess(fake(tmp_path, "import time\ntime.sleep(3600)"))
