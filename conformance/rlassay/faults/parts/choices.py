"""Wrong ratios, and wrong choices between the clipped and the unclipped term, to be exchanged for the right ones."""

from __future__ import annotations

import torch
from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import hide
from rlassay.faults.parts.loss import bounded, larger, log_ratio, pessimistic
from rlassay_spec.convention import Convention


def per_sequence(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The product of a row's ratios, at each token."""
    return log_ratio(new, old, convention).sum(dim=1, keepdim=True).expand(shown.shape).exp()


def geometric_mean(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The geometric mean of a row's ratios, at each token."""
    lengths = shown.sum(dim=1, keepdim=True).clamp(min=1)
    return (log_ratio(new, old, convention).sum(dim=1, keepdim=True) / lengths).expand(shown.shape).exp()


def quotient(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """log π / log π_old."""
    return new / torch.where(shown, old.detach(), 1.0)


def alive_outside(rho: Tensor, a: Tensor, low: float, high: float, shown: Tensor) -> Tensor:
    """Right in value; the gradient passes the clip."""
    value = pessimistic(rho, a, low, high, shown)
    return value.detach() + rho * a - (rho * a).detach()


def dead_outside(rho: Tensor, a: Tensor, low: float, high: float, shown: Tensor) -> Tensor:
    """Right in value; no gradient outside the bounds on either side."""
    value, clipped = pessimistic(rho, a, low, high, shown), bounded(rho, low, high) * a
    return value.detach() + clipped - clipped.detach()


def means_compared(rho: Tensor, a: Tensor, low: float, high: float, shown: Tensor) -> Tensor:
    """The smaller of both batch means, spread over the tokens."""
    count = shown.sum().clamp(min=1)
    smaller = torch.minimum((rho * a).sum() / count, (bounded(rho, low, high) * a).sum() / count)
    return torch.where(shown, smaller, 0.0)


def normalised_between(rho: Tensor, a: Tensor, low: float, high: float, shown: Tensor) -> Tensor:
    """Advantages whitened between the two surrogates."""
    mean = a.sum() / shown.sum().clamp(min=1)
    deviation = (hide(a - mean, shown).square().sum() / shown.sum().clamp(min=1)).sqrt()
    whitened = hide((a - mean) / (deviation + 1e-8), shown)
    return torch.minimum(rho * a, bounded(rho, low, high) * whitened)


def smaller(v: Tensor, old: Tensor, target: Tensor, clip: float | None, error: Function) -> Tensor:
    """The smaller of both errors."""
    if clip is None:
        return torch.as_tensor(error(v - target))
    return torch.minimum(error(v - target), error(old + (v - old).clamp(-clip, clip) - target))


def clipped_alone(v: Tensor, old: Tensor, target: Tensor, clip: float | None, error: Function) -> Tensor:
    """The error of the clipped value."""
    return torch.as_tensor(error((v if clip is None else old + (v - old).clamp(-clip, clip)) - target))


def unclipped(v: Tensor, old: Tensor, target: Tensor, clip: float | None, error: Function) -> Tensor:
    """The error of the value, whatever clip says."""
    return torch.as_tensor(error(v - target))


def clipped_to_range(v: Tensor, old: Tensor, target: Tensor, clip: float | None, error: Function) -> Tensor:
    """The larger of the error and that of the value itself clipped to ±c."""
    return torch.as_tensor(
        error(v - target) if clip is None else torch.maximum(error(v - target), error(v.clamp(-clip, clip) - target))
    )


def always_clipped(v: Tensor, old: Tensor, target: Tensor, clip: float | None, error: Function) -> Tensor:
    """A clip of 0.2 where none is asked for."""
    return larger(v, old, target, 0.2 if clip is None else clip, error)
