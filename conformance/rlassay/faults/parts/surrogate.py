"""The other surrogates, the entropy bonus and importance weights as they should be, with parts to exchange."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlassay.faults import Function
from rlassay.faults.parts import average, constant, counted, hide, same, working
from rlassay.faults.parts import loss as right
from rlassay_spec.convention import Convention


def bounded_below(surrogate: Tensor, rho: Tensor, a: Tensor, dual: float) -> Tensor:
    """For bad tokens at least dual_clip·Â."""
    return torch.where(a < 0, torch.maximum(surrogate, dual * a), surrogate)


def dual_clip_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
    *,
    convention: Convention,
    choose: Function = right.pessimistic,
    bound: Function = bounded_below,
    **parts: Any,
) -> Tensor:
    """Right, unless a part is exchanged."""

    def both(rho: Tensor, a: Tensor, low: float, high: float, shown: Tensor) -> Tensor:
        return torch.as_tensor(bound(choose(rho, a, low, high, shown), rho, a, dual_clip))

    return right.clipped_loss(
        log_probs, old_log_probs, mask, advantages, clip_low, clip_high, convention=convention, choose=both, **parts
    )


def row_mean(log_ratios: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The mean log-ratio of each row's shown places, bounded where the convention says so."""
    means = log_ratios.sum(dim=1) / shown.sum(dim=1).clamp(min=1)
    bound = convention.log_ratio_clamp
    return means if bound is None else means.clamp(-bound, bound)


def geometric_mean(new: Tensor, old: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The geometric mean of each row's ratios, π_old constant."""
    return row_mean(new - old.detach(), shown, convention).exp()


def of_row(per_sequence: Tensor, shown: Tensor) -> Tensor:
    """One constant number per sequence, 0 for a row without a token."""
    return hide(constant(per_sequence), shown.any(dim=1))


def smaller(s: Tensor, a: Tensor, low: float, high: float) -> Tensor:
    """The smaller of both surrogates."""
    return torch.minimum(s * a, right.bounded(s, low, high) * a)


def over_sequences(terms: Tensor, shown: Tensor, convention: Convention) -> Tensor:
    """The mean over the sequences that the convention counts."""
    return terms.sum() / max(counted(shown, convention), 1)


def gspo_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    *,
    convention: Convention,
    visible: Function = same,
    cover: Function = hide,
    rho: Function = geometric_mean,
    weigh: Function = of_row,
    choose: Function = smaller,
    mean: Function = over_sequences,
    finish: Function = torch.neg,
) -> Tensor:
    """Right, unless a part is exchanged."""
    shown = visible(mask != 0)
    s = rho(cover(log_probs, shown), cover(old_log_probs, shown), shown, convention)
    terms = choose(s, weigh(advantages, shown), clip_low, clip_high)
    return torch.as_tensor(finish(mean(terms, shown, convention))).to(log_probs.dtype)


def predicting(logits: Tensor) -> Tensor:
    """The logits that predict a token."""
    return logits[:, :-1]


def information(log_p: Tensor) -> Tensor:
    """−Σ p log p."""
    finite = log_p.masked_fill(log_p.isneginf(), 0.0)
    return -(log_p.exp() * finite).sum(dim=-1)


def entropy_bonus(
    logits: Tensor,
    mask: Tensor,
    *,
    convention: Convention,
    align: Function = predicting,
    visible: Function = same,
    cover: Function = hide,
    normalise: Function = lambda logits: torch.log_softmax(logits, dim=-1),
    reduce: Function = information,
    mean: Function = average,
    finish: Function = same,
) -> Tensor:
    """Right, unless a part is exchanged."""
    shown = visible(mask != 0)
    log_p = normalise(cover(align(logits), shown[:, :, None]))
    entropies = cover(reduce(log_p), shown)
    return torch.as_tensor(finish(mean(entropies, shown, convention))).to(logits.dtype)


def quotient(new: Tensor, sampler: Tensor) -> Tensor:
    """π/μ."""
    return (new - sampler).exp()


def truncated(weights: Tensor, cap: float) -> Tensor:
    """At most the cap."""
    return weights.clamp(max=cap)


def importance_weights(
    log_probs: Tensor,
    sampler_log_probs: Tensor,
    mask: Tensor,
    cap: float = 2.0,
    *,
    visible: Function = same,
    cover: Function = hide,
    frozen: Function = constant,
    ratio: Function = quotient,
    truncate: Function = truncated,
    finish: Function = lambda weights, shown: weights,
) -> Tensor:
    """Right, unless a part is exchanged."""
    shown = visible(mask != 0)
    new, sampler = working(frozen(log_probs)), working(frozen(sampler_log_probs))
    weights = cover(truncate(ratio(new, sampler), cap), shown)
    return torch.as_tensor(finish(weights, shown)).to(log_probs.dtype)
