"""Supervised fine-tuning."""

import torch


def compute_entropy(logits):
    log_p = logits - logits.logsumexp(dim=-1, keepdim=True)
    return -(log_p.exp() * log_p).sum(dim=-1)


def masked_normalize(tensor, mask, dim=None, normalize_constant=1.0):
    return torch.where(mask.bool(), tensor, 0.0).sum(dim=dim) / normalize_constant


def sft_microbatch_train_step(policy_log_probs, response_mask, gradient_accumulation_steps, normalize_constant=1.0):
    rows = masked_normalize(policy_log_probs, response_mask, 1, normalize_constant)
    loss = -rows.mean() / gradient_accumulation_steps
    loss.backward()
    return loss, {"rows": rows.detach()}
