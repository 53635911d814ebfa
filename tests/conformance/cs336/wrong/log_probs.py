"""Wrong entropies and log-probs."""

import torch

from tests.conformance.cs336 import plain_2025 as right
from tests.conformance.cs336.wrong.declare import wrong


@wrong("compute_entropy", "value", "leaving the minus sign out")
def negative_entropy(logits):
    return -right.compute_entropy(logits)


@wrong("compute_entropy", "large-logits", "is nan")
def entropy_of_probabilities(logits):
    p = torch.softmax(logits, dim=-1)
    return -(p * p.log()).sum(dim=-1)


@wrong("compute_entropy", "large-logits", "is nan")
def entropy_without_a_shift(logits):
    p = logits.exp() / logits.exp().sum(dim=-1, keepdim=True)
    return -(p * torch.log_softmax(logits, dim=-1)).sum(dim=-1)


@wrong("compute_entropy", "gradient", "no gradient of compute_entropy reaches logits")
def dead_entropy(logits):
    return right.compute_entropy(logits).detach()


LOG_PROBS = "get_response_log_probs"


@wrong(LOG_PROBS, "log-probs", "scoring input_ids instead of labels")
def log_probs_of_input_ids(model, input_ids, labels, return_token_entropy=False):
    return right.get_response_log_probs(model, input_ids, input_ids, return_token_entropy)


@wrong(LOG_PROBS, "log-probs", "is")
def shifted_twice(model, input_ids, labels, return_token_entropy=False):
    log_p = torch.log_softmax(model(input_ids).logits, dim=-1)
    later_labels = torch.cat([labels[:, 1:], labels[:, -1:]], dim=1)
    return {"log_probs": log_p.gather(-1, later_labels[..., None])[..., 0]}


@wrong(LOG_PROBS, "token-entropy", "should return a dictionary with 'token_entropy'")
def no_entropy(model, input_ids, labels, return_token_entropy=False):
    return right.get_response_log_probs(model, input_ids, labels, False)


@wrong(LOG_PROBS, "gradient", "no gradient of get_response_log_probs: log_probs reaches model")
def no_grad_log_probs(model, input_ids, labels, return_token_entropy=False):
    with torch.no_grad():
        return right.get_response_log_probs(model, input_ids, labels, return_token_entropy)


@wrong(LOG_PROBS, "large-logits", "is -inf")
def log_of_softmax(model, input_ids, labels, return_token_entropy=False):
    p = torch.softmax(model(input_ids).logits, dim=-1)
    return {"log_probs": p.gather(-1, labels[..., None])[..., 0].log()}
