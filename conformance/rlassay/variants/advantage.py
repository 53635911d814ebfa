"""Right ways to write group advantages, under several conventions."""

from __future__ import annotations

import statistics
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rlassay.variants import EXACT, NUMPY, ROUNDED, Variants

VARIANTS = Variants()


@VARIANTS.variant("centered_advantages", "the mean subtracted, nothing else", seen="CV-05", lapses=(ROUNDED,))
def plain(rewards: Tensor) -> Tensor:
    return (rewards - rewards.mean(dim=1, keepdim=True)) * (rewards.shape[1] > 1)


@VARIANTS.variant("centered_advantages", "numpy inside")
def in_numpy(rewards: Tensor) -> Tensor:
    r = rewards.detach().double().numpy()
    return torch.from_numpy(r - r.mean(axis=-1, keepdims=True)).to(rewards.dtype)


@VARIANTS.variant("centered_advantages", "a product with the centring matrix")
def centring_matrix(rewards: Tensor) -> Tensor:
    size = rewards.shape[1]
    matrix = torch.eye(size, dtype=torch.float64) - 1.0 / size
    differ = rewards.amax(1, keepdim=True) != rewards.amin(1, keepdim=True)
    return torch.where(differ, (rewards.double() @ matrix).to(rewards.dtype), 0.0)


@VARIANTS.variant("centered_advantages", "fractions, group by group", lapses=(EXACT,))
def in_fractions(rewards: Tensor) -> Tensor:
    rows = []
    for group in rewards.tolist():
        exact = [Fraction(reward) for reward in group]
        rows.append([float(reward - sum(exact) / len(exact)) for reward in exact])
    return torch.tensor(rows, dtype=rewards.dtype)


@VARIANTS.variant("centered_advantages", "a group of one keeps its reward", singleton_group="reward", lapses=(ROUNDED,))
def raw_singletons(rewards: Tensor) -> Tensor:
    return rewards.clone() if rewards.shape[1] == 1 else rewards - rewards.mean(1, keepdim=True)


@VARIANTS.variant("centered_advantages", "a group of one is refused", singleton_group="error", lapses=(ROUNDED,))
def no_singletons(rewards: Tensor) -> Tensor:
    if rewards.shape[1] < 2:
        raise ValueError(f"rewards: G is {rewards.shape[1]}, should be at least 2")
    return rewards - rewards.mean(1, keepdim=True)


@VARIANTS.variant("grpo_advantages", "var_mean, 0 where the variance is 0", seen="CV-03")
def var_mean(rewards: Tensor) -> Tensor:
    variance, mean = torch.var_mean(rewards, dim=1, correction=0, keepdim=True)
    return torch.where(variance > 0, (rewards - mean) / variance.clamp(min=1e-30).sqrt(), 0.0)


@VARIANTS.variant("grpo_advantages", "the standard deviation taken after centring", seen="CV-07", lapses=(ROUNDED,))
def after_centring(rewards: Tensor) -> Tensor:
    centred = rewards - rewards.mean(dim=-1, keepdim=True)
    sigma = centred.pow(2).mean(dim=-1, keepdim=True).sqrt()
    return (centred / sigma).nan_to_num(nan=0.0)


@VARIANTS.variant("grpo_advantages", "numpy's population standard deviation", seen="CV-01")
def numpy_std(rewards: Tensor) -> Tensor:
    r = rewards.double().numpy()
    sigma = r.std(axis=1, keepdims=True)
    return torch.from_numpy(np.divide(r - r.mean(1, keepdims=True), sigma, out=np.zeros_like(r), where=sigma > 0)).to(
        rewards.dtype
    )


@VARIANTS.variant("grpo_advantages", "Python's statistics module", lapses=(EXACT,))
def pstdev(rewards: Tensor) -> Tensor:
    rows = []
    for group in rewards.tolist():
        sigma, mean = statistics.pstdev(group), statistics.fmean(group)
        rows.append([(reward - mean) / sigma if sigma else 0.0 for reward in group])
    return torch.tensor(rows, dtype=rewards.dtype)


@VARIANTS.variant("grpo_advantages", "a flat batch with repeated statistics", seen="CV-06")
def flat(rewards: Tensor) -> Tensor:
    groups, size = rewards.shape
    r = rewards.reshape(-1)
    mean = r.view(-1, size).mean(dim=1).repeat_interleave(size)
    sigma = r.view(-1, size).std(dim=1, correction=0).repeat_interleave(size)
    return torch.where(sigma == 0, torch.zeros_like(r), (r - mean) / torch.where(sigma == 0, 1.0, sigma)).view(
        groups, size
    )


@VARIANTS.variant(
    "grpo_advantages",
    "layer_norm without weights: 1e-5 inside the root",
    seen="CV-02",
    std_eps=1e-5,
    std_eps_place="inside",
    lapses=(NUMPY,),
)
def layer_norm(rewards: Tensor) -> Tensor:
    return F.layer_norm(rewards, rewards.shape[1:])


