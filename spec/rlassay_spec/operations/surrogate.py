"""Other surrogates of the policy gradient, the entropy that is added to a loss, and weights for stale samples.

ρ is the ratio of a token's probability under π to that under the policy π_old that the batch was collected with, n_b
the number of masked-in tokens of row b. `aggregate` averages as for the losses, by the conventions `aggregation` and
`empty_rows`.
"""

from rlassay_spec.shapes import Advantages, Logits, LogProbs, Mask, Scalar, Weights


def dual_clip_loss(
    log_probs: LogProbs,
    old_log_probs: LogProbs,
    mask: Mask,
    advantages: Advantages,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float = 3.0,
) -> Scalar:
    """The clipped surrogate with a second bound, on how much one bad token may cost.

    ρ = exp(log π − log π_old),   S = min(ρ Â, clip(ρ, 1 − clip_low, 1 + clip_high) Â)
    L = aggregate(−S) where Â ≥ 0,   L = aggregate(−max(S, dual_clip Â)) where Â < 0,   in the declared `aggregation`
    ∂L/∂log π ∝ −ρ Â, but 0 where Â > 0 and ρ > 1 + clip_high, or Â < 0 and ρ < 1 − clip_low or ρ > dual_clip

    Source: Ye et al. 2020, Mastering Complex Control in MOBA Games with Deep Reinforcement Learning, eq. 5.

    Special cases: where no ratio of a token with Â < 0 exceeds dual_clip this is `clipped_loss`; a token with Â ≥ 0 is
    never touched by dual_clip. old_log_probs is a constant even when it carries a graph, unless the convention
    `old_log_probs` says that the caller detaches. `log_ratio_clamp` c bounds log π − log π_old to [−c, c] before exp,
    with gradient 0 outside. Â = 0 adds nothing.

    Shapes and units: log_probs, old_log_probs, mask [B, T], advantages [B] → scalar; log-probs in nats. The gradient
    flows into log_probs alone; advantages are constants.

    Free: the gradient where ρ is exactly on a bound.

    Raises:
        ValueError: log_probs is not [B, T]; old_log_probs or mask has another shape; mask holds something else than 0
            and 1; advantages is not [B]; dual_clip ≤ 1.
    """
    raise NotImplementedError


def gspo_loss(
    log_probs: LogProbs,
    old_log_probs: LogProbs,
    mask: Mask,
    advantages: Advantages,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Scalar:
    """The clipped surrogate of whole sequences: one length-normalised ratio per row.

    s_b = exp((1/n_b) Σ_t m (log π − log π_old))
    L = (1/B) Σ_b −min(s_b Â_b, clip(s_b, 1 − clip_low, 1 + clip_high) Â_b)
    ∂L/∂log π = −(1/B) m s_b Â_b / n_b, but 0 in a row with Â > 0 and s > 1 + clip_high, or Â < 0 and s < 1 − clip_low

    Source: Zheng et al. 2025, Group Sequence Policy Optimization, eqs. 5 and 7.

    Special cases: rows of one token give the `clipped_loss` of aggregation `sequence_sum`. How a row's log-ratio is
    spread over its tokens does not matter. A row without a masked-in token adds 0 and is counted in B, or dropped from
    it under `empty_rows`; the convention `aggregation` has no effect. old_log_probs is a constant even when it carries
    a graph, unless the convention `old_log_probs` says that the caller detaches. `log_ratio_clamp` c bounds the
    length-normalised log-ratio to [−c, c] before exp, with gradient 0 outside. Â = 0 adds nothing.

    Shapes and units: log_probs, old_log_probs, mask [B, T], advantages [B] → scalar; log-probs in nats. The gradient
    flows into log_probs alone; advantages are constants.

    Free: the gradient of a row where s is exactly on a bound.

    Raises:
        ValueError: log_probs is not [B, T]; old_log_probs or mask has another shape; mask holds something else than 0
            and 1; advantages is not [B].
    """
    raise NotImplementedError


def entropy_bonus(logits: Logits, mask: Mask) -> Scalar:
    """Entropy of the distributions that the sampled tokens were drawn from, aggregated, to be rewarded.

    out = aggregate(H) in the declared `aggregation` (the lectures': the sum over the tokens, over B)
    H[b, t] = −Σ_v p_v log p_v  with  p = softmax(logits[b, t]), which predicts token t+1

    Source: Williams and Peng 1991, Function Optimization using Connectionist Reinforcement Learning Algorithms, §3;
    Schulman et al. 2017, Proximal Policy Optimization Algorithms, eq. 9.

    Special cases: it is positive, so a caller subtracts a multiple of it from a loss. V equal logits give log V at each
    token. p log p = 0 at p = 0, so a logit of −inf adds nothing and gets gradient 0. The logits after the last token
    predict nothing and reach nothing, nor do those of a masked place, NaN included.

    Shapes and units: logits [B, L, V], mask [B, L−1], whose entry t belongs to token t+1 → scalar, nats. The gradient
    flows into logits.

    Raises:
        ValueError: logits is not [B, L, V]; mask is not [B, L−1] or holds something else than 0 and 1.
    """
    raise NotImplementedError


def importance_weights(log_probs: LogProbs, sampler_log_probs: LogProbs, mask: Mask, cap: float = 2.0) -> Weights:
    """Truncated weights of tokens that another policy μ sampled, the inference engine's mostly.

    out[b, t] = min(exp(log π − log μ), cap) where the mask is 1, exactly 0 elsewhere

    Source: Ionides 2008, Truncated Importance Sampling, §2; Espeholt et al. 2018, IMPALA, ρ_t in eq. 1.

    Special cases: log π = log μ gives 1, or cap where that is smaller. There is no lower bound. The convention
    `log_ratio_clamp` has no effect, as μ is not π_old.

    Shapes and units: log_probs, sampler_log_probs, mask [B, T] → [B, T]; log-probs in nats. The weights are constants:
    no gradient flows, into log_probs neither.

    Raises:
        ValueError: log_probs is not [B, T]; sampler_log_probs or mask has another shape; mask holds something else than
            0 and 1; cap ≤ 0.
    """
    raise NotImplementedError
