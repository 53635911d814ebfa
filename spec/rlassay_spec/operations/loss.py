"""Scalar losses, to be minimised: a weight times the log-probability of every sampled token, and how they are averaged.

Each loss sums a per-token quantity x over the places where the mask is 1, with the weights of the convention
`aggregation`; n_b is the number of masked-in tokens of row b:

    sequence_sum   (1/B) Σ_b Σ_t x           sequence_mean  (1/B) Σ_b (1/n_b) Σ_t x
    token_mean     Σ x / Σ m                 constant       (1/B) Σ_b (1/C) Σ_t x

Under `empty_rows` = dropped, B counts the rows with at least one masked-in token only (no effect on token_mean). What
stands at a masked place, NaN and inf included, reaches neither the value nor any gradient, and the gradient there is
exactly 0. A row, or a batch, without a masked-in token gives 0 with zero gradient, still part of the graph (under
`empty_mean` = free a mean over no token may be NaN).
"""

from rlassay_spec.shapes import (
    Advantages,
    Baselines,
    GroupRewards,
    LogProbs,
    Mask,
    Scalar,
    SequenceRewards,
    Values,
    Weights,
)


def aggregate(values: Values, mask: Mask, mode: str, constant: float | None = None) -> Scalar:
    """One number from per-token values, by one of the four modes.

    out = (1/B) Σ_b Σ_t m x  (sequence_sum),  (1/B) Σ_b Σ_t m x / n_b  (sequence_mean),
          Σ m x / Σ m  (token_mean),  (1/B) Σ_b Σ_t m x / constant  (constant)

    Source: rl-basics §9 and §10, with and without length normalisation (claims B9.5, B10.4, B10.5).

    Special cases: `mode` decides, not the convention `aggregation`; `empty_rows` says which rows B counts. An empty
    row, or a batch without a masked-in token, gives 0 with zero gradient. `constant` is ignored by the other modes.

    Shapes: values, mask [B, T] → scalar. The gradient flows into values.

    Raises:
        ValueError: values is not [B, T]; mask has another shape or holds something else than 0 and 1; mode is unknown;
            constant is missing or ≤ 0 in mode "constant".
    """
    raise NotImplementedError


def sft_loss(log_probs: LogProbs, mask: Mask) -> Scalar:
    """Negative log-likelihood of the demonstrated tokens.

    L = aggregate(−log π)

    Source: rl-basics §3, L_SFT (claim B3.1).

    Special cases: a batch without a masked-in token gives 0 with zero gradient.

    Shapes and units: log_probs, mask [B, T] → scalar, nats. The gradient flows into log_probs.

    Raises:
        ValueError: log_probs is not [B, T]; mask has another shape or holds something else than 0 and 1.
    """
    raise NotImplementedError


def rest_loss(log_probs: LogProbs, mask: Mask, rewards: SequenceRewards) -> Scalar:
    """SFT on the sequences whose reward is exactly 1.

    L = aggregate(−1[R = 1] · log π)

    Source: rl-basics §5, L_ReST (claims B5.1, B5.2, B7.1).

    Special cases: rejected sequences add nothing but stay in every denominator, so that the loss equals
    `reinforce_loss` with b = 0 when rewards are 0 or 1. No success: 0 with zero gradient. A reward near 1 is not 1.

    Shapes and units: log_probs, mask [B, T], rewards [B] → scalar, nats. The gradient flows into log_probs.

    Raises:
        ValueError: log_probs is not [B, T]; mask has another shape or holds something else than 0 and 1; rewards is not
            [B] or not of a floating dtype.
    """
    raise NotImplementedError


