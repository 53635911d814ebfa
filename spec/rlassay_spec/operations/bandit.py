"""One decision, few outcomes: small enough to compute every expectation."""

from rlassay_spec.shapes import OutcomeReturns, Probabilities, Scalar, Scores


def expected_return(probabilities: Probabilities, returns: OutcomeReturns) -> Scalar:
    """The objective J: returns weighted by the probabilities of their trajectories.

    J = Σ_k p_k R_k

    Source: rl-basics §4, J(θ) (claim B4.3).

    Special cases: probabilities are taken as they are, also when they do not add up to 1.

    Shapes: probabilities, returns [K] → scalar, a number or a 0-d tensor. Not differentiated.

    Raises:
        ValueError: probabilities is not [K]; returns has another shape.
    """
    raise NotImplementedError


def bandit_gradient(theta: Scalar, action: int, baseline: float) -> Scalar:
    """One sample of the policy gradient of the two-armed bandit.

    ĝ = (R − b) · ∂/∂θ log π(action),   p = σ(θ):  action 0 (A, R = 1): (1 − b)(1 − p),  action 1 (B, R = 0): b·p

    Source: rl-basics §8.1 (claims B8.3 to B8.7).

    Special cases: b = 0 makes action 1's estimate 0; b = 1 makes action 0's estimate 0.

    Shapes: theta a float or a 0-d tensor, action 0 or 1 → scalar, a number or a 0-d tensor. Not differentiated.

    Raises:
        ValueError: action is neither 0 nor 1.
    """
    raise NotImplementedError


def optimal_baseline(probabilities: Probabilities, scores: Scores, rewards: OutcomeReturns) -> Scalar:
    """The constant baseline that makes the total variance of the gradient estimate smallest.

    b* = Σ_k p_k ‖s_k‖² R_k / Σ_k p_k ‖s_k‖²,   s_k = ∇_θ log π(k)

    Source: rl-in-practice §3 (claim P3.1).

    Special cases: 0 when every score is 0, as the denominator then is. Equal rewards give that reward.

    Shapes: probabilities [K], scores [K, D], rewards [K] → scalar, a number or a 0-d tensor. Not differentiated.

    Raises:
        ValueError: probabilities is not [K]; scores is not [K, D]; rewards is not [K] or not of a floating dtype.
    """
    raise NotImplementedError
