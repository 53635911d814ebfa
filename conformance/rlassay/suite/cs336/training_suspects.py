"""Ways to get a training step wrong, and the parameters that each leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlassay.guest.values import Arguments
from rlassay.suite.cs336.calls import Suspect, Suspects, expected
from rlassay.suite.cs336.cases import reward_function
from rlassay_spec.convention import Convention
from rlassay_spec.oracles.cs336 import compute_group_normalized_rewards_2026
from rlassay_spec.oracles.cs336.tokens import flat, tokenize_prompt_and_output
from rlassay_spec.oracles.expected import Expected

STEP = "grpo_train_step"
UNBOUNDED = 1e6
"""A max_grad_norm that bounds nothing."""


def suspects_of(convention: Convention, want: Expected) -> Suspects:
    """Wrong steps; those that stretch the right one hold where its length is not bounded."""

    def stretched(a: Arguments, factor: float) -> np.ndarray:
        before = flat(a["model"])
        return np.asarray(before + factor * (want.value - before))

    def other(a: Arguments, **changes: object) -> np.ndarray:
        return expected(STEP, a | changes, convention, "parameters").value

    def per_token(a: Arguments) -> np.ndarray:
        tokens = _tokens(a)
        return other(a, loss_normalization="constant", normalization_constant=float(tokens.sum()))

    def bounded_apart(a: Arguments) -> np.ndarray:
        """Each parameter's gradient bounded by itself."""
        before, free = flat(a["model"]), other(a, max_grad_norm=UNBOUNDED)
        halves = np.split((before - free) / a["optimizer"].learning_rate, [a["model"].embedding.size])
        steps = [half * min(1.0, a["max_grad_norm"] / (np.linalg.norm(half) + 1e-6)) for half in halves]
        return np.asarray(before - a["optimizer"].learning_rate * np.concatenate(steps))

    return (
        Suspect("taking no step", lambda a: flat(a["model"])),
        Suspect(
            "not dividing by gradient_accumulation_steps", lambda a: stretched(a, a["gradient_accumulation_steps"])
        ),
        Suspect("dividing once too often", lambda a: stretched(a, 1 / a["gradient_accumulation_steps"])),
        Suspect("ascending the loss", lambda a: stretched(a, -1.0)),
        Suspect("the mean over all tokens of the batch", per_token),
        Suspect("the mean over all tokens of each microbatch", lambda a: _per_microbatch(a, convention)),
        Suspect("leaving the gradient norm unbounded", lambda a: other(a, max_grad_norm=UNBOUNDED)),
        Suspect("bounding the norm of each parameter by itself", bounded_apart),
        Suspect("not centring the rewards", lambda a: other(a, baseline="none")),
        Suspect("not normalising the advantages", lambda a: other(a, advantage_normalizer="none")),
        Suspect(
            "dividing by the population standard deviation",
            lambda a: expected(STEP, a, replace(convention, std_ddof=0), "parameters").value,
        ),
    )


def _tokens(a: Arguments) -> np.ndarray:
    """Number of response tokens of each rollout."""
    return np.array([len(a["tokenizer"].encode(response)) for response in a["rollout_responses"]])


def _per_microbatch(a: Arguments, convention: Convention) -> np.ndarray:
    """The step of the mean over microbatches of the mean over their tokens, where nothing bounds it."""
    texts = ("repeated_prompts", "rollout_responses", "repeated_ground_truths")
    rewards = [a["reward_fn"](*pair)["reward"] for pair in zip(a[texts[1]], a[texts[2]], strict=True)]
    group = {name: a[name] for name in ("group_size", "baseline", "advantage_eps", "advantage_normalizer")}
    oracle = compute_group_normalized_rewards_2026(np.array(rewards), **group, convention=convention)
    advantages, count = oracle["advantages"].value, a["gradient_accumulation_steps"]
    before, size = flat(a["model"]), len(rewards) // count
    after = before.copy()
    for start in range(0, len(rewards), size):
        rows = slice(start, start + size)
        part = a | {name: a[name][rows] for name in texts}
        width = tokenize_prompt_and_output(part[texts[0]], part[texts[1]], a["tokenizer"])["labels"].value.shape[1]
        old = a["old_log_probs"]
        part |= {
            "gradient_accumulation_steps": 1,
            "reward_fn": reward_function(part[texts[1]], part[texts[2]], advantages[rows]),
            "group_size": 1,
            "baseline": "none",
            "advantage_normalizer": "none",
            "old_log_probs": None if old is None else old[rows, :width],
            "loss_normalization": "constant",
            "normalization_constant": float(_tokens(part).sum() * count),
        }
        after += expected(STEP, part, convention, "parameters").value - before
    return np.asarray(after)