def reinforce_loss(log_probs: LogProbs, mask: Mask, rewards: SequenceRewards, baselines: Baselines) -> Scalar:
    """Log-likelihood of what was sampled, weighted by reward minus baseline.

    L = aggregate(−(R − b) · log π)

    Source: rl-basics §6 and §8 (claims B6.4, B7.1, B7.2, B7.4, B8.9).

    Special cases: b = 0 and R = 1 is `sft_loss`; R = b gives zero gradient. R and b are constants.

    Shapes: log_probs, mask [B, T], rewards, baselines [B] → scalar. The gradient flows into log_probs.

    Raises:
        ValueError: log_probs is not [B, T]; mask has another shape or holds something else than 0 and 1; rewards is not
            [B] or not of a floating dtype; baselines is not [B].
    """
    raise NotImplementedError


def policy_gradient_loss(log_probs: LogProbs, mask: Mask, weights: Weights) -> Scalar:
    """Log-likelihood of what was sampled, with a weight for every token: the form that all the others share.

    L = aggregate(−w · log π)

    Source: rl-basics §11, one weight tells the methods apart (claim B11.1).

    Special cases: w = 1 is `sft_loss`, w = 1[R = 1] `rest_loss`, w = R − b `reinforce_loss`, w = Â `grpo_loss`. The
    weights are constants, and what stands at a masked place of them reaches nothing.

    Shapes: log_probs, mask, weights [B, T] → scalar. The gradient flows into log_probs.

    Raises:
        ValueError: log_probs is not [B, T]; mask has another shape or holds something else than 0 and 1; weights is not
            [B, T].
    """
    raise NotImplementedError


def grpo_loss(log_probs: LogProbs, mask: Mask, advantages: Advantages) -> Scalar:
    """The simplified GRPO objective: one advantage per sequence, no ratio, no clip, no KL.

    L = aggregate(−Â · log π)

    Source: rl-basics §9, L_GRPO (claims B9.5, B8.13).

    Special cases: Â = 0 gives zero gradient. Advantages are constants even when they carry a graph (claim P5.2).

    Shapes: log_probs, mask [B, T], advantages [B] → scalar. The gradient flows into log_probs.

    Raises:
        ValueError: log_probs is not [B, T]; mask has another shape or holds something else than 0 and 1; advantages is
            not [B].
    """
    raise NotImplementedError


def dr_grpo_loss(log_probs: LogProbs, mask: Mask, advantages: Advantages, constant: float) -> Scalar:
    """The Dr. GRPO objective: every sequence is measured with the same constant, whatever its length.

    L = −(1/B) Σ_b (1/constant) Σ_t m · Â_b · log π

    Source: rl-basics §10, L_DrGRPO (claims B10.4, B10.5).

    Special cases: the convention `aggregation` does not matter, `empty_rows` does. Advantages are constants even
    when they carry a graph.

    Shapes: log_probs, mask [B, T], advantages [B], constant in tokens → scalar. The gradient flows into log_probs.

    Raises:
        ValueError: log_probs is not [B, T]; mask has another shape or holds something else than 0 and 1; advantages is
            not [B]; constant is missing or ≤ 0.
    """
    raise NotImplementedError


