"""Checks of rewards and group advantages, in both forms of the assignment."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial, require
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor
from rlassay.suite.cs336.calls import Suspect, Suspects, agree, call
from rlassay.suite.cs336.cases import grouped, rollouts
from rlassay.topic import Topic
from rlassay_spec.convention import Convention

TOPIC = Topic()

FORM_2025 = "compute_group_normalized_rewards"
FORM_2026 = "compute_group_normalized_rewards_2026"
NORMALISATIONS = ((True, 1e-6), (False, 1e-6), (True, 0.1), (True, 1e-4))
"""Whether to normalise, and ε; the large one shows where it is added."""
NORMALIZERS = ("std", "mean", "none")


def rollout_case(draw: Draw, convention: Convention) -> Arguments:
    """Rewards, each from its own response and truth."""
    return rollouts(grouped(draw, convention))


def case_2025(draw: Draw, convention: Convention) -> Arguments:
    """Groups with and without contrast, normalised and only centred; an ε that is seen."""
    rewards = grouped(draw, convention)
    normalised, eps = draw.choice("normalisation", NORMALISATIONS)
    return {
        **rollouts(rewards),
        "group_size": rewards.shape[1],
        "advantage_eps": eps,
        "normalize_by_std": normalised,
    }


def case_2026(draw: Draw, convention: Convention, normalizer: str) -> Arguments:
    """The same with a baseline or none; under the normaliser "mean" rewards are not negative."""
    rewards = grouped(draw, convention)
    return {
        "raw_rewards": Tensor(np.abs(rewards.ravel()) if normalizer == "mean" else rewards.ravel()),
        "group_size": rewards.shape[1],
        "baseline": draw.choice("baseline", ("mean", "none")),
        "advantage_eps": draw.choice("eps", (1e-6, 0.1)),
        "advantage_normalizer": normalizer,
    }


def _rewards_of(a: Arguments) -> np.ndarray:
    if "raw_rewards" in a:
        raw = np.asarray(a["raw_rewards"])
    else:
        pairs = zip(a["rollout_responses"], a["repeated_ground_truths"], strict=True)
        raw = np.array([a["reward_fn"](response, truth)["reward"] for response, truth in pairs])
    return raw.reshape(-1, a["group_size"])


def _centre(a: Arguments) -> np.ndarray:
    rewards = _rewards_of(a)
    return rewards - rewards.mean(axis=1, keepdims=True) if a.get("baseline", "mean") == "mean" else rewards


def _normalised(a: Arguments, deviation: np.ndarray) -> np.ndarray:
    """What comes out with another deviation, where one is asked for."""
    asked = a.get("normalize_by_std", a.get("advantage_normalizer") == "std")
    return np.ravel(_centre(a) / (deviation + a["advantage_eps"]) if asked else _centre(a))


def _deviations(a: Arguments, ddof: int) -> np.ndarray:
    return np.asarray(_rewards_of(a).std(axis=1, ddof=ddof, keepdims=True))


def _by_batch(a: Arguments) -> np.ndarray:
    rewards = _rewards_of(a)
    deviation = float(rewards.std(ddof=1))
    return np.asarray((rewards - rewards.mean()) / (deviation + a["advantage_eps"]), dtype=np.float64).ravel()


def _interleaved(a: Arguments) -> np.ndarray:
    """Groups of every N-th rollout."""
    rewards = _rewards_of(a)
    groups = rewards.reshape(rewards.shape[1], rewards.shape[0])
    advantages: np.ndarray = groups - groups.mean(axis=0)
    if a.get("normalize_by_std", True):
        advantages = advantages / (groups.std(axis=0, ddof=1) + float(a["advantage_eps"]))
    return advantages.ravel()


def _inside(a: Arguments) -> np.ndarray:
    return _normalised(a, np.sqrt(_deviations(a, 1) ** 2 + a["advantage_eps"]) - a["advantage_eps"])


ADVANTAGE_SUSPECTS: Suspects = (
    Suspect("dividing by the population standard deviation, of ddof 0,", lambda a: _normalised(a, _deviations(a, 0))),
    Suspect("the sample standard deviation, of ddof 1,", lambda a: _normalised(a, _deviations(a, 1))),
    Suspect(
        "the standard deviation of the whole batch", lambda a: _normalised(a, np.asarray(_rewards_of(a).std(ddof=1)))
    ),
    Suspect("mean and standard deviation of the whole batch", _by_batch),
    Suspect("ε inside the square root", _inside),
    Suspect("centring without normalising", lambda a: _centre(a).ravel()),
    Suspect("always normalising", lambda a: (_centre(a) / (_deviations(a, 1) + a["advantage_eps"])).ravel()),
    Suspect("groups of every N-th rollout", _interleaved),
)


def _other_key(key: str) -> Suspect:
    def value(a: Arguments) -> np.ndarray:
        pairs = zip(a["rollout_responses"], a["repeated_ground_truths"], strict=True)
        return np.array([a["reward_fn"](response, truth)[key] for response, truth in pairs])

    return Suspect(f"reading {key!r} instead of 'reward'", value)


REWARD_SUSPECTS = (_other_key("format_reward"), _other_key("answer_reward"))


@TOPIC.check("compute_rollout_rewards", law="value", title="compute_rollout_rewards reads the reward of each response")
def rollout_rewards(trial: Trial) -> None:
    """The value."""
    arguments = rollout_case(trial.draw, trial.convention)
    agree(trial, "compute_rollout_rewards", arguments, "raw_rewards", REWARD_SUSPECTS)


@TOPIC.check(FORM_2025, law="advantages", title=f"{FORM_2025} centres and normalises each group by itself")
def advantages_2025(trial: Trial) -> None:
    """(R − mean) / (σ + ε)."""
    agree(trial, FORM_2025, case_2025(trial.draw, trial.convention), "advantages", ADVANTAGE_SUSPECTS)


@TOPIC.check(FORM_2025, law="raw-rewards", title=f"{FORM_2025} returns the rewards as they were")
def raw_rewards_2025(trial: Trial) -> None:
    """R."""
    agree(trial, FORM_2025, case_2025(trial.draw, trial.convention), "raw_rewards", REWARD_SUSPECTS)


def _declare(normalizer: str) -> None:
    @TOPIC.check(FORM_2026, law=f"normalizer-{normalizer}", title=f"{FORM_2026} with the normaliser {normalizer}")
    def advantages_2026(trial: Trial) -> None:
        """(R − b) / d."""
        arguments = case_2026(trial.draw, trial.convention, normalizer)
        agree(trial, FORM_2026, arguments, "advantages", ADVANTAGE_SUSPECTS)


for _normalizer in NORMALIZERS:
    _declare(_normalizer)


@TOPIC.check(FORM_2026, law="defaults", examples=2, title=f"{FORM_2026} takes mean, 1e-6 and std by default")
def defaults_2026(trial: Trial) -> None:
    """Rewards and group size alone."""
    case = case_2026(trial.draw, trial.convention, "std")
    agree(trial, FORM_2026, {name: case[name] for name in ("raw_rewards", "group_size")}, "advantages")


@TOPIC.check(
    FORM_2026, law="side-effects", kind="robustness", title=f"{FORM_2026} leaves the rewards it is given alone"
)
def side_effects_2026(trial: Trial) -> None:
    """An in-place subtraction changes the caller's rewards."""
    observed = call(trial, FORM_2026, case_2026(trial.draw, trial.convention, "std"), audit=True)
    require(not observed.side_effects, f"{FORM_2026} changed {', '.join(observed.side_effects)}")
