"""The functions of the Stanford CS336 alignment assignment, in its form of 2025 and in its form of 2026.

Arguments are always given by name. In the assignment they may be prefixed by `run_`; `compute_group_normalized_rewards`
and `compute_policy_gradient_loss` exist in both forms, the one of 2026 carries the year here. What a contract lists as
free is left open by the assignment and never judged. Metadata is a dictionary with anything in it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from rlassay_spec.shapes import Advantages, Array, Logits, LogProbs, Mask, Scalar, SequenceRewards, TokenIds

Column: TypeAlias = Annotated[Array, "float [B, 1]"]
PerToken: TypeAlias = Annotated[Array, "float [B, T]"]
RewardFunction: TypeAlias = Callable[[str, str], Mapping[str, float]]
Metadata: TypeAlias = dict[str, Any]


def tokenize_prompt_and_output(
    prompt_strs: Sequence[str], output_strs: Sequence[str], tokenizer: Any
) -> dict[str, TokenIds]:
    """Token ids of prompts followed by their outputs, shifted against each other, and a mask of the outputs' tokens.

    w = ids(prompt) + ids(output), each tokenised by itself, padded on the right to n = longest w
    input_ids = w[:n−1],  labels = w[1:],  response_mask[t] = 1 where labels[t] is a token of the output

    Source: Stanford CS336, alignment assignment 2025.

    Special cases: an output's own end-of-sequence token belongs to it, even if padding has the same id.

    Shapes: B prompts and outputs → {"input_ids", "labels", "response_mask"}, each [B, n−1]. Not differentiated.

    Free: what stands in the padding; input_ids where labels has padding; the dtype of response_mask; further keys.
    """
    raise NotImplementedError


def compute_group_normalized_rewards(
    reward_fn: RewardFunction,
    rollout_responses: Sequence[str],
    repeated_ground_truths: Sequence[str],
    group_size: int,
    advantage_eps: float,
    normalize_by_std: bool,
) -> tuple[Advantages, SequenceRewards, Metadata]:
    """Rewards of rollouts and, against the other rollouts of their group, advantages (form of 2025).

    R[b] = reward_fn(rollout_responses[b], repeated_ground_truths[b])["reward"]
    Â = (R − mean) / (σ + advantage_eps)  if normalize_by_std,  else R − mean,  over groups of group_size neighbours

    Source: Stanford CS336, alignment assignment 2025; rl-basics §9 and §10.

    Special cases: σ divides by group_size − `std_ddof` of the convention, 1 under cs336. A group without contrast
    gives 0.

    Shapes: B responses → advantages [B], raw rewards [B], metadata. Not differentiated.

    Free: groups of one; [B, 1] instead of [B]; the dtype; metadata.
    """
    raise NotImplementedError


def compute_entropy(logits: Logits) -> PerToken:
    """Exact entropy of each next-token distribution.

    out[b, t] = −Σ_v p_v log p_v  with  p = softmax(logits[b, t])

    Source: Stanford CS336, alignment assignment 2025; `entropy` is the same with nothing left free.

    Special cases: finite and accurate however large the logits are.

    Shapes and units: logits [B, T, V] → [B, T], nats. The gradient flows into logits.

    Free: logits of −inf; a guard of up to 1e-8 beside p in the logarithm; the dtype.
    """
    raise NotImplementedError


def get_response_log_probs(
    model: Any, input_ids: TokenIds, labels: TokenIds, return_token_entropy: bool
) -> dict[str, PerToken]:
    """Log-probability that a language model gives to each label, and the entropy of what it was chosen from.

    log_probs[b, t] = log softmax(z[b, t])[labels[b, t]],  z = model(input_ids).logits
    token_entropy[b, t] = −Σ_v p_v log p_v  with  p = softmax(z[b, t])

    Source: Stanford CS336, alignment assignment 2025; rl-basics §6.

    Special cases: labels are shifted already. Prompt and padding are scored like everything else.

    Shapes and units: input_ids, labels [B, T] → {"log_probs", "token_entropy"}, each [B, T], nats. The gradient of
    log_probs flows into model, that is, into its parameters.

    Free: token_entropy unless return_token_entropy is true; its gradient; further keys.
    """
    raise NotImplementedError


def compute_naive_policy_gradient_loss(raw_rewards_or_advantages: Column, policy_log_probs: LogProbs) -> PerToken:
    """Policy-gradient loss of every token.

    out[b, t] = −A[b] · policy_log_probs[b, t]

    Source: Stanford CS336, alignment assignment 2025; rl-basics §6 and §9.

    Special cases: A = 0 gives 0 with zero gradient.

    Shapes: raw_rewards_or_advantages [B, 1], policy_log_probs [B, T] → [B, T]. The gradient flows into
    policy_log_probs.

    Free: the gradient in raw_rewards_or_advantages.
    """
    raise NotImplementedError


def compute_grpo_clip_loss(
    advantages: Column, policy_log_probs: LogProbs, old_log_probs: LogProbs, cliprange: float
) -> tuple[PerToken, Metadata]:
    """Clipped surrogate of every token.

    out[b, t] = −min(ρ Â[b], clip(ρ, 1−ε, 1+ε) Â[b]),  ρ = exp(policy_log_probs − old_log_probs),  ε = cliprange

    Source: Stanford CS336, alignment assignment 2025; rl-in-practice §5 (claim P5.3).

    Special cases: with Â > 0 a ratio above 1+ε, with Â < 0 one below 1−ε has zero gradient.

    Shapes: advantages [B, 1], policy_log_probs, old_log_probs [B, T] → loss [B, T], metadata. The gradient flows into
    policy_log_probs.

    Free: the gradient exactly on a bound, and in the other arguments; metadata.
    """
    raise NotImplementedError


def compute_policy_gradient_loss(
    policy_log_probs: LogProbs,
    loss_type: str,
    raw_rewards: Column | None = None,
    advantages: Column | None = None,
    old_log_probs: LogProbs | None = None,
    cliprange: float | None = None,
) -> tuple[PerToken, Metadata]:
    """One of three losses of every token, by name (form of 2025).

    no_baseline: −R log π;  reinforce_with_baseline: −Â log π;  grpo_clip: `compute_grpo_clip_loss`

    Source: Stanford CS336, alignment assignment 2025.

    Special cases: what a loss does not read may be missing or hold anything.

    Shapes: raw_rewards, advantages [B, 1], policy_log_probs, old_log_probs [B, T] → loss [B, T], metadata. The gradient
    flows into policy_log_probs.

    Free: the gradient exactly on a bound, and in the other arguments; metadata; what an unknown name does.
    """
    raise NotImplementedError


def masked_mean(tensor: Array, mask: Mask, dim: int | None = None) -> Array:
    """Mean over the entries whose mask is 1, along one dimension or over all.

    out = Σ_dim mask · tensor / Σ_dim mask

    Source: Stanford CS336, alignment assignment 2025.

    Special cases: a mean over no entry is 0 or NaN; the others are not affected.

    Shapes: tensor, mask of one shape → that shape without dim, or a scalar for None. The gradient flows into tensor.

    Free: 0 or NaN for an empty mean, and its gradient; a guard of up to 1e-6 in the denominator.
    """
    raise NotImplementedError


def masked_normalize(tensor: Array, mask: Mask, dim: int | None = None, normalize_constant: float = 1.0) -> Array:
    """Sum over the entries whose mask is 1, along one dimension or over all, divided by a constant.

    out = Σ_dim mask · tensor / normalize_constant

    Source: Stanford CS336, alignment assignment 2025; rl-basics §10 (claim B10.5).

    Special cases: a sum over no entry is 0.

    Shapes: tensor, mask of one shape → that shape without dim, or a scalar for None. The gradient flows into tensor.

    Free: the order of the last two parameters.
    """
    raise NotImplementedError


def sft_microbatch_train_step(
    policy_log_probs: LogProbs, response_mask: Mask, gradient_accumulation_steps: int, normalize_constant: float = 1.0
) -> tuple[Scalar, Metadata]:
    """One microbatch of supervised fine-tuning, backward pass included.

    L = (1/B) Σ_b Σ_t −mask · log π / normalize_constant / gradient_accumulation_steps

    Source: Stanford CS336, alignment assignment 2025; rl-basics §3.

    Special cases: the function calls backward itself and leaves the gradient in policy_log_probs.grad.

    Shapes: policy_log_probs, response_mask [B, T] → loss, a scalar, and metadata. The gradient flows into
    policy_log_probs.

    Free: whether the loss still carries a graph; metadata.
    """
    raise NotImplementedError


def grpo_microbatch_train_step(
    policy_log_probs: LogProbs,
    response_mask: Mask,
    gradient_accumulation_steps: int,
    loss_type: str,
    raw_rewards: Column | None = None,
    advantages: Column | None = None,
    old_log_probs: LogProbs | None = None,
    cliprange: float | None = None,
) -> tuple[Scalar, Metadata]:
    """One microbatch of a policy-gradient method, backward pass included.

    L = (1/B) Σ_b (1/n_b) Σ_t mask · loss / gradient_accumulation_steps,  loss = `compute_policy_gradient_loss`

    Source: Stanford CS336, alignment assignment 2025; rl-basics §9 (claim B9.5).

    Special cases: the function calls backward itself and leaves the gradient in policy_log_probs.grad.

    Shapes: raw_rewards, advantages [B, 1], the other tensors [B, T] → loss, a scalar, and metadata. The gradient flows
    into policy_log_probs.

    Free: rows without a masked-in token; the gradient exactly on a bound; whether the loss still carries a graph;
    metadata.
    """
    raise NotImplementedError


def compute_rollout_rewards(
    reward_fn: RewardFunction, rollout_responses: Sequence[str], repeated_ground_truths: Sequence[str]
) -> tuple[SequenceRewards, Metadata]:
    """Rewards of rollouts (form of 2026).

    R[b] = reward_fn(rollout_responses[b], repeated_ground_truths[b])["reward"]

    Source: Stanford CS336, alignment assignment 2026.

    Special cases: none.

    Shapes: B responses → raw rewards [B], metadata. Not differentiated.

    Free: [B, 1] instead of [B]; the dtype; metadata.
    """
    raise NotImplementedError


def compute_group_normalized_rewards_2026(
    raw_rewards: SequenceRewards,
    group_size: int,
    baseline: str = "mean",
    advantage_eps: float = 1e-6,
    advantage_normalizer: str = "std",
) -> tuple[Advantages, Metadata]:
    """Advantages from rewards, with a choice of baseline and of normaliser (form of 2026).

    Â = (R − b) / d,  b = mean ("mean") or 0 ("none"),
    d = σ + advantage_eps ("std"), mean + advantage_eps ("mean") or 1 ("none"),  over groups of group_size neighbours

    Source: Stanford CS336, alignment assignment 2026.

    Special cases: σ divides by group_size − `std_ddof` of the convention, 1 under cs336. With baseline "mean" a group
    without contrast gives 0.

    Shapes: raw_rewards [B] → advantages [B], metadata. Not differentiated.

    Free: groups of one; a group without contrast under baseline "none" and normaliser "std"; a negative mean as
    normaliser; [B, 1] instead of [B]; the dtype; metadata.
    """
    raise NotImplementedError


def compute_policy_gradient_loss_2026(
    raw_rewards_or_advantages: Annotated[Array, "float [B] or [B, 1]"],
    policy_log_probs: LogProbs,
    importance_reweighting_method: str = "none",
    old_log_probs: LogProbs | None = None,
    cliprange: float | None = None,
    response_mask: Mask | None = None,
) -> tuple[PerToken, Metadata]:
    """Policy-gradient loss of every token, with a choice of importance weights (form of 2026).

    none: −A log π;  noclip: −A ρ;  grpo: −min(ρ A, clip(ρ, 1−ε, 1+ε) A),  ρ = exp(log π − log π_old),  ε = cliprange
    gspo: the same as grpo with one ratio per sequence,  s[b] = exp((1/n_b) Σ_t mask · (log π − log π_old))

    Source: Stanford CS336, alignment assignment 2026; Zheng et al., Group Sequence Policy Optimization.

    Special cases: the gradient of gspo flows through s into every masked-in token of the sequence.

    Shapes: policy_log_probs, old_log_probs, response_mask [B, T] → loss [B, T], metadata. The gradient flows into
    policy_log_probs.

    Free: which of [B] and [B, 1] is taken; the loss where response_mask is 0; gspo without response_mask; the gradient
    exactly on a bound, and in the other arguments; metadata.
    """
    raise NotImplementedError


def aggregate_loss_across_microbatch(
    per_token_policy_gradient_loss: PerToken,
    mask: Mask,
    loss_normalization: str,
    normalization_constant: float | None = None,
) -> Scalar:
    """One number from the losses of a microbatch's tokens.

    out = (1/B) Σ_b (1/n_b) Σ_t mask · loss  ("sequence"),  Σ mask · loss / normalization_constant  ("constant")

    Source: Stanford CS336, alignment assignment 2026; rl-basics §9 and §10.

    Special cases: "constant" does not divide by the number of sequences.

    Shapes: per_token_policy_gradient_loss, mask [B, T] → scalar. The gradient flows into
    per_token_policy_gradient_loss.

    Free: rows without a masked-in token under "sequence"; a guard of up to 1e-6 in the denominator.
    """
    raise NotImplementedError


def grpo_train_step(
    model: Any,
    tokenizer: Any,
    optimizer: Any,
    gradient_accumulation_steps: int,
    max_grad_norm: float,
    reward_fn: RewardFunction,
    repeated_prompts: Sequence[str],
    rollout_responses: Sequence[str],
    repeated_ground_truths: Sequence[str],
    group_size: int,
    baseline: str,
    advantage_eps: float,
    advantage_normalizer: str,
    importance_reweighting_method: str,
    old_log_probs: LogProbs | None,
    cliprange: float | None,
    loss_normalization: str,
    normalization_constant: float | None,
) -> tuple[Scalar, Metadata]:
    """One optimiser step on a batch of rollouts, taken in equal microbatches.

    g = ∇ of the loss of the whole batch, whatever the number of microbatches
    g ← g · min(1, max_grad_norm / ‖g‖),  θ ← θ − lr · g  under plain gradient descent

    Source: Stanford CS336, alignment assignment 2026; rl-basics §9.

    Special cases: under "sequence" each microbatch's loss is divided by gradient_accumulation_steps, under "constant"
    it is not. The norm is that of all parameters together, after the last microbatch. No gradient is left for the next
    step to find.

    Shapes: B prompts, responses and truths, old_log_probs [B, T] as `tokenize_prompt_and_output` lays the batch out →
    loss, a scalar, and metadata; the model's parameters are changed in place. The gradient flows into model.

    Free: whether gradients are set to zero before or after; 1e-6 beside the norm; a NotImplementedError for an option.
    """
    raise NotImplementedError
