"""Right ways to write aggregation and the weighted losses, under several conventions."""

from __future__ import annotations

import torch
from torch import Tensor

from rlassay.variants import EMPTY, MULTIPLIED, Variants

VARIANTS = Variants()


@VARIANTS.variant("sft_loss", "masked_fill, sum over tokens, mean over rows")
def masked_fill(log_probs: Tensor, mask: Tensor) -> Tensor:
    return -log_probs.masked_fill(mask == 0, 0.0).sum(dim=-1).mean()


@VARIANTS.variant("sft_loss", "the selected log-probs, summed and divided", seen="CV-30")
def selection(log_probs: Tensor, mask: Tensor) -> Tensor:
    return -log_probs[mask.bool()].sum() / log_probs.shape[0]


@VARIANTS.variant("sft_loss", "loops over rows")
def loops(log_probs: Tensor, mask: Tensor) -> Tensor:
    loss = torch.zeros((), dtype=log_probs.dtype)
    for row, shown in zip(log_probs, mask, strict=True):
        loss = loss + row[shown != 0].neg().sum()
    return loss / len(log_probs)


@VARIANTS.variant("sft_loss", "float64 inside, cast back", lapses=(MULTIPLIED,))
def in_double(log_probs: Tensor, mask: Tensor) -> Tensor:
    return (-(log_probs.double() * mask.double()).sum(1).mean()).to(log_probs.dtype)


@VARIANTS.variant("sft_loss", "the batch packed into one row", seen="CV-41", lapses=(MULTIPLIED,))
def packed(log_probs: Tensor, mask: Tensor) -> Tensor:
    flat, shown = log_probs.reshape(1, -1), mask.reshape(1, -1).to(log_probs.dtype)
    return -(flat * shown).sum() / log_probs.size(0)


@VARIANTS.variant(
    "sft_loss", "an average over the tokens of the batch", seen="CV-27", aggregation="token_mean", lapses=(MULTIPLIED,)
)
def token_mean(log_probs: Tensor, mask: Tensor) -> Tensor:
    m = mask.to(log_probs.dtype)
    return -(log_probs * m).sum() / m.sum().clamp(min=1)


@VARIANTS.variant(
    "sft_loss", "the mean of the selected log-probs", seen="CV-30", aggregation="token_mean", lapses=(EMPTY,)
)
def selected_mean(log_probs: Tensor, mask: Tensor) -> Tensor:
    return -log_probs[mask.bool()].mean()


@VARIANTS.variant(
    "sft_loss", "the mean of the rows' means", seen="CV-27", aggregation="sequence_mean", lapses=(MULTIPLIED,)
)
def sequence_mean(log_probs: Tensor, mask: Tensor) -> Tensor:
    m = mask.to(log_probs.dtype)
    return -((log_probs * m).sum(1) / m.sum(1).clamp(min=1.0)).mean()


@VARIANTS.variant(
    "sft_loss",
    "rows without a token left out",
    seen="CV-03",
    aggregation="sequence_mean",
    empty_rows="dropped",
    lapses=(EMPTY,),
)
def rows_dropped(log_probs: Tensor, mask: Tensor) -> Tensor:
    means = [row[shown.bool()].mean() for row, shown in zip(log_probs, mask, strict=True) if shown.any()]
    return -torch.stack(means).mean()


@VARIANTS.variant(
    "sft_loss",
    "token sums over a constant",
    seen="CV-27",
    aggregation="constant",
    aggregation_constant=1024.0,
    lapses=(MULTIPLIED,),
)
def over_constant(log_probs: Tensor, mask: Tensor) -> Tensor:
    return -(log_probs * mask).sum(-1).div(1024).mean().to(log_probs.dtype)


@VARIANTS.variant("rest_loss", "the kept rows, summed and divided by all")
def kept(log_probs: Tensor, mask: Tensor, rewards: Tensor) -> Tensor:
    keep = rewards == 1
    return -log_probs[keep].masked_fill(mask[keep] == 0, 0).sum() / len(rewards)


@VARIANTS.variant("rest_loss", "an indicator as weight", aggregation="token_mean", lapses=(EMPTY, MULTIPLIED))
def indicator(log_probs: Tensor, mask: Tensor, rewards: Tensor) -> Tensor:
    weights = rewards.eq(1).to(log_probs.dtype).unsqueeze(1) * mask
    return (-(log_probs * weights).sum() / mask.sum()).to(log_probs.dtype)


@VARIANTS.variant("reinforce_loss", "row sums times the surplus", lapses=(MULTIPLIED,))
def row_sums(log_probs: Tensor, mask: Tensor, rewards: Tensor, baselines: Tensor) -> Tensor:
    trajectory_log_probs = (log_probs * mask.to(log_probs.dtype)).sum(dim=1)
    return -((rewards - baselines).detach() * trajectory_log_probs).mean()


@VARIANTS.variant("reinforce_loss", "an einsum", lapses=(MULTIPLIED,))
def einsum(log_probs: Tensor, mask: Tensor, rewards: Tensor, baselines: Tensor) -> Tensor:
    surplus = (rewards - baselines).detach()
    return -torch.einsum("bt,bt,b->", log_probs, mask.to(log_probs.dtype), surplus) / len(rewards)


