"""Log-probabilities of the tokens that were sampled, and the entropy of what they were sampled from."""

from rlassay_spec.shapes import ActionIds, ActionLogProbs, Entropies, Logits, LogProbs, Mask, TokenIds


def token_log_probs(logits: Logits, token_ids: TokenIds, temperature: float = 1.0) -> LogProbs:
    """Log-probability of every token after the first, given the tokens before it.

    out[b, t] = z_u − log Σ_v exp z_v  with  z = logits[b, t] / temperature,  u = token_ids[b, t+1]

    Source: rl-basics §6, token log-probs of an action (claims B6.3, B6.4); rl-in-practice §5.

    Special cases: the first token is not scored and the last row of logits scores nothing, so neither reaches the
    result and that row's gradient is 0. L = 1 gives an empty result. A constant added to a row of logits changes
    nothing. A logit of −inf is a token of probability 0, as long as it is not the token that is scored.

    Shapes and units: logits [B, L, V], token_ids [B, L] → [B, L−1], nats. The gradient flows into logits.

    Free: whether an id out of range in the column that is not scored raises.

    Raises:
        ValueError: logits is not [B, L, V]; token_ids is not [B, L]; a scored id lies outside 0..V−1;
            temperature ≤ 0.
    """
    raise NotImplementedError


def masked_log_probs(logits: Logits, token_ids: TokenIds, mask: Mask) -> LogProbs:
    """Token log-probabilities where the mask is 1, and exactly 0 elsewhere.

    out[b, t] = token_log_probs(logits, token_ids)[b, t]  if mask[b, t] = 1,  else 0

    Source: rl-basics §6, only sampled tokens take part (claims B6.4, B6.6).

    Special cases: mask[b, t] belongs to token t+1 and to the logits at t. At a masked place any logits (NaN and inf
    included) and any id (−100 as well) may stand: neither the value nor any gradient sees them, and the gradient of
    that row of logits is 0. The last row of logits scores nothing.

    Shapes and units: logits [B, L, V], token_ids [B, L], mask [B, L−1] of 0 and 1 (bool, int or float) → [B, L−1],
    nats. The gradient flows into logits.

    Free: whether an id out of range in the column that is not scored raises.

    Raises:
        ValueError: logits is not [B, L, V]; token_ids is not [B, L]; mask is not [B, L−1] or holds something else
            than 0 and 1; an id lies outside 0..V−1 where the mask is 1.
    """
    raise NotImplementedError


def entropy(logits: Logits) -> Entropies:
    """Exact entropy of each next-token distribution.

    out[b, t] = −Σ_v p_v log p_v  with  p = softmax(logits[b, t])

    Source: Shannon, A Mathematical Theory of Communication, §6; its gradient is −p_v (log p_v + H).

    Special cases: p log p = 0 at p = 0, so a logit of −inf adds nothing and gets gradient 0; V equal logits give
    log V. A row of nothing but −inf is no distribution and outside the contract.

    Shapes and units: logits [B, L, V] → [B, L], nats. The gradient flows into logits.

    Raises:
        ValueError: logits is not [B, L, V].
    """
    raise NotImplementedError


def action_log_probs(log_probs: LogProbs, action_ids: ActionIds, n_actions: int) -> ActionLogProbs:
    """Log-probability of each action: the sum over the tokens it is made of.

    out[b, a] = Σ_{t : action_ids[b, t] = a} log_probs[b, t]

    Source: rl-basics §6, an action of many tokens (claim B6.3).

    Special cases: the id −1 belongs to no action, and whatever log-prob stands there reaches nothing. An action
    without tokens gets 0. The tokens of an action need not be neighbours.

    Shapes and units: log_probs [B, T], action_ids [B, T] in −1..n_actions−1 → [B, n_actions], nats. The gradient
    flows into log_probs.

    Raises:
        ValueError: log_probs is not [B, T]; action_ids has another shape or an id outside −1..n_actions−1;
            n_actions < 1.
    """
    raise NotImplementedError
