"""The warm process: it has imported torch and numpy, and forks a guest whenever the harness asks for one.

Requests and answers are JSON in datagrams on a socket; with a request for a guest comes the guest's own end of a
connection to the harness. A guest confines itself before it listens there.
"""

from __future__ import annotations

import gc
import json
import os
import random
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from .confine import Confinement, ConfinementError, enter
from .probe import attempts
from .serve import convert, serve
from .stubs import install
from .wire import Channel

MOST_REQUEST = 2**16

GRACE_SECONDS = 0.1
"""How long a guest may take to go by itself."""

PARTING_SECONDS = 10.0
"""How long a keeper may take to end all that it keeps."""


def serve_forks(control: socket.socket) -> None:
    """Fork guests and end them, until the harness goes."""
    _warm_up()
    control.send(json.dumps({"prefixes": [sys.prefix, sys.base_prefix], "path": sys.path}).encode())
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, MOST_REQUEST, 1)
        if not data:
            return
        request = json.loads(data)
        if request["do"] == "fork":
            answer = _fork(request, descriptors[0], control)
        else:
            answer = _end(request["pid"], request["keeper"])
        control.send(json.dumps(answer).encode())


def _warm_up() -> None:
    """Use what guests need once, so that none of them pays for first uses: of kernels, of modules imported late."""
    torch.set_num_threads(1)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        logits = torch.linspace(-1, 1, 60).reshape(3, 4, 5).to(dtype).requires_grad_()
        log_probs = torch.log_softmax(logits, -1).gather(-1, torch.zeros(3, 4, 1, dtype=torch.int64)).squeeze(-1)
        ratio = torch.exp(log_probs - log_probs.detach()) + torch.expm1(log_probs) + logits.logsumexp(-1)
        clipped = torch.minimum(ratio, ratio.clamp(0.8, 1.2)) * (log_probs < 0) + ratio.std(-1, keepdim=True)
        torch.autograd.grad(clipped, logits, torch.ones_like(clipped))
    np.random.default_rng(0).normal(size=3)
    gc.collect()
    gc.freeze()


def _fork(request: dict[str, Any], end: int, control: socket.socket) -> dict[str, Any]:
    pid = os.fork()
    if pid == 0:
        control.close()
        _become_guest(request, end)
    os.close(end)
    return {"pid": pid}


def _become_guest(request: dict[str, Any], end: int) -> None:
    """Never returns: confines itself, serves, ends."""
    channel = Channel(socket.socket(fileno=end), convert, arguments=True)
    status = 1
    try:
        confinement: dict[str, Any] = dict(request["confinement"])
        confinement |= {name: tuple(confinement[name]) for name in ("readable", "hidden")}
        folder = enter(Confinement(**confinement), keep=(end,))
        os.chdir(folder)
        sys.path[:0] = [os.path.normpath(os.path.join(folder, place)) for place in request["imports"]]
        install(request["stubs"])
        _seed()
        channel.send({"confined": True})
        _run(request["run"], channel)
        status = 0
    except ConfinementError as error:
        channel.send({"unconfined": str(error)})
    finally:
        os._exit(status)


def _run(what: str, channel: Channel) -> None:
    """Serve; or, for the self-test of the confinement, try to break out of it."""
    if what == "serve":
        serve(channel)
        return
    channel.send({"attempts": attempts(json.loads(what))})


def _seed() -> None:
    """Submissions that draw random numbers draw the same ones each time."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def _end(pid: int, keeper: bool) -> dict[str, Any]:
    """End a guest and all of its processes; its wait status and the CPU seconds that it took.

    One whose connection has ended goes by itself, unless it is busy, and only then is all of its time counted. A keeper
    ends what it keeps and then itself; a guest that has none is killed.
    """
    _wait(pid, GRACE_SECONDS)
    with suppress(ProcessLookupError):
        if keeper:
            os.kill(pid, signal.SIGTERM)
            _wait(pid, PARTING_SECONDS)
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return {"status": status, "cpu": usage.ru_utime + usage.ru_stime}


def _wait(pid: int, seconds: float) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
