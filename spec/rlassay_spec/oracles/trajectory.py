"""Oracle of the response mask."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.expected import Expected, exactly
from rlassay_spec.oracles.inputs import ids_of


def response_mask(token_ids: npt.ArrayLike, im_start: int, im_end: int, assistant: int, newline: int) -> Expected:
    """True on the content of assistant turns and on the im_end that closes them."""
    ids = ids_of("token_ids", token_ids, "BL")
    mask = np.zeros(ids.shape, dtype=np.bool_)
    for row, answers in zip(ids.tolist(), mask, strict=True):
        length = len(row)
        while length and row[length - 1] < 0:
            length -= 1
        turns = [t for t in range(length) if row[t] == im_start] + [length]
        for start, end in pairwise(turns):
            if row[start + 1 : end][:2] != [assistant, newline]:
                continue
            content = row[start + 3 : end]
            size = content.index(im_end) + 1 if im_end in content else len(content)
            answers[start + 3 : start + 3 + size] = True
    return exactly(mask)
