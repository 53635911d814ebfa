"""Each level holds what it is given, lets computing go on, and ends without a trace; or says why it cannot be had."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlassay.guest import confine, limits
from rlassay.guest.confine import LEVELS, ConfinementError, best_level
from rlassay.isolation.selftest import selftest

from .guests import ALL, FILTERED, NAMESPACES, linux, place

pytestmark = linux

DAEMON = """
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(write, b"x")
        time.sleep(600)
    os._exit(0)
os.wait()
os.read(read, 1)
"""


@pytest.mark.parametrize(("level", "user"), ALL)
def test_a_guest_computes_in_its_copy_of_the_submission(level: str, user: int | None) -> None:
    code = """
os.chdir(folder)
sys.path.insert(0, folder)
import submission
open("submission.py", "w").write("ANSWER = 0")
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("x")
tell([submission.ANSWER, sorted(os.listdir())])
"""
    with place(level, user) as guests:
        outcome = guests.run(code)
        assert outcome["answer"] == [42, ["submission.py"]]
        assert outcome["status"] == 0
        assert Path(guests.confinement.source, "submission.py").read_text(encoding="utf-8") == "ANSWER = 42\n"


@pytest.mark.parametrize(("level", "user"), ALL)
def test_torch_and_numpy_work_with_threads_and_gradients(level: str, user: int | None) -> None:
    code = """
