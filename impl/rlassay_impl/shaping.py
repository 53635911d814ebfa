"""What is done to rewards and advantages before they are learnt from: whitening, a KL penalty, a penalty for length."""

import torch
from torch import Tensor

from rlassay_impl.contract import check_floats, check_integers, check_mask, frozen, keep, require


def whiten(values: Tensor, mask: Tensor) -> Tensor:
    """Values in standard deviations from the mean, both those of all masked-in entries of the batch together.

        out = (x − μ) / σ,   μ = (1/n) Σ m·x,   σ² = (1/n) Σ m·(x − μ)²,   n = Σ m

    Source: Andrychowicz et al., What Matters in On-Policy Reinforcement Learning? (2021). σ is the population value,
    without ε: masked-in entries without contrast give exactly 0.
    Shapes: values, mask [B, T] → [B, T], constant, 0 where the mask is 0.
    Raises: ValueError for other shapes, integer values, a mask that is not 0/1.
    """
    check_floats("values", values, B=None, T=None)
    chosen = check_mask(mask, B=values.shape[0], T=values.shape[1])

    x = frozen(values)
    out = torch.zeros_like(x)
    entries = x[chosen]
    if entries.numel() > 0 and entries.max() > entries.min():
        unit = (entries - entries.min()) / (entries.max() - entries.min())  # in 0..1, where squares cannot overflow
        centered = unit - unit.mean()
        out[chosen] = centered / centered.square().mean().sqrt()
    return out.to(values.dtype)


def kl_rewards(rewards: Tensor, log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, beta: float) -> Tensor:
    """A penalty of β·k1 at every token that was sampled, and the sequence's reward on top at the last of them.

        out[b, t] = −β·(log π − log π_ref) + 1[t is the row's last masked-in place] · rewards[b]

    Source: Ouyang et al., Training Language Models to Follow Instructions with Human Feedback (2022), eq. 2.
    Shapes: rewards [B], log_probs, ref_log_probs, mask [B, T] → [B, T], constant, 0 where the mask is 0.
    Raises: ValueError for other shapes, integer rewards, a mask that is not 0/1, beta < 0 or NaN.
    """
    check_floats("log_probs", log_probs, B=None, T=None)
    n_sequences, length = log_probs.shape
    check_floats("rewards", rewards, B=n_sequences)
    check_floats("ref_log_probs", ref_log_probs, B=n_sequences, T=length)
    chosen = check_mask(mask, B=n_sequences, T=length)
    require(beta >= 0, "beta", beta, ">= 0")

    penalty = -beta * keep(frozen(log_probs) - frozen(ref_log_probs), chosen)
    left = chosen.flip(1).cumsum(dim=1).flip(1)  # masked-in tokens from here on
    return (penalty + keep(frozen(rewards)[:, None], chosen & (left == 1))).to(rewards.dtype)


def overlong_penalty(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    """Soft punishment of long answers: from 0 down to −1 over the last `buffer` tokens before the largest length.

        out = ((max_length − buffer) − |y|) / buffer, between −1 and 0

    Source: Yu et al., DAPO: An Open-Source LLM Reinforcement Learning System at Scale (2025), eq. 13.
    Shapes: lengths [B] → float32 [B].
    Raises: ValueError for another shape, lengths that are no integers or negative, buffer outside 1..max_length.
    """
    check_integers("lengths", lengths, B=None)
    require(not bool((lengths < 0).any()), "lengths", lengths.tolist(), ">= 0")
    require(1 <= buffer <= max_length, "buffer", buffer, f"in 1..max_length, that is 1..{max_length}")

    room = (max_length - buffer) - lengths.long()
    return (room.to(torch.float32) / buffer).clamp(min=-1.0, max=0.0)
