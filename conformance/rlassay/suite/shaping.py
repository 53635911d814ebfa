"""Checks of whitening, of rewards with a KL penalty, and of the soft punishment of length."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial, require
from rlassay.comparison import require_array, tolerance
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.inputs import batch_shape, log_probs, mask
from rlassay.laws import Domain
from rlassay.refusals import cut, integers, longer, number, value_in
from rlassay.suite.advantage import SMALL
from rlassay.topic import Topic
from rlassay_spec.convention import Convention

VALUE_KINDS = ("real", "levels", "negative", "small spread", "offset", "no contrast", "tiny spread", "large")
GRID = 2.0**-12
"""Values are multiples of it: the mean of equal ones is then exact in float32, in whatever order they are summed."""

BUDGETS = ((16, 4), (10, 10), (8, 1), (20, 5), (7, 3), (100, 20), (20480, 4096))
"""Largest length and buffer: none, half and all of the budget, and the numbers of the paper."""

LENGTH_KINDS = ("any", "short", "inside the buffer", "beyond", "at a bound")


def entries(draw: Draw, shape: tuple[int, int]) -> np.ndarray:
    """Values to whiten in several regimes."""
    kind = draw.choice("values", VALUE_KINDS)
    numbers = draw.normal(*shape, scale=2.0)
    if kind == "levels":
        numbers = draw.integers(-2, 2, *shape) / 4
    if kind == "negative":
        numbers = -draw.uniform(0.5, 3.0, *shape)
    if kind == "small spread":
        numbers = 0.5 + draw.uniform(-0.02, 0.02, *shape)
    if kind == "offset":
        numbers = 200.0 + draw.integers(-3, 3, *shape)
    if kind == "no contrast":
        numbers = np.full(shape, draw.pick((1.0, 0.0, -2.0, 0.5)))
    if kind == "tiny spread":
        numbers = 1.0 + GRID * draw.integers(0, 1, *shape)
    if kind == "large":
        numbers = 25 * numbers
    return np.rint(numbers / GRID) * GRID


def whiten_case(draw: Draw, convention: Convention) -> Arguments:
    """Values and a mask."""
    shape = batch_shape(draw)
    return {"values": Tensor(entries(draw, shape)), "mask": mask(draw, shape, convention)}


def kl_case(draw: Draw, convention: Convention) -> Arguments:
    """Rewards, and log-probs on both sides of the reference's."""
    shape = batch_shape(draw)
    kind = draw.choice("rewards", ("real", "binary", "negative", "none"))
    rewards = draw.normal(shape[0], scale=2.0)
    if kind == "binary":
        rewards = draw.integers(0, 1, shape[0]).astype(float)
    if kind == "negative":
        rewards = -draw.uniform(0.5, 2.0, shape[0])
    if kind == "none":
        rewards = np.zeros(shape[0])
    new = log_probs(draw, shape)
    distance = draw.choice("distance", (0.3, 2.0, 0.0))
    return {
        "rewards": Tensor(rewards),
        "log_probs": Tensor(new),
        "ref_log_probs": Tensor(new + draw.normal(*shape, scale=distance)),
        "mask": mask(draw, shape, convention),
        "beta": draw.choice("beta", (0.1, 0.5, 2.0, 0.02, 0.0)),
    }


def overlong_case(draw: Draw, convention: Convention) -> Arguments:
    """Lengths below, inside and beyond the buffer."""
    max_length, buffer = draw.choice("budget", BUDGETS)
    kind = draw.choice("lengths", LENGTH_KINDS)
    rows, free = draw.choice("rows", (3, 1, 2, 5, 9)), max_length - buffer
    low, high = {
        "any": (0, 2 * max_length),
        "short": (0, free),
        "inside the buffer": (free, max_length),
        "beyond": (max_length, 2 * max_length),
        "at a bound": (0, 0),
    }[kind]
    lengths = draw.integers(low, high, rows)
    if kind == "at a bound":
        lengths = draw.pick((free, max_length, free + 1, max_length + 1, 0), rows).astype(int)
    return {"lengths": Tensor(lengths, "int64"), "max_length": max_length, "buffer": buffer}


TOPIC = Topic(
    Domain(
        "whiten",
        whiten_case,
        mask="mask",
        masked=("values",),
        rows=("values", "mask"),
        refusals={
            "a-mask-of-another-length": cut("mask"),
            "a-mask-that-is-not-0-or-1": value_in("mask", 0.5),
        },
    ),
    Domain(
        "kl_rewards",
        kl_case,
        mask="mask",
        masked=("log_probs", "ref_log_probs"),
        rows=("rewards", "log_probs", "ref_log_probs", "mask"),
        per_row=True,
        refusals={
            "a-reference-of-another-length": cut("ref_log_probs"),
            "a-mask-of-another-length": cut("mask"),
            "rewards-of-another-batch": longer("rewards"),
            "a-mask-that-is-not-0-or-1": value_in("mask", 0.5),
            "integer-rewards": integers("rewards"),
            "a-negative-beta": number("beta", -0.1),
        },
    ),
    Domain(
        "overlong_penalty",
        overlong_case,
        rows=("lengths",),
        per_row=True,
        result="float32",
        refusals={
            "a-buffer-of-0": number("buffer", 0),
            "a-buffer-larger-than-the-largest-length": number("buffer", 10**6),
            "a-negative-length": value_in("lengths", -1),
        },
    ),
)