import numpy as np
import torch
w = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
torch.log_softmax(w, -1)[:, 0].sum().backward()
torch.set_num_threads(2)
product = (torch.ones(300, 300) @ torch.ones(300, 300)).sum().item()
results = []
threads = [threading.Thread(target=lambda: results.append(float(w.exp().sum() > 0))) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
path = os.path.join(tempfile.gettempdir(), "weights.npy")
np.save(path, w.detach().numpy())
drawn = np.random.default_rng(1).normal(size=(50, 50))
inverse = np.linalg.inv(drawn) @ drawn
loaded = np.load(path).shape
tell([round(w.grad.sum().item(), 12) == 0, product, results, loaded, bool(np.allclose(inverse, np.eye(50)))])
"""
    with place(level, user, memory=2**30) as guests:
        outcome = guests.run(code, torch=True)
    assert outcome.get("answer") == [True, 300.0**3, [1.0] * 4, [3, 4], True], outcome


@pytest.mark.parametrize(("level", "user"), ALL)
def test_only_the_kept_descriptor_stays_open(level: str, user: int | None) -> None:
    code = """
def is_open(number):
    try:
        os.fstat(number)
        return True
    except OSError:
        return False
standard = {os.fstat(number).st_rdev for number in range(3)}
tell([len([n for n in range(1000) if is_open(n)]), standard == {os.makedev(1, 3)}])
"""
    with place(level, user) as guests:
        assert guests.run(code)["answer"] == [4, True]


@pytest.mark.parametrize(("level", "user"), ALL)
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("os._exit(7)", 7),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("signal.raise_signal(signal.SIGTERM)", -signal.SIGTERM),
    ],
)
def test_the_guest_s_ending_is_told(level: str, user: int | None, code: str, status: int) -> None:
    with place(level, user) as guests:
        outcome = guests.run(code)
    assert outcome["status"] == status
    assert outcome["closed"]


@pytest.mark.parametrize(("level", "user"), ALL)
def test_cpu_seconds_are_limited_and_counted(level: str, user: int | None) -> None:
    with place(level, user, cpu=1) as guests:
        outcome = guests.run("signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass")
    assert outcome["status"] == -signal.SIGKILL
    assert 1.5 < outcome["cpu"] < 4


@pytest.mark.parametrize(("level", "user"), ALL)
def test_memory_is_limited_beyond_what_was_in_use(level: str, user: int | None) -> None:
    code = """
mmap.mmap(-1, 400 * 2**20).close()
try:
    mmap.mmap(-1, 600 * 2**20)
    tell("allocated")
except OSError:
    tell("refused")
"""
    with place(level, user) as guests:
        assert guests.run(code, torch=level == "namespaces" and user is None)["answer"] == "refused"


@pytest.mark.parametrize("user", NAMESPACES)
def test_threads_are_limited(user: int | None) -> None:
    code = """
stop = threading.Event()
started = 0
try:
    while started < 100:
        threading.Thread(target=stop.wait, daemon=True).start()
        started += 1
except RuntimeError:
    pass
stop.set()
tell(started)
"""
    with place("namespaces", user, threads=4) as guests:
        assert 4 <= guests.run(code)["answer"] < 4 + 8


@pytest.mark.parametrize("user", NAMESPACES)
def test_tmp_is_limited_in_bytes_and_in_files(user: int | None) -> None:
    code = """
import errno
def fill(write):
    try:
        for number in range(100_000):
            write(number)
    except OSError as error:
        return error.errno == errno.ENOSPC
def write_bytes(number):
    with open(f"/tmp/{number}", "wb") as file: file.write(bytes(2**20))
def write_name(number):
    os.symlink("x", f"/tmp/link{number}")
names = fill(write_name)
for entry in os.scandir("/tmp"):
    if entry.is_symlink(): os.unlink(entry.path)
tell([names, fill(write_bytes)])
"""
    with place("namespaces", user) as guests:
        assert guests.run(code)["answer"] == [True, True]


@pytest.mark.parametrize("user", NAMESPACES)
def test_the_view_holds_what_was_named_and_nothing_else(user: int | None) -> None:
    code = """
def names(path):
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return type(error).__name__
library = targets["library"]
tell({
    "dev": names("/dev"),
    "library": names(library),
    "hidden": names(library + "/hidden"),
    "open": names(library + "/open"),
    "etc": names("/etc"),
    "around": names(os.path.dirname(library)),
    "processes": [name for name in names("/proc") if name.isdecimal()] if os.path.isdir("/proc/self") else ["1", "2"],
    "host": socket.gethostname(),
    "ids": [os.getuid() in (65534, targets["user"]), os.getgroups()],
})
"""
    with place("namespaces", user) as guests:
        library = guests.confinement.readable[0]
        targets = {"library": library, "user": os.getuid() if user is None else user}
        seen = guests.run(code, targets=targets)["answer"]
    assert seen == {
        "dev": ["full", "null", "random", "urandom", "zero"],
        "library": ["hidden", "open", "secret.py"],
        "hidden": "PermissionError",
        "open": ["module.py"],
        "etc": "FileNotFoundError",
        "around": ["library"],
        "processes": ["1", "2"],
        "host": "guest",
        "ids": [True, []],
    }


@pytest.mark.parametrize("user", NAMESPACES)
def test_no_capability_can_come_back(user: int | None) -> None:
    code = """
bounding, no_new_privileges, securebits = 23, 39, 27
def known(number):
    try:
        return syscalls.prctl(bounding, number)
    except OSError:
        return 0
tell([[number for number in range(64) if known(number)], syscalls.prctl(no_new_privileges), syscalls.prctl(securebits)])
"""
    with place("namespaces", user) as guests:
        assert guests.run(code)["answer"] == [[], 1, limits.ALL_SECUREBITS_LOCKED]


@pytest.mark.parametrize(("level", "user"), FILTERED)
def test_what_is_hidden_is_not_read_by_any_name(level: str, user: int | None) -> None:
    code = """
def read(path):
    try:
        return open(path).read()
    except OSError:
        return None
tell([read(os.path.join(targets[place], name)) for place in ("library", "alias")
      for name in ("hidden/module.py", "secret.py", "open/module.py")])
"""
    with place(level, user) as guests:
        library = guests.confinement.readable[0]
        alias = f"{library}-alias"
        os.symlink(library, alias)
        changed = replace(guests.confinement, readable=(alias, *guests.confinement.readable))
        targets = {"library": library, "alias": alias}
        answer = replace(guests, confinement=changed).run(code, targets=targets)["answer"]
    assert answer == [None, None, "CONTENT = 1\n"] * 2


@pytest.mark.parametrize(("level", "user"), FILTERED)
def test_what_lies_in_something_hidden_is_hidden_too(level: str, user: int | None) -> None:
    code = """
try:
    tell(open(targets["path"]).read())
except OSError as error:
    tell(type(error).__name__ in ("PermissionError", "FileNotFoundError"))
"""
    with place(level, user) as guests:
        within = f"{guests.confinement.readable[0]}/hidden"
        changed = replace(guests.confinement, readable=(*guests.confinement.readable[1:], within))
        targets = {"path": f"{within}/module.py"}
        assert replace(guests, confinement=changed).run(code, targets=targets)["answer"] is True


@pytest.mark.parametrize(("level", "user"), ALL)
def test_links_in_a_submission_are_not_followed(level: str, user: int | None) -> None:
    code = """
def read(path):
    try:
        return open(path).read()
    except OSError as error:
        return type(error).__name__
os.chdir(folder)
links = [os.path.islink("outside"), os.path.islink("folder")]
tell([read("inside.py"), *links, os.path.exists("pipe"), os.stat("deep/x").st_size])
"""
    with place(level, user) as guests:
        source = Path(guests.confinement.source)
        os.symlink("submission.py", source / "inside.py")
        os.symlink("/etc/hostname", source / "outside")
        os.symlink("/etc", source / "folder")
        os.mkfifo(source / "pipe")
        (source / "deep").mkdir()
        (source / "deep/x").write_bytes(b"abc")
        assert guests.run(code)["answer"] == ["ANSWER = 42\n", True, True, False, 3]


@pytest.mark.parametrize(("level", "user"), ALL)
def test_a_submission_larger_than_tmp_is_refused(level: str, user: int | None) -> None:
    with place(level, user, tmp=2**20) as guests:
        Path(guests.confinement.source, "large").write_bytes(bytes(2**20 + 1))
        outcome = guests.run("tell('ran')")
    assert outcome["unconfined"] == (
        "the submission takes more than the 1048576 bytes that it may use for files; raise that limit (tmp)"
    )
    assert outcome["status"] == 1


@pytest.mark.parametrize(("level", "user"), ALL)
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"source": "/nowhere"}, "/nowhere: the submission's folder cannot be opened: No such file or directory"),
        ({"level": "none"}, "none: no such level; there are namespaces, filtered, limits"),
        ({"scratch": "/nowhere"}, "/nowhere"),
        ({"readable": ("/",)}, "/: guests are to read it, but "),
        ({"readable": (tempfile.gettempdir(),)}, "which is one guest's own, lies in it"),
    ],
)
def test_what_cannot_be_confined_does_not_run(level: str, user: int | None, change: dict[str, Any], text: str) -> None:
    with place(level, user) as guests:
        outcome = replace(guests, confinement=replace(guests.confinement, **change)).run("tell('ran')")
    assert "answer" not in outcome
    assert text in outcome["unconfined"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root's guests become another user")
@pytest.mark.parametrize("level", ["filtered", "limits"])
def test_root_s_guest_must_be_able_to_read_what_it_needs(level: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with place(level, None) as guests:
        narrower = replace(guests.confinement, readable=(str(tmp_path),))
        outcome = replace(guests, confinement=narrower).run("tell('ran')")
    assert f"{tmp_path}: user 65534" in outcome["unconfined"]
    assert "start rlassay as an ordinary user" in outcome["unconfined"]


@pytest.mark.parametrize("user", NAMESPACES)
@pytest.mark.parametrize("end", [0, signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_namespaces(user: int | None, end: int) -> None:
    """The guest's end, or the keeper's, ends what the guest left behind: it alone keeps the pipe open after that."""
    code = DAEMON + ("tell('ready')\ntime.sleep(600)" if end else "tell('ready')")
    with place("namespaces", user) as guests:
        before = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        outcome = guests.run(code, how="namespaces", end=end)
        assert Path("/proc/self/mountinfo").read_text(encoding="utf-8") == before
    assert outcome["answer"] == "ready"
    assert outcome["closed"]
    assert outcome["status"] == {0: 0, signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: -signal.SIGKILL}[end]


@pytest.mark.parametrize("user", NAMESPACES)
def test_sigterm_to_the_keeper_counts_the_guest_s_cpu_time(user: int | None) -> None:
    code = "until = time.process_time() + 0.5\nwhile time.process_time() < until: pass\ntell('ready')\ntime.sleep(600)"
    with place("namespaces", user) as guests:
        outcome = guests.run(code, end=signal.SIGTERM)
    assert outcome["status"] == -signal.SIGKILL
    assert outcome["cpu"] >= 0.5


@pytest.mark.parametrize("user", NAMESPACES)
def test_the_namespaces_alone_withstand_what_is_theirs(user: int | None) -> None:
    theirs = {
        *("read a file", "list a folder", "write a file", "change a file", "write to the interpreter", "fill tmp"),
        *("read what is hidden", "import what is hidden", "connect by tcp", "send by udp", "open devices"),
        *("connect to an abstract socket", "kill a process", "trace a process", "become root"),
        *("read memory of a process", "see other processes", "read an environment", "have capabilities", "mount"),
    }
    with place("namespaces", user) as guests:

        def run(confinement: confine.Confinement, targets: dict[str, object]) -> dict[str, str]:
            own = replace(guests, confinement=confinement)
            code = "tell(probe.attempts(targets))"
            answer: dict[str, str] = own.run(code, how="namespaces", targets=targets)["answer"]
            return answer

        found = selftest(guests.confinement, run).attempts
    assert {name: found[name] for name in theirs if found[name]} == {}


def test_the_best_level_is_found_by_entering_it() -> None:
    level, reasons = best_level()
    assert level in (*LEVELS, "")
    assert (reasons == "") == (level == "namespaces")


def test_the_reasons_for_a_lower_level_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise ConfinementError("no namespaces are to be had")

    monkeypatch.setattr(confine, "enter_namespaces", refuse)
    level, reasons = best_level()
    assert level != "namespaces"
    assert reasons.startswith("namespaces: no namespaces are to be had")


def test_a_system_without_forks_gives_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    level, reasons = best_level()
    assert level == ""
    assert reasons.count(f"{sys.platform} cannot fork processes; grade on Linux") == len(LEVELS)


def test_finding_the_best_level_leaves_no_process_and_no_file() -> None:
    code = """
tempfile.tempdir = folder = tempfile.mkdtemp(dir=targets["scratch"])
confine.best_level()
try:
    left = os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    left = None
tell([left, os.listdir(folder)])
"""
    with place("limits", None) as guests:
        outcome = guests.run(code, confined=False, targets={"scratch": guests.confinement.scratch})
    assert outcome["answer"] == [None, []]
