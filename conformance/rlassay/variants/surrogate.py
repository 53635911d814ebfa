"""Right ways to write the dual-clipped and the sequence-wise surrogate, the entropy bonus and importance weights."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Categorical

from rlassay.variants import BANNED, EMPTY, MULTIPLIED, Variants

VARIANTS = Variants()


def _mean(terms: Tensor, mask: Tensor) -> Tensor:
    return terms.masked_fill(mask == 0, 0).sum(1).mean()


@VARIANTS.variant(
    "dual_clip_loss",
    "three negated surrogates, averaged over tokens",
    aggregation="token_mean",
    lapses=(EMPTY, MULTIPLIED),
)
def negated_losses(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2, dual_clip: float = 3.0,
) -> Tensor:  # fmt: skip
    a = advantages.detach().unsqueeze(-1)
    ratio = torch.exp(log_probs - old_log_probs.detach())
    losses = torch.maximum(-a * ratio, -a * torch.clamp(ratio, 1 - clip_low, 1 + clip_high))
    losses = torch.where(a < 0, torch.min(losses, -a * dual_clip), losses)
    return (losses * mask).sum() / mask.sum()


@VARIANTS.variant(
    "dual_clip_loss", "the ratio held to one interval for good tokens, to another for bad ones", lapses=(MULTIPLIED,)
)
def intervals(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2, dual_clip: float = 3.0,
) -> Tensor:  # fmt: skip
    a = advantages.detach()[:, None]
    ratio = (log_probs - old_log_probs.detach()).exp()
    held = torch.where(a >= 0, ratio.clamp(max=1 + clip_high), ratio.clamp(1 - clip_low, dual_clip))
    return -_mean(held * a, mask)


@VARIANTS.variant("dual_clip_loss", "intervals of the log-ratio, one exponential at the end")
def log_intervals(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2, dual_clip: float = 3.0,
) -> Tensor:  # fmt: skip
    a = advantages.detach()[:, None]
    log_ratio = log_probs - old_log_probs.detach()
    good = log_ratio.clamp(max=math.log1p(clip_high))
    bad = log_ratio.clamp(math.log1p(-clip_low), math.log(dual_clip))
    return _mean(-torch.where(a > 0, good, bad).exp() * a, mask)


@VARIANTS.variant(
    "dual_clip_loss", "a quotient of probabilities, and a mask of what the dual clip bounds", lapses=(MULTIPLIED,)
)
def quotient(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2, dual_clip: float = 3.0,
) -> Tensor:  # fmt: skip
    ratio = (log_probs.float().exp() / old_log_probs.detach().float().exp()).to(log_probs.dtype)
    a = advantages.detach()[:, None].expand_as(ratio)
    surrogate = torch.min(ratio * a, ratio.clip(1 - clip_low, 1 + clip_high) * a)
    hit = (a < 0) & (surrogate < dual_clip * a)
    return -_mean(surrogate.masked_fill(hit, 0) + (dual_clip * a).masked_fill(~hit, 0), mask)


@VARIANTS.variant(
    "dual_clip_loss", "loops over rows and tokens, the caller detaches", old_log_probs="caller", lapses=(MULTIPLIED,)
)
def token_loops(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2, dual_clip: float = 3.0,
) -> Tensor:  # fmt: skip
    total = 0 * log_probs.double().sum()
    for b, t in mask.nonzero().tolist():
        a = advantages[b].item()
        ratio = (log_probs[b, t].double() - old_log_probs[b, t].double()).exp()
        term = torch.minimum(ratio * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a)
        total = total - (term if a >= 0 else term.clamp(min=dual_clip * a))
    return (total / len(mask)).to(log_probs.dtype)


@VARIANTS.variant(
    "dual_clip_loss",
    "log-ratios held to ±1, empty rows dropped",
    log_ratio_clamp=1.0,
    empty_rows="dropped",
    lapses=(EMPTY,),
)
def held_log_ratio(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2, dual_clip: float = 3.0,
) -> Tensor:  # fmt: skip
    rows = mask.bool().any(dim=1)
    a = advantages.detach()[rows, None]
    ratio = (log_probs - old_log_probs.detach())[rows].clamp(-1.0, 1.0).exp()
    clipped = torch.minimum(ratio * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a)
    floor = torch.where(a < 0, dual_clip * a, -torch.inf)
    return -_mean(torch.maximum(clipped, floor), mask[rows])


@VARIANTS.variant("gspo_loss", "a masked mean of the log-ratios", lapses=(MULTIPLIED,))
def masked_mean(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:  # fmt: skip
    a = advantages.detach()
    log_ratio = ((log_probs - old_log_probs.detach()) * mask).sum(-1) / mask.sum(-1).clamp(min=1)
    s = log_ratio.exp()
    losses = torch.max(-s * a, -s.clamp(1 - clip_low, 1 + clip_high) * a)
    return (losses * (mask.sum(-1) > 0)).mean().to(log_probs.dtype)


@VARIANTS.variant(
    "gspo_loss",
    "the row's ratio in value, each token's own graph: GSPO-token",
    seen="arXiv 2507.18071",
    lapses=(MULTIPLIED,),
)
def token_form(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:  # fmt: skip
    shown, a = mask.bool(), advantages.detach()[:, None]
    lengths = shown.sum(dim=1, keepdim=True).clamp(min=1)
    difference = (log_probs.detach() - old_log_probs.detach()).masked_fill(~shown, 0)
    of_row = difference.sum(dim=1, keepdim=True) / lengths
    ratio = torch.exp(log_probs - log_probs.detach() + of_row)
    terms = torch.minimum(ratio * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a)
    return -(terms.masked_fill(~shown, 0) / lengths).sum(dim=1).mean().to(log_probs.dtype)


@VARIANTS.variant("gspo_loss", "the ratio of a row at each of its tokens, averaged over them", lapses=(MULTIPLIED,))
def expanded(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:  # fmt: skip
    m, a = mask.to(log_probs.dtype), advantages.detach().unsqueeze(1)
    lengths = m.sum(dim=1, keepdim=True).clamp(min=1)
    ratio = (
        (log_probs * m).sum(1, keepdim=True) / lengths - (old_log_probs.detach() * m).sum(1, keepdim=True) / lengths
    ).exp()
    losses = -torch.min(ratio * a, torch.clamp(ratio, 1 - clip_low, 1 + clip_high) * a) * m
    return (losses.sum(dim=1, keepdim=True) / lengths).mean()


@VARIANTS.variant("gspo_loss", "a loop over rows in float64", lapses=(MULTIPLIED,))
def row_loop(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:  # fmt: skip
    total = 0 * log_probs.double().sum()
    for new, old, shown, a in zip(
        log_probs.double(), old_log_probs.double(), mask.bool(), advantages.tolist(), strict=True
    ):
        if shown.any():
            s = (new[shown] - old[shown].detach()).mean().exp()
            total = total + (s.clamp(max=1 + clip_high) if a >= 0 else s.clamp(min=1 - clip_low)) * a
    return (-total / len(mask)).to(log_probs.dtype)


@VARIANTS.variant("gspo_loss", "a NaN where masked, nanmean, empty rows dropped", empty_rows="dropped", lapses=(EMPTY,))
def nanmean(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:  # fmt: skip
    rows = mask.bool().any(dim=1)
    differences = torch.where(mask.bool(), log_probs - old_log_probs.detach(), torch.nan)[rows]
    s, a = differences.nanmean(dim=1).exp(), advantages.detach()[rows]
    return -torch.stack([s * a, s.clamp(1 - clip_low, 1 + clip_high) * a]).amin(dim=0).mean().to(log_probs.dtype)


class _Sequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_ratio: Tensor, a: Tensor, low: float, high: float) -> Tensor:
        s = log_ratio.exp()
        alive = torch.where(a > 0, s <= 1 + high, s >= 1 - low)
        ctx.save_for_backward(s * a * alive)
        return torch.minimum(s * a, s.clamp(1 - low, 1 + high) * a)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return grads[0] * gradient, None, None, None


@VARIANTS.variant(
    "gspo_loss", "log-ratio of a row held to ±0.3, an autograd function", log_ratio_clamp=0.3, lapses=(MULTIPLIED,)
)
def own_backward(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:  # fmt: skip
    m = mask.to(log_probs.dtype)
    log_ratio = torch.einsum("bt,bt->b", log_probs - old_log_probs.detach(), m) / m.sum(dim=1).clamp(min=1)
    a = advantages.detach() * m.any(dim=1)
    return -_Sequence.apply(log_ratio.clamp(-0.3, 0.3), a, clip_low, clip_high).mean().to(log_probs.dtype)


@VARIANTS.variant("entropy_bonus", "a Categorical distribution over the shifted logits", lapses=(MULTIPLIED,))
def categorical(logits: Tensor, mask: Tensor) -> Tensor:
    return _mean(Categorical(logits=logits[:, :-1], validate_args=False).entropy(), mask)


@VARIANTS.variant("entropy_bonus", "entropies of all L places, the mask padded by a 0", lapses=(BANNED, MULTIPLIED))
def padded_mask(logits: Tensor, mask: Tensor) -> Tensor:
    entropies = torch.special.entr(logits.softmax(dim=-1)).sum(dim=-1)
    return (entropies * F.pad(mask.to(logits.dtype), (0, 1))).sum(dim=1).mean()


@VARIANTS.variant(
    "entropy_bonus",
    "logsumexp minus the expected logit, a mean over tokens",
    aggregation="token_mean",
    lapses=(BANNED, EMPTY, MULTIPLIED),
)
def expected_logit(logits: Tensor, mask: Tensor) -> Tensor:
    z = logits[:, :-1]
    p = torch.softmax(z, dim=-1)
    entropies = torch.logsumexp(z, dim=-1) - torch.where(p > 0, p * z, 0).sum(dim=-1)
    return (entropies * mask).sum().to(logits.dtype) / mask.sum().to(logits.dtype)


@VARIANTS.variant("entropy_bonus", "only the rows under the mask, float32 for half precision")
def selected(logits: Tensor, mask: Tensor) -> Tensor:
    z = logits[:, :-1][mask.bool()]
    log_p = (z.float() if z.dtype == torch.bfloat16 else z).log_softmax(-1)
    return -(log_p.exp() * log_p.clamp(min=-1e4)).sum() / len(mask)


@VARIANTS.variant(
    "entropy_bonus",
    "a loop over rows, means over each, empty ones dropped",
    aggregation="sequence_mean",
    empty_rows="dropped",
)
def row_means(logits: Tensor, mask: Tensor) -> Tensor:
    means = []
    for z, shown in zip(logits, mask.bool(), strict=True):
        if shown.any():
            p = z[:-1][shown].double().softmax(dim=-1)
            means.append(-(p * torch.where(p > 0, p, 1.0).log()).sum(dim=-1).mean())
    return torch.stack(means).mean().to(logits.dtype) if means else 0 * logits.sum()


@VARIANTS.variant(
    "entropy_bonus",
    "row sums over a budget of 64 tokens",
    aggregation="constant",
    aggregation_constant=64.0,
    lapses=(MULTIPLIED,),
)
def over_a_budget(logits: Tensor, mask: Tensor) -> Tensor:
    log_p = torch.log_softmax(logits, dim=-1)[:, :-1]
    return _mean(-(log_p.exp() * log_p.detach().clamp(min=-1e4)).sum(dim=-1), mask) / 64.0


@VARIANTS.variant("importance_weights", "clamp without gradient, times the mask", lapses=(MULTIPLIED,))
def clamped(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    with torch.no_grad():
        return (log_probs - sampler_log_probs).exp().clamp(max=cap) * mask.to(log_probs.dtype)


@VARIANTS.variant("importance_weights", "the log-ratio held to log cap")
def log_cap(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    weights = (log_probs - sampler_log_probs).detach().clamp(max=math.log(cap)).exp()
    return weights.masked_fill(mask == 0, 0)


@VARIANTS.variant("importance_weights", "the smaller of a quotient of probabilities and the cap")
def smaller_of_both(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    p, q = log_probs.detach().float().exp(), sampler_log_probs.detach().float().exp()
    return torch.where(mask.bool(), torch.minimum(p / q, torch.tensor(cap)), 0.0).to(log_probs.dtype)


@VARIANTS.variant("importance_weights", "zeros, filled where the mask is 1")
def filled(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    shown = mask.bool()
    weights = torch.zeros_like(log_probs)
    ratios = (log_probs.detach()[shown].double() - sampler_log_probs.detach()[shown].double()).exp()
    weights[shown] = torch.where(ratios > cap, cap, ratios).to(log_probs.dtype)
    return weights.detach()


@VARIANTS.variant("importance_weights", "a loop over numbers")
def number_loop(log_probs: Tensor, sampler_log_probs: Tensor, mask: Tensor, cap: float = 2.0) -> Tensor:
    rows = zip(log_probs.tolist(), sampler_log_probs.tolist(), mask.tolist(), strict=True)
    weights = [[min(math.exp(x - q), cap) if m else 0.0 for x, q, m in zip(*row, strict=True)] for row in rows]
    return torch.tensor(weights, dtype=log_probs.dtype).reshape(log_probs.shape)
