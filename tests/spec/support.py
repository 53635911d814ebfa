"""Inputs for every operation, and derivatives by another route."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rlassay_spec.convention import LECTURE, Convention
from rlassay_spec.oracles import ORACLES, takes_convention
from rlassay_spec.oracles.expected import BoolArray, Expected, FloatArray

CONVENTIONS_OF_MEANS = [
    Convention(name=f"{aggregation} {rows}", aggregation=aggregation, aggregation_constant=7.0, empty_rows=rows)
    for aggregation in ("sequence_sum", "sequence_mean", "token_mean", "constant")
    for rows in ("counted", "dropped")
]


def ragged_mask(rng: np.random.Generator, batch: int, steps: int) -> BoolArray:
    """A mask with zeros inside, whose last row is empty."""
    mask = rng.random((batch, steps)) < 0.6
    mask[0, 0] = True
    mask[-1] = False
    return mask


def log_probs_like(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Log-probs between about −8 and 0."""
    return -rng.gamma(2.0, 1.0, shape)


def of_likely_tokens(logits: FloatArray) -> npt.NDArray[np.int64]:
    """Ids of which each is the likeliest after the tokens before it."""
    return np.pad(logits[:, :-1].argmax(axis=-1), ((0, 0), (1, 0)))


def example(name: str, seed: int) -> tuple[Any, ...]:
    """Arguments inside the contract of the operation, of ordinary size."""
    rng = np.random.default_rng(seed)
    batch, steps, vocabulary = 4, 5, 6
    logits = 3 * rng.normal(size=(batch, steps + 1, vocabulary))
    ids = rng.integers(0, vocabulary, (batch, steps + 1))
    mask = ragged_mask(rng, batch, steps)
    log_probs = log_probs_like(rng, mask.shape)
    near = log_probs + 0.3 * rng.normal(size=mask.shape)
    other = log_probs + 0.3 * rng.normal(size=mask.shape)
    advantages, rewards = rng.normal(size=batch), rng.normal(size=(2, batch // 2))
    values, returns = rng.normal(size=mask.shape), rng.normal(size=mask.shape)
    probabilities = rng.dirichlet(np.ones(5))
    numbers = rng.integers(0, 5, (2, 6)).tolist()
    return {
        "token_log_probs": (logits, ids, 0.7),
        "masked_log_probs": (logits, ids, mask),
        "entropy": (logits,),
        "action_log_probs": (log_probs, rng.integers(-1, 3, mask.shape), 3),
        "response_mask": (rng.integers(-1, 5, (3, 12)), 0, 1, 2, 3),
        "reward_to_go": (values, 0.9),
        "gae": (returns, values, mask, 0.9, 0.8),
        "centered_advantages": (rewards,),
        "grpo_advantages": (rewards,),
        "rloo_advantages": (rewards,),
        "max_advantages": (rewards,),
        "keep_groups": (rewards,),
        "aggregate": (values, mask, "token_mean"),
        "sft_loss": (log_probs, mask),
        "rest_loss": (log_probs, mask, np.array([1.0, 0.0, 1.0, 1.0])),
        "reinforce_loss": (log_probs, mask, advantages, rng.normal(size=batch)),
        "policy_gradient_loss": (log_probs, mask, values),
        "grpo_loss": (log_probs, mask, advantages),
        "dr_grpo_loss": (log_probs, mask, advantages, 9.0),
        "clipped_loss": (log_probs, near, mask, advantages, 0.2, 0.28),
        "kl_k1": (log_probs, near),
        "kl_k2": (log_probs, near),
        "kl_k3": (log_probs, near),
        "grpo_objective": (log_probs, near, other, mask, rewards, 0.1, 0.2, 0.28),
        "microbatch_loss": (log_probs, mask, advantages, 9, 40),
        "value_loss": (values, values + 0.3 * rng.normal(size=mask.shape), returns, mask, 0.2),
        "expected_return": (probabilities, rng.normal(size=5)),
        "bandit_gradient": (float(rng.normal()), int(rng.integers(2)), float(rng.normal())),
        "optimal_baseline": (probabilities, rng.normal(size=(5, 3)), rng.normal(size=5)),
        "number_search": (int(rng.integers(1, 17)), rng.integers(1, 17, 4).tolist()),
        "position_reward": tuple(numbers),
        "inclusion_order_reward": tuple(numbers),
        "dual_clip_loss": (log_probs, near, mask, advantages, 0.2, 0.28, 1.3),
        "gspo_loss": (log_probs, near, mask, advantages, 0.2, 0.28),
        "entropy_bonus": (logits, mask),
        "importance_weights": (log_probs, near, mask, 1.2),
        "whiten": (values, mask),
        "kl_rewards": (advantages, log_probs, near, mask, 0.1),
        "overlong_penalty": (rng.integers(0, 25, 6), 20, 8),
        "truncated_log_probs": (logits, of_likely_tokens(logits), 0.7, 4, 0.8),
    }[name]


def answer(name: str, arguments: tuple[Any, ...], convention: Convention = LECTURE) -> Expected:
    """The oracle's answer under a convention, where it takes one."""
    keywords = {"convention": convention} if takes_convention(name) else {}
    expected = ORACLES[name](*arguments, **keywords)
    assert isinstance(expected, Expected)
    return expected


def assert_pullback(oracle: Callable[[FloatArray], Expected], argument: npt.ArrayLike, seed: int) -> None:
    """The pullback of a random cotangent is what central differences of the value give.

    With a step of 1e-5 the truncation error is about 1e-10 and the rounding error 1e-11, each times the size of the
    function; entries within two steps of a kink are left out.
    """
    x = np.asarray(argument, dtype=np.float64)
    expected = oracle(x)
    assert expected.pullback is not None
    cotangent = np.random.default_rng(seed).normal(size=expected.value.shape)
    gradient = expected.pullback(cotangent)
    assert gradient.value.shape == gradient.scale.shape == gradient.kink.shape == x.shape
    step, checked = 1e-5, 0
    for place in np.ndindex(x.shape):
        if gradient.kink[place] <= 2 * step or not np.isfinite(x[place]):
            continue
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[place] += sign * step
            ends.append(oracle(moved).value)
        difference = np.sum(cotangent * (ends[0] - ends[1])) / (2 * step)
        assert abs(difference - gradient.value[place]) < 1e-7 * (1 + gradient.scale[place]), (place, difference)
        checked += 1
    assert checked > 0 or x.size == 0
