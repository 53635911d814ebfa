"""Checks of token log-probs, masked log-probs, entropy and action log-probs."""

from __future__ import annotations

import numpy as np

from rlassay.check import Trial, require
from rlassay.draw import Draw
from rlassay.guest.values import Arguments, Tensor, replaced
from rlassay.inputs import batch_shape, log_probs, mask
from rlassay.laws import Case, Domain, Refusal
from rlassay.refusals import cut, floats, number, value_in
from rlassay.topic import Topic
from rlassay_spec.convention import Convention

LOGIT_SHAPES = (
    (1, 2, 2),
    (2, 3, 4),
    (1, 2, 5),
    (3, 2, 3),
    (4, 4, 4),
    (1, 6, 3),
    (5, 3, 2),
    (2, 4, 40),
    (9, 3, 3),
    (1, 70, 3),
)

LARGEST = 14.0
"""Largest logit of the conformance checks: at temperature ½ even exp(−z)/exp(z)² does not underflow in float32."""

LOGIT_KINDS = ("moderate", "spread", "equal", "shifted", "close", "peaked")


def logits_and_ids(draw: Draw) -> Arguments:
    """Logits [B, L, V] in several regimes and random ids [B, L]."""
    rows, length, size = draw.choice("shape", LOGIT_SHAPES)
    kind = draw.choice("logits", LOGIT_KINDS)
    logits = draw.normal(rows, length, size)
    if kind == "spread":
        logits = np.clip(8 * logits, -LARGEST, LARGEST)
    if kind == "equal":
        logits = np.zeros_like(logits)
    if kind == "shifted":
        logits = logits + draw.pick((10.0, -10.0), rows, length, 1)
    if kind == "close":
        logits = 0.05 * logits
    if kind == "peaked":
        logits = logits + 12.0 * (np.arange(size) == draw.integers(0, size - 1, rows, length)[..., None])
    return {"logits": Tensor(logits), "token_ids": Tensor(draw.integers(0, size - 1, rows, length), "int64")}


def token_log_probs_case(draw: Draw, convention: Convention) -> Arguments:
    """Logits and ids, at temperature 1 by default or one given."""
    arguments = logits_and_ids(draw)
    temperature = draw.choice("temperature", (None, 1.0, 0.5, 2.0, 0.7))
    return arguments if temperature is None else arguments | {"temperature": temperature}


def masked_log_probs_case(draw: Draw, convention: Convention) -> Arguments:
    """Logits, ids and a mask."""
    arguments = logits_and_ids(draw)
    rows, length = arguments["token_ids"].array.shape
    return arguments | {"mask": mask(draw, (rows, length - 1), convention)}


def entropy_case(draw: Draw, convention: Convention) -> Arguments:
    """Logits alone."""
    return {"logits": logits_and_ids(draw)["logits"]}


def action_case(draw: Draw, convention: Convention) -> Arguments:
    """Token log-probs in actions of several tokens; some tokens belong to none, some actions have none."""
    rows, steps = batch_shape(draw)
    count = draw.integer("actions", 1, 7)
    ids = draw.integers(-1, count - 1, rows, steps)
    if draw.choice("order", ("sorted", "any")) == "sorted":
        ids = np.sort(ids, axis=1)
    return {
        "log_probs": Tensor(log_probs(draw, (rows, steps))),
        "action_ids": Tensor(ids, "int64"),
        "n_actions": count,
    }


def unread(draw: Draw, arguments: Arguments, fill: tuple[float, ...]) -> Arguments:
    """Other logits after the last token and another first token: neither is scored."""
    logits, ids = arguments["logits"].array.copy(), arguments["token_ids"].array.copy()
    logits[:, -1] = draw.pick(fill, *logits[:, -1].shape)
    ids[:, 0] = draw.integers(0, logits.shape[-1] - 1, len(ids))
    return replaced(arguments, logits=logits, token_ids=ids)


