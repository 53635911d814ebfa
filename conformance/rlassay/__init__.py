"""rlassay tells whether code that computes reinforcement learning for language models computes it rightly."""

__version__ = "0.1.0"
