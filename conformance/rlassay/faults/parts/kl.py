"""The KL estimators as they should be."""

from __future__ import annotations

import torch
from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import constant, working
from rlassay_spec.convention import Convention


def k1(new: Tensor, ref: Tensor, convention: Convention) -> Tensor:
    """log π − log π_ref."""
    return new - ref


def k2(new: Tensor, ref: Tensor, convention: Convention) -> Tensor:
    """½ (log π − log π_ref)²."""
    return 0.5 * (new - ref).square()


def k3(new: Tensor, ref: Tensor, convention: Convention) -> Tensor:
    """r − log r − 1 with r = π_ref/π, bounded where the convention says so."""
    estimate = torch.expm1(ref - new) - (ref - new)
    return estimate if convention.k3_clamp is None else estimate.clamp(-convention.k3_clamp, convention.k3_clamp)


def turned_over(new: Tensor, ref: Tensor, convention: Convention) -> Tensor:
    """k3 with r = π/π_ref."""
    return k3(ref, new, convention)


def estimate(
    log_probs: Tensor, ref_log_probs: Tensor, *, convention: Convention, formula: Function, frozen: Function = constant
) -> Tensor:
    """An estimator of the KL, right if its formula is."""
    return torch.as_tensor(formula(working(log_probs), frozen(ref_log_probs), convention)).to(log_probs.dtype)
