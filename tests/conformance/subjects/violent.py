"""Operations that never return, or take their process with them."""

import os
import signal
import subprocess
import sys

import torch

if "RLASSAY_TEST_PIDS" in os.environ:  # tells the test which processes must be gone at the end
    _child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(os.environ["RLASSAY_TEST_PIDS"], "a") as _file:
        _file.write(f"{os.getpid()}\n{_child.pid}\n")


def token_log_probs(logits, token_ids, temperature=1.0):
    return torch.log_softmax(logits[:, :-1] / temperature, -1).gather(-1, token_ids[:, 1:, None])[..., 0]


def entropy(logits):
    while True:
        pass


def reward_to_go(rewards, gamma=1.0):
    os._exit(3)


def keep_groups(rewards):
    os.kill(os.getpid(), signal.SIGSEGV)


def kl_k1(log_probs, ref_log_probs):
    return log_probs - ref_log_probs.detach()
