"""The claims of the two lectures as data: what each says, its exact value, and whether it is true.

    rl_basics.toml        claims B…, Daniel Fried's lecture on the basics of RL for agents
    rl_in_practice.toml   claims P…, Percy Liang's CS336 lecture on RL in practice

`load_claims()` reads them; `evaluation.mismatch(value)` compares a stated value with the expression that yields it.
"""

from rlassay_spec.claims.loader import VERDICTS, Claim, ClaimError, Value, load_claims

__all__ = ["VERDICTS", "Claim", "ClaimError", "Value", "load_claims"]
