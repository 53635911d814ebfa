"""The distribution that a sampler draws from, once temperature, top-k and top-p have changed the model's."""

from rlassay_spec.shapes import Logits, LogProbs, TokenIds


def truncated_log_probs(
    logits: Logits,
    token_ids: TokenIds,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> LogProbs:
    """Log-probability of every token after the first under the truncated distribution that it was sampled from.

    out[b, t] = z_u − log Σ_{v ∈ S} exp z_v  if u ∈ S,  else −∞
    z = logits[b, t] / temperature,   u = token_ids[b, t+1]
    S = the smallest set of the most likely tokens of K whose probability within K reaches top_p
    K = the top_k most likely tokens

    Source: Fan, Lewis, Dauphin, Hierarchical Neural Story Generation, §5 (top-k); Holtzman et al., The Curious Case of
    Neural Text Degeneration, §3 (top-p).

    Special cases: first the temperature, then top-k, then top-p on what is left, renormalised. The token with which the
    probability reaches top_p belongs to S, so that at least one token stays. top_k = None, or more than V, keeps all,
    top_p = None or 1 too; with neither it is `token_log_probs`. The first token is not scored and the last row of
    logits scores nothing. The gradient is 0 at tokens outside S.

    Free: which of several equal logits at the cut stays; whether a token stays when the probability before it is
    within rounding of top_p; the gradient in a row of logits whose token lies outside S; whether an id out of range in
    the column that is not scored raises.

    Shapes and units: logits [B, L, V], token_ids [B, L] → [B, L−1], nats. The gradient flows into logits.

    Raises:
        ValueError: logits is not [B, L, V]; token_ids is not [B, L]; a scored id lies outside 0..V−1;
            temperature ≤ 0; top_k < 1; top_p ≤ 0 or top_p > 1.
    """
    raise NotImplementedError