@VARIANTS.variant("policy_gradient_loss", "a sum of selected products")
def products(log_probs: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    chosen = mask.bool()
    return -(weights.detach()[chosen] * log_probs[chosen]).sum() / log_probs.shape[0]


@VARIANTS.variant(
    "policy_gradient_loss", "a weighted token mean", seen="CV-27", aggregation="token_mean", lapses=(MULTIPLIED,)
)
def weighted_mean(log_probs: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    m = mask.to(log_probs.dtype)
    return -(weights.detach() * log_probs * m).sum() / m.sum().clamp(min=1)


@VARIANTS.variant("grpo_loss", "advantages unsqueezed", lapses=(MULTIPLIED,))
def unsqueezed(log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    per_token = -advantages.detach().unsqueeze(-1) * log_probs
    return (per_token * mask).sum(-1).mean().to(log_probs.dtype)


@VARIANTS.variant("grpo_loss", "a loop over micro-batches of one row", seen="CV-32")
def accumulated(log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    rows = zip(log_probs, mask, advantages.detach(), strict=True)
    return -torch.stack([(a * row[m.bool()]).sum() for row, m, a in rows]).sum() / len(advantages)


@VARIANTS.variant(
    "grpo_loss", "the ratio trick exp(lp − sg(lp)), right on fresh samples", seen="CV-09", lapses=(MULTIPLIED,)
)
def fresh_ratio(log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    a, m = advantages.detach()[:, None], mask.to(log_probs.dtype)
    ratio = torch.exp(log_probs - log_probs.detach())
    surrogate = ratio * a - a + (log_probs * a).detach()
    return -(surrogate * m).sum() / len(log_probs)


@VARIANTS.variant(
    "grpo_loss", "the mean of the rows' means", seen="CV-27", aggregation="sequence_mean", lapses=(MULTIPLIED,)
)
def rows_means(log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    m = mask.to(log_probs.dtype)
    return -(advantages.detach() * (log_probs * m).sum(1) / m.sum(1).clamp(min=1)).mean()


@VARIANTS.variant("dr_grpo_loss", "a masked sum over B·C", seen="CV-28")
def over_b_times_c(log_probs: Tensor, mask: Tensor, advantages: Tensor, constant: float) -> Tensor:
    total = (log_probs * advantages.detach()[:, None]).masked_fill(~mask.bool(), 0).sum()
    return -total / (len(advantages) * constant)


@VARIANTS.variant("dr_grpo_loss", "rows without a token left out", empty_rows="dropped", lapses=(EMPTY, MULTIPLIED))
def dr_rows_dropped(log_probs: Tensor, mask: Tensor, advantages: Tensor, constant: float) -> Tensor:
    filled = mask.bool().any(1)
    sums = (log_probs * mask).sum(1)[filled] * advantages.detach()[filled]
    return -(sums / constant).mean().to(log_probs.dtype)


@VARIANTS.variant("microbatch_loss", "the part's mean times its share", seen="CV-33", lapses=(MULTIPLIED,))
def times_share(log_probs: Tensor, mask: Tensor, advantages: Tensor, total_sequences: int, total_tokens: int) -> Tensor:
    mean = -(advantages.detach()[:, None] * log_probs * mask).sum(1).mean()
    return (mean * (len(log_probs) / total_sequences)).to(log_probs.dtype)


@VARIANTS.variant(
    "microbatch_loss",
    "the token mean weighted by its share of tokens",
    seen="CV-32",
    aggregation="token_mean",
    lapses=(MULTIPLIED,),
)
def token_share(log_probs: Tensor, mask: Tensor, advantages: Tensor, total_sequences: int, total_tokens: int) -> Tensor:
    m = mask.to(log_probs.dtype)
    mean = -(advantages.detach()[:, None] * log_probs * m).sum() / m.sum().clamp(min=1)
    return mean * (mask.sum().item() / max(total_tokens, 1))


def _masked_mean(values: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    m = mask.to(values.dtype)
    return (values * m).sum(dim) / m.sum(dim).clamp(min=1)


@VARIANTS.variant("aggregate", "a helper for masked means", lapses=(MULTIPLIED,))
def helper(values: Tensor, mask: Tensor, mode: str, constant: float | None = None) -> Tensor:
    if mode == "token_mean":
        return _masked_mean(values, mask)
    if mode == "sequence_mean":
        return _masked_mean(values, mask, 1).mean()
    scale = constant if mode == "constant" and constant else 1.0
    return (values * mask).sum(1).mean().div(scale).to(values.dtype)


@VARIANTS.variant("aggregate", "float32 inside, whatever comes in", lapses=(MULTIPLIED,))
def in_single(values: Tensor, mask: Tensor, mode: str, constant: float | None = None) -> Tensor:
    return helper(values.float(), mask, mode, constant).to(values.dtype)


@VARIANTS.variant("aggregate", "weights for every token", lapses=(MULTIPLIED,))
def weights(values: Tensor, mask: Tensor, mode: str, constant: float | None = None) -> Tensor:
    shown = mask.bool()
    n = shown.sum(1, keepdim=True).double()
    per_token = {
        "sequence_sum": shown / len(values),
        "constant": shown / (len(values) * (constant or 1)),
        "sequence_mean": shown / (len(values) * n.clamp(min=1)),
        "token_mean": shown / n.sum().clamp(min=1),
    }[mode]
    return (values.double() * per_token.double()).sum().to(values.dtype)
