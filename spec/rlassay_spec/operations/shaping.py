"""Rewards and advantages made ready for a learner: whitened, with a KL penalty, with a penalty for length."""

from rlassay_spec.shapes import LengthPenalties, Lengths, LogProbs, Mask, SequenceRewards, StepRewards, Values


def whiten(values: Values, mask: Mask) -> Values:
    """Values minus the mean of the batch's masked-in entries, divided by their standard deviation.

    out[b, t] = (x[b, t] − μ) / s  if mask[b, t] = 1,  else 0
    μ = (1/n) Σ m·x,   σ² = (1/(n − ddof)) Σ m·(x − μ)²,   n = Σ m
    s = σ + ε (`added`), √(σ² + ε) (`inside`) or max(σ, ε) (`floor`)

    Source: Andrychowicz et al., What Matters in On-Policy Reinforcement Learning?, per-batch advantage normalisation;
    Huang et al., The N Implementation Details of RLHF with PPO, whitened rewards and advantages.

    Special cases: mean and deviation are those of all masked-in entries of the batch together, never of a row. Where
    these have no contrast (largest = smallest, compared exactly; a single entry too) the result is exactly 0, no matter
    ε. It is exactly 0 at masked-out entries. `std_ddof`, `std_eps` and `std_eps_place` choose the rest; ddof = 0 and
    ε = 0 under the lecture convention.

    Shapes: values, mask [B, T] → [B, T], in units of the standard deviation. A constant: not differentiated.

    Raises:
        ValueError: values is not [B, T]; mask has another shape or holds something else than 0 and 1.
    """
    raise NotImplementedError


def kl_rewards(
    rewards: SequenceRewards, log_probs: LogProbs, ref_log_probs: LogProbs, mask: Mask, beta: float
) -> StepRewards:
    """The reward of a sequence at its last token, and a penalty for every token's distance from the reference.

    out[b, t] = −β (log π[b, t] − log π_ref[b, t]) + 1[t = last_b] rewards[b]  if mask[b, t] = 1,  else 0
    last_b = the largest t with mask[b, t] = 1

    Source: Ouyang et al., Training Language Models to Follow Instructions with Human Feedback, eq. 2; a
    row's sum is the reward of Ziegler et al., Fine-Tuning Language Models from Human Preferences, §2.

    Special cases: the penalty is `kl_k1`, of either sign. It stays at the last token, where the reward is added to it.
    The last token is the last masked-in one, wherever padding or the mask's holes lie. A row without masked-in tokens
    gives 0. β = 0 gives the reward alone.

    Shapes and units: rewards [B], log_probs, ref_log_probs (nats), mask [B, T] → [B, T], in units of the reward. A
    constant: not differentiated. The result has the dtype of rewards.

    Raises:
        ValueError: rewards is not [B] or not of a floating dtype; log_probs is not [B, T]; ref_log_probs or mask has
            another shape; mask holds something else than 0 and 1; beta < 0.
    """
    raise NotImplementedError


def overlong_penalty(lengths: Lengths, max_length: int, buffer: int) -> LengthPenalties:
    """The soft punishment of answers that come close to the largest length.

    out[b] = 0                                       if |y_b| ≤ max_length − buffer
             ((max_length − buffer) − |y_b|)/buffer  if max_length − buffer < |y_b| ≤ max_length
             −1                                      if |y_b| > max_length

    Source: Yu et al., DAPO: An Open-Source LLM Reinforcement Learning System at Scale, eq. 13.

    Special cases: it falls from 0 at max_length − buffer to −1 at max_length, without a jump, and no further. buffer =
    max_length punishes every token from the first on.

    Shapes and units: lengths [B] of any integer dtype, tokens → float32 [B], to be added to the reward. Not
    differentiated.

    Raises:
        ValueError: lengths is not [B] or holds a negative length; buffer < 1; buffer > max_length.
    """
    raise NotImplementedError
