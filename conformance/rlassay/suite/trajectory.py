"""Checks of the mask of sampled tokens in a chat transcript."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor
from rlassay.laws import Domain
from rlassay.topic import Topic
from rlassay_spec.convention import Convention

START, END, USER, ASSISTANT, TOOL, NEWLINE = 1090, 1091, 1092, 1093, 1094, 1095
"""Ids as large as real ones: Python keeps one object each for small numbers only."""

SPECIAL = {"im_start": START, "im_end": END, "assistant": ASSISTANT, "newline": NEWLINE}


def turn(draw: Draw, role: int, closed: bool = True) -> list[int]:
    """One turn with 0 to 4 content tokens, id 0, role ids and newlines among them."""
    content = draw.pick((0, 1, 2, NEWLINE, ASSISTANT, USER), int(draw.integers(0, 4))).astype(int).tolist()
    return [START, role, NEWLINE, *content, *([END] if closed else [])]


def transcript(draw: Draw, kind: str) -> list[int]:
    """The token ids of one conversation."""
    roles = draw.pick((ASSISTANT, USER, TOOL), int(draw.integers(1, 4))).astype(int).tolist()
    ids = [token for role in roles for token in [*turn(draw, role), NEWLINE]]
    if kind == "no separators":
        ids = [token for role in roles for token in turn(draw, role)]
    if kind == "unfinished":
        ids += turn(draw, ASSISTANT, closed=False)
    if kind == "unfinished, ends in id 0":
        ids += [*turn(draw, ASSISTANT, closed=False), 0]
    if kind == "interrupted":
        ids += [*turn(draw, ASSISTANT, closed=False), *turn(draw, USER)]
    if kind == "text between":
        ids = [7, 8, *ids, 9, *turn(draw, ASSISTANT), 9, 9]
    if kind == "start in a header":
        ids = [START, *turn(draw, ASSISTANT), START, ASSISTANT, *turn(draw, ASSISTANT)]
    if kind == "stray end":
        ids = [END, *ids, END, 5]
    return ids


TRANSCRIPTS = (
    "plain",
    "no separators",
    "unfinished",
    "unfinished, ends in id 0",
    "interrupted",
    "text between",
    "stray end",
    "start in a header",
)


def response_mask_case(draw: Draw, convention: Convention) -> Arguments:
    """A batch of conversations, padded to the right with a negative id."""
    kind = draw.choice("transcript", TRANSCRIPTS)
    rows = [transcript(draw, kind) for _ in range(draw.integer("rows", 1, 3))]
    pad = draw.choice("pad", (-1, -100, -7))
    width = max(map(len, rows)) + draw.integer("padding", 0, 2)
    ids = np.array([row + [pad] * (width - len(row)) for row in rows])
    return {"token_ids": Tensor(ids, "int64"), **SPECIAL}


TOPIC = Topic(
    Domain(
        "response_mask",
        response_mask_case,
        rows=("token_ids",),
        per_row=True,
        result="bool",
    ),
)


@TOPIC.check(
    "response_mask",
    law="negative-inside",
    kind="robustness",
    title="response_mask takes a negative id that is not trailing for a token",
)
def negative_inside(trial: Trial) -> None:
    """Only the negative ids at the end of a row are padding."""
    pad = trial.draw.choice("pad", (-1, -100))
    ids = [START, ASSISTANT, NEWLINE, 5, pad, 6, END, NEWLINE, pad]
    trial.agree("response_mask", {"token_ids": Tensor(np.array([ids]), "int64"), **SPECIAL})
