"""The claim checks of log-probs, masks, returns, Number Search, sorting and the bandit: right passes, wrong fails."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

import rlassay_impl
from rlassay.check import Check
from rlassay.engine import run_check
from rlassay.statistics import DESIGNS
from rlassay.suite import all_checks
from rlassay.suite.claims import (
    bandit,
    baseline,
    log_prob,
    number_search,
    policy_gradient,
    returns,
    sorting,
    trajectory,
)
from rlassay.suite.claims.trajectory import ROLES
from rlassay.torch_subject import TorchSubject
from rlassay_spec import exact
from rlassay_spec.operations import OPERATIONS

MODULES = (bandit, baseline, log_prob, number_search, policy_gradient, returns, sorting, trajectory)
NAMES = {module.__name__ for module in MODULES}
CHECKS = {key: check for key, check in all_checks().items() if inspect.unwrap(check.function).__module__ in NAMES}
RIGHT: dict[str, Callable[..., Any]] = {name: getattr(rlassay_impl, name) for name in OPERATIONS}


def outcome(check: Check, functions: dict[str, Callable[..., Any]], profile: str = "quick", seed: int = 0) -> str:
    """What the check says about the reference with these functions in place of its own."""
    result = run_check(check, TorchSubject(RIGHT | functions), profile, seed)
    detail = result.failure.traceback if result.failure and result.outcome == "harness-error" else ""
    return result.outcome + detail


@pytest.mark.parametrize("key", CHECKS)
def test_a_claim_check_passes_on_the_reference_for_twenty_seeds(key: str) -> None:
    drawn = CHECKS[key].examples != 1 or key in DESIGNS
    assert {outcome(CHECKS[key], {}, seed=seed) for seed in range(20 if drawn else 1)} == {"pass"}


# Right code that answers in other types: numbers of Python and numpy, tensors of one precision.

ANSWERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "float32 scalar": lambda value: np.float32(float(value)),
    "float64 scalar": lambda value: np.float64(float(np.float32(float(value)))),
    "0-d tensor": lambda value: torch.tensor(float(value)),
}
NUMBERS = (
    "expected_return",
    "bandit_gradient",
    "optimal_baseline",
    "position_reward",
    "inclusion_order_reward",
)


@pytest.mark.parametrize("answer", ANSWERS)
def test_numbers_of_another_type_and_of_single_precision_pass(answer: str) -> None:
    convert = ANSWERS[answer]

    def wrapped(operation: str) -> Callable[..., Any]:
        return lambda *arguments: convert(RIGHT[operation](*arguments))

    functions = {name: wrapped(name) for name in NUMBERS}
    outcomes = {key: outcome(check, functions) for key, check in CHECKS.items() if check.operation in NUMBERS}
    assert set(outcomes.values()) == {"pass"}, outcomes


def in_single_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function computed in float32 inside."""

    def computed(*arguments: Any) -> Any:
        floats = [a for a in arguments if isinstance(a, torch.Tensor) and a.is_floating_point()]
        narrow = [a.float() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in arguments]
        result = function(*narrow)
        return result.to(floats[0].dtype) if floats and result.is_floating_point() else result

    return computed


@pytest.mark.parametrize(
    "operation",
    ["token_log_probs", "masked_log_probs", "action_log_probs", "reward_to_go", "gae", "expected_return"],
)
def test_single_precision_inside_passes(operation: str) -> None:
    functions = {operation: in_single_precision(RIGHT[operation])}
    outcomes = {k: outcome(c, functions, "standard") for k, c in CHECKS.items() if c.operation == operation}
    assert set(outcomes.values()) == {"pass"}, outcomes


def test_an_environment_that_answers_in_a_tuple_with_an_integer_reward_passes() -> None:
    def game(hidden: int, guesses: list[int]) -> tuple[tuple[str, ...], int]:
        return exact.number_search.play(hidden, guesses)

    outcomes = {k: outcome(c, {"number_search": game}) for k, c in CHECKS.items() if c.operation == "number_search"}
    assert set(outcomes.values()) == {"pass"}, outcomes


