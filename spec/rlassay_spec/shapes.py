"""Names for what flows between operations: element kind and shape, for readers and type checkers.

B sequences, L tokens, T = L−1 predicted tokens, V vocabulary, N instances, G rollouts per instance
(B = N·G, row-major by instance), A actions, K outcomes, D parameters.
"""

from typing import Annotated, Any, TypeAlias

Array: TypeAlias = Any
"""A tensor or an array of any library; the specification needs no particular one."""

Logits: TypeAlias = Annotated[Array, "float [B, L, V]"]
TokenIds: TypeAlias = Annotated[Array, "int [B, L]"]
TokenMask: TypeAlias = Annotated[Array, "bool [B, L]"]
Entropies: TypeAlias = Annotated[Array, "float [B, L], nats"]

LogProbs: TypeAlias = Annotated[Array, "float [B, T], nats"]
Mask: TypeAlias = Annotated[Array, "0 or 1 [B, T], bool, int or float"]
Weights: TypeAlias = Annotated[Array, "float [B, T]"]
Values: TypeAlias = Annotated[Array, "float [B, T]"]
StepRewards: TypeAlias = Annotated[Array, "float [B, T]"]
ActionIds: TypeAlias = Annotated[Array, "int [B, T], −1 for none"]
ActionLogProbs: TypeAlias = Annotated[Array, "float [B, A], nats"]

SequenceRewards: TypeAlias = Annotated[Array, "float [B]"]
Lengths: TypeAlias = Annotated[Array, "int [B], tokens"]
LengthPenalties: TypeAlias = Annotated[Array, "float32 [B]"]
Baselines: TypeAlias = Annotated[Array, "float [B]"]
Advantages: TypeAlias = Annotated[Array, "float [B]"]

GroupRewards: TypeAlias = Annotated[Array, "float [N, G]"]
GroupAdvantages: TypeAlias = Annotated[Array, "float [N, G]"]
GroupMask: TypeAlias = Annotated[Array, "bool [N]"]

Probabilities: TypeAlias = Annotated[Array, "float [K]"]
OutcomeReturns: TypeAlias = Annotated[Array, "float [K]"]
Scores: TypeAlias = Annotated[Array, "float [K, D]"]
Numbers: TypeAlias = Annotated[Array, "int [n], a sequence or a 1-D tensor"]

Scalar: TypeAlias = Annotated[Array, "float [], a 0-d tensor or a number"]
