"""Right ways to write token log-probs, masked log-probs, entropy and action log-probs."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Categorical

from rlassay.variants import BANNED, EXTREME, MULTIPLIED, Variants

VARIANTS = Variants()


@VARIANTS.variant("token_log_probs", "the selected logit minus logsumexp", seen="CV-34")
def minus_logsumexp(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    z = logits[:, :-1] / temperature
    selected = torch.gather(z, 2, token_ids[:, 1:].unsqueeze(2)).squeeze(2)
    return selected - torch.logsumexp(z, dim=2)


@VARIANTS.variant("token_log_probs", "negative cross-entropy of flattened rows", seen="CV-35")
def cross_entropy(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    rows, length, size = logits.shape
    flat = (logits[:, :-1] / temperature).reshape(-1, size)
    return -F.cross_entropy(flat, token_ids[:, 1:].reshape(-1), reduction="none").view(rows, length - 1)


@VARIANTS.variant("token_log_probs", "cross-entropy with the vocabulary as second axis")
def cross_entropy_transposed(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    z = (logits / temperature).transpose(1, 2)[:, :, :-1]
    return -F.cross_entropy(z, token_ids[:, 1:], reduction="none")


@VARIANTS.variant("token_log_probs", "nll_loss of a log-softmax")
def nll_loss(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    log_p = F.log_softmax(logits / temperature, dim=-1)[:, :-1]
    return -F.nll_loss(log_p.transpose(1, 2), token_ids[:, 1:], reduction="none")


@VARIANTS.variant("token_log_probs", "loops over rows and positions")
def loops(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    rows = []
    for b in range(len(logits)):
        row = []
        for t in range(token_ids.shape[1] - 1):
            distribution = torch.log_softmax(logits[b, t] / temperature, dim=0)
            row.append(distribution[token_ids[b, t + 1]])
        rows.append(torch.stack(row))
    return torch.stack(rows)


@VARIANTS.variant("token_log_probs", "a Categorical distribution")
def categorical(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    return Categorical(logits=logits[:, :-1] / temperature, validate_args=False).log_prob(token_ids[:, 1:])


@VARIANTS.variant("token_log_probs", "float64 inside, cast back")
def in_double(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    log_p = torch.log_softmax(logits.double() / temperature, dim=-1)
    return log_p[:, :-1].gather(-1, token_ids[:, 1:, None]).squeeze(-1).to(logits.dtype)


@VARIANTS.variant("token_log_probs", "float32 for half precision, not cast back", seen="CV-36")
def upcast(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    z = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
    return torch.log_softmax(z[:, :-1] / temperature, dim=-1).gather(-1, token_ids[:, 1:, None]).squeeze(-1)


@VARIANTS.variant("token_log_probs", "chunks of two positions", seen="CV-38")
def chunked(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    parts = []
    for z, ids in zip(logits[:, :-1].split(2, dim=1), token_ids[:, 1:].split(2, dim=1), strict=True):
        parts.append((z / temperature).log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1))
    return torch.cat(parts, dim=1)


@VARIANTS.variant("token_log_probs", "an einsum with one-hot ids")
def one_hot(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    log_p = torch.log_softmax(logits[:, :-1] / temperature, dim=-1)
    hot = F.one_hot(token_ids[:, 1:], logits.shape[-1]).to(log_p.dtype)
    return torch.einsum("btv,btv->bt", log_p, hot)


@VARIANTS.variant("token_log_probs", "index tensors for every axis")
def fancy_index(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    rows, length = token_ids.shape
    b = torch.arange(rows).unsqueeze(1)
    t = torch.arange(length - 1).unsqueeze(0)
    return torch.log_softmax(logits / temperature, -1)[b, t, token_ids[:, 1:]]


@VARIANTS.variant("token_log_probs", "labels rolled, last column cut", seen="CV-41")
def rolled(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    labels = token_ids.roll(-1, dims=1)
    return torch.log_softmax(logits / temperature, -1).gather(-1, labels[..., None])[:, :-1, 0]


@VARIANTS.variant("token_log_probs", "a log-softmax by hand")
def by_hand(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    z = logits[:, :-1] / temperature
    z = z - z.max(dim=-1, keepdim=True).values
    log_p = z - z.exp().sum(dim=-1, keepdim=True).log()
    return log_p.gather(-1, token_ids[:, 1:, None])[..., 0]


@VARIANTS.variant("token_log_probs", "the logarithm of a softmax", lapses=(EXTREME,))
def log_of_softmax(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    probabilities = torch.softmax(logits[:, :-1] / temperature, dim=-1)
    return probabilities.gather(-1, token_ids[:, 1:, None])[..., 0].log()


@VARIANTS.variant("token_log_probs", "powers over their sum, nothing subtracted first", lapses=(EXTREME,))
def powers(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    exponentials = torch.exp(logits[:, :-1] / temperature)
    return (exponentials / exponentials.sum(-1, keepdim=True)).gather(-1, token_ids[:, 1:, None])[..., 0].log()


@VARIANTS.variant("token_log_probs", "a result in a transposed layout")
def transposed_result(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    by_time = logits.transpose(0, 1)[:-1] / temperature
    return by_time.log_softmax(-1).gather(-1, token_ids.T[1:, :, None])[:, :, 0].T


class _SelectedLogSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, ids: Tensor) -> Tensor:
        log_p = torch.log_softmax(z, dim=-1)
        ctx.save_for_backward(log_p, ids)
        return log_p.gather(-1, ids.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        log_p, ids = ctx.saved_tensors
        gradient = -log_p.exp()
        gradient.scatter_add_(-1, ids.unsqueeze(-1), torch.ones_like(log_p[..., :1]))
        return gradient * grads[0].unsqueeze(-1), None


@VARIANTS.variant("token_log_probs", "an autograd function with its own backward")
def own_backward(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    return _SelectedLogSoftmax.apply(logits[:, :-1] / temperature, token_ids[:, 1:])


@VARIANTS.variant(
    "masked_log_probs", "padding ids replaced before the gather, masked_fill after", seen="CV-64", lapses=(MULTIPLIED,)
)
def filled(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    labels = token_ids[:, 1:].masked_fill(mask == 0, 0)
    log_p = torch.log_softmax(logits[:, :-1], -1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return log_p.masked_fill(mask == 0, 0.0)


@VARIANTS.variant("masked_log_probs", "cross-entropy that ignores −100", seen="CV-35", lapses=(MULTIPLIED,))
def ignore_index(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    labels = torch.where(mask.bool(), token_ids[:, 1:], -100)
    return -F.cross_entropy(logits[:, :-1].transpose(1, 2), labels, ignore_index=-100, reduction="none")


@VARIANTS.variant("masked_log_probs", "only the selected places, put back", seen="CV-30")
def selected(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    chosen = mask.bool()
    z, ids = logits[:, :-1][chosen], token_ids[:, 1:][chosen]
    out = torch.zeros(chosen.shape, dtype=logits.dtype)
    out[chosen] = z.log_softmax(-1).gather(-1, ids[:, None])[:, 0].to(logits.dtype)
    return out


@VARIANTS.variant("masked_log_probs", "ids clamped, times the mask", lapses=(MULTIPLIED,))
def clamped(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    ids = token_ids[:, 1:].clamp(0, logits.size(-1) - 1)
    return torch.log_softmax(logits[:, :-1], -1).gather(-1, ids[..., None])[..., 0] * mask.to(logits.dtype)


@VARIANTS.variant("entropy", "a Categorical distribution")
def categorical_entropy(logits: Tensor) -> Tensor:
    return Categorical(logits=logits, validate_args=False).entropy()


@VARIANTS.variant("entropy", "torch.special.entr of the probabilities", seen="CV-43", lapses=(BANNED,))
def entr(logits: Tensor) -> Tensor:
    return torch.special.entr(logits.softmax(-1)).sum(-1)


@VARIANTS.variant("entropy", "logsumexp minus the expected logit", seen="CV-43", lapses=(BANNED,))
def expected_logit(logits: Tensor) -> Tensor:
    p = torch.softmax(logits, dim=-1)
    return torch.logsumexp(logits, dim=-1) - torch.where(p > 0, p * logits, 0).sum(dim=-1)


@VARIANTS.variant("entropy", "p·log p with NaN replaced", seen="CV-43", lapses=(BANNED,))
def nan_replaced(logits: Tensor) -> Tensor:
    log_p = logits.log_softmax(-1)
    return -(log_p.exp() * log_p).nan_to_num(0.0).sum(-1)


@VARIANTS.variant("entropy", "log p without gradient: its part of the gradient is 0")
def half_detached(logits: Tensor) -> Tensor:
    log_p = torch.log_softmax(logits, dim=-1)
    return -(log_p.exp() * log_p.detach().clamp(min=-1e4)).sum(dim=-1)


@VARIANTS.variant("entropy", "the logarithm of the positive probabilities", seen="CV-43")
def log_of_positive(logits: Tensor) -> Tensor:
    p = logits.softmax(-1)
    return -(p * torch.where(p > 0, p, 1.0).log()).sum(-1)


@VARIANTS.variant("entropy", "a softmax of log-probs", seen="CV-53")
def softmax_of_log_probs(logits: Tensor) -> Tensor:
    log_p = torch.log_softmax(logits, -1)
    return -torch.softmax(log_p, -1).mul(log_p.clamp(min=torch.finfo(log_p.dtype).min)).sum(-1)


@VARIANTS.variant("action_log_probs", "scatter_add with a slot for no action")
def scattered(log_probs: Tensor, action_ids: Tensor, n_actions: int) -> Tensor:
    sums = torch.zeros(len(log_probs), n_actions + 1, dtype=log_probs.dtype)
    return sums.scatter_add(1, action_ids + 1, log_probs)[:, 1:]


@VARIANTS.variant("action_log_probs", "a batched product with one-hot ids", lapses=(MULTIPLIED,))
def one_hot_product(log_probs: Tensor, action_ids: Tensor, n_actions: int) -> Tensor:
    hot = F.one_hot(action_ids + 1, n_actions + 1)[:, :, 1:].float()
    return torch.bmm(log_probs.float().unsqueeze(1), hot).squeeze(1).to(log_probs.dtype)


@VARIANTS.variant("action_log_probs", "loops over rows and actions")
def action_loops(log_probs: Tensor, action_ids: Tensor, n_actions: int) -> Tensor:
    return torch.stack(
        [
            torch.stack([row[ids == action].sum() for action in range(n_actions)])
            for row, ids in zip(log_probs, action_ids, strict=True)
        ]
    )