NONSENSE: dict[str, Callable[..., Any]] = {
    "None": lambda *arguments: None,
    "a word": lambda *arguments: "higher",
    "not a number": lambda *arguments: math.nan,
    "infinity": lambda *arguments: math.inf,
    "a huge number": lambda *arguments: 1e308,
    "another shape": lambda *arguments: torch.zeros(3),
    "words without a number": lambda *arguments: (["higher"] * 4, math.nan),
    "no words": lambda *arguments: ([], 1.0),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_fails_every_claim_check_and_is_never_an_error_of_the_harness(name: str) -> None:
    outcomes = {key: outcome(check, {check.operation: NONSENSE[name]}) for key, check in CHECKS.items()}
    assert set(outcomes.values()) == {"fail"}, outcomes


@pytest.mark.parametrize(("factor", "possible"), [(math.nan, {"fail"}), (1e300, {"fail", "pass"})])
def test_results_of_the_right_shape_that_are_no_numbers_or_huge_fail(factor: float, possible: set[str]) -> None:
    """A result of 0 stays 0, so a check that asks for nothing else passes."""

    def spoilt(operation: str) -> Callable[..., Any]:
        return lambda *arguments: RIGHT[operation](*arguments) * factor

    outcomes = {
        key: outcome(check, {check.operation: spoilt(check.operation)})
        for key, check in CHECKS.items()
        if check.operation not in ("number_search", "response_mask")
    }
    assert set(outcomes.values()) == possible, outcomes


# Wrong code. Each function is wrong in one thing; the checks listed with it must see that.


def game_of(guesses_allowed: int) -> Callable[..., Any]:
    """Number Search with another number of guesses."""

    def game(hidden: int, guesses: list[int]) -> tuple[list[str], float]:
        feedback: list[str] = []
        for guess in guesses[:guesses_allowed]:
            feedback.append("correct" if guess == hidden else "higher" if guess < hidden else "lower")
            if guess == hidden:
                return feedback, 1.0
        return feedback, 0.0

    return game


def mirrored_game(hidden: int, guesses: list[int]) -> tuple[list[str], float]:
    """Higher and lower exchanged."""
    feedback, reward = game_of(4)(hidden, guesses)
    return [{"higher": "lower", "lower": "higher"}.get(word, word) for word in feedback], reward


def telling_game(hidden: int, guesses: list[int]) -> tuple[list[str], float]:
    """Tells when a guess is next to the hidden number."""
    feedback, reward = game_of(4)(hidden, guesses)
    pairs = zip(feedback, guesses, strict=False)
    return ["close" if abs(guess - hidden) == 1 else word for word, guess in pairs], reward


def endless_game(hidden: int, guesses: list[int]) -> tuple[list[str], float]:
    """A hit does not end the episode."""
    played = guesses[:4]
    words = ["correct" if g == hidden else "higher" if g < hidden else "lower" for g in played]
    return words, float(hidden in played)


def mask_with(*roles: str, header: bool = False) -> Callable[..., torch.Tensor]:
    """The mask of the content of these turns (by the ids of the suite) and of the closing token of every turn."""
    kept = {ROLES[role] for role in roles}

    def mask(token_ids: torch.Tensor, im_start: int, im_end: int, assistant: int, newline: int) -> torch.Tensor:
        out = torch.zeros(token_ids.shape, dtype=torch.bool)
        for row, tokens in enumerate(token_ids.tolist()):
            start, role = 0, -1
            for place, token in enumerate(tokens):
                if token == im_start:
                    start, role = place, tokens[place + 1]
                out[row, place] = (role in kept and place > start + 2) or (header and place <= start + 2)
        return out

    return mask


def mask_without_closing(token_ids: torch.Tensor, *special: int) -> torch.Tensor:
    """The assistant's closing token left out."""
    return RIGHT["response_mask"](token_ids, *special) & (token_ids != special[1])


def token_log_probs_unshifted(logits: torch.Tensor, token_ids: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """The logits at t score the token at t."""
    log_probs = torch.log_softmax(logits[:, :-1] / temperature, dim=-1)
    return log_probs.gather(2, token_ids[:, :-1, None])[..., 0]


def token_log_probs_of_sigmoids(logits: torch.Tensor, token_ids: torch.Tensor, t: float = 1.0) -> torch.Tensor:
    """Each token by its own sigmoid, without normalisation."""
    return torch.nn.functional.logsigmoid(logits[:, :-1] / t).gather(2, token_ids[:, 1:, None])[..., 0]


def token_log_probs_cooled_late(logits: torch.Tensor, token_ids: torch.Tensor, t: float = 1.0) -> torch.Tensor:
    """The temperature divides the log-probs instead of the logits."""
    return RIGHT["token_log_probs"](logits, token_ids) / t


def token_log_probs_detached(logits: torch.Tensor, token_ids: torch.Tensor, t: float = 1.0) -> torch.Tensor:
    """No gradient through the normalisation."""
    scaled = logits[:, :-1] / t
    return scaled.gather(2, token_ids[:, 1:, None])[..., 0] - scaled.logsumexp(-1).detach()


def masked_of(function: Callable[..., torch.Tensor], shift: int = 0) -> Callable[..., torch.Tensor]:
    """Masked log-probs made of other token log-probs or with a mask that is shifted."""

    def masked(logits: torch.Tensor, token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        chosen = mask.bool() if not shift else torch.roll(mask.bool(), shift, dims=1)
        ids = token_ids.clone()
        ids[:, 1:] = torch.where(chosen, ids[:, 1:], 0).clamp(min=0)
        return torch.where(chosen, function(logits, ids.clamp(min=0)), 0.0)

    return masked


def unmasked(logits: torch.Tensor, token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mask is ignored."""
    return RIGHT["token_log_probs"](logits, token_ids.clamp(min=0))


def mean_of_tokens(log_probs: torch.Tensor, action_ids: torch.Tensor, n_actions: int) -> torch.Tensor:
    """The mean of an action's token log-probs."""
    ones = RIGHT["action_log_probs"](torch.ones_like(log_probs), action_ids, n_actions).clamp(min=1)
    return RIGHT["action_log_probs"](log_probs, action_ids, n_actions) / ones


def observations_to_the_last_action(log_probs: torch.Tensor, action_ids: torch.Tensor, n: int) -> torch.Tensor:
    """The id −1 taken as the last action, as indexing does."""
    return RIGHT["action_log_probs"](log_probs, action_ids % n, n)


def later_rewards_only(rewards: torch.Tensor, gamma: float = 1.0) -> torch.Tensor:
    """The action's own reward is left out."""
    return RIGHT["reward_to_go"](rewards, gamma) - rewards


def whole_return(rewards: torch.Tensor, gamma: float = 1.0) -> torch.Tensor:
    """The whole return at every step."""
    return rewards.sum(dim=1, keepdim=True).expand_as(rewards).clone()


def discounted_by_default(rewards: torch.Tensor, gamma: float = 0.99) -> torch.Tensor:
    """Another default of γ."""
    return RIGHT["reward_to_go"](rewards, gamma)


def gae_of(change: Callable[..., tuple[Any, ...]]) -> Callable[..., torch.Tensor]:
    """GAE on changed arguments."""
    return lambda *arguments: RIGHT["gae"](*change(*arguments))


gae_without_values = gae_of(lambda r, v, m, gamma, lam: (r, torch.zeros_like(v), m, gamma, lam))
gae_without_lambda = gae_of(lambda r, v, m, gamma, lam: (r, v, m, gamma, 0.95))
gae_exchanged = gae_of(lambda r, v, m, gamma, lam: (r, v, m, lam, gamma))


def bandit_of(estimate: Callable[[float, float, float], float]) -> Callable[..., float]:
    """A bandit gradient from p, the reward and the baseline; the score is made by the estimate's caller."""
    return lambda theta, action, b: estimate(1 / (1 + math.exp(-float(theta))), 1.0 - action, float(b))


def score(p: float, reward: float) -> float:
    """1 − p for the arm that pays, −p for the other."""
    return 1 - p if reward else -p


ignores_baseline = bandit_of(lambda p, r, b: r * score(p, r))
adds_baseline = bandit_of(lambda p, r, b: (r + b) * score(p, r))
wrong_score = bandit_of(lambda p, r, b: (r - b) * (1 - p if r else p))
wrong_arm = bandit_of(lambda p, r, b: (r - b) * (p if r else p - 1))
rounded_p = bandit_of(lambda p, r, b: (r - b) * score(round(p, 2), r))
half_always = bandit_of(lambda p, r, b: (r - 0.5 - b) * score(p, r))
mean_reward_always = bandit_of(lambda p, r, b: (r - p) * score(p, r))
probability_gradient = bandit_of(lambda p, r, b: (r - b) * (1 if r else -1) * p * (1 - p))
action_value_baseline = bandit_of(lambda p, r, b: (r - b - r) * score(p, r))
current_reward_in_baseline = bandit_of(lambda p, r, b: (r - (0.75 * b + 0.25 * r)) * score(p, r))


def mean_reward(probabilities: torch.Tensor, scores: torch.Tensor, rewards: torch.Tensor) -> torch.Tensor:
    """E[R] in place of the optimal baseline."""
    return (probabilities * rewards).sum()


def plain_mean(probabilities: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The probabilities are ignored."""
    return values.mean()


def plain_sum(probabilities: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A sum without probabilities."""
    return values.sum()


def matches_unsorted(prompt: list[int], response: list[int]) -> int:
    """Compared with the prompt as it is."""
    return sum(a == b for a, b in zip(prompt, response, strict=True))


def leading_matches(prompt: list[int], response: list[int]) -> int:
    """Counts up to the first mismatch."""
    count = 0
    for a, b in zip(sorted(prompt), response, strict=True):
        if a != b:
            break
        count += 1
    return count


def distinct_tokens(prompt: list[int], response: list[int]) -> int:
    """A number that the prompt repeats counts once."""
    return len(set(prompt) & set(response)) + sum(a <= b for a, b in pairwise(response))


def strict_order(prompt: list[int], response: list[int]) -> int:
    """Equal neighbours are out of order."""
    return sum(n in response for n in prompt) + sum(a < b for a, b in pairwise(response))


def order_only(prompt: list[int], response: list[int]) -> int:
    """Inclusion is forgotten."""
    return sum(a <= b for a, b in pairwise(response))


BITES: list[tuple[str, str, Callable[..., Any], str]] = [
    ("number_search", "five guesses", game_of(5), "B2.1 B2.3 B2.4 B2.5 B2.8 B2.8-sampled B2.9 B2.10 B2.11"),
    ("number_search", "three guesses", game_of(3), "B2.1 B2.2 B2.3 B2.5 B2.6 B2.7 B2.8 B2.8-sampled B8.2 P4.3"),
    ("number_search", "higher and lower exchanged", mirrored_game, "B2.1 B2.2 B2.8-sampled B8.2"),
    ("number_search", "tells neighbours", telling_game, "B2.1 B2.3 B2.4 B2.5 B2.8 B2.10 B2.11 B4.4"),
    ("number_search", "a hit does not end it", endless_game, "B2.1"),
    ("response_mask", "user turns count", mask_with("assistant", "user"), "B6.5"),
    ("response_mask", "tool turns count", mask_with("assistant", "tool"), "B6.5"),
    ("response_mask", "headers count", mask_with("assistant", header=True), "B6.5"),
    ("response_mask", "the closing token does not count", mask_without_closing, "B6.5"),
    ("token_log_probs", "missing shift", token_log_probs_unshifted, "B3.1 B3.2 B6.1 P1.1 P9.1 P9.3"),
    ("token_log_probs", "one sigmoid a token", token_log_probs_of_sigmoids, "B3.1 B3.2 B3.5 B6.1 P1.1"),
    ("token_log_probs", "temperature after softmax", token_log_probs_cooled_late, "P9.1 P9.3"),
    ("token_log_probs", "detached normalisation", token_log_probs_detached, "B3.1 B3.2 B3.5 B6.1"),
    ("masked_log_probs", "mask ignored", unmasked, "B4.2 B6.2 B6.2-sampled B6.6 B6.7"),
    ("masked_log_probs", "mask shifted", masked_of(RIGHT["token_log_probs"], 1), "B4.2 B6.2 B6.2-sampled B6.6 B6.7"),
    ("masked_log_probs", "missing shift", masked_of(token_log_probs_unshifted), "B4.2 B6.2 B6.6 B6.7"),
    ("masked_log_probs", "detached normalisation", masked_of(token_log_probs_detached), "B4.2 B6.6 B6.7"),
    ("action_log_probs", "mean of the tokens", mean_of_tokens, "B3.3 B6.3"),
    ("action_log_probs", "observations counted", observations_to_the_last_action, "B4.2"),
    ("reward_to_go", "own reward left out", later_rewards_only, "B4.1 B8.12 B8.17 P1.1"),
    ("reward_to_go", "whole return", whole_return, "B8.12 B8.17 B8.18"),
    ("reward_to_go", "discounted by default", discounted_by_default, "B4.1 B8.12 P1.1"),
    ("gae", "no values", gae_without_values, "B8.1 lambda-one lambda-zero"),
    ("gae", "λ ignored", gae_without_lambda, "lambda-one lambda-zero"),
    ("gae", "γ and λ exchanged", gae_exchanged, "B8.1 lambda-one lambda-zero"),
    ("bandit_gradient", "baseline ignored", ignores_baseline, "B3.7 B8.6 B8.7 B8.10 B8.11 B8.15 P3.1 P3.2"),
    ("bandit_gradient", "baseline added", adds_baseline, "B3.7 B8.4 B8.6 B8.7 B8.8 B8.8-sampled B8.14 B8.15"),
    ("bandit_gradient", "score of B positive", wrong_score, "B7.6 B8.4 B8.9 B8.9-sampled P3.5"),
    ("bandit_gradient", "score of the other arm", wrong_arm, "B4.5 B7.6 B8.3 B8.5 P2.2 P2.3 P3.5"),
    ("bandit_gradient", "p rounded to two digits", rounded_p, "B8.3"),
    ("bandit_gradient", "one half always subtracted", half_always, "B3.7 B8.5 B8.8 B8.8-sampled P2.1 P2.2"),
    ("bandit_gradient", "own baseline E[R]", mean_reward_always, "B4.5 B8.5 B8.10 P2.1 P2.2 P3.2"),
    ("bandit_gradient", "gradient of p", probability_gradient, "B8.4 B8.5 B8.9 P2.3"),
    ("bandit_gradient", "baseline of the action", action_value_baseline, "B8.5 B8.9-sampled P2.3 P3.1"),
    ("bandit_gradient", "current reward in b", current_reward_in_baseline, "B8.9 B8.9-sampled B8.11"),
    ("optimal_baseline", "mean reward", mean_reward, "B8.15 P3.1 P3.2"),
    ("expected_return", "probabilities ignored", plain_mean, "B3.4 P4.3"),
    ("expected_return", "plain sum", plain_sum, "B3.4 B4.3 P3.3 P4.3"),
    ("position_reward", "prompt not sorted", matches_unsorted, "P8.1"),
    ("position_reward", "leading matches only", leading_matches, "P8.1 P8.3 P8.7 P9.3"),
    ("inclusion_order_reward", "distinct tokens", distinct_tokens, "P8.4"),
    ("inclusion_order_reward", "strict order", strict_order, "P8.2 P8.4 P8.7"),
    ("inclusion_order_reward", "order only", order_only, "P8.2 P8.3 P8.4 P8.5 P8.7"),
]
CASES = [(f"{operation}/{law}", name, wrong) for operation, name, wrong, text in BITES for law in text.split()]


@pytest.mark.parametrize(("key", "name", "wrong"), CASES, ids=[f"{key}: {name}" for key, name, _ in CASES])
def test_a_claim_check_fails_on_wrong_code(key: str, name: str, wrong: Callable[..., Any]) -> None:
    assert outcome(CHECKS[key], {key.split("/")[0]: wrong}) == "fail"


def test_the_parts_that_wrong_code_is_made_of_are_right() -> None:
    right = {
        "number_search": game_of(4),
        "response_mask": mask_with("assistant"),
        "masked_log_probs": masked_of(RIGHT["token_log_probs"]),
        "gae": gae_of(lambda *arguments: arguments),
        "bandit_gradient": bandit_of(lambda p, r, b: (r - b) * score(p, r)),
    }
    outcomes = {key: outcome(check, right) for key, check in CHECKS.items() if check.operation in right}
    assert set(outcomes.values()) == {"pass"}, outcomes


def test_every_claim_check_has_been_seen_to_fail() -> None:
    assert {key for key, _, _ in CASES} == set(CHECKS)


# What the checks expect is what the lectures print.

LECTURE: list[tuple[str, object, object]] = [
    ("B2.5", exact.number_search.best_success() * 16, 15),
    ("B2.8", exact.number_search.uniform_success(), Fraction(9752459, 16816800)),
    ("B2.9", exact.number_search.fewest_hits(16, 4), 4),
    ("P8.3", (sorting.density("position_reward"), sorting.density("inclusion_order_reward")), (19, 27)),
    ("P8.4", exact.sorting.gameable_prompts(), 18),
    ("B8.4", exact.bandit.scores(Fraction(1, 4)), (0.75, -0.25)),
    ("B8.5", [value for _, value in exact.bandit.estimates(Fraction(1, 4))], [0.75, 0]),
    ("B8.6", [value for _, value in exact.bandit.estimates(Fraction(1, 4), 0.5)], [0.375, 0.125]),
    ("B8.11", exact.bandit.moving_average_gradient(0.25, 0.25, 3, include_current=True), Fraction(9, 64)),
]


@pytest.mark.parametrize(("claim", "got", "want"), LECTURE, ids=[row[0] for row in LECTURE])
def test_the_expected_value_is_the_claims(claim: str, got: object, want: object) -> None:
    assert got == want


def test_the_expected_irrational_values_are_the_claims() -> None:
    quarter, half = Fraction(1, 4), Fraction(1, 2)
    spreads = [float(exact.moments.sd(exact.bandit.estimates(quarter, b))) for b in (Fraction(0), half, quarter)]
    assert spreads == pytest.approx([0.324760, 0.108253, 0.216506], abs=5e-7)
    inside = [float(exact.bandit.band_probability(quarter, b, 20, bandit.BAND)) for b in (Fraction(0), half)]
    assert inside == pytest.approx([0.560626, 0.982964], abs=5e-7)
    running = [float(exact.bandit.running_mean_sd(quarter, b, 20)) for b in (Fraction(0), half)]
    assert running == pytest.approx([0.072618, 0.024206], abs=5e-7)
    assert 0.95**20 == pytest.approx(0.358486, abs=5e-7)
    assert policy_gradient.TRUTH[0] == pytest.approx(1379 / 24000, rel=1e-12)
