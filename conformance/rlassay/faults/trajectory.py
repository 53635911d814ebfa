"""Known faults of the mask of sampled tokens in a chat transcript."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlassay.faults import Faults, Function
from rlassay.faults.parts import late, of_first_row, same

FAULTS = Faults()


def end_of_text(row: Sequence[int]) -> int:
    """Where trailing padding begins."""
    length = len(row)
    while length and row[length - 1] < 0:
        length -= 1
    return length


def content(row: Sequence[int], start: int, end: int, im_end: int) -> range:
    """The content of a turn that opens at `start`, with the im_end that closes it."""
    inside = list(row[start + 3 : end])
    size = inside.index(im_end) + 1 if im_end in inside else len(inside)
    return range(start + 3, start + 3 + size)


def assistants(row: Sequence[int], start: int, assistant: int, newline: int) -> bool:
    """Whether the turn that opens at `start` is the assistant's."""
    return list(row[start + 1 : start + 3]) == [assistant, newline]


def response_mask(
    token_ids: Tensor,
    im_start: int,
    im_end: int,
    assistant: int,
    newline: int,
    *,
    length: Function = end_of_text,
    sampled: Function = content,
    own: Function = assistants,
    chosen: Function = same,
    finish: Function = same,
) -> Tensor:
    """Right, unless a part is exchanged."""
    mask = torch.zeros(token_ids.shape, dtype=torch.bool)
    for b, row in enumerate(token_ids.tolist()):
        stop = length(row)
        starts = [t for t in range(stop) if row[t] == im_start]
        turns = [
            (start, end)
            for start, end in zip(starts, [*starts[1:], stop], strict=True)
            if own(row, start, assistant, newline)
        ]
        for start, end in chosen(turns):
            mask[b, [t for t in sampled(row, start, end, im_end) if t < len(row)]] = True
    return torch.as_tensor(finish(mask))


def _fault(identity: str, title: str, source: str, **parts: Any) -> None:
    FAULTS.add(identity, "response_mask", title, source, partial(response_mask, **parts))


def to_the_next_turn(row: Sequence[int], start: int, end: int, im_end: int) -> range:
    """The content and all that stands between the turn and the next one."""
    return range(start + 3, end)


def with_separator(row: Sequence[int], start: int, end: int, im_end: int) -> range:
    """The content and the token after im_end."""
    inside = content(row, start, end, im_end)
    return range(inside.start, min(inside.stop + 1, end))


def first_token_never_ends(row: Sequence[int], start: int, end: int, im_end: int) -> range:
    """An im_end at index 0 of the content is taken for none."""
    inside = list(row[start + 3 : end])
    place = inside.index(im_end) if im_end in inside else 0
    return range(start + 3, start + 3 + place + 1 if place else end)


def only_im_end_ends(row: Sequence[int], start: int, end: int, im_end: int) -> range:
    """A turn that im_start interrupts runs on."""
    return content(row, start, end_of_text(row), im_end)


@FAULTS.fault("MK-01", "response_mask", "every token that is not padding", "huggingface/trl issue 334")
def _attention_mask(token_ids: Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> Tensor:
    return token_ids >= 0


_fault("MK-02", "the mask with its polarity reversed", "mll-lab-nu/RAGEN issue 71", finish=torch.logical_not)
_fault("MK-03", "turns of every role", "huggingface/trl PR 4975", own=lambda row, start, *_: True)
_fault("MK-06", "padding after an unfinished answer", "verl-project/verl issue 3805", length=len)
_fault(
    "MK-07",
    "no closing im_end: the model never learns to stop",
    "huggingface/trl PR 6357",
    sampled=lambda row, start, end, im_end: [t for t in content(row, start, end, im_end) if row[t] != im_end],
)
_fault("MK-09", "the separator after im_end", "OpenHands/codescout PR 60", sampled=with_separator)
_fault("TRA-01", "all between the turn and the next one", "OpenHands/codescout PR 60", sampled=to_the_next_turn)
_fault(
    "MK-10",
    "an im_end at index 0 taken for none: an empty answer runs on",
    "huggingface/transformers PR 47326",
    sampled=first_token_never_ends,
)
_fault("MK-11", "a turn that only im_end can end", "databricks/compose-rl PR 31", sampled=only_im_end_ends)
_fault("MK-12", "the last answer alone", "modelscope/ms-swift PR 7838", chosen=lambda turns: turns[-1:])
_fault("TRA-02", "the first answer alone", "textbook", chosen=lambda turns: turns[:1])
_fault(
    "TRA-03",
    "the header too: im_start, role and newline",
    "claim B6.5",
    sampled=lambda row, start, end, im_end: range(start, content(row, start, end, im_end).stop),
)
_fault(
    "TRA-04",
    "the newline of the header",
    "claim B6.5",
    sampled=lambda row, start, end, im_end: range(start + 2, content(row, start, end, im_end).stop),
)
_fault(
    "TRA-05",
    "content without its first token",
    "claim B6.5",
    sampled=lambda row, start, end, im_end: content(row, start, end, im_end)[1:],
)
_fault("TRA-06", "a mask that is one token late", "textbook", finish=late)
_fault("TRA-07", "the first row's mask for every row", "textbook", finish=of_first_row)
_fault(
    "TRA-08",
    "finished answers only",
    "textbook",
    sampled=lambda row, start, end, im_end: content(row, start, end, im_end) if im_end in row[start:end] else [],
)


@FAULTS.fault("TRA-09", "response_mask", "the assistant's role id anywhere opens an answer", "claim B6.5")
def _role_id_anywhere(token_ids: Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> Tensor:
    mask = torch.zeros(token_ids.shape, dtype=torch.bool)
    for b, row in enumerate(token_ids.tolist()):
        inside = False
        for t in range(end_of_text(row)):
            if row[t] == im_start:
                inside = False
            mask[b, t] = inside
            if row[t] == im_end:
                inside = False
            if row[t - 1 : t + 1] == [assistant, newline]:
                inside = True
    return mask


@FAULTS.fault("TRA-10", "response_mask", "every im_end of every role", "claim B6.5")
def _every_im_end(token_ids: Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> Tensor:
    return response_mask(token_ids, im_start, im_end, assistant, newline) | (token_ids == im_end)


@FAULTS.fault("TRA-11", "response_mask", "no newline inside an answer", "claim B6.5")
def _newlines_out(token_ids: Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> Tensor:
    return response_mask(token_ids, im_start, im_end, assistant, newline) & (token_ids != newline)


@FAULTS.fault("TRA-12", "response_mask", "padding of −1 only: −100 is taken for text", "claim B6.5")
def _minus_one_only(token_ids: Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> Tensor:
    text = torch.where(token_ids < -1, im_end + 1000, token_ids)
    return response_mask(text, im_start, im_end, assistant, newline)
