"""Log-probabilities of tokens and actions: the quantity that every loss of both lectures weights."""

import torch
from torch import Tensor

from rlassay_impl.contract import check_floats, check_ids, check_integers, check_mask, keep, require, working


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """Log-probability of each token given those before it.

        out[b, t] = log softmax(logits[b, t] / temperature)[token_ids[b, t+1]]

    Source: RL Basics §6 (B6.3). The first token has no log-prob; the logits after the last token are not used.
    Shapes: logits [B, L, V], token_ids [B, L] → [B, L−1], in nats.
    Raises: ValueError for other shapes, a scored id outside 0..V−1, temperature ≤ 0 or NaN.
    """
    check_floats("logits", logits, B=None, L=None, V=None)
    n_sequences, length, vocabulary = logits.shape
    check_integers("token_ids", token_ids, B=n_sequences, L=length)
    require(temperature > 0, "temperature", temperature, "> 0")
    scored = token_ids[:, 1:]
    check_ids("token_ids", scored, torch.ones_like(scored, dtype=torch.bool), vocabulary)

    return log_prob_of(scored, working(logits[:, :-1]) / temperature).to(logits.dtype)


def masked_log_probs(logits: Tensor, token_ids: Tensor, mask: Tensor) -> Tensor:
    """Log-probability of each token that the policy sampled, exactly 0 elsewhere.

        out[b, t] = mask[b, t] · log softmax(logits[b, t])[token_ids[b, t+1]]

    Source: RL Basics §6 (B6.5, B6.6). Logits and ids at masked places (NaN, −100) reach neither value nor gradient.
    Shapes: logits [B, L, V], token_ids [B, L], mask [B, L−1] (entry t is that of token t+1) → [B, L−1], in nats.
    Raises: ValueError for other shapes, a mask that is not 0/1, an id outside 0..V−1 where the mask is 1.
    """
    check_floats("logits", logits, B=None, L=None, V=None)
    n_sequences, length, vocabulary = logits.shape
    check_integers("token_ids", token_ids, B=n_sequences, L=length)
    chosen = check_mask(mask, B=n_sequences, T=max(length - 1, 0))
    scored = token_ids[:, 1:]
    check_ids("token_ids", scored, chosen, vocabulary)

    log_probs = log_prob_of(torch.where(chosen, scored, 0), keep(logits[:, :-1], chosen[:, :, None]))
    return keep(log_probs, chosen).to(logits.dtype)


def entropy(logits: Tensor) -> Tensor:
    """Exact entropy of each next-token distribution.

        H = −Σ_v p_v log p_v,   p = softmax(logits),   0·log 0 = 0

    Source: Shannon (1948). A logit of −inf is a token of probability 0; a row of −inf alone is not a distribution.
    Shapes: logits [B, L, V] → [B, L], in nats.
    Raises: ValueError for another shape or an integer dtype.
    """
    check_floats("logits", logits, B=None, L=None, V=None)

    log_probs = torch.log_softmax(working(logits), dim=-1)
    finite_log_probs = log_probs.masked_fill(log_probs.isneginf(), 0.0)  # 0·(−inf) is NaN, in the gradient too
    return -(log_probs.exp() * finite_log_probs).sum(dim=-1).to(logits.dtype)


def action_log_probs(log_probs: Tensor, action_ids: Tensor, n_actions: int) -> Tensor:
    """Log-probability of each action: the sum over its tokens.

        out[b, a] = Σ_{t: action_ids[b, t] = a} log_probs[b, t]

    Source: RL Basics §6 (B6.3). Id −1 marks a token of no action; an action without tokens has log-prob 0.
    Shapes: log_probs [B, T], action_ids [B, T] → [B, n_actions], in nats.
    Raises: ValueError for other shapes, n_actions < 1, an id outside −1..n_actions−1.
    """
    check_floats("log_probs", log_probs, B=None, T=None)
    check_integers("action_ids", action_ids, B=log_probs.shape[0], T=log_probs.shape[1])
    require(n_actions >= 1, "n_actions", n_actions, ">= 1")
    check_ids("action_ids", action_ids, action_ids != -1, n_actions)

    actions = torch.arange(n_actions, device=action_ids.device)
    belongs = action_ids[:, None, :] == actions[None, :, None]
    return keep(log_probs[:, None, :], belongs).sum(dim=-1).to(log_probs.dtype)


def log_prob_of(ids: Tensor, logits: Tensor) -> Tensor:
    """The log-probability of an id [B, T] in each row of logits [B, T, V]."""
    return torch.log_softmax(logits, dim=-1).gather(2, ids.long()[:, :, None])[:, :, 0]
