"""Known faults of rewards with a KL penalty."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlassay.check import Kind
from rlassay.faults import Faults
from rlassay.faults.parts import (
    early,
    everything,
    hide,
    last_column,
    late,
    multiply_out,
    only_last,
    without_holes,
    working,
)
from rlassay.faults.parts.shaping import kl_rewards

FAULTS = Faults()


def _kl(identity: str, title: str, source: str, kind: Kind = "conformance", **parts: Any) -> None:
    FAULTS.add(identity, "kl_rewards", title, source, partial(kl_rewards, **parts), kind=kind)


def after_the_last(reward: Tensor, shown: Tensor) -> Tensor:
    """The reward one place after the last token, where there is one."""
    last = torch.nn.functional.pad(only_last(shown), (1, 0))
    overflow = last[:, -1:]
    return hide(reward[:, None], torch.cat([last[:, :-2], last[:, -2:-1] | overflow], dim=1))


def at_count(reward: Tensor, shown: Tensor) -> Tensor:
    """The reward at the place that the number of tokens gives, −1 being the last column."""
    place = (shown.sum(dim=1, keepdim=True) - 1) % shown.shape[1]
    return hide(reward[:, None], torch.arange(shown.shape[1]) == place)


def at_last_or_end(reward: Tensor, shown: Tensor) -> Tensor:
    """The reward at the last token, and at the last column of rows without one."""
    return hide(reward[:, None], torch.where(shown.any(dim=1, keepdim=True), only_last(shown), last_column(shown)))


def at_first(reward: Tensor, shown: Tensor) -> Tensor:
    """The reward at the first token."""
    return hide(reward[:, None], shown & (shown.cumsum(dim=1) == 1))


def spread_out(reward: Tensor, shown: Tensor) -> Tensor:
    """The reward in equal parts at every token."""
    return hide(reward[:, None], shown) / shown.sum(dim=1, keepdim=True).clamp(min=1)


def replaced(penalty: Tensor, placed: Tensor, shown: Tensor) -> Tensor:
    """The reward in place of the last token's penalty."""
    return torch.where(only_last(shown), placed, penalty)


def shown_as_is(terms: Tensor, shown: Tensor) -> Tensor:
    """What comes out, masked-out places too."""
    return terms


def all_at_the_end(kl: Tensor, shown: Tensor, beta: float) -> Tensor:
    """The whole row's penalty at its last token."""
    return hide(-beta * kl.sum(dim=1, keepdim=True), only_last(shown))


def k3(new: Tensor, ref: Tensor) -> Tensor:
    """r − log r − 1 with r = π_ref/π."""
    return torch.expm1(ref - new) - (ref - new)


_kl(
    "SHP-16",
    "the reward at the last column, a padded place too",
    "textbook",
    place=lambda reward, shown: hide(reward[:, None], last_column(shown)),
    show=shown_as_is,
)
_kl(
    "RE-05",
    "the reward one place after the last token, where the mask takes it away",
    "huggingface/trl issue 3750",
    place=after_the_last,
)
_kl(
    "SHP-17",
    "the reward at the place that the number of tokens gives",
    "textbook",
    place=at_count,
    show=shown_as_is,
)
_kl(
    "SHP-18",
    "the reward at the last column of a row without tokens",
    "textbook: argmax of zeros",
    place=at_last_or_end,
    show=shown_as_is,
)
_kl("SHP-19", "the reward at every token", "textbook", place=lambda reward, shown: hide(reward[:, None], shown))
_kl("SHP-20", "the reward at the first token", "textbook", place=at_first)
_kl("SHP-21", "the reward in equal parts at every token", "textbook", place=spread_out)
_kl("SHP-22", "the reward in place of the last token's penalty", "textbook", combine=replaced)
_kl("SHP-23", "no reward", "textbook", place=lambda reward, shown: torch.zeros_like(hide(reward[:, None], shown)))
_kl(
    "SHP-24",
    "rewards minus their mean over the batch",
    "textbook",
    place=lambda reward, shown: hide((reward - reward.mean())[:, None], only_last(shown)),
)
_kl("SHP-25", "a KL bonus: the sign reversed", "textbook", penalise=lambda kl, shown, beta: beta * kl)
_kl("SHP-26", "no β", "textbook", penalise=lambda kl, shown, beta: -kl)
_kl("SHP-27", "no penalty", "textbook", penalise=lambda kl, shown, beta: torch.zeros_like(kl))
_kl("SHP-28", "the whole row's penalty at its last token", "textbook", penalise=all_at_the_end)
_kl(
    "SHP-29",
    "a penalty divided by the number of tokens",
    "textbook",
    penalise=lambda kl, shown, beta: -beta * kl / shown.sum(dim=1, keepdim=True).clamp(min=1),
)
_kl("SHP-31", "penalties one token late", "textbook", visible=late)
_kl("SHP-32", "penalties one token early", "textbook", visible=early)
_kl("KL-k2", "k2 in place of k1", "textbook", measure=lambda new, ref: 0.5 * (new - ref).square())
_kl("KL-k3", "k3 in place of k1", "textbook", measure=k3)
_kl("SHP-33", "the size of k1 without its sign", "textbook", measure=lambda new, ref: (new - ref).abs())
_kl("SHP-34", "k1 bounded below at 0", "textbook", measure=lambda new, ref: (new - ref).clamp(min=0.0))
_kl("SHP-35", "a difference of probabilities", "textbook", measure=lambda new, ref: new.exp() - ref.exp())
_kl("SHP-36", "the ratio π/π_ref, not its logarithm", "textbook", measure=lambda new, ref: (new - ref).exp())
_kl(
    "RE-08",
    "penalties at masked-out tokens between those of the policy",
    "THUDM/slime issue 1370",
    visible=without_holes,
    show=shown_as_is,
)
_kl("RE-07", "penalties at every masked-out token", "rlhf-book PR 216", visible=everything, show=shown_as_is)
_kl(
    "SHP-52",
    "no mask at all: penalties everywhere, the reward at the last column",
    "textbook",
    visible=everything,
    place=lambda reward, shown: hide(reward[:, None], last_column(shown)),
    show=shown_as_is,
)
_kl(
    "MK-13",
    "masking by multiplication: 0·NaN is NaN",
    "OpenRLHF PR 1240",
    kind="robustness",
    cover=multiply_out,
    show=multiply_out,
)
_kl("SHP-37", "log-probs with a live gradient", "textbook", kind="robustness", frozen=working)


@FAULTS.fault("SHP-30", "kl_rewards", "the reward times β too: −β (k1 − R)", "textbook")
def _scaled_reward(rewards: Tensor, log_probs: Tensor, ref_log_probs: Tensor, mask: Tensor, beta: float) -> Tensor:
    return kl_rewards(beta * rewards, log_probs, ref_log_probs, mask, beta)
