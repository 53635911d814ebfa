"""Every operation does something odd in its own way, and none of it may cost another operation its verdict."""

import os
import sys
import warnings

import numpy
import torch

warnings.simplefilter("error")
numpy.seterr(all="raise")


def token_log_probs(logits):
    return logits  # takes other arguments than the contract says


def masked_log_probs(logits, token_ids, mask):
    return None


def entropy(logits):
    return "about two nats"


def action_log_probs(log_probs, action_ids, n_actions):
    return log_probs.sum(dim=1)  # [B] instead of [B, A]


def reward_to_go(rewards, gamma=1.0):
    return rewards.flip(1).cumsum(1).flip(1).to(torch.int64)


def centered_advantages(rewards):
    raise RuntimeError("no \x1b[31mred\x1b[0m text,\r no lone surrogate \ud800, please")


def grpo_advantages(rewards):
    print("advantages " * 100_000)
    os.write(1, b"more of them")
    centered = rewards - rewards.mean(dim=1, keepdim=True)
    std = rewards.std(dim=1, keepdim=True, correction=0)
    return torch.where(std == 0, torch.zeros_like(rewards), centered / std)


def rloo_advantages(rewards):
    sys.stdout.close()
    return rewards


def max_advantages(rewards):
    return rewards.to_sparse()


def keep_groups(rewards):
    return rewards.to("meta")


def sft_loss(log_probs, mask):
    return log_probs.sum(), {"metadata": 1}


def rest_loss(log_probs, mask, rewards):
    return torch.complex(log_probs, log_probs).sum()


def reinforce_loss(log_probs, mask, rewards, baselines):
    print("standard output was closed by another operation")
    return -(log_probs * mask * (rewards - baselines)[:, None]).sum(dim=1).mean().item()


def policy_gradient_loss(log_probs, mask, weights):
    raise Wordless


def grpo_loss(log_probs, mask, advantages):
    return Deceptive.apply(log_probs)


def kl_k1(log_probs, ref_log_probs):
    raise SystemExit("done for today")


def kl_k2(log_probs, ref_log_probs):
    raise KeyboardInterrupt


def kl_k3(log_probs, ref_log_probs):
    return (log_probs - ref_log_probs).numpy()


def number_search(hidden, guesses):
    return {"feedback": [], "reward": 0}


def position_reward(prompt, response):
    return [len(prompt)]


def expected_return(probabilities, returns):
    return float("nan")


def bandit_gradient(theta, action, baseline):
    return object()


class Wordless(Exception):
    """Its message cannot be read."""

    def __str__(self):
        raise ValueError("no words")


class Deceptive(torch.autograd.Function):
    """A loss whose gradient has another shape than its input."""

    @staticmethod
    def forward(context, log_probs):
        return log_probs.sum()

    @staticmethod
    def backward(context, gradient):
        raise ValueError("the backward pass is not written yet")