def hidden(draw: Draw, arguments: Arguments, fill: tuple[float, ...]) -> Arguments:
    """Other logits and ids, −100 and ids beyond the vocabulary among them, wherever the mask is 0."""
    logits, ids = arguments["logits"].array.copy(), arguments["token_ids"].array.copy()
    masked = arguments["mask"].array == 0
    logits[:, :-1][masked] = draw.pick(fill, int(masked.sum()), logits.shape[-1])
    ids[:, 1:][masked] = draw.pick((-100, 0, 10**6, -1), int(masked.sum())).astype(int)
    return replaced(arguments, logits=logits, token_ids=ids)


def with_ids(value: int, beyond: bool = False) -> Refusal:
    """Every scored id replaced, counted from the end of the vocabulary if it is to be beyond."""

    def spoil(arguments: Arguments) -> Arguments:
        ids = arguments["token_ids"].array.copy()
        ids[:, 1:] = value + beyond * arguments["logits"].array.shape[-1]
        changed = replaced(arguments, token_ids=ids)
        return replaced(changed, mask=np.ones_like(changed["mask"].array)) if "mask" in changed else changed

    return Refusal("token_ids", spoil)


TOPIC = Topic(
    Domain(
        "token_log_probs",
        token_log_probs_case,
        differentiable=True,
        rows=("logits", "token_ids"),
        per_row=True,
        scramble=unread,
        refusals={
            "an-id-beyond-the-vocabulary": with_ids(0, beyond=True),
            "an-id-far-beyond-the-vocabulary": with_ids(10**6),
            "a-negative-id": with_ids(-1),
            "ids-that-are-floats": floats("token_ids"),
            "ids-of-another-length": cut("token_ids"),
            "temperature-zero": number("temperature", 0.0),
            "a-negative-temperature": number("temperature", -1.0),
        },
    ),
    Domain(
        "masked_log_probs",
        masked_log_probs_case,
        differentiable=True,
        mask="mask",
        rows=("logits", "token_ids", "mask"),
        per_row=True,
        scramble=hidden,
        claims={"masked": ("B6.6",), "masked-nonfinite": ("B6.6",)},
        refusals={
            "an-id-beyond-the-vocabulary": with_ids(0, beyond=True),
            "a-mask-of-another-length": cut("mask"),
            "a-mask-that-is-not-0-or-1": value_in("mask", 0.5),
        },
    ),
    Domain(
        "entropy",
        entropy_case,
        differentiable=True,
        rows=("logits",),
        per_row=True,
    ),
    Domain(
        "action_log_probs",
        action_case,
        differentiable=True,
        rows=("log_probs", "action_ids"),
        per_row=True,
        refusals={
            "no-actions": number("n_actions", 0),
            "an-action-id-beyond-the-last": Refusal(
                "action_ids", lambda a: replaced(a, action_ids=np.full(a["action_ids"].array.shape, a["n_actions"]))
            ),
            "action-ids-that-are-floats": floats("action_ids"),
            "an-action-id-below-minus-one": value_in("action_ids", -2),
            "ids-of-another-length": cut("action_ids"),
        },
    ),
)


@TOPIC.check("entropy", law="banned-tokens", title="entropy takes −inf logits as probability 0")
def entropy_of_banned_tokens(trial: Trial) -> None:
    """H = −Σ p log p with 0·log 0 = 0."""
    arguments = entropy_case(trial.draw, trial.convention)
    trial.agree("entropy", banned(trial.draw, arguments))


@TOPIC.check(
    "entropy", law="banned-tokens-gradient", kind="robustness", title="entropy has a finite gradient beside −inf logits"
)
def entropy_gradient_beside_banned_tokens(trial: Trial) -> None:
    """The gradient in the allowed logits is that of the distribution over them."""
    arguments = banned(trial.draw, entropy_case(trial.draw, trial.convention))
    want = trial.expect("entropy", arguments)
    observed = trial.call("entropy", arguments, live=("logits",))
    require(want.pullback is not None and observed.gradients["logits"] is not None, "no gradient of entropy")
    allowed = np.isfinite(arguments["logits"].array)
    finite = np.isfinite(observed.gradients["logits"])  # type: ignore[arg-type]
    require(bool(finite[allowed].all()), "the gradient of entropy is not finite at logits beside a −inf")