@TOPIC.check("whiten", law="rows-apart", title="whiten takes its statistics over the batch, not over a row")
def rows_apart(trial: Trial) -> None:
    """Rows of different levels stay apart: the variance holds what lies between them."""
    arguments = whiten_case(trial.draw, trial.convention)
    values = arguments["values"].array
    trial.agree("whiten", replaced(arguments, values=values + 8.0 * np.arange(len(values))[:, None]))


@TOPIC.check("whiten", law="few-entries", title="whiten counts masked-in entries only")
def few_entries(trial: Trial) -> None:
    """Two or three entries among many masked-out ones that are far away."""
    rows, steps = trial.draw.choice("shape", ((2, 6), (1, 9), (4, 4)))
    few = trial.draw.integer("entries", 2, 3)
    shown = np.zeros(rows * steps)
    shown[trial.draw.permutation(rows * steps)[:few]] = 1
    values = np.where(shown == 1, np.rint(trial.draw.normal(rows * steps, scale=2.0) / GRID) * GRID, 50.0)
    shape = (rows, steps)
    trial.agree("whiten", {"values": Tensor(values.reshape(shape)), "mask": Tensor(shown.reshape(shape))})


@TOPIC.check("whiten", law="single-entry", title="whiten gives 0 for a single masked-in entry")
def single_entry(trial: Trial) -> None:
    """One entry has no contrast, whatever its size; with ddof = 1 its variance would be 0/0."""
    arguments = whiten_case(trial.draw, trial.convention)
    shown = np.zeros_like(arguments["mask"].array)
    shown.flat[trial.draw.integers(0, shown.size - 1)] = 1
    trial.agree("whiten", replaced(arguments, mask=shown))


@TOPIC.check(
    "whiten",
    law="inexact-no-contrast",
    kind="robustness",
    title="whiten sees that equal entries are equal when binary cannot represent them",
)
def inexact_no_contrast(trial: Trial) -> None:
    """0.1 × 7 in float32: the mean is not 0.1, the result is still exactly 0."""
    steps = trial.draw.choice("steps", (7, 3, 5, 6, 11))
    value = trial.draw.choice("value", (0.1, 0.7, 0.3, 0.95, -0.6, 1e-3))
    trial.agree("whiten", {"values": Tensor(np.full((1, steps), value)), "mask": Tensor(np.ones((1, steps)))})


@TOPIC.check("whiten", law="large-offset", kind="robustness", title="whiten keeps its digits far away from 0")
def large_offset(trial: Trial) -> None:
    """4096 ± 3: squares of the values themselves would lose all digits of the variance."""
    shape = trial.draw.choice("shape", ((2, 4), (1, 9), (3, 3)))
    values = 4096.0 + trial.draw.integers(-3, 3, *shape)
    trial.agree("whiten", {"values": Tensor(values), "mask": Tensor(np.ones(shape))})


@TOPIC.check("kl_rewards", law="last-token", title="kl_rewards gives the reward at the last masked-in token")
def last_token(trial: Trial) -> None:
    """Prompts, holes and padding of every length; without a penalty only the rewards are left."""
    rows, steps = trial.draw.choice("shape", ((3, 6), (2, 4), (5, 9), (1, 5)))
    shown = trial.draw.integers(0, 1, rows, steps)
    shown[np.arange(rows), trial.draw.integers(0, steps - 2, rows)] = 1
    shown[:, -1] = 0
    new = log_probs(trial.draw, (rows, steps))
    arguments: Arguments = {
        "rewards": Tensor(trial.draw.uniform(0.5, 2.0, rows)),
        "log_probs": Tensor(new),
        "ref_log_probs": Tensor(new + trial.draw.normal(rows, steps)),
        "mask": Tensor(shown),
        "beta": trial.draw.choice("beta", (0.0, 0.1)),
    }
    trial.agree("kl_rewards", arguments)


@TOPIC.check("kl_rewards", law="below-the-reference", title="kl_rewards rewards a token that the reference prefers")
def below_the_reference(trial: Trial) -> None:
    """log π < log π_ref: k1 is negative, so the penalty is positive; k2, k3 and |k1| are not."""
    arguments = kl_case(trial.draw, trial.convention)
    new = arguments["log_probs"].array
    trial.agree("kl_rewards", replaced(arguments, ref_log_probs=new + trial.draw.uniform(0.2, 2.0, *new.shape)))


