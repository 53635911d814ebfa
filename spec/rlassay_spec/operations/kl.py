"""Per-token estimates of KL(π ∥ π_ref) from samples of π. ref_log_probs is a constant everywhere."""

from rlassay_spec.shapes import LogProbs


def kl_k1(log_probs: LogProbs, ref_log_probs: LogProbs) -> LogProbs:
    """The log-ratio itself: unbiased, of either sign.

    k1 = log π − log π_ref,   ∂k1/∂log π = 1

    Source: rl-in-practice §7 (claims P7.1, P7.5); Schulman, Approximating KL Divergence.

    Special cases: equal log-probs give exactly 0.

    Shapes and units: log_probs, ref_log_probs [B, T] → [B, T], nats. The gradient flows into log_probs
    alone: ref_log_probs is a constant even when it carries a graph (detach it).

    Raises:
        ValueError: log_probs is not [B, T]; ref_log_probs has another shape.
    """
    raise NotImplementedError


def kl_k2(log_probs: LogProbs, ref_log_probs: LogProbs) -> LogProbs:
    """Half the squared log-ratio: biased, never negative.

    k2 = ½ (log π − log π_ref)²,   ∂k2/∂log π = log π − log π_ref

    Source: Schulman, Approximating KL Divergence (claims P7.4, P7.5).

    Special cases: equal log-probs give exactly 0.

    Shapes and units: log_probs, ref_log_probs [B, T] → [B, T], nats². The gradient flows into log_probs
    alone: ref_log_probs is a constant even when it carries a graph (detach it).

    Raises:
        ValueError: log_probs is not [B, T]; ref_log_probs has another shape.
    """
    raise NotImplementedError


def kl_k3(log_probs: LogProbs, ref_log_probs: LogProbs) -> LogProbs:
    """The log-ratio with a control variate: unbiased, never negative.

    k3 = r − log r − 1  with  r = π_ref/π = exp(log π_ref − log π),   ∂k3/∂log π = 1 − r

    Source: rl-in-practice §7 (claims P7.2, P7.3, P7.5); Schulman, Approximating KL Divergence.

    Special cases: 0 only at r = 1. The convention `k3_clamp` c bounds k3 to [−c, c], with gradient 0 beyond.

    Shapes and units: log_probs, ref_log_probs [B, T] → [B, T], nats. The gradient flows into log_probs
    alone: ref_log_probs is a constant even when it carries a graph (detach it).

    Free: the gradient where k3 is exactly on its clamp.

    Raises:
        ValueError: log_probs is not [B, T]; ref_log_probs has another shape.
    """
    raise NotImplementedError
