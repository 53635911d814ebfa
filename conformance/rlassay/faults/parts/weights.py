"""Wrong weights of the losses, to be exchanged for `column` or `as_given`."""

from __future__ import annotations

import torch
from torch import Tensor

from rlassay.faults.parts import constant, working
from rlassay.faults.parts.loss import column


def live(weights: Tensor, shown: Tensor) -> Tensor:
    """The weights with their graph."""
    return working(weights if weights.ndim == 2 else weights[:, None].expand(shown.shape))


def whitened(weights: Tensor, correction: int = 0) -> Tensor:
    """The weights centred and scaled over the batch."""
    spread = weights.std(correction=correction) if weights.numel() > correction else torch.nan
    return constant((weights - weights.mean()) / (spread + 1e-6))


def across(advantages: Tensor, shown: Tensor) -> Tensor:
    """Advantages broadcast along the wrong axis where B = T lets it pass."""
    return constant(advantages)[None, :] if shown.shape[0] == shown.shape[1] else column(advantages, shown)
