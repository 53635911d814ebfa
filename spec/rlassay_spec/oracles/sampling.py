"""Oracle of the log-probabilities under the distribution that a sampler draws from."""

import numpy as np
import numpy.typing as npt

from rlassay_spec.oracles.expected import BoolArray, Expected, FloatArray, Gradient
from rlassay_spec.oracles.inputs import floats, ids_of
from rlassay_spec.oracles.log_prob import scored


def truncated_log_probs(
    logits: npt.ArrayLike,
    token_ids: npt.ArrayLike,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Expected:
    """Token log-probs once the tokens that are cut have the logit −∞.

    The scales hold those of the whole distribution too, whose log-probs may come first: log π − log π(S) is as right.
    """
    x = floats("logits", logits, "BLV")
    ids = ids_of("token_ids", token_ids, "BL", x.shape[:2])
    if not temperature > 0:
        raise ValueError(f"temperature: is {temperature}, expected a number > 0")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k: is {top_k}, expected None or ≥ 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p: is {top_p}, expected None or a number in (0, 1]")
    left = np.full(x.shape, -np.inf)
    for b, t in np.ndindex(x.shape[:2]):
        stays = _kept(x[b, t] / temperature, top_k, top_p)
        left[b, t, stays] = x[b, t, stays]
    everywhere = np.ones((len(x), max(x.shape[1] - 1, 0)), dtype=np.bool_)
    answer, whole = (scored(each, ids, everywhere, temperature) for each in (left, x))
    cut: BoolArray = np.isneginf(answer.value)

    def pullback(cotangent: npt.ArrayLike) -> Gradient:
        assert answer.pullback is not None and whole.pullback is not None
        gradient = answer.pullback(cotangent)
        gradient.value[:, : cut.shape[1]][cut] = np.nan
        return Gradient(gradient.value, gradient.scale + whole.pullback(cotangent).scale, gradient.kink)

    return Expected(answer.value, answer.scale + whole.scale, answer.terms, pullback)


def _kept(z: FloatArray, top_k: int | None, top_p: float | None) -> npt.NDArray[np.intp]:
    """The places of the tokens that stay, the most likely one first."""
    order = np.argsort(-z, kind="stable")[:top_k]
    if top_p is None:
        return order
    powers = np.exp(z[order] - z[order[0]])
    reached = np.cumsum(powers / powers.sum())
    return order[: 1 + int(np.searchsorted(reached, top_p))]
