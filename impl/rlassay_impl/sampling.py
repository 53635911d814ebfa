"""Log-probabilities under the distribution that a sampler draws from, not under the model's."""

import math

import torch
from torch import Tensor

from rlassay_impl.contract import check_floats, check_ids, check_integers, require, working
from rlassay_impl.log_prob import log_prob_of


def truncated_log_probs(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Log-probability of each token under the model's distribution after temperature, top-k and top-p, in this order.

        out[b, t] = log softmax(z restricted to S)[token_ids[b, t+1]],   z = logits[b, t] / temperature

    S are the most likely tokens: top_k of them, and of these, renormalised, as few as reach the probability top_p.
    Source: Fan et al., Hierarchical Neural Story Generation (2018); Holtzman et al., The Curious Case of Neural Text
    Degeneration (2020). A token outside S has log-prob −inf.
    Shapes: logits [B, L, V], token_ids [B, L] → [B, L−1], in nats.
    Raises: ValueError for other shapes, a scored id outside 0..V−1, temperature ≤ 0, top_k < 1, top_p not in (0, 1].
    """
    check_floats("logits", logits, B=None, L=None, V=None)
    n_sequences, length, vocabulary = logits.shape
    check_integers("token_ids", token_ids, B=n_sequences, L=length)
    require(temperature > 0, "temperature", temperature, "> 0")
    require(top_k is None or top_k >= 1, "top_k", top_k, "None or >= 1")
    require(top_p is None or 0 < top_p <= 1, "top_p", top_p, "None or in (0, 1]")
    scored = token_ids[:, 1:]
    check_ids("token_ids", scored, torch.ones_like(scored, dtype=torch.bool), vocabulary)

    tempered = working(logits[:, :-1]) / temperature
    ordered, order = tempered.detach().sort(dim=-1, descending=True)
    if top_k is not None:
        ordered[..., top_k:] = -math.inf
    stays = ordered > -math.inf
    if top_p is not None:
        probabilities = torch.softmax(ordered, dim=-1)
        stays &= probabilities.cumsum(dim=-1) - probabilities < top_p  # the mass before the token that crosses is less
    kept = torch.zeros_like(stays).scatter(-1, order, stays)
    return log_prob_of(scored, tempered.masked_fill(~kept, -math.inf)).to(logits.dtype)
