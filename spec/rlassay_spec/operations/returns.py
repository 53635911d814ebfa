"""What an action is followed by: returns and generalised advantages along a trajectory."""

from rlassay_spec.shapes import Mask, StepRewards, Values


def reward_to_go(rewards: StepRewards, gamma: float = 1.0) -> StepRewards:
    """Discounted sum of the rewards from each step on.

    out[b, t] = Σ_{k ≥ t} γ^{k−t} rewards[b, k]

    Source: rl-basics §8.3, reward-to-go (claim B8.12). rewards[t] is what comes back after action t, the lecture's
    r_{t+1}, so an action's own reward belongs to its return.

    Special cases: γ = 1 with a terminal reward gives that reward everywhere (claim P1.1); γ = 0 gives the rewards.

    Shapes: rewards [B, T] → [B, T]. Not differentiated.

    Raises:
        ValueError: rewards is not [B, T] or not of a floating dtype.
    """
    raise NotImplementedError


def gae(rewards: StepRewards, values: Values, mask: Mask, gamma: float, lam: float) -> StepRewards:
    """Generalised advantage estimates over the masked-in steps of each row.

    With the masked-in steps of a row numbered i = 0..n−1 and v_n = 0:
    δ_i = r_i + γ v_{i+1} − v_i,   out_i = Σ_{j ≥ i} (γλ)^{j−i} δ_j

    Source: Schulman et al., High-Dimensional Continuous Control Using Generalized Advantage Estimation, eq. 16;
    rl-basics §8, A = Q − V.

    Special cases: a masked-out step is as if it were not there: the step before it continues with the next masked-in
    one, its reward and value (NaN included) reach nothing, and its output is exactly 0. The end is terminal: nothing
    is bootstrapped after the last masked-in step. λ = 1 gives reward-to-go minus value; λ = 0 gives δ; a row without
    masked-in steps gives 0.

    Shapes: rewards, values, mask [B, T] → [B, T]. Not differentiated.

    Raises:
        ValueError: rewards is not [B, T] or not of a floating dtype; values or mask has another shape; mask holds
            something else than 0 and 1.
    """
    raise NotImplementedError