@TOPIC.check("kl_rewards", law="row-sum", title="the kl_rewards of a row sum to its reward minus β times its log-ratio")
def row_sum(trial: Trial) -> None:
    """Σ_t out[b, t] = R_b − β (log π(y_b) − log π_ref(y_b)), the reward of the whole sequence."""
    arguments = kl_case(trial.draw, trial.convention)
    new, ref, shown = (arguments[name].array for name in ("log_probs", "ref_log_probs", "mask"))
    rewards, beta = arguments["rewards"].array, arguments["beta"]
    want = np.where(shown.any(axis=1), rewards, 0.0) - beta * (shown * (new - ref)).sum(axis=1)
    observed = trial.call("kl_rewards", arguments)
    got = require_array("kl_rewards", observed, shown.shape)
    scale = np.abs(rewards) + beta * (shown * (np.abs(new) + np.abs(ref))).sum(axis=1)
    off = np.abs(got.sum(axis=1) - want) > tolerance(scale, shown.shape[1], observed.dtype)
    require(not off.any(), f"the kl_rewards of row {int(off.argmax())} do not sum to R − β (log π − log π_ref)")


@TOPIC.check("kl_rewards", law="one-token", title="kl_rewards adds the reward to the last token's penalty")
def one_token(trial: Trial) -> None:
    """Rows of one token, which gets both."""
    arguments = kl_case(trial.draw, trial.convention)
    rows, steps = arguments["mask"].array.shape
    shown = np.arange(steps) == trial.draw.integers(0, steps - 1, rows)[:, None]
    trial.agree("kl_rewards", replaced(arguments, mask=shown.astype(float), rewards=trial.draw.uniform(0.5, 2.0, rows)))


@TOPIC.check("overlong_penalty", law="dtype", title="overlong_penalty gives float32 for lengths of any integer dtype")
def integer_dtypes(trial: Trial) -> None:
    """Lengths are counted in int64 or int32."""
    arguments = overlong_case(trial.draw, trial.convention)
    lengths = Tensor(arguments["lengths"].array, trial.draw.choice("dtype", ("int64", "int32")))
    trial.agree("overlong_penalty", arguments | {"lengths": lengths}, dtypes=("float32",))


@TOPIC.check("overlong_penalty", law="every-length", title="overlong_penalty falls by 1/buffer with each token")
def every_length(trial: Trial) -> None:
    """All lengths from 0 to beyond the largest one, in one batch."""
    max_length, buffer = trial.draw.choice("budget", ((16, 4), (12, 7), (9, 2), (30, 10)))
    lengths = Tensor(np.arange(max_length + 4), "int64")
    trial.agree("overlong_penalty", {"lengths": lengths, "max_length": max_length, "buffer": buffer})


@TOPIC.check("overlong_penalty", law="extreme-buffers", title="overlong_penalty takes a buffer of one token and of all")
def extreme_buffers(trial: Trial) -> None:
    """buffer = 1 is a step from 0 to −1 at the largest length, buffer = max_length a slope from the first token on."""
    max_length = trial.draw.integer("max_length", 2, 9)
    buffer = trial.draw.choice("buffer", (1, max_length))
    lengths = Tensor(trial.draw.integers(0, max_length + 2, 6), "int64")
    trial.agree("overlong_penalty", {"lengths": lengths, "max_length": max_length, "buffer": buffer})


@TOPIC.check(
    "whiten",
    law="small-contrast",
    kind="robustness",
    examples=len(SMALL),
    title="whiten takes a small contrast for a contrast",
)
def small_contrast(trial: Trial) -> None:
    """Values 0 and 2⁻²⁰ at the smallest."""
    spread = trial.draw.choice("spread", SMALL)
    values = spread * np.array([[0.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
    trial.agree("whiten", {"values": Tensor(values), "mask": Tensor(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]))})


def _declare_no_gradient(operation: str) -> None:
    domain = TOPIC.domains[operation]

    @TOPIC.check(operation, law="no-gradient", kind="robustness", title=f"{operation} lets no gradient through")
    def no_gradient(trial: Trial) -> None:
        """What comes out is a weight, not something to learn from, even where the arguments carry a graph."""
        arguments = domain.case(trial.draw, trial.convention)
        floats = tuple(name for name in arguments if name in domain.rows and name != domain.mask)
        observed = trial.call(operation, arguments, live=floats)
        for name, gradient in observed.gradients.items():
            flows = gradient is not None and np.nan_to_num(gradient, nan=1.0).any()
            require(not flows, f"a gradient of {operation} flows into {name}, which is a constant")


_declare_no_gradient("whiten")
_declare_no_gradient("kl_rewards")