def banned(draw: Draw, arguments: Arguments) -> Arguments:
    """Some logits at −inf, never all of a row."""
    logits = arguments["logits"].array.copy()
    allowed = draw.integers(0, 1, *logits.shape).astype(bool)
    allowed[..., 0] = True
    return replaced(arguments, logits=np.where(allowed, logits, -np.inf))


@TOPIC.check(
    "token_log_probs",
    law="extreme-logits",
    kind="robustness",
    title="token_log_probs is finite and accurate for logits in the thousands",
)
def extreme_logits(trial: Trial) -> None:
    """log π = x_t − max − log Σ exp(x − max) neither overflows nor underflows."""
    arguments = logits_and_ids(trial.draw)
    logits = 1000.0 * arguments["logits"].array
    trial.agree("token_log_probs", replaced(arguments, logits=logits))


@TOPIC.check(
    "entropy",
    law="extreme-logits",
    kind="robustness",
    title="entropy is finite and accurate for logits in the thousands",
)
def entropy_of_extreme_logits(trial: Trial) -> None:
    """H → log of the number of largest logits."""
    arguments = entropy_case(trial.draw, trial.convention)
    trial.agree("entropy", replaced(arguments, logits=1000.0 * arguments["logits"].array))


@TOPIC.check("masked_log_probs", law="padding", title="masked_log_probs is unchanged by padding that is masked out")
def masked_padding(trial: Trial) -> None:
    """More columns with mask 0: the log-probs of the others stay, the new ones are 0."""
    arguments = masked_log_probs_case(trial.draw, trial.convention)
    logits, ids, ones = (arguments[name].array for name in ("logits", "token_ids", "mask"))
    extra = trial.draw.integer("padding", 1, 3)
    rows, _, size = logits.shape
    padded = replaced(
        arguments,
        logits=np.concatenate([logits, trial.draw.normal(rows, extra, size)], axis=1),
        token_ids=np.concatenate([ids, np.full((rows, extra), -100)], axis=1),
        mask=np.concatenate([ones, np.zeros((rows, extra))], axis=1),
    )
    trial.agree("masked_log_probs", padded, gradient=True)


def _declare_large_vocabulary(operation: str, case: Case) -> None:
    @TOPIC.check(operation, law="large-vocabulary", examples=2, title=f"{operation} reads all of a large vocabulary")
    def large_vocabulary(trial: Trial) -> None:
        """Each of 1031 logits, a prime, counts, the last one most."""
        logits = trial.draw.normal(1, 3, 1031) + np.linspace(0.0, 2.0, 1031)
        ids = Tensor(trial.draw.integers(0, 1030, 1, 3), "int64")
        arguments = {"logits": Tensor(logits), "token_ids": ids, "mask": Tensor(np.ones((1, 2)))}
        names = tuple(case(trial.draw, trial.convention))
        trial.agree(operation, {name: arguments[name] for name in names if name in arguments}, gradient=True)


_declare_large_vocabulary("token_log_probs", token_log_probs_case)
_declare_large_vocabulary("masked_log_probs", masked_log_probs_case)
_declare_large_vocabulary("entropy", entropy_case)


@TOPIC.check(
    "action_log_probs",
    law="outside-nonfinite",
    kind="robustness",
    title="action_log_probs ignores NaN and inf at tokens of no action",
)
def outside_nonfinite(trial: Trial) -> None:
    """The log-probs where the id is −1 reach nothing."""
    arguments = action_case(trial.draw, trial.convention)
    outside = arguments["action_ids"].array == -1
    filled = np.where(outside, trial.draw.pick((np.nan, np.inf, -np.inf), *outside.shape), arguments["log_probs"].array)
    want = trial.expect("action_log_probs", arguments)
    trial.agree("action_log_probs", replaced(arguments, log_probs=filled), want, gradient=True)
