"""Cases of the losses: log-probs under ragged masks, ratios on both sides of the clip bounds, rewards, values."""

from __future__ import annotations

import numpy as np

from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor
from rlassay.inputs import advantages, batch_shape, group_rewards, log_probs, mask
from rlassay_spec.convention import Convention

RATIOS = ("both sides", "inside", "one", "above", "below", "on a bound", "far")
CLIPS = (None, (0.2, 0.2), (0.2, 0.28), (0.1, 0.5), (0.5, 0.1), (0.4, None))
MODES = ("sequence_sum", "sequence_mean", "token_mean", "constant")


def policy_case(draw: Draw, convention: Convention) -> Arguments:
    """Log-probs and mask: what every loss starts from."""
    shape = batch_shape(draw)
    return {"log_probs": Tensor(log_probs(draw, shape)), "mask": mask(draw, shape, convention)}


def rest_case(draw: Draw, convention: Convention) -> Arguments:
    """Rewards that are exactly 1, nearly 1, or something else."""
    arguments = policy_case(draw, convention)
    kind = draw.choice("rewards", ("binary", "graded", "none succeeds"))
    options = {
        "binary": (0.0, 1.0),
        "graded": (1.0, 0.0, 0.5, 0.99, 1 - 2.0**-20, 1.5, 3.0, -1.0),
        "none succeeds": (0.0, 0.5),
    }[kind]
    return arguments | {"rewards": Tensor(draw.pick(options, row_count(arguments)))}


def reinforce_case(draw: Draw, convention: Convention) -> Arguments:
    """Rewards and baselines of any sign."""
    arguments = policy_case(draw, convention)
    rows = row_count(arguments)
    rewards = draw.normal(rows) if draw.choice("rewards", ("binary", "real")) == "real" else draw.pick((0.0, 1.0), rows)
    baselines = draw.normal(rows) if draw.choice("baselines", ("zero", "real")) == "real" else np.zeros(rows)
    return arguments | {"rewards": Tensor(rewards), "baselines": Tensor(baselines)}


def weights_case(draw: Draw, convention: Convention) -> Arguments:
    """A weight of its own for each token."""
    arguments = policy_case(draw, convention)
    return arguments | {"weights": Tensor(draw.normal(*arguments["mask"].array.shape))}


def grpo_case(draw: Draw, convention: Convention) -> Arguments:
    """One advantage per sequence."""
    arguments = policy_case(draw, convention)
    return arguments | {"advantages": advantages(draw, row_count(arguments))}


def dr_grpo_case(draw: Draw, convention: Convention) -> Arguments:
    """A constant that is neither the length nor 1."""
    return grpo_case(draw, convention) | {"constant": draw.choice("constant", (4.0, 10.0, 1024.0, 0.5, 1.5))}


def old_log_probs(draw: Draw, policy: np.ndarray, low: float, high: float) -> np.ndarray:
    """Old log-probs that put the ratio inside, outside or on the clip bounds; `far` is e^±5."""
    kind = draw.choice("ratio", RATIOS)
    inside = draw.uniform(0.6 * np.log1p(-low), 0.6 * np.log1p(high), *policy.shape)
    above = np.log1p(high) + draw.uniform(0.05, 0.8, *policy.shape)
    below = np.log1p(-low) - draw.uniform(0.05, 0.8, *policy.shape)
    side = draw.integers(0, 2, *policy.shape)
    both = np.choose(side, (inside, above, below))
    bound = np.choose(side, (np.full_like(inside, np.log1p(high)), inside, np.full_like(inside, np.log1p(-low))))
    log_ratio = {
        "both sides": both,
        "inside": inside,
        "one": np.zeros_like(inside),
        "above": above,
        "below": below,
        "on a bound": bound,
        "far": 5.0 * np.sign(both),
    }[kind]
    return np.asarray(policy - log_ratio)


def with_ratios(draw: Draw, arguments: Arguments) -> tuple[Tensor, dict[str, float]]:
    """Old log-probs for the case, and the clip bounds it names (none: the defaults)."""
    clip = draw.choice("clip", CLIPS)
    low, high = clip or (0.2, 0.2)
    bounds = {"clip_low": low} if high is None else {"clip_low": low, "clip_high": high}
    old = Tensor(old_log_probs(draw, arguments["log_probs"].array, low, 0.2 if high is None else high))
    return old, {} if clip is None else bounds


def clipped_case(draw: Draw, convention: Convention) -> Arguments:
    """Ratios on both sides of both bounds and on them, advantages of both signs."""
    arguments = policy_case(draw, convention)
    old, clip = with_ratios(draw, arguments)
    return {
        "log_probs": arguments["log_probs"],
        "old_log_probs": old,
        "mask": arguments["mask"],
        "advantages": advantages(draw, row_count(arguments)),
        **clip,
    }


def objective_case(draw: Draw, convention: Convention) -> Arguments:
    """Rewards in groups, a reference apart from the old policy, several β."""
    rewards = group_rewards(draw, convention)
    shape = (rewards.array.size, draw.integer("steps", 1, 5))
    policy = log_probs(draw, shape)
    arguments: Arguments = {"log_probs": Tensor(policy), "mask": mask(draw, shape, convention)}
    old, clip = with_ratios(draw, arguments)
    return {
        "log_probs": arguments["log_probs"],
        "old_log_probs": old,
        "ref_log_probs": Tensor(policy + draw.normal(*shape, scale=0.7)),
        "mask": arguments["mask"],
        "rewards": rewards,
        "beta": draw.choice("beta", (0.04, 0.0, 1.0, 0.001)),
        **clip,
    }


def microbatch_case(draw: Draw, convention: Convention) -> Arguments:
    """A part of a batch that is larger than the part, in sequences and in tokens."""
    arguments = grpo_case(draw, convention)
    tokens = int(arguments["mask"].array.sum())
    return arguments | {
        "total_sequences": row_count(arguments) + draw.integer("other sequences", 0, 5),
        "total_tokens": tokens + draw.integer("other tokens", 0, 9),
    }


def value_case(draw: Draw, convention: Convention) -> Arguments:
    """Values near and far from the old ones, returns on both sides, with and without clip."""
    shape = batch_shape(draw)
    old = draw.normal(*shape)
    clip = draw.choice("clip", (None, 0.2, 0.5, 2.0))
    reach = draw.choice("returns", (1.5, 20.0))
    arguments: Arguments = {
        "values": Tensor(old + draw.normal(*shape, scale=0.5)),
        "old_values": Tensor(old),
        "returns": Tensor(draw.normal(*shape, scale=reach)),
        "mask": mask(draw, shape, convention),
    }
    return arguments if clip is None else arguments | {"clip": clip}


def aggregate_case(draw: Draw, convention: Convention) -> Arguments:
    """Each mode; the constant only where it is read."""
    shape = batch_shape(draw)
    mode = draw.choice("mode", MODES)
    arguments: Arguments = {
        "values": Tensor(draw.normal(*shape)),
        "mask": mask(draw, shape, convention),
        "mode": mode,
    }
    return arguments | {"constant": draw.choice("constant", (4.0, 10.0, 7.5, 0.5))} if mode == "constant" else arguments


def row_count(arguments: Arguments) -> int:
    return len(arguments["mask"].array)
