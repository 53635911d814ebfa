"""A small stochastic environment as a language model meets it: every trajectory a token sequence with logits.

The tokens of a trajectory are o_0, a_0, o_1, a_1, …, o_T. The logits after o_t are the policy's row for o_t, and so are
those after a_t, where the model has an opinion on the next observation too; but only the actions are sampled from it,
so only they are masked in. The parameters are the rows' logits, which many places share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rlassay.guest.values import Arguments, Tensor
from rlassay.suite.claims.reading import Reading
from rlassay_spec.exact.environment import Environment, Policy
from rlassay_spec.exact.trajectory import Trajectory, enumerate_all


@dataclass(frozen=True)
class Episodes:
    """All trajectories of an environment, with the probabilities that a sampling policy gives them."""

    environment: Environment
    sampler: Policy

    @cached_property
    def paths(self) -> Sequence[Trajectory]:
        """The trajectories."""
        return enumerate_all(self.environment, self.sampler)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """p(τ) [N] of the sampling policy."""
        return np.array([path.probability for path in self.paths], dtype=np.float64)

    @cached_property
    def returns(self) -> np.ndarray:
        """R(τ) [N]."""
        return np.array([path.total for path in self.paths], dtype=np.float64)

    @cached_property
    def places(self) -> np.ndarray:
        """For each token [N, L], the row of the policy that gives the logits after it."""
        return np.array([[o for o in path.observations for _ in (0, 1)][:-1] for path in self.paths])

    def arguments(self, policy: Policy) -> Arguments:
        """Arguments of masked_log_probs under a policy."""
        rows = np.log(np.array(policy, dtype=np.float64))
        tokens = np.zeros_like(self.places)
        tokens[:, 0::2] = [path.observations for path in self.paths]
        tokens[:, 1::2] = [path.actions for path in self.paths]
        mask = np.zeros((len(tokens), tokens.shape[1] - 1))
        mask[:, 0::2] = 1
        return {
            "logits": Tensor(rows[self.places], "float64"),
            "token_ids": Tensor(tokens, "int64"),
            "mask": Tensor(mask),
        }

    def into_parameters(self, gradient: Reading, places: np.ndarray) -> Reading:
        """The gradient in the parameters [N, K], from that in logits [N, L, V] , rows at these places [N, L]."""
        here = (places[..., None] == np.arange(len(self.sampler))).astype(np.float64)
        with np.errstate(all="ignore"):
            value = np.einsum("nlr,nlv->nrv", here, gradient.value)
        error = np.einsum("nlr,nlv->nrv", here, gradient.error)
        return Reading(value, error).reshaped(len(here), -1)
