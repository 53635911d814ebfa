"""What a guest does: it loads a submission when it is told to, then answers calls of its operations, one by one.

Every request carries a nonce that its answer repeats. Answers are observations, or what the submission raised.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from .errors import SubjectRaised, TargetError
from .packing import MOST_NAME, Packer
from .submission import MOST_TEXT, Submission, load_submission
from .torch_call import call, to_numpy, undo_global_settings
from .wire import ENCODER, Channel, Closed, WireError

ABOUT = {
    "python": ".".join(map(str, sys.version_info[:3])),
    "libraries": {"torch": str(torch.__version__), "numpy": str(np.__version__)},
}
"""What the submission runs on, as it is before the submission can say otherwise."""


def convert(value: Any) -> Any:
    """The numbers of a tensor that is part of a plain value; nothing for what cannot be sent."""
    return to_numpy(value) if isinstance(value, torch.Tensor) else None


def serve(channel: Channel) -> None:
    """Answer requests until the harness ends the connection."""
    functions: Mapping[str, Callable[..., Any]] = {}
    while True:
        try:
            request = channel.receive()
        except (Closed, WireError):
            return
        answer: dict[str, Any]
        if request["do"] == "load":
            answer, functions = _load(request)
        else:
            answer = _call(functions, request)
        _send(channel, request["nonce"], answer)


def _load(request: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Callable[..., Any]]]:
    folder = os.path.join(os.getcwd(), "")
    try:
        loaded = load_submission(
            Submission(request["target"], request["interface"], request["operations"], request["how"])
        )
        readable = _is_short(loaded.declared)
    except TargetError as error:
        return {"unusable": str(error).replace(folder, "")[-MOST_TEXT:]}, {}
    except BaseException as error:  # noqa: BLE001 - what it defines may raise anything when it is looked at
        return {"unusable": f"{request['target']}: what it defines cannot be read ({type(error).__name__})"}, {}
    undo_global_settings()
    answer = {
        "operations": sorted(loaded.functions),
        "declared": loaded.declared if readable else None,
        "names": loaded.names,
        "notes": loaded.notes if readable else [*loaded.notes, "its CONVENTION is not read: it is no table of fields"],
        **ABOUT,
    }
    return answer, loaded.functions


def _is_short(value: Any) -> bool:
    """Whether a value can be told beside others."""
    packer = Packer(convert)
    try:
        return len(ENCODER.encode(packer.pack(value))) + packer.size <= MOST_TEXT
    except Exception:  # noqa: BLE001 - it may be made so that reading it raises anything
        return False


def _call(functions: Mapping[str, Callable[..., Any]], request: Mapping[str, Any]) -> dict[str, Any]:
    function = functions.get(request["operation"])
    if function is None:
        return {"raised": SubjectRaised("Missing", "it was there when the submission was loaded first")}
    options = {name: request[name] for name in ("live", "cotangent", "keywords", "audit", "times")}
    try:
        return {"observation": call(function, request["arguments"], **options)}
    except SubjectRaised as raised:
        texts = (raised.message[-MOST_TEXT:], raised.bases, raised.traceback[-MOST_TEXT:])
        return {"raised": SubjectRaised(raised.kind[:MOST_NAME], *texts, raised.during)}


def _send(channel: Channel, nonce: str, answer: Mapping[str, Any]) -> None:
    """Send an answer; if what was returned cannot be sent, that is said instead."""
    try:
        channel.send({"nonce": nonce, **answer})
    except Closed:
        return
    except Exception as error:  # noqa: BLE001 - what was returned may be made so that reading it raises anything
        what = str(error) if isinstance(error, WireError) else type(error).__name__
        raised = SubjectRaised("Unreadable", f"what it returned {what}"[:MOST_TEXT], during="reading what it returned")
        channel.send({"nonce": nonce, "raised": raised})
