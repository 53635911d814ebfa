"""The losses of both lectures, to be minimised: weighted log-probs, summed over tokens, averaged over sequences.

[B, T] arguments belong to B sequences of T predicted tokens, [B] arguments hold one number per sequence. The gradient
flows into the first argument only. What stands at a masked place reaches nothing, and a batch without masked-in tokens
has loss 0 and gradient 0. Every function raises ValueError for a shape that does not fit, an integer dtype where
numbers are meant to be real, a mask that is not 0/1, and what its own docstring adds.
"""

import torch
from torch import Tensor

from rlassay_impl.advantage import grpo_advantages
from rlassay_impl.contract import check_floats, check_mask, frozen, keep, require, working
from rlassay_impl.kl import kl_k3

MODES = ("sequence_sum", "sequence_mean", "token_mean", "constant")


def aggregate(values: Tensor, mask: Tensor, mode: str, constant: float | None = None) -> Tensor:
    """One number from the masked-in values x, of which sequence b has n_b.

        sequence_sum   1/B Σ_b Σ_t x          sequence_mean   1/B Σ_b 1/n_b Σ_t x
        constant       1/B Σ_b 1/C Σ_t x      token_mean      Σ x / Σ n_b

    Source: RL Basics §9 and §10 (B9.5, B10.4, B10.5). A sequence without masked-in tokens counts in B and adds 0.
    Shapes: values, mask [B, T] → scalar.
    Raises: ValueError for an unknown mode, and in the mode `constant` for a C that is missing or ≤ 0.
    """
    check_floats("values", values, B=None, T=None)
    chosen = check_mask(mask, B=values.shape[0], T=values.shape[1])
    require(mode in MODES, "mode", repr(mode), f"one of {', '.join(MODES)}")
    divisor = _positive("constant", constant) if mode == "constant" else 1.0

    sums, counts = keep(values, chosen).sum(dim=1), chosen.sum(dim=1)
    if mode == "token_mean":
        return (sums.sum() / counts.sum().clamp(min=1)).to(values.dtype)
    if mode == "sequence_mean":
        sums = sums / counts.clamp(min=1)
    return (sums.sum() / max(len(sums), 1) / divisor).to(values.dtype)


