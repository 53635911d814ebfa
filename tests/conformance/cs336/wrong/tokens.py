"""Wrong versions of tokenize_prompt_and_output."""

import torch

from tests.conformance.cs336 import plain_2025 as right
from tests.conformance.cs336.wrong.declare import wrong

TOKENIZE = "tokenize_prompt_and_output"


def laid_out(prompt_strs, output_strs, tokenizer, first=0, last=0):
    """The right result, with the bounds of the mask moved."""
    result = right.tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer)
    mask = torch.zeros_like(result["response_mask"])
    for row, (prompt, output) in enumerate(zip(prompt_strs, output_strs)):
        start = len(tokenizer.encode(prompt)) - 1
        mask[row, max(start + first, 0) : start + len(tokenizer.encode(output)) + last] = True
    return {**result, "response_mask": mask}


@wrong(TOKENIZE, "labels", "labels that are not shifted")
def labels_are_input_ids(prompt_strs, output_strs, tokenizer):
    result = right.tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer)
    return {**result, "labels": result["input_ids"]}


@wrong(TOKENIZE, "response-mask", "letting the prompt's last token in and the output's last out")
def mask_one_early(prompt_strs, output_strs, tokenizer):
    return laid_out(prompt_strs, output_strs, tokenizer, first=-1, last=-1)


@wrong(TOKENIZE, "response-mask", "a mask over input_ids instead of labels")
def mask_of_input_ids(prompt_strs, output_strs, tokenizer):
    return laid_out(prompt_strs, output_strs, tokenizer, first=1, last=1)


@wrong(TOKENIZE, "response-mask", "leaving the output's last token out")
def mask_without_the_last(prompt_strs, output_strs, tokenizer):
    return laid_out(prompt_strs, output_strs, tokenizer, last=-1)


@wrong(TOKENIZE, "response-mask", "letting padding in")
def mask_with_padding(prompt_strs, output_strs, tokenizer):
    return laid_out(prompt_strs, output_strs, tokenizer, last=1000)


@wrong(TOKENIZE, "response-mask", "taking every token with the padding's id for padding")
def mask_by_padding_id(prompt_strs, output_strs, tokenizer):
    result = laid_out(prompt_strs, output_strs, tokenizer)
    mask = result["response_mask"] & (result["labels"] != tokenizer.pad_token_id)
    return {**result, "response_mask": mask}


@wrong(TOKENIZE, "input-ids", "tokenize_prompt_and_output: input_ids")
def tokenized_together(prompt_strs, output_strs, tokenizer):
    joined = [prompt + output for prompt, output in zip(prompt_strs, output_strs)]
    ids = tokenizer(joined, padding=True, return_tensors="pt")["input_ids"]
    lengths = torch.tensor([len(tokenizer.encode(prompt)) for prompt in prompt_strs])[:, None]
    mask = (torch.arange(ids.shape[1])[None] >= lengths) & (ids != tokenizer.pad_token_id)
    return {"input_ids": ids[:, :-1], "labels": ids[:, 1:], "response_mask": mask[:, 1:]}


@wrong(TOKENIZE, "input-ids", "has dtype float32")
def float_ids(prompt_strs, output_strs, tokenizer):
    result = right.tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer)
    return {name: tensor.float() for name, tensor in result.items()}


@wrong(TOKENIZE, "labels", "should return a dictionary with 'labels'")
def three_tensors(prompt_strs, output_strs, tokenizer):
    return tuple(right.tokenize_prompt_and_output(prompt_strs, output_strs, tokenizer).values())
