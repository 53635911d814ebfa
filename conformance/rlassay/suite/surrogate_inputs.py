"""Cases of the other surrogates: ratios of tokens and of rows on all sides of the bounds, logits, stale samples."""

from __future__ import annotations

import numpy as np

from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.inputs import advantages, batch_shape, log_probs, mask
from rlassay.suite.log_prob import logits_and_ids
from rlassay.suite.loss_inputs import CLIPS, clipped_case, old_log_probs, policy_case, row_count
from rlassay_spec.convention import Convention

DUAL_CLIPS = (None, 3.0, 1.5, 10.0, 1.1)
CAPS = (None, 2.0, 1.0, 0.5, 5.0)
SAMPLERS = ("both sides", "equal", "above", "below", "on the cap", "far")

WIDE = {"clip_low": 0.99, "clip_high": 9.0}
"""Clip bounds that ratios of 1 and e stay away from, in bfloat16 too."""

PAPER_CLIP = (3e-4, 4e-4)
"""Bounds of the size that length-normalised ratios are clipped with in practice."""


def dual_case(draw: Draw, convention: Convention) -> Arguments:
    """As for the clipped loss, and tokens beyond the dual clip and on it, with advantages of both signs."""
    arguments = clipped_case(draw, convention)
    dual = draw.choice("dual clip", DUAL_CLIPS)
    reach = draw.choice("beyond", ("some", "none", "all", "on the bound"))
    policy, old = arguments["log_probs"].array, arguments["old_log_probs"].array
    bound = np.log(3.0 if dual is None else dual)
    excess = 0.0 if reach == "on the bound" else draw.uniform(0.05, 1.5, *policy.shape)
    there = draw.integers(0, 1, *policy.shape) == 1
    share = {"none": np.zeros_like(there), "all": np.ones_like(there)}.get(reach, there)
    arguments = replaced(arguments, old_log_probs=np.where(share, policy - bound - excess, old))
    return arguments if dual is None else with_dual_clip(arguments, dual)


def with_dual_clip(arguments: Arguments, dual: float) -> Arguments:
    """The arguments with a dual clip, and with the clip bounds that come before it."""
    tensors = {name: value for name, value in arguments.items() if isinstance(value, Tensor)}
    clip = {name: arguments.get(name, 0.2) for name in ("clip_low", "clip_high")}
    return {**tensors, **clip, "dual_clip": dual}


def gspo_case(draw: Draw, convention: Convention) -> Arguments:
    """Ratios of rows inside the bounds, outside and on them, spread over the tokens evenly, a little or widely."""
    arguments = policy_case(draw, convention)
    policy, shown = arguments["log_probs"].array, arguments["mask"].array
    clip = draw.choice("clip", (*CLIPS, PAPER_CLIP))
    low, high = clip or (0.2, 0.2)
    of_rows = -old_log_probs(draw, np.zeros((len(policy), 1)), low, 0.2 if high is None else high)
    spread = draw.normal(*policy.shape, scale=draw.choice("spread", (0.5, 0.0, 2.0)))
    bounds = {"clip_low": low} if high is None else {"clip_low": low, "clip_high": high}
    return {
        "log_probs": arguments["log_probs"],
        "old_log_probs": Tensor(policy - of_rows - centred(spread, shown)),
        "mask": arguments["mask"],
        "advantages": advantages(draw, row_count(arguments)),
        **({} if clip is None else bounds),
    }


def centred(numbers: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """The numbers less their row's mean over the shown places."""
    means = (numbers * shown).sum(axis=1, keepdims=True) / np.maximum(shown.sum(axis=1, keepdims=True), 1)
    return np.asarray(numbers - means)


def constant_ratio(shape: tuple[int, int], log_prob: float, log_ratio: float, advantage: float) -> Arguments:
    """The same log-prob, log-ratio and advantage at each token of a batch without mask."""
    return {
        "log_probs": Tensor(np.full(shape, log_prob)),
        "old_log_probs": Tensor(np.full(shape, log_prob - log_ratio)),
        "mask": Tensor(np.ones(shape)),
        "advantages": Tensor(np.full(shape[0], advantage)),
    }


def lengths_case(draw: Draw) -> Arguments:
    """Rows of 1, 2, 5 and 8 tokens with the log-ratio 0.1; what is masked out has −3."""
    shown = draw.rng.permuted(np.arange(8) < np.array([[1], [2], [5], [8]]), axis=1)
    policy = -draw.uniform(0.1, 3.0, 4, 8)
    return {
        "log_probs": Tensor(policy),
        "old_log_probs": Tensor(policy - np.where(shown, 0.1, -3.0)),
        "mask": Tensor(shown),
        "advantages": Tensor(np.array([1.0, -0.5, 2.0, -1.5])),
    }


def bonus_case(draw: Draw, convention: Convention) -> Arguments:
    """Logits, and a mask of the tokens that they predict."""
    logits = logits_and_ids(draw)["logits"]
    rows, length, _ = logits.array.shape
    return {"logits": logits, "mask": mask(draw, (rows, length - 1), convention)}


def one_place_case(draw: Draw) -> Arguments:
    """One place a row under the mask; the logits there are close to each other, those elsewhere far apart."""
    logits = logits_and_ids(draw)["logits"].array
    rows, length, size = logits.shape
    shown = np.arange(length - 1) == draw.integers(0, length - 2, rows)[:, None]
    peaked = 12.0 * (np.arange(size) == draw.integers(0, size - 1, rows, length)[..., None])
    logits = np.where(np.pad(shown, ((0, 0), (0, 1)))[..., None], 0.1 * logits, peaked)
    return {"logits": Tensor(logits), "mask": Tensor(shown)}


def hidden_logits(draw: Draw, arguments: Arguments, fill: tuple[float, ...]) -> Arguments:
    """Other logits wherever the mask is 0, and after the last token."""
    logits = arguments["logits"].array.copy()
    read = np.pad(arguments["mask"].array == 1, ((0, 0), (0, 1)))
    return replaced(arguments, logits=np.where(read[..., None], logits, draw.pick(fill, *logits.shape)))


def weights_case(draw: Draw, convention: Convention) -> Arguments:
    """Samples of a policy near and far, on both sides of the cap and on it."""
    shape = batch_shape(draw)
    policy = log_probs(draw, shape)
    cap = draw.choice("cap", CAPS)
    bound = np.log(2.0 if cap is None else cap)
    offset = draw.uniform(0.05, 2.0, *shape)
    sign = np.where(draw.integers(0, 1, *shape) == 1, 1.0, -1.0)
    log_ratio = {
        "both sides": bound + sign * offset,
        "equal": np.zeros(shape),
        "above": bound + offset,
        "below": bound - offset,
        "on the cap": np.full(shape, bound),
        "far": 5.0 * sign,
    }[draw.choice("sampler", SAMPLERS)]
    arguments: Arguments = {
        "log_probs": Tensor(policy),
        "sampler_log_probs": Tensor(policy - log_ratio),
        "mask": mask(draw, shape, convention),
    }
    return arguments if cap is None else arguments | {"cap": cap}
