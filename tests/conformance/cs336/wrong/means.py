"""Wrong means and sums."""

from tests.conformance.cs336 import plain_2025 as right
from tests.conformance.cs336 import plain_2026 as later
from tests.conformance.cs336.wrong.declare import wrong


@wrong("masked_mean", "value", "dividing by the number of all entries")
def mean_over_all_entries(tensor, mask, dim=None):
    return (tensor * mask).mean() if dim is None else (tensor * mask).mean(dim=dim)


@wrong("masked_mean", "value", "counting the masked-in entries of the whole mask")
def count_of_the_whole_mask(tensor, mask, dim=None):
    return (tensor * mask).sum(dim=dim) / mask.sum()


@wrong("masked_mean", "value", "has shape")
def dim_ignored(tensor, mask, dim=None):
    return (tensor * mask).sum() / mask.sum()


@wrong("masked_mean", "gradient", "the result is cut off from it")
def dead_mean(tensor, mask, dim=None):
    return right.masked_mean(tensor, mask, dim).detach()


@wrong("masked_mean", "empty", "of a row without masked-in entries is 1")
def empty_mean_of_one(tensor, mask, dim=None):
    return right.masked_mean(tensor, mask, dim).nan_to_num(1.0)


@wrong("masked_mean", "mask-dtype", "raised")
def mean_of_bool_masks(tensor, mask, dim=None):
    return right.masked_mean(tensor.masked_fill(~mask, 0.0), mask, dim)


@wrong("masked_normalize", "value", "not dividing by normalize_constant")
def constant_ignored(tensor, mask, normalize_constant=1.0, dim=None):
    return (tensor * mask).sum(dim=dim)


@wrong("masked_normalize", "value", "dividing by the number of masked-in entries")
def mean_instead(tensor, mask, normalize_constant=1.0, dim=None):
    return right.masked_mean(tensor, mask, dim)


@wrong("masked_normalize", "value", "leaving the mask out")
def mask_ignored(tensor, mask, normalize_constant=1.0, dim=None):
    return tensor.sum(dim=dim) / normalize_constant


@wrong("masked_normalize", "gradient", "the result is cut off from it")
def dead_sum(tensor, mask, normalize_constant=1.0, dim=None):
    return right.masked_normalize(tensor, mask, normalize_constant, dim).detach()


@wrong("masked_normalize", "mask-dtype", "raised")
def sum_of_bool_masks(tensor, mask, normalize_constant=1.0, dim=None):
    return right.masked_normalize(tensor.masked_fill(~mask, 0.0), mask, normalize_constant, dim)


AGGREGATE = "aggregate_loss_across_microbatch"


@wrong(AGGREGATE, "sequence", "the mean over all tokens of the microbatch")
def token_mean(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    return right.masked_mean(per_token_policy_gradient_loss, mask)


@wrong(AGGREGATE, "constant", "dividing by the number of sequences as well")
def constant_per_sequence(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    return (per_token_policy_gradient_loss * mask).sum(dim=1).mean() / (normalization_constant or 1)


@wrong(AGGREGATE, "sequence-gradient", "the result is cut off from it")
@wrong(AGGREGATE, "constant-gradient", "the result is cut off from it")
def dead_aggregate(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    return later.aggregate_loss_across_microbatch(
        per_token_policy_gradient_loss.detach(), mask, loss_normalization, normalization_constant
    )


@wrong(AGGREGATE, "mask-dtype", "raised")
def aggregate_of_bool_masks(per_token_policy_gradient_loss, mask, loss_normalization, normalization_constant=None):
    return later.aggregate_loss_across_microbatch(
        per_token_policy_gradient_loss.masked_fill(~mask, 0.0), mask, loss_normalization, normalization_constant
    )
