"""The mathematics of OpenPipe's ART (tried with openpipe-art 0.5.18) under the reduction `mean` of its loss.

`art.loss.loss_fn` is called on batches whose weights are 1, which makes it a mean over tokens; ART's own packing gives
every trajectory the same weight and rescales advantages, which is left out. What belongs to a token stands at the
token's place in ART's batches, so a first column without a token is put before ours. Group advantages are those of the
local backend, in Python numbers, with the tokenizer replaced; the tinker backend divides by the sample deviation,
without an ε.
"""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional

from rlassay_impl.libraries.shells import shells

with shells(
    *("art", "art.utils", "art.preprocessing", "art.unsloth"),
    stubs=(
        *("datasets", "nest_asyncio", "peft", "peft.peft_model", "transformers", "trl"),
        *("transformers.image_processing_utils", "transformers.tokenization_utils_base"),
    ),
):
    from art.loss import loss_fn
    from art.preprocessing import tokenize
    from art.unsloth import train

CONVENTION: dict[str, Any] = {
    "name": "ART",
    "std_ddof": 0,
    "std_eps": 1e-6,
    "std_eps_place": "added",
    "aggregation": "token_mean",
    "singleton_group": "zero",
    "old_log_probs": "caller",
}


class LogitsAsTheyAre:
    """A head of the model for `_calculate_logprobs`, which multiplies hidden states by it: these are the logits."""

    def to(self, dtype: torch.dtype) -> "LogitsAsTheyAre":
        """Itself, in any dtype."""
        return self

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any, options: Any = None) -> Any:
        """The other factor of the product."""
        return arguments[0]


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """`_calculate_logprobs` on the shifted logits over the temperature, which ART does not have."""
    return _log_probs_and_entropies(logits[:, :-1] / temperature, token_ids[:, 1:])[0]


def entropy(logits: Tensor) -> Tensor:
    """The entropies of `_calculate_logprobs`."""
    return _log_probs_and_entropies(logits, torch.zeros(logits.shape[:2], dtype=torch.int64))[1]


def entropy_bonus(logits: Tensor, mask: Tensor) -> Tensor:
    """The entropy that `loss_fn` reports."""
    zeros = torch.zeros_like(mask, dtype=logits.dtype)
    bonus: Tensor = _loss(zeros, zeros, mask, zeros, {}, entropy(logits)).entropy
    return bonus


def centered_advantages(rewards: Tensor) -> Tensor:
    """The advantages of `tokenize_trajectory_groups` without `scale_rewards`."""
    return _advantages(rewards, scale_rewards=False)


def grpo_advantages(rewards: Tensor) -> Tensor:
    """The advantages of `tokenize_trajectory_groups` with `scale_rewards`."""
    return _advantages(rewards, scale_rewards=True)


def policy_gradient_loss(log_probs: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """`loss_fn` without old log-probs, where its importance weights are 1."""
    loss: Tensor = _loss(log_probs, torch.full_like(log_probs, torch.nan), mask, weights, {}).policy_loss
    return loss


def grpo_loss(log_probs: Tensor, mask: Tensor, advantages: Tensor) -> Tensor:
    """The same with one advantage per sequence."""
    return policy_gradient_loss(log_probs, mask, advantages[:, None].expand_as(log_probs))


def clipped_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """`loss_fn` with `ppo`."""
    config = {"ppo": True, "epsilon": clip_low, "epsilon_high": clip_high}
    per_token = advantages[:, None].expand_as(log_probs)
    loss: Tensor = _loss(log_probs, old_log_probs, mask, per_token, config).policy_loss
    return loss


def _log_probs_and_entropies(logits: Tensor, token_ids: Tensor) -> tuple[Tensor, Tensor]:
    both: tuple[Tensor, Tensor] = train._calculate_logprobs(LogitsAsTheyAre(), logits, token_ids, chunk_size=1024)
    return both


def _loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    mask: Tensor,
    advantages: Tensor,
    config: dict[str, Any],
    entropies: Tensor | None = None,
) -> Any:
    """`loss_fn` of a batch with a column more than ours: predictions end, and what belongs to tokens begins with it."""
    inputs = {
        "logprobs": functional.pad(old_log_probs, (1, 0)),
        "advantages": functional.pad(advantages, (1, 0)),
        "assistant_mask": functional.pad(mask, (1, 0)),
        "weights": functional.pad(torch.ones_like(log_probs), (1, 0)),
    }
    return loss_fn(inputs, functional.pad(log_probs, (0, 1)), None, entropies, config)


def _advantages(rewards: Tensor, scale_rewards: bool) -> Tensor:
    groups = [[_trajectory(reward) for reward in group] for group in rewards.tolist()]
    with patch.object(tokenize, "tokenize_trajectory", _tokenized):
        results = tokenize.tokenize_trajectory_groups(
            None,
            groups,
            allow_training_without_logprobs=True,
            scale_rewards=scale_rewards,
            shuffle_group_trajectories=False,
            drop_zero_advantage_trajectories=False,
        )
        advantages = [result.advantage for result in results]
    return torch.tensor(advantages, dtype=rewards.dtype).reshape(rewards.shape)


def _trajectory(reward: float) -> Any:
    return SimpleNamespace(reward=reward, messages_and_choices=[], tools=None, additional_histories=[])


def _tokenized(tokenizer: Any, images: Any, history: Any, advantage: float, *_: Any, **__: Any) -> Any:
    return SimpleNamespace(advantage=advantage, assistant_mask=[1], token_ids=[0], logprobs=[0.0])
