"""Checks of the claim about which tokens the policy sampled."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial, require
from rlassay.comparison import numbers, require_array
from rlassay.guest.values import Tensor
from rlassay.suite.trajectory import ASSISTANT, END, NEWLINE, SPECIAL, START, TOOL, TOPIC, USER
from rlassay_spec.exact import trajectory as exact

ROLES = {"user": USER, "assistant": ASSISTANT, "tool": TOOL}


@TOPIC.claim(
    "B6.5",
    "response_mask",
    examples=4,
    title="response_mask keeps what the assistant says and its closing token, and nothing else",
)
def sampled_tokens(trial: Trial) -> None:
    """A conversation of prompt, assistant turn, tool output and assistant turn; each kind of token by name."""
    ids, kinds = [], []
    turns = [(role, int(trial.draw.integers(1, 4))) for role in ("user", "assistant", "tool", "assistant")]
    for role, length in turns:
        ids += [START, ROLES[role], NEWLINE, *trial.draw.integers(1, 9, length).tolist(), END]
        kinds += [f"the template's tokens before a {role} turn"] * 3
        kinds += [f"the content of the {role} turn"] * length + [f"the token that closes the {role} turn"]
    want = np.array(exact.response_mask(turns), dtype=bool)
    observed = trial.call("response_mask", {"token_ids": Tensor(np.array([ids]), "int64"), **SPECIAL})
    got = require_array("response_mask", observed, (1, len(ids)))[0].astype(np.float64)
    for kind, value, kept in zip(kinds, got, want, strict=True):
        message = f"response_mask is {value:g} on {kind}, but should be {int(kept)}"
        require(value == kept, message, got=numbers(got), expected=numbers(want))
