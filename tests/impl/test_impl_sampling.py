"""Truncated log-probs of the reference."""

import math

import torch

from rlassay_impl import token_log_probs, truncated_log_probs

INF = float("inf")


def of_every_token(logits: list[float], temperature: float = 1.0, **asked: float) -> list[float]:
    """The truncated distribution of one context."""
    size = len(logits)
    rows = torch.tensor([[logits, logits]], dtype=torch.float64).expand(size, 2, size)
    ids = torch.stack([torch.zeros(size, dtype=torch.int64), torch.arange(size)], dim=1)
    return truncated_log_probs(rows, ids, temperature, **asked)[:, 0].exp().tolist()  # type: ignore[arg-type]


def close(got: list[float], want: list[float]) -> bool:
    return torch.allclose(torch.tensor(got), torch.tensor(want, dtype=torch.float32), rtol=1e-6, atol=0)


def test_only_what_stays_shares_the_probability() -> None:
    logits = [math.log(p) for p in (0.1, 0.4, 0.2, 0.3)]
    assert close(of_every_token(logits, top_k=2), [0, 4 / 7, 0, 3 / 7])
    assert close(of_every_token(logits, top_p=0.5), [0, 4 / 7, 0, 3 / 7])
    assert close(of_every_token(logits, top_p=0.75), [0, 4 / 9, 2 / 9, 3 / 9])
    assert close(of_every_token(logits, top_p=0.01), [0, 1, 0, 0])
    assert close(of_every_token(logits, top_k=9, top_p=1.0), [0.1, 0.4, 0.2, 0.3])


def test_top_p_is_a_share_of_what_top_k_left() -> None:
    logits = [math.log(p) for p in (0.5, 0.25, 0.125, 0.125)]
    assert close(of_every_token(logits, top_k=2, top_p=0.6), [1, 0, 0, 0])
    assert close(of_every_token(logits, top_p=0.6), [2 / 3, 1 / 3, 0, 0])


def test_the_nucleus_is_that_of_the_tempered_distribution() -> None:
    logits = [2.0, 1.0, 0.0]  # 0.67, 0.24, 0.09; at temperature 4: 0.42, 0.33, 0.25
    assert of_every_token(logits, top_p=0.6)[1] == 0
    assert of_every_token(logits, 4.0, top_p=0.6)[1] > 0


def test_a_token_that_is_cut_has_log_prob_minus_inf_and_leaves_other_gradients_finite() -> None:
    logits = torch.tensor([[[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [0.0, 0.0, 0.0]]], requires_grad=True)
    got = truncated_log_probs(logits, torch.tensor([[0, 1, 2]]), top_k=2)
    assert got[0, 0].isfinite() and got[0, 1] == -INF
    (gradient,) = torch.autograd.grad(got[0, 0], logits)
    assert gradient.isfinite().all()
    assert gradient[0, 0, 2] == 0 and not gradient[0, 1:].any()


def test_without_a_cut_it_is_the_log_prob_of_the_model() -> None:
    logits = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(0))
    ids = torch.arange(10).reshape(2, 5) % 7
    assert torch.equal(truncated_log_probs(logits, ids, 0.7), token_log_probs(logits, ids, 0.7))
