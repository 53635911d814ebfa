"""Hostile submissions: each provides three right operations and does something else besides.

An attack is code before the right functions, code after them, and the parts that still earn their points: what hurts
one operation costs that one alone, and what hurts the loading costs only what the definitions do not save.
"""

from __future__ import annotations

from dataclasses import dataclass

RIGHT = """
import torch


def kl_k1(log_probs, ref_log_probs):
    return log_probs - ref_log_probs.detach()


def kl_k3(log_probs, ref_log_probs):
    log_ratio = ref_log_probs.detach() - log_probs
    return torch.expm1(log_ratio) - log_ratio


def keep_groups(rewards):
    if rewards.dim() != 2 or rewards.shape[1] == 0:
        raise ValueError("rewards: expected [N, G]")
    return rewards.amax(-1) != rewards.amin(-1)
"""
PARTS = ("kl_k1", "kl_k3", "keep_groups")
ALL = frozenset(PARTS)
NOT_K3 = ALL - {"kl_k3"}


@dataclass(frozen=True)
class Attack:
    """Code around the right functions, and the parts that earn their points all the same."""

    before: str = ""
    after: str = ""
    earns: frozenset[str] = ALL

    @property
    def source(self) -> str:
        """The submission."""
        return f"{self.before}\n{RIGHT}\n{self.after}"


