"""Right ways to write the KL estimators."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from rlassay.variants import CANCELLING, Variants

VARIANTS = Variants()


@VARIANTS.variant("kl_k1", "the logarithm of a quotient of probabilities", seen="CV-63")
def log_quotient(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    return -(ref_log_probs.detach() - log_probs)


@VARIANTS.variant("kl_k1", "float64 inside, cast back")
def in_double(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    return (log_probs.double() - ref_log_probs.detach().double()).to(log_probs.dtype)


@VARIANTS.variant("kl_k2", "half a square", seen="CV-21")
def half_square(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    return (ref_log_probs.detach() - log_probs) ** 2 / 2


@VARIANTS.variant("kl_k2", "mse_loss without reduction")
def mse_loss(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    return 0.5 * F.mse_loss(log_probs, ref_log_probs.detach(), reduction="none")


@VARIANTS.variant("kl_k3", "exp(d) − d − 1", seen="CV-22", lapses=(CANCELLING,))
def exp_form(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    d = ref_log_probs.detach() - log_probs
    return torch.exp(d) - d - 1


@VARIANTS.variant("kl_k3", "(r − 1) − log r with a quotient of probabilities", seen="CV-63", lapses=(CANCELLING,))
def ratio_form(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    ratio = (ref_log_probs.detach().float().exp() / log_probs.float().exp()).to(log_probs.dtype)
    return (ratio - 1) - (ref_log_probs.detach() - log_probs)


@VARIANTS.variant("kl_k3", "the estimate held to [−10, 10]", seen="CV-23", k3_clamp=10.0, lapses=(CANCELLING,))
def clamped(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    d = ref_log_probs.detach() - log_probs
    return (d.exp() - d - 1).clamp(min=-10, max=10)


@VARIANTS.variant("kl_k3", "k1 plus its control variate", seen="CV-22")
def control_variate(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    k1 = log_probs - ref_log_probs.detach()
    return k1 + torch.expm1(-k1)
