"""How much better a rollout did than the others of its own group.

A group without contrast (largest = smallest reward, compared exactly) gives exactly 0 in the centred, normalised and
leave-one-out forms, whatever rounding its mean would bring. Another group's rewards never matter.
"""

from rlassay_spec.shapes import GroupAdvantages, GroupMask, GroupRewards


def centered_advantages(rewards: GroupRewards) -> GroupAdvantages:
    """Reward minus the mean reward of the group.

    out[n, j] = R[n, j] − (1/G) Σ_i R[n, i]

    Source: rl-basics §10, Dr. GRPO (claim B10.1); rl-in-practice §4, centred rewards (claim P4.1).

    Special cases: a group without contrast gives exactly 0 (claims B10.6, P4.2). G = 1 follows the convention
    `singleton_group`: 0, the reward itself, or a ValueError. (G/(G−1) times it is `rloo_advantages`.)

    Shapes: rewards [N, G] → [N, G]. Not differentiated.

    Raises:
        ValueError: rewards is not [N, G] or not of a floating dtype; G = 0; G = 1 under `singleton_group` error.
    """
    raise NotImplementedError


def grpo_advantages(rewards: GroupRewards) -> GroupAdvantages:
    """Reward minus the group's mean, divided by the group's standard deviation.

    out[n, j] = (R[n, j] − mean_n) / s_n,   σ_n² = (1/(G − ddof)) Σ_i (R[n, i] − mean_n)²
    s = σ + ε (`added`), √(σ² + ε) (`inside`) or max(σ, ε) (`floor`)

    Source: rl-basics §9, GRPO (claims B9.1, B9.2, B9.4); ddof = 0 and ε = 0 there, and under the lecture convention.

    Special cases: a group without contrast gives exactly 0 (claim B10.6), no matter ε. G = 1 follows the convention
    `singleton_group`: 0, the reward itself, or a ValueError. `std_ddof`, `std_eps` and `std_eps_place` choose the rest
    (claim P5.1).

    Shapes: rewards [N, G] → [N, G], in units of the group's standard deviation. Not differentiated.

    Raises:
        ValueError: rewards is not [N, G] or not of a floating dtype; G = 0; G = 1 under `singleton_group` error.
    """
    raise NotImplementedError


def rloo_advantages(rewards: GroupRewards) -> GroupAdvantages:
    """Reward minus the mean reward of the others in the group.

    out[n, j] = R[n, j] − (1/(G−1)) Σ_{i ≠ j} R[n, i]

    Source: Ahmadian et al., Back to Basics, RLOO; the unbiased form of rl-basics §9's baseline (claim B9.6).

    Special cases: a group without contrast gives exactly 0. G = 1 follows the convention `singleton_group`: 0, the
    reward itself, or a ValueError.

    Shapes: rewards [N, G] → [N, G]. Not differentiated.

    Raises:
        ValueError: rewards is not [N, G] or not of a floating dtype; G = 0; G = 1 under `singleton_group` error.
    """
    raise NotImplementedError


def max_advantages(rewards: GroupRewards) -> GroupAdvantages:
    """The reward of the group's best rollouts, 0 for the others.

    out[n, j] = R[n, j]  if R[n, j] = max_i R[n, i],  else 0

    Source: rl-in-practice §4, max rewards (claim P4.1).

    Special cases: all ties of the best keep their reward, so a group without contrast is returned as it is (G = 1 too);
    a best reward that is negative stays negative.

    Shapes: rewards [N, G] → [N, G]. Not differentiated.

    Raises:
        ValueError: rewards is not [N, G] or not of a floating dtype; G = 0.
    """
    raise NotImplementedError


def keep_groups(rewards: GroupRewards) -> GroupMask:
    """Whether a group has contrast, that is, can teach anything.

    out[n] = max_j R[n, j] > min_j R[n, j]

    Source: rl-basics §10.1, degenerate groups (claims B10.6, B9.7).

    Special cases: rewards are compared exactly; G = 1 has no contrast.

    Shapes: rewards [N, G] → bool [N].

    Raises:
        ValueError: rewards is not [N, G] or not of a floating dtype; G = 0.
    """
    raise NotImplementedError
