"""The response mask against a machine that reads token by token."""

from itertools import chain, product

import numpy as np
import pytest

from rlassay_spec.oracles.trajectory import response_mask

START, END, ASSISTANT, NEWLINE, WORD, USER = 0, 1, 2, 3, 4, 5


def mask_of(*row: int) -> list[int]:
    return [int(bit) for bit in response_mask([row], START, END, ASSISTANT, NEWLINE).value[0]]


def read_token_by_token(row: tuple[int, ...]) -> list[bool]:
    """States: 0 outside, 1 after im_start, 2 after the assistant's role, 3 in the content."""
    mask, state = [], 0
    for token in row:
        mask.append(state == 3 and token != START)
        if token == START:
            state = 1
        elif state == 1 and token == ASSISTANT:
            state = 2
        elif (state == 2 and token == NEWLINE) or (state == 3 and token != END):
            state = 3
        else:
            state = 0
    for t in reversed(range(len(row))):
        if row[t] >= 0:
            break
        mask[t] = False
    return mask


@pytest.mark.parametrize("length", range(1, 7))
def test_every_short_sequence_agrees_with_reading_token_by_token(length: int) -> None:
    rows = list(product((START, END, ASSISTANT, NEWLINE, -1), repeat=length))
    expected = response_mask(rows, START, END, ASSISTANT, NEWLINE)
    np.testing.assert_array_equal(expected.value, [read_token_by_token(row) for row in rows])
    assert expected.value.dtype == np.bool_
    assert not expected.scale.any()


@pytest.mark.parametrize("seed", range(5))
def test_long_random_sequences_agree_with_reading_token_by_token(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assistant, user = (START, ASSISTANT, NEWLINE, WORD, WORD, END, NEWLINE), (START, USER, NEWLINE, WORD, END)
    pieces = [assistant, user, (START,), (-1, -7)]
    for _ in range(20):
        row = tuple(chain.from_iterable(pieces[i] for i in rng.integers(0, 4, 12)))[:30]
        assert mask_of(*row) == read_token_by_token(row)


def test_content_and_the_closing_token_of_assistant_turns_count() -> None:
    user = [START, USER, NEWLINE, WORD, END, NEWLINE]
    assistant = [START, ASSISTANT, NEWLINE, WORD, WORD, END, NEWLINE]
    assert mask_of(*user, *assistant, *user, *assistant) == ([0] * 6 + [0, 0, 0, 1, 1, 1, 0]) * 2


def test_an_unfinished_turn_counts_to_the_last_token_before_padding() -> None:
    assert mask_of(START, ASSISTANT, NEWLINE, WORD, WORD, -1, -100) == [0, 0, 0, 1, 1, 0, 0]
    assert mask_of(START, ASSISTANT, NEWLINE, WORD, -5, WORD, -1) == [0, 0, 0, 1, 1, 1, 0]
    assert mask_of(START, ASSISTANT, NEWLINE) == [0, 0, 0]


def test_a_start_token_ends_an_unfinished_turn() -> None:
    assert mask_of(START, ASSISTANT, NEWLINE, WORD, START, USER, NEWLINE, WORD) == [0, 0, 0, 1, 0, 0, 0, 0]
    assert mask_of(START, USER, NEWLINE, WORD, START, ASSISTANT, NEWLINE, END) == [0, 0, 0, 0, 0, 0, 0, 1]


def test_role_and_newline_are_ordinary_content() -> None:
    assert mask_of(START, ASSISTANT, NEWLINE, NEWLINE, ASSISTANT, END, END) == [0, 0, 0, 1, 1, 1, 0]


def test_a_wrong_shape_is_named() -> None:
    with pytest.raises(ValueError, match=r"token_ids: has shape \[3\], expected \[B, L\]"):
        response_mask([1, 2, 3], START, END, ASSISTANT, NEWLINE)
