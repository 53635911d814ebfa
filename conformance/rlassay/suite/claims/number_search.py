"""Checks of the claims about Number Search: its rules, its candidates, and what players are worth in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from rlassay.check import Trial, require
from rlassay.statistics import DESIGNS, binomial_p, require_plausible
from rlassay.suite.claims.game import (
    ALL,
    HIT,
    Numbers,
    Rules,
    mean,
    outcome,
    require_equal,
    require_game,
    same_feedback,
)
from rlassay.suite.number_search import TOPIC
from rlassay_spec.exact import number_search as exact

Reply: TypeAlias = Callable[[int, Numbers], Numbers]
"""The guess that missed and the candidates left → the guesses of which the next is drawn."""


@TOPIC.claim("B2.1", "number_search", title="a hit or the fourth guess ends the game, and a hit alone pays 1")
def rules(trial: Trial) -> None:
    """Every hidden number: each place of a hit, guesses after it and after the fourth, none at all, misses alone."""
    for hidden in ALL:
        misses = [(hidden + shift) % 16 + 1 for shift in (0, 7, 3, 12, 9)]
        require_game(trial, hidden, [])
        for place in range(5):
            require_game(trial, hidden, misses[:place])
            require_game(trial, hidden, [*misses[:place], hidden])
            require_game(trial, hidden, [*misses[:place], hidden, *misses[place:], hidden])


@TOPIC.claim("B2.2", "number_search", title="with 11 hidden, the lecture's four trajectories earn 1, 1, 0, 0")
def four_games(trial: Trial) -> None:
    """τ₁ = 8, 12, 10, 11; τ₂ = 4, 8, 12, 11; τ₃ = 16, 8, 9, 10; τ₄ = 1, 2, 3, 4."""
    for guesses in exact.TAUS:
        require_game(trial, 11, guesses)


@TOPIC.claim("B2.3", "number_search", title="4, 8, 12 leave 12, then 8, then 3 candidates and one guess")
def candidates(trial: Trial) -> None:
    """Candidates are the numbers that would have got the same feedback."""
    guesses = exact.TAUS[1]
    for k in (1, 2, 3):
        want = exact.candidates(11, guesses[:k])
        require_equal(f"candidates after {guesses[:k]}", same_feedback(trial, 11, guesses[:k]), want)
    answers = [len(outcome(trial, 11, [*guesses[:3], *rest])[0]) for rest in ([], [9], [9, 11])]
    require_equal("answers to 4, 8, 12 with no, one and two more guesses", answers, [3, 4, 4])


@TOPIC.claim("B2.4", "number_search", title="8 and 9 are the best first guesses")
def first_guesses(trial: Trial) -> None:
    """They leave the smallest worse side, 8 numbers, and they alone keep best play within reach."""
    game = Rules(trial)
    worst = {guess: max(map(len, game.sides(ALL, guess)), default=0) for guess in ALL}
    smallest = tuple(guess for guess in ALL if worst[guess] == min(worst.values()))
    require_equal("first guesses with the smallest worse side", smallest, exact.best_first_guesses())
    require_equal("candidates on that side", worst[8], exact.worst_side(8))
    best = game.player(max)
    found = {guess: game.found_by(best, ALL, guess, game.guesses) for guess in ALL}
    keep = tuple(guess for guess in ALL if found[guess] == max(found.values()))
    require_equal("first guesses after which best play can still find the most", keep, exact.best_first_guesses())


@TOPIC.claim("B2.5", "number_search", title="four guesses find 15 of the 16 numbers at most, five would find all")
def four_are_not_enough(trial: Trial) -> None:
    """k guesses find 2ᵏ − 1 numbers at most. Best play is then played to its end against every number."""
    game = Rules(trial)
    best = game.player(max)
    for count in (1, 2, 3, 4, 5):
        require_equal(f"numbers best play finds with {count} guesses", best(ALL, count), min(16, exact.capacity(count)))
    won = 0
    for hidden in ALL:
        numbers, guesses = ALL, list[int]()
        while numbers and len(guesses) < game.guesses:
            guesses.append(game.best_guess(best, numbers, game.guesses - len(guesses)))
            feedback, reward = outcome(trial, hidden, guesses)
            if len(feedback) < len(guesses) or feedback[-1] == HIT:
                won += reward
                break
            numbers = tuple(n for n in numbers if game.answers[n, guesses[-1]] == feedback[-1])
    require_equal("games that best play wins, one for each hidden number", won, exact.best_success() * 16)


@TOPIC.claim("B2.6", "number_search", title="scanning 1, 2, 3, 4 finds the hidden numbers 1 to 4 alone")
def linear_scan(trial: Trial) -> None:
    """4/16."""
    found = tuple(hidden for hidden in ALL if outcome(trial, hidden, (1, 2, 3, 4))[1])
    require_equal("hidden numbers found by 1, 2, 3, 4", found, (1, 2, 3, 4))


@TOPIC.claim("B2.7", "number_search", title="after 4, 8, 12 each last guess wins one time in three")
def last_guess(trial: Trial) -> None:
    """Over the numbers that are left."""
    left = same_feedback(trial, 11, (4, 8, 12))
    for guess in (9, 10, 11):
        wins = sum(outcome(trial, hidden, (4, 8, 12, guess))[1] for hidden in left)
        want = exact.action_value((9, 10, 11), guess, 1)
        require_equal(f"share of wins of the last guess {guess}", Fraction(wins, len(left)), want)


@TOPIC.claim("B2.8", "number_search", title="uniform play over the candidates wins with probability 0.579924")
def uniform_play(trial: Trial) -> None:
    """J = 9752459/16816800, by enumeration of the subject's answers."""
    game = Rules(trial)
    require_equal("J of uniform play", game.player(mean)(ALL, game.guesses) / 16, exact.uniform_success())


