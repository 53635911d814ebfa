"""Other surrogates of the policy gradient, the bonus that keeps a policy random, and weights for another one's samples.

As in `rlassay_impl.loss`: losses are minimised and average over sequences, the gradient flows into the first argument
only, what stands at a masked place reaches nothing, and every function raises ValueError for a shape that does not fit,
an integer dtype where numbers are meant to be real, a mask that is not 0/1, and what its own docstring adds.
"""

import torch
from torch import Tensor

from rlassay_impl.contract import check_floats, check_mask, frozen, keep, require
from rlassay_impl.log_prob import entropy
from rlassay_impl.loss import aggregate


def dual_clip_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
) -> Tensor:
    """`clipped_loss`, in which a bad token costs at most dual_clip·|Â|, however large its ratio has become.

        S = min(ρ·Â, clip(ρ, 1 − clip_low, 1 + clip_high)·Â),   ρ = π / π_old
        L = −1/B Σ_b Σ_t m·S where Â ≥ 0,   −1/B Σ_b Σ_t m·max(S, dual_clip·Â) where Â < 0

    Source: Ye et al., Mastering Complex Control in MOBA Games with Deep Reinforcement Learning (2020), eq. 5.
    π_old is a constant even when it comes with a graph.
    Shapes: log_probs, old_log_probs, mask [B, T], advantages [B] → scalar.
    Raises: ValueError for dual_clip ≤ 1 too: it would clip ratios that have not moved.
    """
    chosen = _checked(log_probs, old_log_probs, mask, advantages)
    require(dual_clip > 1, "dual_clip", dual_clip, "> 1")

    weights = keep(advantages.detach()[:, None], chosen)
    ratio = torch.exp(keep(log_probs, chosen) - keep(old_log_probs.detach(), chosen))
    clipped = torch.minimum(ratio * weights, ratio.clamp(1 - clip_low, 1 + clip_high) * weights)
    surrogate = torch.where(weights < 0, torch.maximum(clipped, dual_clip * weights), clipped)
    return aggregate(-surrogate, chosen, "sequence_sum").to(log_probs.dtype)


def gspo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """The clipped surrogate of whole sequences: a reward for a sequence goes with a ratio of the sequence.

        L = −1/B Σ_b min(s·Â_b, clip(s, 1 − clip_low, 1 + clip_high)·Â_b),   s = (Π_t π / π_old)^(1/n_b)

    Source: Zheng et al., Group Sequence Policy Optimization (2025), eq. 5 and 7.
    The ratio is the geometric mean over the n_b masked-in tokens, so long sequences are not clipped more often.
    A sequence without masked-in tokens counts in B and adds 0. π_old is a constant even when it comes with a graph.
    Shapes: log_probs, old_log_probs, mask [B, T], advantages [B] → scalar.
    """
    chosen = _checked(log_probs, old_log_probs, mask, advantages)

    log_ratios = keep(log_probs, chosen) - keep(old_log_probs.detach(), chosen)
    ratio = torch.exp(log_ratios.sum(dim=1) / chosen.sum(dim=1).clamp(min=1))
    weights = keep(advantages.detach(), chosen.any(dim=1))
    surrogate = torch.minimum(ratio * weights, ratio.clamp(1 - clip_low, 1 + clip_high) * weights)
    return (-surrogate.sum() / max(len(surrogate), 1)).to(log_probs.dtype)


def entropy_bonus(logits: Tensor, mask: Tensor) -> Tensor:
    """Entropy of the distributions that the sampled tokens came from: a loss that subtracts it keeps the policy random.

        out = 1/B Σ_b Σ_t m·H(softmax(logits[b, t]))

    Source: Schulman et al., Proximal Policy Optimization Algorithms (2017), eq. 9.
    logits[b, t] predict token t+1, which is the one that mask[b, t] is about; the last logits predict nothing.
    Shapes: logits [B, L, V], mask [B, L−1] → scalar, in nats.
    """
    check_floats("logits", logits, B=None, L=None, V=None)
    n_sequences, length, _ = logits.shape
    chosen = check_mask(mask, B=n_sequences, T=max(length - 1, 0))

    entropies = entropy(keep(logits[:, :-1], chosen[:, :, None]))
    return aggregate(entropies, chosen, "sequence_sum").to(logits.dtype)


def importance_weights(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    """How much more likely a token is under π than under the policy μ that sampled it, but at most `cap`.

        w = m·min(π / μ, cap)

    Source: Ionides, Truncated Importance Sampling (2008), §2; Espeholt et al., IMPALA (2018), eq. 1.
    The weights are constants: a loss is multiplied by them, nothing is learnt through them.
    Shapes: log_probs, sampler_log_probs, mask [B, T] → [B, T].
    Raises: ValueError for cap ≤ 0.
    """
    check_floats("log_probs", log_probs, B=None, T=None)
    n_sequences, length = log_probs.shape
    check_floats("sampler_log_probs", sampler_log_probs, B=n_sequences, T=length)
    chosen = check_mask(mask, B=n_sequences, T=length)
    require(cap > 0, "cap", cap, "> 0")

    ratio = torch.exp(frozen(log_probs) - frozen(sampler_log_probs))
    return keep(ratio.clamp(max=cap), chosen).to(log_probs.dtype)


def _checked(log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    check_floats("log_probs", log_probs, B=None, T=None)
    n_sequences, length = log_probs.shape
    check_floats("old_log_probs", old_log_probs, B=n_sequences, T=length)
    check_floats("advantages", advantages, B=n_sequences)
    return check_mask(mask, B=n_sequences, T=length)
