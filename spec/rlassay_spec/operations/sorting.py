"""Rewards of the sorting task: the response should be the prompt in ascending order."""

from rlassay_spec.shapes import Numbers, Scalar


def position_reward(prompt: Numbers, response: Numbers) -> Scalar:
    """Number of positions at which the response agrees with the sorted prompt.

    R = Σ_i 1[response_i = sorted(prompt)_i]

    Source: rl-in-practice §8, position match (claims P8.1, P8.3).

    Special cases: the largest reward is the length, reached by the sorted prompt only.

    Shapes: prompt, response [n], a sequence of int or a 1-D tensor → a number or a 0-d tensor, in points.

    Raises:
        ValueError: prompt and response differ in length.
    """
    raise NotImplementedError


def inclusion_order_reward(prompt: Numbers, response: Numbers) -> Scalar:
    """One point per prompt token that the response contains, and one per adjacent pair that is in order.

    R = Σ_i 1[prompt_i ∈ response] + Σ_i 1[response_i ≤ response_{i+1}]

    Source: rl-in-practice §8, inclusion and order (claims P8.2, P8.3, P8.4).

    Special cases: a number that the prompt repeats earns a point each time, even if the response holds it once; equal
    neighbours are in order. The largest reward is 2n − 1, and wrong responses can reach it.

    Shapes: prompt, response [n], a sequence of int or a 1-D tensor → a number or a 0-d tensor, in points.

    Raises:
        ValueError: prompt and response differ in length.
    """
    raise NotImplementedError