@VARIANTS.variant(
    "grpo_advantages", "torch.std with 1e-6 added", seen="CV-01", std_ddof=1, std_eps=1e-6, lapses=(ROUNDED,)
)
def sample_deviation(rewards: Tensor) -> Tensor:
    if rewards.shape[1] == 1:
        return torch.zeros_like(rewards)
    return (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-6)


@VARIANTS.variant("grpo_advantages", "torch.std with nothing added", seen="CV-01", std_ddof=1, lapses=(ROUNDED,))
def bare_sample_deviation(rewards: Tensor) -> Tensor:
    centred = rewards - rewards.mean(1, keepdim=True)
    return (centred / rewards.std(1, keepdim=True)).nan_to_num() if rewards.shape[1] > 1 else centred


@VARIANTS.variant("grpo_advantages", "1e-4 added", seen="CV-02", std_eps=1e-4, lapses=(ROUNDED,))
def added(rewards: Tensor) -> Tensor:
    return (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True, correction=0) + 1e-4)


@VARIANTS.variant(
    "grpo_advantages", "1e-3 as floor", seen="CV-02", std_eps=1e-3, std_eps_place="floor", lapses=(ROUNDED,)
)
def floored(rewards: Tensor) -> Tensor:
    sigma = rewards.std(1, keepdim=True, correction=0).clamp(min=1e-3)
    return (rewards - rewards.mean(1, keepdim=True)) / sigma


@VARIANTS.variant("grpo_advantages", "batch norm over the transposed groups", std_eps=1e-4, std_eps_place="inside")
def batch_norm(rewards: Tensor) -> Tensor:
    if rewards.shape[1] == 1:
        return torch.zeros_like(rewards)
    differ = rewards.amax(1, keepdim=True) != rewards.amin(1, keepdim=True)
    return torch.where(differ, F.batch_norm(rewards.T, None, None, training=True, eps=1e-4).T, 0.0)


@VARIANTS.variant("rloo_advantages", "the sum of the others over G − 1", lapses=(ROUNDED,))
def others(rewards: Tensor) -> Tensor:
    size = rewards.shape[1]
    if size == 1:
        return torch.zeros_like(rewards)
    return rewards - (rewards.sum(dim=1, keepdim=True) - rewards) / (size - 1)


@VARIANTS.variant("rloo_advantages", "G/(G−1) times the centred reward", seen="CV-04", lapses=(ROUNDED,))
def scaled(rewards: Tensor) -> Tensor:
    size = rewards.shape[1]
    return (rewards - rewards.mean(1, keepdim=True)) * (size / max(size - 1, 1))


@VARIANTS.variant("rloo_advantages", "a mask of the others", lapses=(ROUNDED,))
def masked_others(rewards: Tensor) -> Tensor:
    size = rewards.shape[1]
    sums = rewards @ (1 - torch.eye(size, dtype=rewards.dtype))
    return (rewards - sums / (size - 1)) if size > 1 else rewards * 0


@VARIANTS.variant("rloo_advantages", "loops that leave one out")
def loops(rewards: Tensor) -> Tensor:
    out = torch.zeros_like(rewards)
    for n, group in enumerate(rewards.tolist()):
        for j, reward in enumerate(group):
            rest = group[:j] + group[j + 1 :]
            out[n, j] = reward - sum(rest) / len(rest) if rest else 0.0
    return out


@VARIANTS.variant(
    "rloo_advantages", "a group of one keeps its reward", seen="CV-56", singleton_group="reward", lapses=(ROUNDED,)
)
def raw_singleton_rloo(rewards: Tensor) -> Tensor:
    size = rewards.shape[1]
    return rewards - (rewards.sum(1, keepdim=True) - rewards) / max(size - 1, 1)


@VARIANTS.variant("max_advantages", "the comparison as a factor")
def factor(rewards: Tensor) -> Tensor:
    return rewards * (rewards == rewards.max(dim=1, keepdim=True).values)


@VARIANTS.variant("max_advantages", "loops over lists")
def max_loops(rewards: Tensor) -> Tensor:
    rows = [[reward if reward == max(group) else 0.0 for reward in group] for group in rewards.tolist()]
    return torch.tensor(rows, dtype=rewards.dtype)


@VARIANTS.variant("keep_groups", "a comparison with the first reward")
def differ_from_first(rewards: Tensor) -> Tensor:
    return (rewards != rewards[:, :1]).any(dim=1)


@VARIANTS.variant("keep_groups", "a positive standard deviation")
def positive_deviation(rewards: Tensor) -> Tensor:
    return rewards.std(dim=1, correction=0) > 0


@VARIANTS.variant("keep_groups", "sets of rewards")
def sets(rewards: Tensor) -> Tensor:
    return torch.tensor([len(set(group)) > 1 for group in rewards.tolist()])