def clipped_loss(
    log_probs: LogProbs,
    old_log_probs: LogProbs,
    mask: Mask,
    advantages: Advantages,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Scalar:
    """The clipped surrogate of PPO and GRPO, per token.

    ρ = exp(log π − log π_old),   L = aggregate(−min(ρ Â, clip(ρ, 1 − clip_low, 1 + clip_high) Â))
    ∂L/∂log π ∝ −ρ Â, but 0 where Â > 0 and ρ > 1 + clip_high, or Â < 0 and ρ < 1 − clip_low

    Source: rl-in-practice §5 and §6 (claims P5.3, P5.4, P6.1, P6.2, P6.3).

    Special cases: ρ = 1 everywhere has the value of −Â and the gradient −Â ∇log π, not a dead one. old_log_probs is a
    constant even when it carries a graph, unless the convention `old_log_probs` says that the caller detaches.
    `log_ratio_clamp` c bounds log π − log π_old to [−c, c] before exp, with gradient 0 outside. Â = 0 adds nothing.

    Shapes and units: log_probs, old_log_probs, mask [B, T], advantages [B] → scalar; log-probs in nats. The gradient
    flows into log_probs.

    Free: the gradient where ρ is exactly on a bound.

    Raises:
        ValueError: log_probs is not [B, T]; old_log_probs or mask has another shape; mask holds something else than 0
            and 1; advantages is not [B].
    """
    raise NotImplementedError


def grpo_objective(
    log_probs: LogProbs,
    old_log_probs: LogProbs,
    ref_log_probs: LogProbs,
    mask: Mask,
    rewards: GroupRewards,
    beta: float,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Scalar:
    """The whole GRPO objective: normalised advantages, clipped surrogate and a KL penalty.

    L = aggregate(−min(ρ Â, clip(ρ, 1 − clip_low, 1 + clip_high) Â) + β · k3(log π, log π_ref)),  Â = grpo_advantages(R)

    Source: rl-in-practice §5 and §7 (claims P5.3, P7.2); Shao et al., DeepSeekMath, eq. 3.

    Special cases: sequence b = n·G + j has the reward R[n, j]. A group without contrast adds its KL only. The KL
    carries no importance weight, is averaged under the same mask and aggregation, and its gradient flows into
    log_probs; β = 0 leaves `clipped_loss`. old_log_probs, ref_log_probs and rewards are constants.
    `log_ratio_clamp` does not touch the KL, `k3_clamp` does.

    Shapes and units: log_probs, old_log_probs, ref_log_probs, mask [B, T], rewards [N, G] with N·G = B → scalar;
    log-probs in nats. The gradient flows into log_probs.

    Free: the gradient where ρ is exactly on a bound, or k3 exactly on its clamp.

    Raises:
        ValueError: log_probs is not [B, T]; old_log_probs, ref_log_probs or mask has another shape; mask holds
            something else than 0 and 1; rewards is not [N, G] with N·G = B, or not of a floating dtype; G = 0; G = 1
            under `singleton_group` error.
    """
    raise NotImplementedError


def microbatch_loss(
    log_probs: LogProbs, mask: Mask, advantages: Advantages, total_sequences: int, total_tokens: int
) -> Scalar:
    """One part's share of the full batch's `grpo_loss`: the shares of all parts add up to that loss.

    L = −Σ m Â log π / total_sequences  (sequence_sum),  the same with 1/n_b or 1/C inside (sequence_mean, constant),
        −Σ m Â log π / total_tokens  (token_mean)

    Source: rl-basics §9, L_GRPO (claim B9.5), split for gradient accumulation.

    Special cases: a part without a masked-in token gives 0 with zero gradient. Under `empty_rows` = dropped the caller
    counts only the rows with a masked-in token in total_sequences.

    Shapes: log_probs, mask [b, T], advantages [b]; total_sequences and total_tokens count rows and masked-in tokens of
    the full batch → scalar. The gradient flows into log_probs.

    Raises:
        ValueError: log_probs is not [b, T]; mask has another shape or holds something else than 0 and 1; advantages is
            not [b].
    """
    raise NotImplementedError


def value_loss(values: Values, old_values: Values, returns: Values, mask: Mask, clip: float | None = None) -> Scalar:
    """Half the squared error of the value estimates, with the pessimistic clip of PPO on demand.

    L = aggregate(½ (v − R)²);   with clip c:  aggregate(½ max((v − R)², (v_old + clamp(v − v_old, −c, c) − R)²))

    Source: Schulman et al., Proximal Policy Optimization Algorithms, and its published code (the larger of both
    errors counts).

    Special cases: without clip old_values reaches nothing. With clip the gradient is v − R where the unclipped error is
    the larger one or v lies within c of v_old, and 0 otherwise. old_values and returns are constants.

    Shapes: values, old_values, returns, mask [B, T] → scalar. The gradient flows into values.

    Free: the gradient where v is exactly at v_old ± c, and where both errors are equal beyond it.

    Raises:
        ValueError: values is not [B, T]; old_values, returns or mask has another shape; mask holds something else
            than 0 and 1.
    """
    raise NotImplementedError