@TOPIC.check(
    "number_search",
    law="B2.8-sampled",
    claims=("B2.8",),
    examples=1,
    title="uniform play over the candidates wins 0.58 of 1000 sampled games, within chance",
)
def sampled_uniform_play(trial: Trial) -> None:
    """Games are played to their end, guess by guess; the number of wins is binomial."""
    rng, games, won = trial.draw.rng, DESIGNS["number_search/B2.8-sampled"].samples, 0
    for hidden in rng.integers(1, 17, games).tolist():
        low, high, guesses = 1, 16, list[int]()
        while low <= high:
            guesses.append(int(rng.integers(low, high + 1)))
            feedback, reward = outcome(trial, hidden, guesses)
            if len(feedback) < len(guesses) or feedback[-1] == HIT:
                won += reward
                break
            low, high = (guesses[-1] + 1, high) if feedback[-1] == "higher" else (low, guesses[-1] - 1)
    seen = f"{won} wins in {games} games of uniform play"
    require_plausible("number_search/B2.8-sampled", {seen: binomial_p(won, games, float(exact.uniform_success()))})


@TOPIC.claim("B2.9", "number_search", title="no player who keeps to the candidates finds fewer than the scan's 4")
def worst_play(trial: Trial) -> None:
    """Guessing 1 four times, which does not keep to them, finds 1."""
    game = Rules(trial)
    fewest = game.player(min)(ALL, game.guesses)
    require_equal("numbers that the worst consistent play finds", fewest, exact.fewest_hits(16, 4))
    for guesses in ((1, 2, 3, 4), (1, 1, 1, 1)):
        found = sum(outcome(trial, hidden, guesses)[1] for hidden in ALL)
        require_equal(f"numbers that {guesses} finds", found, exact.fixed_success(guesses) * 16)


def require_costs(trial: Trial, game: Rules, name: str, guesses: Sequence[int]) -> None:
    """What each guess costs with 11 hidden is V*(h) − Q*(h, a), also under the answers of the subject's environment."""
    best = game.player(max)
    cost = []
    for t, guess in enumerate(guesses):
        numbers, left = same_feedback(trial, 11, guesses[:t]), game.guesses - t
        require(bool(numbers), f"11 hidden, number_search answers {list(guesses[:t])} as it answers no number")
        cost.append((best(numbers, left) - game.found_by(best, numbers, guess, left)) / len(numbers))
    require_equal(f"costs of the guesses of {name}", tuple(cost), exact.losses(11, guesses))


@TOPIC.claim(
    "B2.10", "number_search", title="τ₂ loses a quarter by its first guess and nothing later; τ₁ loses nothing"
)
def cost_of_a_first_guess(trial: Trial) -> None:
    """4 lowers the best success probability from 15/16 to 11/16."""
    game = Rules(trial)
    require_costs(trial, game, "τ₁", exact.TAUS[0])
    require_costs(trial, game, "τ₂", exact.TAUS[1])


