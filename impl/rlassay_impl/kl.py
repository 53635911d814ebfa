"""Three one-sample estimates of KL(π ∥ π_ref) for a token sampled from π. log π_ref is a constant throughout."""

import torch
from torch import Tensor

from rlassay_impl.contract import check_floats, frozen, working


def kl_k1(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """The log-ratio itself: unbiased, of either sign.

        k1 = log π − log π_ref

    Source: Schulman, Approximating KL Divergence (2020); RL in Practice §7 (P7.1).
    As a loss on fixed samples its expected gradient is 0 (P7.5).
    Shapes: log_probs, ref_log_probs [B, T] → [B, T], in nats.
    Raises: ValueError for other shapes or integer dtypes.
    """
    return _log_ratio(log_probs, ref_log_probs).to(log_probs.dtype)


def kl_k2(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """Half the squared log-ratio: biased, never negative.

        k2 = ½ (log π − log π_ref)²

    Source: Schulman, Approximating KL Divergence (2020).
    As a loss on fixed samples its expected gradient is that of KL(π ∥ π_ref) (P7.5).
    Shapes: log_probs, ref_log_probs [B, T] → [B, T], in nats.
    Raises: ValueError for other shapes or integer dtypes.
    """
    return (0.5 * _log_ratio(log_probs, ref_log_probs).square()).to(log_probs.dtype)


def kl_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """The log-ratio plus a term of mean 0: unbiased, never negative.

        k3 = r − log r − 1,   r = π_ref / π

    Source: Schulman, Approximating KL Divergence (2020); RL in Practice §7 (P7.2, P7.3).
    As a loss on fixed samples its expected gradient is that of KL(π_ref ∥ π) (P7.5).
    Shapes: log_probs, ref_log_probs [B, T] → [B, T], in nats.
    Raises: ValueError for other shapes or integer dtypes.
    """
    log_r = -_log_ratio(log_probs, ref_log_probs)
    return (torch.expm1(log_r) - log_r).to(log_probs.dtype)  # exp(log r) − 1 would round below log r near r = 1


def _log_ratio(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    check_floats("log_probs", log_probs, B=None, T=None)
    check_floats("ref_log_probs", ref_log_probs, B=log_probs.shape[0], T=log_probs.shape[1])
    return working(log_probs) - frozen(ref_log_probs)
