"""Ways to get the losses per token wrong, and what each gives."""

from __future__ import annotations

import numpy as np

from rlassay.guest.values import Arguments
from rlassay.suite.cs336.calls import Suspect, Suspects


def _weights(a: Arguments) -> np.ndarray:
    weights = a.get("advantages", a.get("raw_rewards_or_advantages"))
    return np.asarray(weights).reshape(-1, 1)


def _naive(a: Arguments) -> np.ndarray:
    return np.asarray(-_weights(a) * a["policy_log_probs"])


def _log_ratio(a: Arguments) -> np.ndarray:
    return np.asarray(a["policy_log_probs"] - a["old_log_probs"])


def _terms(a: Arguments, log_ratio: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """ρ A and clip(ρ) A."""
    ratio = np.exp(_log_ratio(a) if log_ratio is None else log_ratio)
    clip = a.get("cliprange") or np.inf
    return ratio * _weights(a), np.clip(ratio, 1 - clip, 1 + clip) * _weights(a)


def _seen(a: Arguments, loss: np.ndarray) -> np.ndarray:
    return np.where(a["response_mask"], loss, np.nan)


def _by_sequence(a: Arguments, mask: np.ndarray, mean: bool = True) -> np.ndarray:
    """gspo with another mask, or with a sum."""
    total = (mask * _log_ratio(a)).sum(axis=1, keepdims=True)
    log_ratio = total / np.maximum(mask.sum(axis=1, keepdims=True), 1) if mean else total
    return _seen(a, np.broadcast_to(-np.minimum(*_terms(a, log_ratio)), mask.shape))


NAIVE_SUSPECTS: Suspects = (
    Suspect("leaving the minus sign out", lambda a: -_naive(a)),
    Suspect("multiplying by π instead of log π", lambda a: -_weights(a) * np.exp(a["policy_log_probs"])),
)
CLIP_SUSPECTS = (
    Suspect("leaving the minus sign out", lambda a: np.minimum(*_terms(a))),
    Suspect("taking the larger of the two terms", lambda a: -np.maximum(*_terms(a))),
    Suspect("the ratio π_old/π, upside down,", lambda a: -np.minimum(*_terms(a, -_log_ratio(a)))),
    Suspect("the ratio without clipping", lambda a: -_terms(a)[0]),
    Suspect("the clipped ratio alone", lambda a: -_terms(a)[1]),
    Suspect("the log-ratio without exp", lambda a: -_weights(a) * _log_ratio(a)),
)
NOCLIP_SUSPECTS = (
    Suspect("leaving the minus sign out", lambda a: _terms(a)[0]),
    Suspect("the ratio π_old/π, upside down,", lambda a: -_terms(a, -_log_ratio(a))[0]),
    Suspect("clipping", lambda a: -np.minimum(*_terms(a | {"cliprange": 0.2}))),
    Suspect("the weight ρ times log π", lambda a: -_terms(a)[0] * a["policy_log_probs"]),
)
GSPO_SUSPECTS = (
    Suspect("one ratio per token", lambda a: _seen(a, -np.minimum(*_terms(a)))),
    Suspect("the mean log-ratio over padding as well", lambda a: _by_sequence(a, np.ones_like(a["response_mask"]))),
    Suspect("the sum of the log-ratios, not their mean,", lambda a: _by_sequence(a, a["response_mask"], mean=False)),
    Suspect("leaving the minus sign out", lambda a: -_by_sequence(a, a["response_mask"])),
)
SUSPECTS: dict[str, Suspects] = {
    "no_baseline": (
        Suspect("leaving the minus sign out", lambda a: a["raw_rewards"] * a["policy_log_probs"]),
        Suspect("the advantages instead of the rewards", lambda a: -a["advantages"] * a["policy_log_probs"]),
    ),
    "reinforce_with_baseline": (
        Suspect("leaving the minus sign out", lambda a: a["advantages"] * a["policy_log_probs"]),
        Suspect("the rewards instead of the advantages", lambda a: -a["raw_rewards"] * a["policy_log_probs"]),
    ),
    "grpo_clip": CLIP_SUSPECTS,
    "none": NAIVE_SUSPECTS,
    "noclip": NOCLIP_SUSPECTS,
    "grpo": CLIP_SUSPECTS,
    "gspo": GSPO_SUSPECTS,
}
