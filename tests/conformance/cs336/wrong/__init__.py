"""Wrong versions of single functions of the assignment."""

from tests.conformance.cs336.wrong import log_probs, losses, means, microbatches, rewards, tokens, training
from tests.conformance.cs336.wrong.declare import WRONG, Wrong

__all__ = ["WRONG", "Wrong", "log_probs", "losses", "means", "microbatches", "rewards", "tokens", "training"]