def policy_gradient_loss(log_probs: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """The one form of them all: each token's log-prob times its weight.

        L = −1/B Σ_b Σ_t m·w·log π

    Source: RL Basics §11 (B11.1).
    Shapes: log_probs, mask, weights [B, T] → scalar.
    """
    check_floats("log_probs", log_probs, B=None, T=None)
    n_sequences, length = log_probs.shape
    check_floats("weights", weights, B=n_sequences, T=length)
    chosen = check_mask(mask, B=n_sequences, T=length)

    terms = -keep(weights.detach(), chosen) * keep(log_probs, chosen)
    return aggregate(terms, chosen, "sequence_sum").to(log_probs.dtype)


def sft_loss(log_probs: Tensor, mask: Tensor) -> Tensor:
    """Supervised fine-tuning: weight 1, imitate every sequence.

        L = −1/B Σ_b Σ_t m·log π

    Source: RL Basics §3 (B3.1).
    Shapes: log_probs, mask [B, T] → scalar.
    """
    return policy_gradient_loss(log_probs, mask, torch.ones_like(log_probs))


def rest_loss(log_probs: Tensor, mask: Tensor, rewards: Tensor) -> Tensor:
    """ReST: weight 1[R = 1], imitate the successes. The rejected stay in B, so that binary rewards give REINFORCE.

        L = −1/B Σ_{b: R_b = 1} Σ_t m·log π

    Source: RL Basics §5, §7 (B5.1, B5.2, B7.1); Gulcehre et al., Reinforced Self-Training (2023).
    Shapes: log_probs, mask [B, T], rewards [B] → scalar.
    """
    successes = _per_token("rewards", rewards, log_probs) == 1
    return policy_gradient_loss(log_probs, mask, working(successes))


def reinforce_loss(log_probs: Tensor, mask: Tensor, rewards: Tensor, baselines: Tensor) -> Tensor:
    """REINFORCE: weight R − b.

        L = −1/B Σ_b (R_b − b_b) Σ_t m·log π

    Source: RL Basics §6, §8 (B6.4, B7.4); Williams (1992).
    Shapes: log_probs, mask [B, T], rewards, baselines [B] → scalar.
    """
    weights = _per_token("rewards", rewards, log_probs) - _per_token("baselines", baselines, log_probs)
    return policy_gradient_loss(log_probs, mask, weights)


def grpo_loss(log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    """GRPO without ratio, clipping and KL: weight Â, no normalisation by length.

        L = −1/B Σ_b Â_b Σ_t m·log π

    Source: RL Basics §9 (B9.5).
    Shapes: log_probs, mask [B, T], advantages [B] → scalar.
    """
    return policy_gradient_loss(log_probs, mask, _per_token("advantages", advantages, log_probs))


def dr_grpo_loss(log_probs: Tensor, mask: Tensor, advantages: Tensor, constant: float) -> Tensor:
    """Dr. GRPO: weight Â/C, with one constant C (the budget of generated tokens) for sequences of any length.

        L = −1/B Σ_b 1/C Σ_t m·Â_b·log π

    Source: RL Basics §10 (B10.5); Liu et al., Understanding R1-Zero-Like Training (2025).
    Shapes: log_probs, mask [B, T], advantages [B], constant in tokens → scalar.
    Raises: ValueError for a constant ≤ 0.
    """
    weights = _per_token("advantages", advantages, log_probs) / _positive("constant", constant)
    return policy_gradient_loss(log_probs, mask, weights)


def microbatch_loss(
    log_probs: Tensor, mask: Tensor, advantages: Tensor, total_sequences: int, total_tokens: int
) -> Tensor:
    """One part's share of the full batch's `grpo_loss`: the losses, and the gradients, of the parts add up to it.

        L = −1/total_sequences Σ_{b in part} Â_b Σ_t m·log π

    Source: RL Basics §9 (B9.5). `total_tokens` would be the divisor of an aggregation by token mean; here it is not.
    Shapes: log_probs, mask [b, T], advantages [b] → scalar.
    Raises: ValueError for total_sequences ≤ 0.
    """
    share = len(log_probs) / _positive("total_sequences", total_sequences)
    return policy_gradient_loss(log_probs, mask, share * _per_token("advantages", advantages, log_probs))


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """The clipped surrogate of PPO and GRPO: nothing is gained by moving the ratio further than the bounds.

        L = −1/B Σ_b Σ_t m·min(ρ·Â_b, clip(ρ, 1 − clip_low, 1 + clip_high)·Â_b),   ρ = π / π_old

    Source: RL in Practice §5, §6 (P5.3, P6.1); Schulman et al., Proximal Policy Optimization Algorithms (2017), eq. 7.
    π_old is a constant even when it comes with a graph: at ρ = 1 the gradient is that of `grpo_loss`, not 0 (P6.2).
    Shapes: log_probs, old_log_probs, mask [B, T], advantages [B] → scalar.
    """
    terms = _clipped_terms(log_probs, old_log_probs, mask, advantages, clip_low, clip_high)
    return aggregate(terms, mask, "sequence_sum").to(log_probs.dtype)


def grpo_objective(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    rewards: Tensor,
    beta: float,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """All of GRPO: the clipped surrogate with the groups' advantages, and β times k3 towards the reference policy.

        L = clipped_loss(Â) + β · 1/B Σ_b Σ_t m·k3,   Â = grpo_advantages(R)

    Source: RL in Practice §5, §7 (P5.3, P7.2); Shao et al., DeepSeekMath (2024), eq. 3 and 4.
    k3 has no importance weight; its gradient flows into log_probs.
    Shapes: log_probs, old_log_probs, ref_log_probs, mask [B, T], rewards [N, G] with B = N·G, row-major → scalar.
    Raises: ValueError for G = 0 too.
    """
    check_floats("log_probs", log_probs, B=None, T=None)
    n_sequences, length = log_probs.shape
    check_floats("ref_log_probs", ref_log_probs, B=n_sequences, T=length)
    check_floats("rewards", rewards, N=None, G=None)
    require(rewards.numel() == n_sequences, "rewards.shape", list(rewards.shape), f"[N, G] with N·G = {n_sequences}")

    advantages = grpo_advantages(working(rewards)).reshape(-1)
    surrogate = _clipped_terms(log_probs, old_log_probs, mask, advantages, clip_low, clip_high)
    chosen = mask == 1
    divergence = kl_k3(keep(log_probs, chosen), keep(ref_log_probs, chosen))
    return aggregate(surrogate + beta * divergence, chosen, "sequence_sum").to(log_probs.dtype)


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float | None = None) -> Tensor:
    """Squared error of a value model; with `clip`, the worse of it and that of a step of at most ±clip from V_old.

        L = 1/B Σ_b Σ_t m·½(V − R)²
        L = 1/B Σ_b Σ_t m·½·max((V − R)², (V_old + clamp(V − V_old, ±clip) − R)²)

    Source: Engstrom et al., Implementation Matters in Deep Policy Gradients (2020), §3.
    Shapes: values, old_values, returns, mask [B, T] → scalar.
    """
    check_floats("values", values, B=None, T=None)
    n_sequences, length = values.shape
    check_floats("old_values", old_values, B=n_sequences, T=length)
    check_floats("returns", returns, B=n_sequences, T=length)
    chosen = check_mask(mask, B=n_sequences, T=length)

    new, old = keep(values, chosen), keep(old_values.detach(), chosen)
    target = keep(returns.detach(), chosen)
    errors = (new - target).square()
    if clip is not None:
        near = old + (new - old).clamp(-clip, clip)
        errors = torch.maximum(errors, (near - target).square())
    return aggregate(0.5 * errors, chosen, "sequence_sum").to(values.dtype)


def _clipped_terms(
    log_probs: Tensor, old_log_probs: Tensor, mask: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    weights = _per_token("advantages", advantages, log_probs)
    n_sequences, length = log_probs.shape
    check_floats("old_log_probs", old_log_probs, B=n_sequences, T=length)
    chosen = check_mask(mask, B=n_sequences, T=length)

    weights = keep(weights, chosen)
    ratio = torch.exp(keep(log_probs, chosen) - keep(old_log_probs.detach(), chosen))
    return -torch.minimum(ratio * weights, ratio.clamp(1 - clip_low, 1 + clip_high) * weights)


def _per_token(name: str, per_sequence: Tensor, log_probs: Tensor) -> Tensor:
    """A constant per sequence, checked and repeated for each of its tokens."""
    check_floats("log_probs", log_probs, B=None, T=None)
    check_floats(name, per_sequence, B=log_probs.shape[0])
    return frozen(per_sequence)[:, None].expand(log_probs.shape)


def _positive(name: str, number: float | None) -> float:
    if number is None or not number > 0:
        raise ValueError(f"{name}={number}, but should be > 0")
    return number
