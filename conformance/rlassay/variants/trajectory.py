"""Right ways to write the mask of sampled tokens."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlassay.variants import Variants

VARIANTS = Variants()


@VARIANTS.variant("response_mask", "a state machine over lists")
def state_machine(token_ids: Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> Tensor:
    masks = []
    for row in token_ids.tolist():
        state, mask = "outside", []
        for token in row:
            on = False
            if token == im_start:
                state = "role"
            elif state == "role":
                state = "break" if token == assistant else "other"
            elif state == "break":
                state = "answer" if token == newline else "other"
            elif state == "answer":
                on = True
                if token == im_end:
                    state = "outside"
            mask.append(on)
        for place in reversed(range(len(row))):
            if row[place] >= 0:
                break
            mask[place] = False
        masks.append(mask)
    return torch.tensor(masks, dtype=torch.bool)


@VARIANTS.variant("response_mask", "numpy and slices")
def sliced(token_ids: Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> Tensor:
    ids = token_ids.numpy()
    mask = np.zeros(ids.shape, dtype=bool)
    for row, out in zip(ids, mask, strict=True):
        text = np.flatnonzero(row >= 0)
        stop = text[-1] + 1 if text.size else 0
        starts = np.flatnonzero(row[:stop] == im_start)
        for start, end in zip(starts, np.append(starts[1:], stop), strict=True):
            if list(row[start + 1 : start + 3]) == [assistant, newline]:
                ends = np.flatnonzero(row[start + 3 : end] == im_end)
                out[start + 3 : start + 4 + ends[0] if ends.size else end] = True
    return torch.from_numpy(mask)


@VARIANTS.variant("response_mask", "running maxima of the places where turns open and close")
def vectorised(token_ids: Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> Tensor:
    length = token_ids.shape[1]
    place = torch.arange(length).expand_as(token_ids)
    opened = torch.where(token_ids == im_start, place, -1).cummax(dim=1).values
    role = token_ids.gather(1, (opened + 1).clamp(0, length - 1))
    after_role = token_ids.gather(1, (opened + 2).clamp(0, length - 1))
    inside = (opened >= 0) & (role == assistant) & (after_role == newline) & (place >= opened + 3)
    closing = inside & (token_ids == im_end)
    closed = torch.where(closing, place, -1).cummax(dim=1).values
    before = torch.cat([torch.full_like(closed[:, :1], -1), closed[:, :-1]], dim=1)
    text = (token_ids >= 0).flip(1).cummax(dim=1).values.flip(1)
    return inside & (before < opened) & text