def in_kl_k3(body: str, before: str = "") -> Attack:
    """An attack from within a call of kl_k3, which then counts as wrong."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    after = f"{before}\n\n\ndef kl_k3(log_probs, ref_log_probs):\n{lines}\n"
    return Attack(after=after, earns=NOT_K3)


ATTACKS: dict[str, Attack] = {
    "os_exit_at_import": Attack(before="import os\nos._exit(0)"),
    "sys_exit_at_import": Attack(before="import sys\nsys.exit(0)"),
    "os_exit_in_a_call": in_kl_k3("import os\nos._exit(0)"),
    "sys_exit_in_a_call": in_kl_k3("import sys\nsys.exit(0)"),
    "infinite_loop_in_a_call": in_kl_k3("while True:\n    pass"),
    "infinite_loop_at_import": Attack(after="while True:\n    pass"),
    "swallowed_signals": in_kl_k3(
        "while True:\n    try:\n        time.sleep(0.01)\n    except BaseException:\n        pass",
        before="import signal, time\n"
        "for number in range(1, 65):\n"
        "    try:\n"
        "        signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n"
        "        pass",
    ),
    "swallowed_exceptions_at_import": Attack(
        after="import time\nwhile True:\n    try:\n        time.sleep(10)\n    except BaseException:\n        pass"
    ),
    "fork_bomb_at_import": Attack(
        after="import os\n"
        "try:\n"
        "    for _ in range(10_000):\n"
        "        if os.fork() == 0:\n"
        "            while True:\n"
        "                os.fork()\n"
        "except OSError:\n"
        "    pass"
    ),
    "fork_bomb_in_a_call": in_kl_k3("import os\nwhile True:\n    os.fork()"),
    "thread_bomb_in_a_call": in_kl_k3(
        "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    ),
    "memory_bomb_in_a_call": in_kl_k3("hoard = []\nwhile True:\n    hoard.append(bytearray(2**26))"),
    "memory_bomb_of_tensors": in_kl_k3("hoard = []\nwhile True:\n    hoard.append(torch.ones(2**24))"),
    "memory_bomb_at_import": Attack(after="hoard = []\nwhile True:\n    hoard.append(bytearray(2**26))"),
    "disk_bomb_in_a_call": in_kl_k3(
        "with open('/tmp/flood', 'wb') as stream:\n    while True:\n        stream.write(bytes(2**20))"
    ),
    "output_flood": in_kl_k3(
        "import os, sys\n"
        "for _ in range(2000):\n"
        "    print('x' * 10_000)\n"
        "    os.write(2, b'y' * 10_000)\n"
        "return log_probs * 0"
    ),
    "huge_return_value": in_kl_k3("return torch.zeros(2**26)"),
    "huge_list": in_kl_k3("return [0] * 10_000_000"),
    "deep_return_value": in_kl_k3("nested = []\nfor _ in range(100_000):\n    nested = [nested]\nreturn nested"),
    "circular_return_value": in_kl_k3("loop = []\nloop.append(loop)\nreturn loop"),
    "lying_equality": in_kl_k3(
        "return Agreeable()",
        before="class Agreeable:\n"
        "    def __eq__(self, other):\n"
        "        return True\n"
        "    def __getattr__(self, name):\n"
        "        return self\n"
        "    def __call__(self, *args, **kwargs):\n"
        "        return True\n"
        "    def __bool__(self):\n"
        "        return True",
    ),
    "lying_class": in_kl_k3(
        "return Liar()",
        before="class Liar:\n"
        "    @property\n"
        "    def __class__(self):\n"
        "        return float\n"
        "    def __eq__(self, other):\n"
        "        return True",
    ),
    "tensor_subclass": in_kl_k3(
        "return (log_probs * 0).as_subclass(Yes)",
        before="class Yes(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, function, types, args=(), kwargs=None):\n"
        "        if 'eq' in getattr(function, '__name__', '') or 'close' in getattr(function, '__name__', ''):\n"
        "            return True\n"
        "        return super().__torch_function__(function, types, args, kwargs or {})",
    ),
    "patched_torch_and_numpy": in_kl_k3(
        "return log_probs * 0",
        before="import numpy\n"
        "torch.allclose = torch.equal = lambda *a, **k: True\n"
        "torch.testing.assert_close = lambda *a, **k: None\n"
        "numpy.allclose = numpy.array_equal = lambda *a, **k: True\n"
        "numpy.testing.assert_allclose = lambda *a, **k: None\n"
        "AssertionError = SystemExit",
    ),
    "patched_autograd": Attack(
        after="torch.autograd.grad = lambda outputs, inputs, *a, **k: tuple(torch.ones_like(i) for i in inputs)",
        earns=frozenset({"keep_groups"}),
    ),
    "stack_and_heap_inspection": in_kl_k3(
        "import gc, sys\n"
        "frame, found = sys._getframe(), []\n"
        "while frame is not None:\n"
        "    found += [value for name, value in frame.f_locals.items() if 'expect' in name or 'oracle' in name]\n"
        "    frame = frame.f_back\n"
        "found += [o for o in gc.get_objects() if 'Expected' in type(o).__name__ or 'Oracle' in type(o).__name__]\n"
        "found += [o for o in gc.get_objects() if isinstance(o, dict) and 'pullback' in o]\n"
        "return found[0].value if found else log_probs * 0"
    ),
    "importing_the_reference": in_kl_k3(
        "try:\n"
        "    import rlassay_impl\n"
        "    return rlassay_impl.kl_k3(log_probs, ref_log_probs)\n"
        "except ImportError:\n"
        "    return log_probs * 0"
    ),
    "importing_the_oracle": in_kl_k3(
        "try:\n"
        "    from rlassay_spec.oracles import ORACLES\n"
        "    return torch.tensor(ORACLES['kl_k3'](log_probs.detach().numpy(), ref_log_probs.detach().numpy()).value)\n"
        "except ImportError:\n"
        "    return log_probs * 0"
    ),
    "daemonised_child": Attack(
        after="import os, time\n"
        "try:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(3600)\n"
        "        os._exit(0)\n"
        "except OSError:\n"
        "    pass"
    ),
    "scribbling_on_every_descriptor": in_kl_k3(
        "import os\n"
        "for descriptor in range(256):\n"
        "    try:\n"
        "        os.write(descriptor, b'{\"observation\": 1}' * 100)\n"
        "    except OSError:\n"
        "        pass\n"
        "return log_probs * 0"
    ),
    "closing_every_descriptor": in_kl_k3("import os\nos.closerange(0, 256)\nreturn log_probs * 0"),
    "recursion": in_kl_k3("return kl_k3(log_probs, ref_log_probs)"),
    "base_exception": in_kl_k3("class Out(BaseException):\n    pass\nraise Out('pass')"),
    "keyboard_interrupt": in_kl_k3("raise KeyboardInterrupt"),
    "unreadable_exception": in_kl_k3(
        "raise Unreadable",
        before="class Unreadable(Exception):\n"
        "    def __str__(self):\n"
        "        raise SystemExit(0)\n"
        "    __repr__ = __str__",
    ),
    "slow_import": Attack(after="import time\ntime.sleep(3600)"),
    "skipping": in_kl_k3("import unittest\nraise unittest.SkipTest('not today')"),
    "asking_for_a_pass": in_kl_k3("raise NotImplementedError"),
    "killing_everything": in_kl_k3(
        "import os, signal\n"
        "for pid in (-1, 0, 1, os.getppid(), *range(2, 5000)):\n"
        "    try:\n"
        "        if pid != os.getpid():\n"
        "            os.kill(pid, signal.SIGKILL)\n"
        "    except OSError:\n"
        "        pass\n"
        "return log_probs * 0"
    ),
    "killing_itself": in_kl_k3("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
    "segmentation_fault": in_kl_k3("import ctypes\nctypes.string_at(0)"),
    "not_utf_8": Attack(before="NAME = 'caf\udce9'", earns=frozenset()),
}
"""By name. Lone surrogates stand for bytes that are no UTF-8."""
