"""Right ways to write whitening, rewards with a KL penalty, and the soft punishment of length."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rlassay.variants import EPSILON, GRAPHED, MULTIPLIED, ROUNDED, Variants

VARIANTS = Variants()


@VARIANTS.variant("whiten", "sums with the mask as factor", lapses=(MULTIPLIED, ROUNDED, GRAPHED))
def masked_sums(values: Tensor, mask: Tensor) -> Tensor:
    x, m = values.to(torch.promote_types(values.dtype, torch.float32)), mask.to(torch.float32)
    count = m.sum().clamp(min=1)
    mean = (x * m).sum() / count
    deviation = (((x - mean) ** 2 * m).sum() / count).sqrt()
    whitened = (x - mean) * m / deviation if deviation > 0 else x * 0
    return whitened.to(values.dtype)


@VARIANTS.variant("whiten", "torch.std of the entries that a boolean index picks")
def indexed(values: Tensor, mask: Tensor) -> Tensor:
    out = torch.zeros_like(values)
    shown = mask.bool()
    picked = values.detach().float() if values.dtype == torch.bfloat16 else values.detach()
    picked = picked[shown]
    if picked.numel() and not bool((picked == picked[0]).all()):
        out[shown] = ((picked - picked.mean()) / picked.std(correction=0)).to(values.dtype)
    return out


@VARIANTS.variant("whiten", "NaN at masked-out places, and means that skip it", lapses=(ROUNDED, GRAPHED))
def nan_means(values: Tensor, mask: Tensor) -> Tensor:
    x = values.float() if values.dtype == torch.bfloat16 else values
    seen = x.masked_fill(mask == 0, torch.nan)
    centred = seen - seen.nanmean()
    deviation = centred.square().nanmean().sqrt()
    return (centred / deviation).nan_to_num(nan=0.0).to(values.dtype)


@VARIANTS.variant("whiten", "masked arrays of numpy in float64")
def masked_array(values: Tensor, mask: Tensor) -> Tensor:
    x = np.ma.array(values.detach().double().numpy(), mask=~mask.bool().numpy())
    if x.count() == 0 or x.max() == x.min():
        return torch.zeros_like(values)
    return torch.from_numpy(((x - x.mean()) / x.std()).filled(0.0)).to(values.dtype)


@VARIANTS.variant("whiten", "the statistics module on a list")
def on_a_list(values: Tensor, mask: Tensor) -> Tensor:
    seen = [x for row, shown in zip(values.tolist(), mask.tolist(), strict=True) for x, m in zip(row, shown) if m]
    mean, deviation = (statistics.mean(seen), statistics.pstdev(seen)) if seen else (0.0, 0.0)
    rows = [
        [(x - mean) / deviation if m and deviation else 0.0 for x, m in zip(row, shown, strict=True)]
        for row, shown in zip(values.tolist(), mask.tolist(), strict=True)
    ]
    return torch.tensor(rows, dtype=values.dtype)


@VARIANTS.variant("whiten", "1e-8 beside σ, which rounding hides", lapses=(MULTIPLIED, ROUNDED, GRAPHED, EPSILON))
def plus_1e_8(values: Tensor, mask: Tensor) -> Tensor:
    x, m = values.float() if values.dtype == torch.bfloat16 else values, mask.float()
    mean = (x * m).sum() / m.sum().clamp(min=1)
    variance = ((x - mean).square() * m).sum() / m.sum().clamp(min=1)
    return ((x - mean) / (variance.sqrt() + 1e-8) * m).to(values.dtype)


def _of_variance(scale: Callable[[Tensor], Tensor], correction: int) -> Callable[[Tensor, Tensor], Tensor]:
    def whiten(values: Tensor, mask: Tensor) -> Tensor:
        shown = mask != 0
        x = values.detach().to(torch.promote_types(values.dtype, torch.float32))
        count = shown.sum()
        centred = torch.where(shown, x - x[shown].sum() / count.clamp(min=1), 0.0)
        variance = centred.square().sum() / (count - correction).clamp(min=1)
        return (centred * scale(variance)).to(values.dtype)

    return whiten


VARIANTS.add(
    "whiten-rsqrt",
    "the sample variance with 1e-8 under an rsqrt",
    {"whiten": _of_variance(lambda variance: (variance + 1e-8).rsqrt(), 1)},
    lapses=(ROUNDED,),
    std_ddof=1,
    std_eps=1e-8,
    std_eps_place="inside",
)
VARIANTS.add(
    "whiten-floor",
    "a standard deviation of at least 1e-3",
    {"whiten": _of_variance(lambda variance: 1 / variance.sqrt().clamp(min=1e-3), 0)},
    lapses=(ROUNDED,),
    std_eps=1e-3,
    std_eps_place="floor",
)


@VARIANTS.variant("kl_rewards", "an index of the last 1 of each row", lapses=(MULTIPLIED, GRAPHED))
def last_index(rewards: Tensor, log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, beta: float) -> Tensor:
    m = mask.to(rewards.dtype)
    out = -beta * (log_probs - ref_log_probs) * m
    places = torch.arange(mask.shape[1]).expand(mask.shape)
    last = torch.where(m > 0, places, -1).amax(dim=1)
    has_token = last >= 0
    out[torch.arange(len(out))[has_token], last[has_token]] += rewards[has_token]
    return out.to(rewards.dtype)


@VARIANTS.variant("kl_rewards", "a one-hot of the place where the running count reaches the total", lapses=(GRAPHED,))
def running_count(rewards: Tensor, log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, beta: float) -> Tensor:
    shown = mask.bool()
    count = shown.cumsum(dim=1)
    terminal = shown & (count == count[:, -1:])
    penalty = (beta * (ref_log_probs - log_probs)).masked_fill(~shown, 0.0)
    return penalty + terminal * rewards.unsqueeze(1)


@VARIANTS.variant("kl_rewards", "loops over rows and tokens")
def loops(rewards: Tensor, log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, beta: float) -> Tensor:
    rows = []
    for b, shown in enumerate(mask.tolist()):
        row = [0.0] * len(shown)
        last = None
        for t, m in enumerate(shown):
            if m:
                row[t] = -beta * (log_probs[b, t].item() - ref_log_probs[b, t].item())
                last = t
        if last is not None:
            row[last] += rewards[b].item()
        rows.append(row)
    return torch.tensor(rows, dtype=rewards.dtype)


@VARIANTS.variant("kl_rewards", "flip and argmax, with a guard for rows without tokens", lapses=(MULTIPLIED, GRAPHED))
def flipped(rewards: Tensor, log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, beta: float) -> Tensor:
    m = mask.to(torch.int64)
    last = mask.shape[1] - 1 - m.flip(1).argmax(dim=1, keepdim=True)
    terminal = torch.zeros_like(log_probs).scatter(1, last, rewards[:, None].to(log_probs.dtype))
    return ((terminal - beta * log_probs + beta * ref_log_probs) * m).to(rewards.dtype)


@VARIANTS.variant("kl_rewards", "rows of numpy without their masked-out tokens")
def compressed(rewards: Tensor, log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, beta: float) -> Tensor:
    out = np.zeros(tuple(mask.shape))
    new, ref, scores = (tensor.detach().double().numpy() for tensor in (log_probs, ref_log_probs, rewards))
    for b, shown in enumerate(mask.bool().numpy()):
        tokens = -beta * (new[b][shown] - ref[b][shown])
        tokens[-1:] += scores[b]
        out[b][shown] = tokens
    return torch.from_numpy(out).to(rewards.dtype)


@VARIANTS.variant("overlong_penalty", "the excess over the buffer, clamped")
def clamped(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    return -torch.clamp((lengths - (max_length - buffer)) / buffer, 0.0, 1.0)


@VARIANTS.variant("overlong_penalty", "the room that is left, clamped, minus 1")
def room_left(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    return ((max_length - lengths).float() / buffer).clamp(0, 1) - 1


@VARIANTS.variant("overlong_penalty", "three cases with torch.where")
def three_cases(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    expected = max_length - buffer
    slope = (expected - lengths).to(torch.float32) / buffer
    return torch.where(lengths <= expected, 0.0, torch.where(lengths <= max_length, slope, -1.0))


@VARIANTS.variant("overlong_penalty", "plain Python, one answer at a time")
def one_at_a_time(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    penalties = []
    for length in lengths.tolist():
        exceeded = length - (max_length - buffer)
        penalties.append(max(min(-exceeded / buffer, 0.0), -1.0))
    return torch.tensor(penalties, dtype=torch.float32)


@VARIANTS.variant("overlong_penalty", "numpy's interpolation between two points")
def interpolated(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    penalties = np.interp(lengths.numpy(), [max_length - buffer, max_length], [0.0, -1.0])
    return torch.from_numpy(penalties.astype(np.float32))


@VARIANTS.variant("overlong_penalty", "a difference of two quotients in float32")
def two_quotients(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    fill = lengths.float() / buffer
    return (max_length / buffer - 1 - fill).clamp(-1.0, 0.0)
