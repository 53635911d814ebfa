"""Checks of the functions of the CS336 alignment assignment."""

from __future__ import annotations

from rlassay.suite.cs336 import losses, means, rewards, steps, tokens, training
from rlassay.topic import Topic

TOPICS: tuple[Topic, ...] = tuple(module.TOPIC for module in (tokens, rewards, losses, means, steps, training))
