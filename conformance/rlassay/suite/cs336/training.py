"""Checks of grpo_train_step: the parameters after one step of gradient descent on a small model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rlassay.check import Trial
from rlassay.draw import Draw
from rlassay.guest.objects import GradientDescent, LanguageModel, Tokenizer
from rlassay.guest.observation import Observation
from rlassay.guest.values import Arguments
from rlassay.suite.cs336.calls import Suspect, Suspects, call, expected, part_of, require_like
from rlassay.suite.cs336.cases import (
    PIECES,
    grouped,
    language_model,
    old_by_sequence,
    padding_and_ending,
    reward_function,
    text_pairs,
    truths_of,
)
from rlassay.suite.cs336.losses import METHODS
from rlassay.suite.cs336.training_suspects import STEP, UNBOUNDED, suspects_of
from rlassay.topic import Topic
from rlassay_spec.convention import Convention
from rlassay_spec.oracles.cs336.tokens import flat, model_log_probs, tokenize_prompt_and_output
from rlassay_spec.oracles.expected import Expected

TOPIC = Topic()


@dataclass(frozen=True)
class Options:
    """What distinguishes the cases of the checks."""

    method: str = "none"
    baseline: str = "mean"
    normalizer: str = "std"
    normalization: str = "sequence"
    max_grad_norm: float = UNBOUNDED


def training_case(draw: Draw, convention: Convention, options: Options) -> Arguments:
    """Rollouts of different lengths in groups, cut into several microbatches."""
    rewards = np.abs(grouped(draw, convention))
    truths = truths_of(rewards)
    cutter, ending = padding_and_ending(draw)
    prompts, responses = text_pairs(draw, rewards.size, ending)
    model = language_model(draw, len(PIECES))
    divisors = [k for k in range(2, rewards.size + 1) if rewards.size % k == 0]
    old = None if options.method == "none" else old_by_sequence(draw, _current(model, prompts, responses, cutter))
    return {
        "model": model,
        "tokenizer": cutter,
        "optimizer": GradientDescent(model, draw.choice("learning_rate", (0.5, 0.1))),
        "gradient_accumulation_steps": draw.choice("microbatches", divisors),
        "max_grad_norm": options.max_grad_norm,
        "reward_fn": reward_function(responses, truths, rewards),
        "repeated_prompts": prompts,
        "rollout_responses": responses,
        "repeated_ground_truths": truths,
        "group_size": rewards.shape[1],
        "baseline": options.baseline,
        "advantage_eps": 1e-6,
        "advantage_normalizer": options.normalizer,
        "importance_reweighting_method": options.method,
        "old_log_probs": old,
        "cliprange": 0.2 if options.method in ("grpo", "gspo") else None,
        "loss_normalization": options.normalization,
        "normalization_constant": draw.choice("constant", (4.0, 10.0)) if options.normalization == "constant" else None,
    }


def _current(model: LanguageModel, prompts: list[str], responses: list[str], tokenizer: Tokenizer) -> np.ndarray:
    """The model's log-probs of the batch, with anything in the padding."""
    batch = tokenize_prompt_and_output(prompts, responses, tokenizer)
    ids, labels = (np.nan_to_num(batch[name].value).astype(np.int64) for name in ("input_ids", "labels"))
    return model_log_probs(model, ids, labels).value


def require_parameters(trial: Trial, observed: Observation, want: Expected, suspects: Suspects) -> None:
    """The model's parameters after the call are the expected ones.

    Raises:
        Mismatch: they are not, or the result is not (loss, metadata).
    """
    part_of(STEP, observed, "loss")
    assert trial.arguments is not None
    after = Observation(observed.parameters["model"], "float32")
    require_like(f"{STEP}: parameters", after, want, trial.arguments, suspects)


def _declare(law: str, options: Options, title: str) -> None:
    @TOPIC.check(STEP, law=law, title=f"{STEP} {title}")
    def update(trial: Trial) -> None:
        """The parameters after one step."""
        arguments = training_case(trial.draw, trial.convention, options)
        want = expected(STEP, arguments, trial.convention, "parameters")
        suspects = suspects_of(trial.convention, want)
        require_parameters(trial, call(trial, STEP, arguments), want, suspects)


for _method in METHODS:
    _declare(_method, Options(method=_method), f"takes the whole batch's step with the method {_method}")
_declare("constant-normalization", Options(normalization="constant"), "divides the batch's sum by the constant")
_declare("baseline-none", Options(baseline="none", normalizer="none"), "takes raw rewards without a baseline")
_declare("normalizer-none", Options(normalizer="none"), "centres without normalising")
_declare("normalizer-mean", Options(normalizer="mean"), "normalises by the mean")
_declare("gradient-norm", Options(max_grad_norm=0.01), "bounds the norm of the whole gradient")


@TOPIC.check(STEP, law="second-step", title=f"{STEP} starts every step without the gradient of the one before")
def second_step(trial: Trial) -> None:
    """Two steps on the same rollouts."""
    arguments = training_case(trial.draw, trial.convention, Options())
    first = expected(STEP, arguments, trial.convention, "parameters")
    between = arguments["model"].with_parameters(first.value)
    optimizer = replace(arguments["optimizer"], model=between)
    second = expected(STEP, arguments | {"model": between, "optimizer": optimizer}, trial.convention, "parameters")
    want = Expected(second.value, second.scale + 4 * first.scale, second.terms)
    kept = Suspect("keeping the gradient of the first step", lambda a: second.value + first.value - flat(a["model"]))
    observed = call(trial, STEP, arguments, times=2)
    require_parameters(trial, observed, want, (kept,))


@TOPIC.check(STEP, law="loss", kind="robustness", title=f"{STEP} returns the loss of the whole batch")
def batch_loss(trial: Trial) -> None:
    """What is worth logging."""
    arguments = training_case(trial.draw, trial.convention, Options())
    want = expected(STEP, arguments, trial.convention, "loss")
    observed = part_of(STEP, call(trial, STEP, arguments), "loss")
    steps = Suspect(
        "not dividing by gradient_accumulation_steps", lambda a: want.value * a["gradient_accumulation_steps"]
    )
    require_like(f"{STEP}: loss", observed, want, arguments, (steps,))
