"""Right code for advantages, losses and KL estimators under every convention, written as plainly as possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlassay_spec.convention import LECTURE, Convention

Functions = dict[str, Callable[..., Any]]


def divisor(rewards: Tensor, c: Convention) -> Tensor:
    variance = rewards.var(dim=1, correction=c.std_ddof, keepdim=True)
    if c.std_eps_place == "inside":
        return (variance + c.std_eps).sqrt()
    return variance.sqrt() + c.std_eps if c.std_eps_place == "added" else variance.sqrt().clamp(min=c.std_eps)


def advantages_of(weigh: Callable[[Tensor], Tensor], c: Convention) -> Callable[[Tensor], Tensor]:
    """Advantages with groups of one and groups without contrast as declared."""

    def advantages(rewards: Tensor) -> Tensor:
        if rewards.shape[1] == 1:
            if c.singleton_group == "error":
                raise ValueError(f"rewards: has shape {list(rewards.shape)}, expected G ≥ 2")
            return rewards.clone() if c.singleton_group == "reward" else torch.zeros_like(rewards)
        contrast = rewards.amax(dim=1, keepdim=True) > rewards.amin(dim=1, keepdim=True)
        return torch.where(contrast, weigh(rewards), 0.0)

    return advantages


def centred(rewards: Tensor) -> Tensor:
    return rewards - rewards.mean(dim=1, keepdim=True)


def others_left(rewards: Tensor) -> Tensor:
    return rewards - (rewards.sum(dim=1, keepdim=True) - rewards) / (rewards.shape[1] - 1)


def average(x: Tensor, mask: Tensor, c: Convention, mode: str | None = None, constant: float | None = None) -> Tensor:
    """The mean over the batch as declared."""
    chosen = mask.bool()
    rows = torch.where(chosen, x, 0.0).sum(dim=1)
    counts = chosen.sum(dim=1)
    mode, constant = mode or c.aggregation, constant or c.aggregation_constant or 1.0
    if mode == "token_mean":
        return rows.sum() / counts.sum().clamp(min=1)
    if mode == "sequence_mean":
        rows = rows / counts.clamp(min=1)
    if mode == "constant":
        rows = rows / constant
    return rows.sum() / max(len(rows) if c.empty_rows == "counted" else int((counts > 0).sum()), 1)


def clamped(x: Tensor, bound: float | None) -> Tensor:
    return x if bound is None else x.clamp(-bound, bound)


def conforming(c: Convention) -> Functions:
    """Right code for the operations of these checks under a convention."""

    def weighted(x: Tensor, mask: Tensor, w: Tensor) -> Tensor:
        return average(torch.where(mask.bool(), -w.detach(), 0.0) * x, mask, c)

    def surrogate(x: Tensor, old: Tensor, a: Tensor, low: float, high: float) -> Tensor:
        frozen = old if c.old_log_probs == "caller" else old.detach()
        ratio = clamped(x - frozen, c.log_ratio_clamp).exp()
        a = a.detach()[:, None]
        return -torch.minimum(ratio * a, ratio.clamp(1 - low, 1 + high) * a)

    def kl_k3(x: Tensor, ref: Tensor) -> Tensor:
        log_ratio = ref.detach() - x
        return clamped(torch.expm1(log_ratio) - log_ratio, c.k3_clamp)

    grpo = advantages_of(lambda r: centred(r) / divisor(r, c), c)

    def objective(
        x: Tensor, old: Tensor, ref: Tensor, mask: Tensor, r: Tensor, beta: float, low: float = 0.2, high: float = 0.2
    ) -> Tensor:
        return average(surrogate(x, old, grpo(r).flatten(), low, high) + beta * kl_k3(x, ref), mask, c)

    return {
        "centered_advantages": advantages_of(centred, c),
        "rloo_advantages": advantages_of(others_left, c),
        "grpo_advantages": grpo,
        "aggregate": lambda x, mask, mode, constant=None: average(x, mask, c, mode, constant),
        "sft_loss": lambda x, mask: weighted(x, mask, torch.ones_like(x)),
        "rest_loss": lambda x, mask, r: weighted(x, mask, (r == 1).to(x.dtype)[:, None]),
        "reinforce_loss": lambda x, mask, r, b: weighted(x, mask, (r - b)[:, None]),
        "policy_gradient_loss": weighted,
        "grpo_loss": lambda x, mask, a: weighted(x, mask, a[:, None]),
        "dr_grpo_loss": lambda x, mask, a, k: average(-a.detach()[:, None] * x, mask, c, "constant", k),
        "clipped_loss": lambda x, old, mask, a, low=0.2, high=0.2: average(surrogate(x, old, a, low, high), mask, c),
        "grpo_objective": objective,
        "kl_k1": lambda x, ref: x - ref.detach(),
        "kl_k2": lambda x, ref: (x - ref.detach()).square() / 2,
        "kl_k3": kl_k3,
    }


def in_single_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function computed in float32 inside."""

    def narrow(value: Any) -> Any:
        return value.float() if isinstance(value, Tensor) and value.is_floating_point() else value

    def computed(*arguments: Any) -> Any:
        result = function(*map(narrow, arguments))
        return result.to(arguments[0].dtype) if isinstance(result, Tensor) and result.is_floating_point() else result

    return computed


def k3_by_definition(x: Tensor, ref: Tensor) -> Tensor:
    ratio = (ref.detach() - x).exp()
    return ratio - ratio.log() - 1


def k3_of_the_log_ratio(x: Tensor, ref: Tensor) -> Tensor:
    """exp(d) − d − 1, which rounds below 0."""
    return (ref.detach() - x).exp() - (ref.detach() - x) - 1


def piecewise_clip(x: Tensor, old: Tensor, mask: Tensor, a: Tensor, low: float = 0.2, high: float = 0.2) -> Tensor:
    ratio = x.exp() / old.detach().exp()
    kept = torch.where(a[:, None] >= 0, ratio.clamp(max=1 + high), ratio.clamp(min=1 - low))
    return average(-kept * a.detach()[:, None], mask, LECTURE)


VARIANTS: Functions = {
    "kl_k3": in_single_precision(k3_by_definition),
    "kl_k2": lambda x, ref: 0.5 * (ref - x).detach() ** 2 + (x - ref).detach() * (x - x.detach()),
    "clipped_loss": in_single_precision(piecewise_clip),
    "rloo_advantages": lambda r: centred(r) * r.shape[1] / max(r.shape[1] - 1, 1),
    "grpo_advantages": lambda r: torch.nan_to_num(centred(r) / r.std(dim=1, correction=0, keepdim=True), posinf=0),
    "keep_groups": lambda r: ~(r == r[:, :1]).all(dim=1),
    "max_advantages": lambda r: r * (r >= r.max(dim=1, keepdim=True).values),
    "sft_loss": lambda x, mask: -x[mask.bool()].sum() / len(x),
}
