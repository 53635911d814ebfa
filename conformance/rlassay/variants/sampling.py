"""Right ways to write log-probs under the distribution that a sampler draws from."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import Categorical

from rlassay.variants import Variants

VARIANTS = Variants()

NOTHING = -math.inf


@VARIANTS.variant("truncated_log_probs", "warpers in a row: topk's last value, then an ascending sort")
def warpers(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    scores = logits[:, :-1] / temperature
    if top_k is not None:
        smallest = torch.topk(scores, min(top_k, scores.shape[-1]))[0][..., -1, None]
        scores = scores.masked_fill(scores < smallest, NOTHING)
    if top_p is not None and top_p < 1.0:
        ascending, indices = torch.sort(scores, descending=False)
        remove = ascending.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
        remove[..., -1:] = False
        scores = scores.masked_fill(remove.scatter(-1, indices, remove), NOTHING)
    return scores.log_softmax(dim=-1).gather(-1, token_ids[:, 1:, None]).squeeze(-1)


@VARIANTS.variant("truncated_log_probs", "a descending sort whose removals are shifted by one")
def shifted_removals(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    z = logits[:, :-1].float() if logits.dtype == torch.bfloat16 else logits[:, :-1]
    z = z / temperature
    falling, order = z.sort(dim=-1, descending=True)
    if top_k:
        falling = falling.masked_fill(torch.arange(z.shape[-1]) >= top_k, NOTHING)
    if top_p:
        remove = falling.softmax(-1).cumsum(-1) > top_p
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = False
        falling = falling.masked_fill(remove, NOTHING)
    z = torch.empty_like(falling).scatter(-1, order, falling)
    return torch.log_softmax(z, -1).gather(-1, token_ids[:, 1:].unsqueeze(-1)).squeeze(-1).to(logits.dtype)


@VARIANTS.variant("truncated_log_probs", "the token's rank, looked up in the sorted vocabulary")
def by_rank(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    z = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32)) / temperature
    falling, order = z.sort(dim=-1, descending=True)
    size = torch.full(z.shape[:2], min(top_k or z.shape[-1], z.shape[-1]))
    if top_p is not None:
        inside = torch.arange(z.shape[-1]) < size[..., None]
        reached = falling.masked_fill(~inside, NOTHING).softmax(-1).cumsum(-1)
        size = torch.minimum(size, 1 + (reached < top_p).sum(-1))
    inside = torch.arange(z.shape[-1]) < size[..., None]
    rank = (order == token_ids[:, 1:, None]).int().argmax(-1, keepdim=True)
    log_p = falling.gather(-1, rank)[..., 0] - falling.masked_fill(~inside, NOTHING).logsumexp(-1)
    return log_p.masked_fill(rank[..., 0] >= size, NOTHING).to(logits.dtype)


@VARIANTS.variant("truncated_log_probs", "loops over rows and positions, growing the set token by token")
def loops(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    rows = []
    for b in range(len(logits)):
        row = []
        for t in range(token_ids.shape[1] - 1):
            z = logits[b, t].double() / temperature
            candidates = sorted(range(len(z)), key=lambda v: -z[v].item())[:top_k]
            weights = torch.softmax(z[candidates], dim=0).tolist()
            kept, mass = [], 0.0
            for token, weight in zip(candidates, weights, strict=True):
                kept.append(token)
                mass += weight
                if top_p is not None and mass >= top_p:
                    break
            token = int(token_ids[b, t + 1])
            normaliser = torch.logsumexp(z[kept], dim=0)
            row.append(z[token] - normaliser if token in kept else z.sum() * 0 + NOTHING)
        rows.append(torch.stack(row))
    return torch.stack(rows).to(logits.dtype)


@VARIANTS.variant("truncated_log_probs", "a Categorical of probabilities with zeros, normalised again")
def categorical(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    p = torch.softmax(logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32)) / temperature, dim=-1)
    if top_k is not None:
        p = torch.where(p >= p.sort(-1, descending=True).values[..., :top_k][..., -1:], p, 0.0)
        p = p / p.sum(-1, keepdim=True)
    if top_p is not None:
        falling, order = p.sort(-1, descending=True)
        falling = torch.where(falling.cumsum(-1) - falling < top_p, falling, 0.0)
        p = torch.zeros_like(p).scatter(-1, order, falling)
        p = p / p.sum(-1, keepdim=True)
    ids = token_ids[:, 1:]
    inside = p.gather(-1, ids[..., None])[..., 0] > 0
    log_p = Categorical(probs=p, validate_args=False).probs.gather(-1, ids[..., None])[..., 0]
    return torch.where(inside, torch.where(inside, log_p, 1.0).log(), NOTHING).to(logits.dtype)


@VARIANTS.variant("truncated_log_probs", "the model's log-prob minus that of the set, −inf outside")
def minus_log_of_the_set(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    log_p = torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature, -1)[:, :-1]
    falling = log_p.detach().sort(-1, descending=True).values
    bound = falling[..., : top_k or None][..., -1:]
    if top_p is not None:
        inside = falling.exp() * (falling >= bound)
        before = inside.cumsum(-1) - inside
        crossing = ((before < top_p * inside.sum(-1, keepdim=True)) & (inside > 0)).sum(-1, keepdim=True) - 1
        bound = falling.gather(-1, crossing)
    inside = log_p >= bound
    of_the_set = log_p.masked_fill(~inside, NOTHING).logsumexp(-1, keepdim=True)
    ids = token_ids[:, 1:, None]
    answer = (log_p - of_the_set).gather(-1, ids).masked_fill(~inside.gather(-1, ids), NOTHING)
    return answer.squeeze(-1).to(logits.dtype)
