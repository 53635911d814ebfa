"""Properties of the parts that everything rests on, for any input."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlassay.draw import Draw
from rlassay.guest.values import Tensor
from rlassay.record import CheckResult, Failure, decode, encode
from rlassay.snippet import inputs_text

derandomized = settings(derandomize=True, deadline=None, database=None)
numbers = st.floats(width=32, allow_nan=False)


@derandomized
@given(st.lists(numbers, min_size=1, max_size=20))
def test_bfloat16_is_rounded_as_torch_rounds_it(values: list[float]) -> None:
    want = torch.tensor(values, dtype=torch.float32).to(torch.bfloat16).to(torch.float64)
    assert np.array_equal(Tensor(np.array(values), "bfloat16").array, want.numpy())


@derandomized
@given(st.lists(numbers, min_size=1, max_size=20), st.sampled_from(["float32", "float64", "bfloat16"]))
def test_the_literal_of_an_input_reads_back_as_the_same_tensor(values: list[float], dtype: str) -> None:
    tensor = Tensor(np.array(values), dtype)
    read = torch.tensor(eval(inputs_text({"x": tensor})["x"], {"inf": float("inf")}), dtype=getattr(torch, dtype))
    assert np.array_equal(read.to(torch.float64).numpy(), tensor.array)


@derandomized
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_survives_the_record(message: str, got: str) -> None:
    failure = Failure(message=message, got=got)
    line = CheckResult(
        id="a/b", title="t", operations=["a"], claims=[], kind="robustness", outcome="fail", failure=failure
    )
    coded = encode(line)
    assert coded.count(b"\n") == 1
    assert decode(coded) == line


@derandomized
@given(st.integers(1, 12), st.integers(0, 20), st.text(max_size=10))
def test_consecutive_examples_go_through_all_options(count: int, block: int, seed: str) -> None:
    drawn = {Draw(seed, block * count + index).integer("x", 1, count) for index in range(count)}
    assert drawn == set(range(1, count + 1))


@derandomized
@given(st.integers(0, 1000), st.text(max_size=10))
def test_an_example_drawn_again_is_the_same(index: int, seed: str) -> None:
    first = Draw(seed, index)
    one = (first.choice("kind", "abc"), first.integer("size", 1, 9), first.normal(3).tolist())
    second = first.again()
    assert (second.choice("kind", "abc"), second.integer("size", 1, 9), second.normal(3).tolist()) == one