@TOPIC.claim("B2.11", "number_search", title="τ₃ loses 1/7 by its third guess, but 7/16 by its first")
def cost_of_an_opening(trial: Trial) -> None:
    """Its finish is a mistake, its opening a larger one."""
    require_costs(trial, Rules(trial), "τ₃", exact.TAUS[2])


@TOPIC.claim(
    "B4.4",
    "number_search",
    examples="profile",
    title="feedback tells on which side of each guess a number lies, no more",
)
def indistinguishable(trial: Trial) -> None:
    """Numbers in one gap between the guesses get the same history, numbers in different gaps do not."""
    hidden = int(trial.draw.integers(1, 16))
    guesses = trial.draw.integers(1, 16, trial.draw.integer("guesses", 1, 4)).tolist()
    got = same_feedback(trial, hidden, guesses)
    require_equal(f"numbers with the feedback of {hidden} to {guesses}", got, exact.candidates(hidden, guesses))


def action_value(trial: Trial, guess: int, reply: Reply) -> Fraction:
    """Q(h, guess) after 8 → higher, 12 → lower, played out in the subject's environment against 9, 10 and 11."""
    wins: list[Fraction] = []
    for hidden in (9, 10, 11):
        feedback, reward = outcome(trial, hidden, (8, 12, guess))
        if feedback[-1:] == (HIT,):
            wins.append(Fraction(reward))
            continue
        left = tuple(n for n in (9, 10, 11) if outcome(trial, n, (8, 12, guess))[0] == feedback)
        last = reply(guess, left)
        wins.append(Fraction(sum(outcome(trial, hidden, (8, 12, guess, final))[1] for final in last), len(last)))
    return mean(wins)


def any_candidate(guess: int, left: Numbers) -> Numbers:
    """The last guess is one of the numbers that are left."""
    return left


def careless_after_10(guess: int, left: Numbers) -> Numbers:
    """The last guess goes to 12, which is excluded, where 10 has missed."""
    return (12,) if guess == 10 else left


@TOPIC.claim(
    "B8.2",
    "number_search",
    title="after 8 → higher, 12 → lower, 10 is good and 11 is bad for a player who uses the answer",
)
def worth_of_10(trial: Trial) -> None:
    """Uniform play: Q = (2/3, 1, 2/3), V = 7/9, A(10) = 2/9. Wasting the last guess after 10 turns the signs around."""
    for hidden in (9, 10, 11):
        require_equal(f"answers to 8, 12 with {hidden} hidden", outcome(trial, hidden, (8, 12))[0], ("higher", "lower"))
    careless: exact.Policy = {(9,): {12: 1}, (11,): {12: 1}}
    players: tuple[tuple[str, Reply, exact.Policy], ...] = (
        ("in uniform play", any_candidate, {}),
        ("when the last guess is wasted after 10", careless_after_10, careless),
    )
    for name, reply, policy in players:
        values = {guess: action_value(trial, guess, reply) for guess in (9, 10, 11)}
        average = mean(list(values.values()))
        for guess, value in values.items():
            require_equal(f"Q({guess}) {name}", value, exact.action_value((9, 10, 11), guess, 2, policy))
            require_equal(f"A({guess}) {name}", value - average, exact.advantage((9, 10, 11), guess, 2, policy))


@TOPIC.claim(
    "P4.3", "number_search", title="Q is the reward where nothing follows, and the mean over what follows elsewhere"
)
def q_and_reward(trial: Trial) -> None:
    """Q = 1 = R for the last guess 11 with 11 alone left; Q(11) = 2/3 with 9, 10, 11 and two guesses left."""
    alone = same_feedback(trial, 11, (8, 12, 10))
    require_equal("candidates after 8, 12, 10", alone, (11,))
    last = outcome(trial, 11, (8, 12, 10, 11))[1]
    require_equal("Q of the last guess 11 with 11 alone left", last, exact.action_value((11,), 11, 1))
    early = action_value(trial, 11, any_candidate)
    require_equal("Q of 11 with 9, 10, 11 and two guesses left", early, exact.action_value((9, 10, 11), 11, 2))
