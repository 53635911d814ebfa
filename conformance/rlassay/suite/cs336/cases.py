"""Cases for the assignment's functions: texts, tokenizers, rewards of rollouts, masked log-probs, small models.

Options that hide a fault are few, and most choices have four or eight, so that the four examples of the quick profile
meet all of them, or half: enough for cases that show the fault.
"""

from __future__ import annotations

import numpy as np

from rlassay.draw import Draw
from rlassay.guest.objects import LanguageModel, RewardFunction, Tokenizer
from rlassay.guest.values import Arguments, Tensor
from rlassay.inputs import cast, group_rewards, log_probs
from rlassay_spec.convention import Convention

END = "<eos>"
WORDS = ("a", "b", "ab", "c", "ca", "d")
PIECES = (*WORDS, "<pad>", END)


SHAPES = ((2, 3), (3, 4), (1, 4), (4, 2), (3, 3), (2, 5), (2, 1), (5, 4))
MASKS = ("all", "prompt first", "both", "holes")
GROUPS = ((2, 2), (2, 4), (3, 2), (1, 4), (3, 3), (2, 5), (4, 3), (2, 3))
PADDINGS = (("<pad>", ""), (END, END), ("<pad>", END), (END, ""))


def padding_and_ending(draw: Draw) -> tuple[Tokenizer, str]:
    """A tokenizer that pads with a token of its own or, as is common, with the one that ends sequences; an ending."""
    padding, ending = draw.choice("padding and ending", PADDINGS)
    return Tokenizer(PIECES, padding, END), ending


def text(draw: Draw, pieces: int) -> str:
    """A random text of so many pieces, which a tokenizer may join."""
    return "".join(WORDS[int(i)] for i in draw.integers(0, len(WORDS) - 1, pieces))


def text_pairs(draw: Draw, rows: int, end: str) -> tuple[list[str], list[str]]:
    """Prompts, and outputs that are all different, of different lengths.

    A prompt's last and an output's first letter may make one token.
    """
    joining = draw.choice("boundary", ("apart", "joining")) == "joining"
    prompts: list[str] = []
    outputs: list[str] = []
    for _ in range(rows):
        prompt, output = (text(draw, int(draw.integers(1, 4))) for _ in range(2))
        if joining:
            prompt, output = f"{prompt}a", f"b{output}"
        while output + end in outputs:
            output += "d"
        prompts.append(prompt)
        outputs.append(output + end)
    return prompts, outputs


def truths_of(rewards: np.ndarray) -> list[str]:
    """One ground truth for each group of rewards [N, G], repeated for its rollouts."""
    return [f"truth {n}" for n, group in enumerate(rewards) for _ in group]


def reward_function(responses: list[str], truths: list[str], rewards: np.ndarray) -> RewardFunction:
    """What gives the rewards, of any shape, to responses that are all different."""
    return RewardFunction(dict(zip(zip(responses, truths, strict=True), rewards.ravel().tolist(), strict=True)))


def rollouts(rewards: np.ndarray) -> Arguments:
    """A reward function, responses and repeated ground truths that give the rewards [N, G]."""
    truths, responses = truths_of(rewards), [f"response {b}" for b in range(rewards.size)]
    return {
        "reward_fn": reward_function(responses, truths, rewards),
        "rollout_responses": responses,
        "repeated_ground_truths": truths,
    }


def grouped(draw: Draw, convention: Convention) -> np.ndarray:
    """Rewards [N, G] with G > 1."""
    return group_rewards(draw, convention, draw.choice("groups", GROUPS)).array


def policy(draw: Draw) -> tuple[Tensor, Tensor]:
    """Log-probs and a mask of bools."""
    shape = draw.choice("shape", SHAPES)
    return Tensor(log_probs(draw, shape)), mask(draw, shape)


def mask(draw: Draw, shape: tuple[int, int]) -> Tensor:
    """A mask whose rows, but for "all", have different numbers of ones where they can, and at least one."""
    rows, steps = shape
    kind = draw.choice("mask", MASKS)
    array = np.ones(shape, dtype=bool)
    counts = (draw.integers(1, steps) + np.arange(rows)) % steps + 1
    for b in range(rows if kind != "all" else 0):
        spare = steps - int(counts[b])
        if kind == "holes":
            array[b, draw.permutation(steps)[:spare]] = False
        else:
            start = spare if kind == "prompt first" else int(draw.integers(0, spare))
            array[b] = (np.arange(steps) >= start) & (np.arange(steps) < start + counts[b])
    return Tensor(array, "bool")


def column(draw: Draw, rows: int) -> Tensor:
    """Advantages [B, 1]; the first is never 0."""
    kind = draw.choice("advantages", ("both signs", "positive", "negative", "some zero"))
    sizes = draw.uniform(0.3, 2.0, rows, 1)
    signs = {
        "both signs": np.where(np.arange(rows) % 2 == draw.integers(0, 1), 1.0, -1.0)[:, None],
        "positive": np.ones((rows, 1)),
        "negative": -np.ones((rows, 1)),
        "some zero": (np.arange(rows) % 2 == 0)[:, None].astype(float),
    }
    return Tensor(sizes * signs[kind])


def other_column(draw: Draw, rows: int) -> Tensor:
    """Numbers [B, 1] unlike the advantages."""
    return Tensor(draw.normal(rows, 1) + 5.0)


def clip_range(draw: Draw) -> float:
    """ε of the clip."""
    return draw.choice("cliprange", (0.2, 0.1, 0.3))


def old(draw: Draw, current: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """Old log-probs with ratios beyond the bound that clips, beyond the other, inside, and on the bounds."""
    kind = draw.choice("ratio", ("clipped", "beyond the other bound", "mixed", "on a bound"))
    shape = current.array.shape
    upwards = np.broadcast_to(advantages.array >= 0, shape)
    above = np.log1p(clip) + draw.uniform(0.05, 0.8, *shape)
    below = np.log1p(-clip) - draw.uniform(0.05, 0.8, *shape)
    inside = draw.uniform(0.6 * np.log1p(-clip), 0.6 * np.log1p(clip), *shape)
    log_ratio = {
        "clipped": np.where(upwards, above, below),
        "beyond the other bound": np.where(upwards, below, above),
        "mixed": np.choose(draw.integers(0, 2, *shape), (inside, above, below)),
        "on a bound": np.choose(draw.integers(0, 2, *shape), (np.zeros(shape), np.log1p(clip), np.log1p(-clip))),
    }[kind]
    return Tensor(current.array - log_ratio)


def old_by_sequence(draw: Draw, current: np.ndarray) -> Tensor:
    """Old log-probs whose mean log-ratio lies inside, above or below the bounds of ε = 0.2, with some spread.

    No log-ratio is nearer than 0.05 to such a bound.
    """
    shift = draw.pick((0.02, -0.03, 0.4, -0.5), len(current), 1)
    return Tensor(current - shift - draw.uniform(-0.1, 0.1, *current.shape))


def precision(draw: Draw, arguments: Arguments) -> Arguments:
    """The arguments in float32 or float64."""
    return cast(arguments, draw.choice("dtype", ("float32", "float64")))


def language_model(draw: Draw, size: int, scale: float = 1.0) -> LanguageModel:
    """A model with a vocabulary of that size."""
    width = draw.choice("width", (2, 3))
    return LanguageModel(draw.normal(size, width, scale=scale), draw.normal(size, width, scale=scale))
