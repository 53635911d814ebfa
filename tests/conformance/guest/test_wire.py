"""What is sent arrives as it is, as exact builtin types; whatever else comes is an error, soon."""

from __future__ import annotations

import collections
import enum
import json
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rlassay.guest.errors import SubjectRaised
from rlassay.guest.objects import GradientDescent, LanguageModel, RewardFunction, Tokenizer
from rlassay.guest.observation import Observation
from rlassay.guest.packing import DTYPES, FIELDS, MOST_DEPTH, MOST_NAME, MOST_PAYLOAD, Opaque
from rlassay.guest.values import LAYOUTS, Tensor
from rlassay.guest.wire import MOST_HEADER, PREFIX, Channel, Closed, Late, WireError

SECONDS = 30.0
"""Enough for any message on any machine."""

PLAIN = {type(None), bool, int, float, str, list, tuple, dict, np.ndarray, Opaque, Observation, SubjectRaised}

TOLD = (WireError, Closed, Late)


@contextmanager
def connected(convert: Any = None) -> Iterator[tuple[Channel, Channel]]:
    """A harness's end and a guest's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), Channel(theirs, convert, arguments=True)


def to_guest(value: Any) -> Any:
    with connected() as (harness, guest):
        harness.send({"value": value}, SECONDS)
        return guest.receive(SECONDS)["value"]


def to_harness(value: Any, convert: Any = None) -> Any:
    with connected(convert) as (harness, guest):
        guest.send({"value": value}, SECONDS)
        return harness.receive(SECONDS)["value"]


def raw(header: bytes, payload: bytes = b"") -> bytes:
    return PREFIX.pack(len(header), len(payload)) + header + payload


def message(value: Any, payload: bytes = b"") -> bytes:
    """The bytes of a message whose value is this JSON."""
    return raw(json.dumps({"dict": [["value", value]]}).encode(), payload)


def received(data: bytes, *, ends: bool = True, guest: bool = False, seconds: float = SECONDS) -> Any:
    """What comes of these bytes: at the harness's end, unless it is the guest's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:

        def feed() -> None:
            try:
                theirs.sendall(data)
                if ends:
                    theirs.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the reader has seen enough

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            return Channel(ours, arguments=guest).receive(seconds)["value"]
        except KeyError:
            raise WireError("no value") from None
        finally:
            ours.close()
            feeder.join()


def same(got: Any, want: Any) -> bool:
    """Equal and of the same exact types, all the way down; NaN equals NaN, −0 is not 0."""
    if type(got) is not type(want):
        return False
    if isinstance(want, np.ndarray):
        return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()
    if isinstance(want, list | tuple):
        return len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, dict):
        return same(list(got.items()), list(want.items()))
    if type(want) in FIELDS:
        return all(same(getattr(got, name), getattr(want, name)) for name in FIELDS[type(want)][1])
    return repr(got) == repr(want)


def only_plain(value: Any) -> bool:
    if type(value) not in PLAIN:
        return False
    if isinstance(value, list | tuple):
        return all(map(only_plain, value))
    if isinstance(value, dict):
        return all(map(only_plain, [*value, *value.values()]))
    if isinstance(value, Observation):
        return all(only_plain(getattr(value, field.name)) for field in fields(value))
    return True


DTYPE = st.sampled_from(list(DTYPES))
SOME_ARRAY = DTYPE.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_side=4)))
KEYS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
LEAVES = KEYS | st.floats() | SOME_ARRAY
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(VALUES)
def test_plain_values_arrive_as_they_are_on_both_sides(value: Any) -> None:
    assert same(to_guest(value), value)
    assert same(to_harness(value), value)


@pytest.mark.parametrize("dtype", DTYPES, ids=DTYPES.get)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5,), (2, 3, 4), (1,) * 30])
def test_arrays_of_every_dtype_and_shape_arrive(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    assert same(to_harness([array, "x", array]), [array, "x", array])


def test_arrays_arrive_whatever_lies_in_memory_as_they_are_looked_at() -> None:
    base = np.arange(24.0).reshape(4, 6)
    for view in (base[::2, 1:5:2], base.T, base[::-1], np.broadcast_to(base[0], (3, 6)), np.asfortranarray(base)):
        assert same(to_harness(view), np.ascontiguousarray(view))
    for swapped in (base.astype(">f8"), np.arange(5, dtype=">i2"), np.array(1.5, ">c16")):
        assert same(to_harness(swapped), swapped.astype(swapped.dtype.newbyteorder("=")))


def test_numbers_of_numpy_arrive_as_arrays_or_as_the_numbers_that_they_are() -> None:
    assert same(to_harness([np.float32(0.5), np.int8(-3), np.True_]), [
        np.array(0.5, np.float32), np.array(-3, np.int8), np.array(True)
    ])  # fmt: skip
    assert same(to_harness(np.float64(0.1)), 0.1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16", "int64", "int32", "bool"])
def test_a_tensor_arrives_and_one_that_is_passed_twice_stays_one(layout: str, dtype: str) -> None:
    tensor = Tensor(np.random.default_rng(1).normal(size=(3, 4)) * 3, dtype, layout)
    other = tensor.with_array(tensor.array)
    arrived = to_guest({"a": tensor, "b": other, "c": tensor, "d": [tensor]})
    got = arrived["a"]
    assert (type(got), got.dtype, got.layout) == (Tensor, dtype, layout)
    assert same(got.array, np.ascontiguousarray(tensor.array))
    assert arrived["c"] is got and arrived["d"][0] is got and arrived["b"] is not got


def test_a_model_and_its_optimiser_share_it_at_the_other_end_too() -> None:
    model = LanguageModel(np.arange(6.0).reshape(3, 2), np.ones((3, 2)))
    tokenizer = Tokenizer(("a", "b", "<pad>", "<end>"), "<pad>", "<end>")
    rewards = RewardFunction({("a", "b"): 0.5, ("", "ü"): -1.0})
    arrived = to_guest((GradientDescent(model, 0.1), model, tokenizer, rewards))
    assert arrived[0].model is arrived[1] and arrived[0].learning_rate == 0.1
    assert same(arrived[1].embedding, model.embedding) and same(arrived[1].head, model.head)
    assert arrived[2].encode("ab<end>") == [0, 1, 3]
    assert (arrived[2].pieces, arrived[2].padding, arrived[2].end) == (tokenizer.pieces, "<pad>", "<end>")
    assert arrived[3].rewards == rewards.rewards and arrived[3]("a", "b") == rewards("a", "b")


def test_an_observation_arrives_with_its_parts() -> None:
    observation = Observation(
        value=(np.array(1.0), {"loss": 1}),
        dtype="float32",
        connected=True,
        gradients={"logits": np.ones((2, 3)), "mask": None},
        side_effects=("argument mask",),
        parts={"loss": Observation(value=np.array(2.0), dtype="float64"), 1: Observation(value="x")},
        parameters={"model": np.arange(4.0)},
        backward=True,
    )
    assert same(to_harness(observation), observation)


def test_what_a_subject_raised_arrives() -> None:
    raised = SubjectRaised("ValueError", "no\nway", ("ValueError", "Exception"), "Traceback …", "backward")
    arrived = to_harness(raised)
    assert same(arrived, raised) and str(arrived) == str(raised)


class LyingText(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__

    def __str__(self) -> str:
        return "a lie"

    def __len__(self) -> int:
        return 10**9

    def __iter__(self) -> Any:
        raise KeyboardInterrupt


class LyingNumber(float):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = float.__hash__

    def __float__(self) -> float:
        return 1.0

    __repr__ = __str__ = lambda self: '"}'  # type: ignore[assignment]


class LyingInt(int):
    def __index__(self) -> int:
        return 1

    __int__ = __index__
    __repr__ = __str__ = lambda self: "[" * 1000  # type: ignore[assignment]


class LyingList(list[Any]):
    def __iter__(self) -> Any:
        return iter(["lie"] * 3)

    def __len__(self) -> int:
        return 0

    def __getitem__(self, place: Any) -> Any:
        return "lie"


class LyingTuple(tuple[Any, ...]):
    def __iter__(self) -> Any:
        raise SystemExit


class LyingDict(dict[Any, Any]):
    def items(self) -> Any:
        return [("lie", 1)]

    def __getitem__(self, key: Any) -> Any:
        return "lie"

    def __iter__(self) -> Any:
        return iter(["lie"])

    keys = values = items


class LyingArray(np.ndarray[Any, Any]):
    def __eq__(self, other: object) -> Any:
        return True

    def tobytes(self, order: Any = "C") -> bytes:
        return b"lie"

    @property
    def shape(self) -> Any:  # type: ignore[override]
        return (10**9,)

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        return np.zeros(10)


class Level(enum.IntEnum):
    ONE = 1


def pretends(kind: type) -> Any:
    """An object whose class is said to be this one."""

    class Pretender:
        __class__ = kind  # type: ignore[assignment]

    return Pretender()


Pair = collections.namedtuple("Pair", "a b")

LIES = [
    (LyingText("text"), "text"),
    (LyingNumber(0.25), 0.25),
    (LyingNumber("nan"), float("nan")),
    (LyingInt(7), 7),
    (Level.ONE, 1),
    (LyingList([1, LyingText("x")]), [1, "x"]),
    (LyingTuple((1, 2)), (1, 2)),
    (Pair(1, 2), (1, 2)),
    (LyingDict({"a": 1, LyingText("b"): LyingList([2])}), {"a": 1, "b": [2]}),
    (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    (collections.defaultdict(int, a=1), {"a": 1}),
    (np.arange(3.0).view(LyingArray), np.arange(3.0)),
]


@pytest.mark.parametrize(("lie", "truth"), LIES, ids=[type(lie).__name__ for lie, _ in LIES])
def test_of_a_subclass_that_lies_arrives_what_it_holds(lie: Any, truth: Any) -> None:
    assert same(to_harness(lie), truth)


UNSENT: list[tuple[Any, str]] = [
    (object(), "object"),
    (b"bytes", "bytes"),
    ({1, 2}, "set"),
    (1j, "complex"),
    (print, "builtin_function_or_method"),
    (range(3), "range"),
    (iter([1]), "list_iterator"),
    (2**63, "an integer of more than 64 bits"),
    (-(10**5000), "an integer of more than 64 bits"),
    (np.array([object()]), "object array"),
    (np.array(["text"]), "str128 array"),
    (np.array([(1, 2.0)], dtype="i4,f8"), "void96 array"),
    (np.array("2026-01-01", dtype="datetime64[D]"), "datetime64[D] array"),
    (type("T" * 1000, (), {})(), "T" * MOST_NAME),
    *((pretends(kind), "Pretender") for kind in (str, int, float, list, tuple, dict, np.ndarray, Tensor)),
]


@pytest.mark.parametrize(
    ("value", "kind"), UNSENT, ids=[f"{place}-{kind[:20]}" for place, (_, kind) in enumerate(UNSENT)]
)
def test_what_cannot_be_sent_is_a_word(value: Any, kind: str) -> None:
    for arrived in (to_harness(value), to_harness([{"a": value}])[0]["a"]):
        assert type(arrived) is Opaque and arrived.kind == kind


def test_a_key_that_is_not_plain_is_a_word() -> None:
    got = to_harness({("a", -1): 1, ("a", -2): 2, np.float64(1.5): 3, LyingText("t"): 4, frozenset(): 5})
    assert [key.kind if isinstance(key, Opaque) else key for key in got] == ["tuple", "tuple", 1.5, "t", "frozenset"]
    assert list(got.values()) == [1, 2, 3, 4, 5]


def test_what_cannot_be_sent_is_converted_where_there_is_a_way() -> None:
    def convert(value: Any) -> Any:
        return np.ones(2) if isinstance(value, SimpleNamespace) else None

    got = to_harness([SimpleNamespace(), object()], convert)
    assert same(got[0], np.ones(2)) and got[1].kind == "object"


def test_lone_surrogates_become_question_marks() -> None:
    assert to_harness(["\ud800x", "ü"]) == ["?x", "ü"]


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(MOST_PAYLOAD // 8 + 1),
        np.broadcast_to(0.0, (10**6, 10**6)),
        "x" * (MOST_HEADER + 1),
        [np.zeros(MOST_PAYLOAD // 16 + 1)] * 2,
    ],
    ids=["array", "broadcast", "text", "two"],
)
def test_what_is_too_large_is_not_sent_and_the_next_message_arrives(value: Any) -> None:
    with connected() as (harness, guest):
        with pytest.raises(WireError, match="bytes"):
            guest.send({"value": value})
        guest.send({"value": 1})
        assert harness.receive(SECONDS) == {"value": 1}


def test_what_is_nested_too_deeply_is_not_sent() -> None:
    nested: Any = 1
    for _ in range(MOST_DEPTH - 2):
        nested = [nested]
    assert same(to_harness(nested), nested)
    loop: list[Any] = []
    loop.append(loop)
    for value in ([[[nested]]], loop, {"a": (loop,)}):
        with pytest.raises(WireError, match="nested"):
            to_harness(value)


ARRAY = {"array": ["float64", [2]]}
EIGHT = bytes(8)

MALFORMED: dict[str, bytes] = {
    "no JSON": raw(b"nothing"),
    "empty": raw(b""),
    "no table": raw(b"1"),
    "a list": raw(b'{"list":[]}'),
    "keys that are no text": raw(b'{"dict":[[1,2]]}'),
    "no UTF-8": raw(b'{"dict":[["value","\xff\xfe"]]}'),
    "UTF-16": raw('{"dict":[["value",1]]}'.encode("utf-16")),
    "a number with 10^5 digits": raw(b'{"dict":[["value",' + b"1" * 10**5 + b"]]}"),
    "a wide integer": message(2**63),
    "NaN": raw(b'{"dict":[["value",NaN]]}'),
    "infinity": raw(b'{"dict":[["value",-Infinity]]}'),
    "nested JSON": raw(b'{"dict":[["value",' + b"[" * 10**6 + b"]" * 10**6 + b"]]}"),
    "nested tables": raw(b'{"list":[' * 10**5 + b"]}" * 10**5),
    "nested lists": message(json.loads('{"list":[' * 200 + "]}" * 200)),
    "bare list": message([1, 2]),
    "two kinds": message({"list": [], "tuple": []}),
    "no kind": message({}),
    "unknown kind": message({"pickle": "x"}),
    "list of text": message({"list": "abc"}),
    "list of table": message({"list": {"a": 1}}),
    "tuple of nothing": message({"tuple": None}),
    "entry of text": message({"dict": ["ab"]}),
    "entry of three": message({"dict": [["a", 1, 2]]}),
    "entries of number": message({"dict": 5}),
    "unhashable key": message({"dict": [[{"list": []}, 1]]}),
    "array as key": message({"dict": [[ARRAY, 1]]}, bytes(16)),
    "tuple as key": message({"dict": [[{"tuple": [1, 2]}, 1]]}),
    "observation as key": message({"dict": [[{"raised": {}}, 1]]}),
    "unknown number": message({"number": "1"}),
    "number that is none": message({"number": ["nan"]}),
    "opaque that is no text": message({"opaque": 1}),
    "again at nothing": message({"again": 0}),
    "again before the first": message({"again": -1}),
    "again at truth": message({"again": True}),
    "array without numbers": message(ARRAY),
    "array with half of its numbers": message(ARRAY, EIGHT),
    "numbers without array": message(1, EIGHT),
    "more numbers than the array has": message(ARRAY, bytes(24)),
    "the same numbers twice": message({"list": [ARRAY, ARRAY]}, bytes(16)),
    "unknown dtype": message({"array": ["object", [0]]}),
    "dtype that is a list": message({"array": [["float64"], [0]]}),
    "negative length": message({"array": ["float64", [-1]]}),
    "negative lengths": message({"array": ["float64", [-2, -1]]}, bytes(16)),
    "length that is no integer": message({"array": ["float64", [1.0]]}, EIGHT),
    "length that is true": message({"array": ["float64", [True]]}, EIGHT),
    "length that is text": message({"array": ["float64", ["1"]]}, EIGHT),
    "shape that is a number": message({"array": ["float64", 1]}, EIGHT),
    "shape that is text": message({"array": ["float64", "1"]}, EIGHT),
    "too many axes": message({"array": ["float64", [1] * 1000]}, EIGHT),
    "huge shape": message({"array": ["float64", [2**62, 2**62]]}, EIGHT),
    "huge shape of nothing": message({"array": ["float64", [2**62, 2**62, 0]]}),
    "huge length": message({"array": ["float64", [10**400, 0]]}),
    "array of one": message({"array": ["float64"]}),
    "array of three": message({"array": ["float64", [], 0]}, EIGHT),
    "array that is a table": message({"array": {"a": 1, "b": 2}}),
    "observation without fields": message({"observation": {}}),
    "observation that is a list": message({"observation": [1] * 8}),
    "raised that is text": message({"raised": "text!"}),
}  # fmt: skip


@pytest.mark.parametrize("guest", [False, True], ids=["harness", "guest"])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_message_is_an_error_and_nothing_else(name: str, guest: bool) -> None:
    with pytest.raises(TOLD):
        received(MALFORMED[name], guest=guest)


OBSERVED: dict[str, Any] = {
    "value": 1,
    "dtype": None,
    "connected": True,
    "gradients": {"dict": [["x", None]]},
    "side_effects": {"tuple": ["argument x"]},
    "parts": {"dict": []},
    "parameters": {"dict": []},
    "backward": False,
}
RAISED: dict[str, Any] = {
    "kind": "ValueError",
    "message": "m",
    "bases": {"tuple": ["Exception"]},
    "traceback": "",
    "during": "the call",
}
WRONG = [
    *(1, True, 1.5, "text", "x" * (MOST_NAME + 1), {"list": ["x"]}, {"tuple": [1]}, {"tuple": ["x" * 300]}),
    *({"dict": [["x", 1]]}, {"dict": [[1, None]]}, {"raised": RAISED}, {"opaque": "x"}, {"array": ["float64", [0]]}),
    *({"observation": OBSERVED}, {"dict": [["x" * 300, {"array": ["int8", [0]]}]]}),
]


@pytest.mark.parametrize(
    ("kind", "fields", "field"),
    [(kind, good, field) for kind, good in (("observation", OBSERVED), ("raised", RAISED)) for field in good],
)
def test_fields_of_answers_have_their_types(kind: str, fields: dict[str, Any], field: str) -> None:
    assert only_plain(received(message({kind: fields})))
    told = 0
    for wrong in WRONG:
        try:
            value = getattr(received(message({kind: fields | {field: wrong}})), field)
        except WireError:
            told += 1
            continue
        assert (
            field == "value"
            or type(value) is type(getattr(received(message({kind: fields})), field))
            or ((field, type(value)) == ("dtype", str))
        )
    assert told >= (0 if field == "value" else 8)
    for changed in ({name: fields[name] for name in fields if name != field}, fields | {"more": 1}):
        with pytest.raises(WireError):
            received(message({kind: changed}))


@pytest.mark.parametrize(
    "packed",
    [
        {"tensor": [ARRAY, "float64", "contiguous"]},
        {"tensor": [ARRAY, "S1000000000", "contiguous"]},
        {"model": [ARRAY, ARRAY]},
        {"descent": [1, 2]},
        {"tokenizer": [{"tuple": []}, "", ""]},
        {"rewards": [{"list": []}]},
    ],
)
def test_a_guest_sends_no_arguments(packed: Any) -> None:
    with pytest.raises(WireError):
        received(message(packed, bytes(16)))


def test_every_message_that_is_cut_off_ends_as_one() -> None:
    with connected() as (harness, guest):
        guest.send({"nonce": "n", "observation": Observation(value=np.arange(3.0), gradients={"x": np.ones(2)})})
        whole = harness.end.recv(2**16)
    assert received(message(1)) == 1
    for length in range(len(whole)):
        with pytest.raises(Closed):
            received(whole[:length])
    with pytest.raises(Late):
        received(whole[:-1], ends=False, seconds=0.05)


@pytest.mark.parametrize(
    "lengths", [(MOST_HEADER + 1, 0), (2**32 - 1, 0), (10, MOST_PAYLOAD + 1), (0, 2**64 - 1), (2**32 - 1, 2**64 - 1)]
)
def test_what_is_announced_too_large_is_refused_before_it_comes(lengths: tuple[int, int]) -> None:
    with pytest.raises(WireError, match="announces"):
        received(PREFIX.pack(*lengths), ends=False)


def test_changed_bytes_give_a_message_or_an_error() -> None:
    """Whatever is changed: what comes out is plain."""
    observation = Observation(
        value=[{"a": (1, 2.5, None, True)}, np.arange(3.0)],
        dtype="float32",
        gradients={"x": np.ones((1, 2))},
        parts={"a": Observation(value=np.zeros(2, np.int8))},
    )
    with connected() as (harness, guest):
        guest.send({"value": observation})
        whole = harness.end.recv(2**16)
    length, payload = PREFIX.unpack(whole[: PREFIX.size])
    header, rest = whole[PREFIX.size : PREFIX.size + length], whole[PREFIX.size + length :]
    chance = random.Random(0)
    pieces = [b"", b"-1", b"1e999", b"true", b"null", b"{}", b"[]", b'"a"', b"9" * 30, b'{"list":[]}', b"\xff", b","]
    for _ in range(1500):
        changed = bytearray(header)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(changed))
            changed[place : place + chance.randint(0, 4)] = chance.choice([*pieces, bytes([chance.randrange(256)])])
        try:
            value = received(raw(bytes(changed), rest[: chance.choice([payload, payload, chance.randrange(payload)])]))
        except TOLD:
            continue
        assert only_plain(value)


def spent(data: bytes) -> float:
    """CPU seconds that it takes to refuse or read these bytes."""
    begun = time.process_time()
    try:
        received(data)
    except TOLD:
        pass
    return time.process_time() - begun


def test_the_largest_headers_are_read_or_refused_soon() -> None:
    def filled(entry: str, kind: str = "list") -> bytes:
        many = ",".join([entry] * ((MOST_HEADER - 100) // (len(entry) + 1)))
        return raw(f'{{"dict":[["value",{{"{kind}":[{many}]}}]]}}'.encode())

    alike = ",".join(
        f'[{{"tuple":[{",".join(str(-1 - (number >> bit & 1)) for bit in range(16))}]}},1]' for number in range(2**16)
    )
    for data in (
        filled("1"),
        filled('{"list":[]}'),
        filled('{"array":["bool",[0]]}'),
        filled('{"again":0}'),
        filled(f"[{2**61 - 1},1]", "dict"),
        raw(f'{{"dict":[["value",{{"dict":[{alike[: MOST_HEADER - 200].rpartition("],")[0]}]]}}]]}}'.encode()),
        raw(b'"' + b"\\" * (MOST_HEADER - 1)),
        raw(b"1" * MOST_HEADER),
        raw(b" " * MOST_HEADER),
    ):
        assert spent(data) < 20


def test_bytes_that_dribble_do_not_outlive_the_deadline() -> None:
    ours, theirs = socket.socketpair()
    data = message("x" * 1000)
    over = threading.Event()

    def dribble() -> None:
        for byte in data * 1000:
            if over.wait(0.02):
                return
            theirs.sendall(bytes([byte]))

    feeder = threading.Thread(target=dribble)
    with ours, theirs:
        feeder.start()
        begun = time.monotonic()
        with pytest.raises(Late):
            Channel(ours).receive(0.3)
        assert time.monotonic() - begun < 10
        over.set()
        feeder.join()


def test_a_side_that_does_not_read_is_late_and_one_that_ended_is_closed() -> None:
    with connected() as (harness, guest):
        with pytest.raises(Late):
            harness.send({"value": np.zeros(10**6)}, 0.1)
        guest.end.close()
        with pytest.raises(Closed):
            harness.send({"value": 1}, SECONDS)
    with connected() as (harness, guest):
        guest.end.close()
        with pytest.raises(Closed):
            harness.receive(SECONDS)


def test_the_time_of_one_message_is_not_that_of_the_next() -> None:
    with connected() as (harness, guest):
        with pytest.raises(Late):
            harness.receive(0.001)
        large = np.zeros(10**6)
        reader = threading.Thread(target=lambda: (time.sleep(0.2), guest.receive(SECONDS)))
        reader.start()
        harness.send({"value": large}, SECONDS)
        reader.join()


def test_messages_that_come_together_are_taken_one_by_one() -> None:
    with connected() as (harness, guest):
        for number in range(5):
            guest.send({"number": number, "array": np.full(3, number)})
        for number in range(5):
            assert same(harness.receive(SECONDS), {"number": number, "array": np.full(3, number)})
        with pytest.raises(Late):
            harness.receive(0.01)


def test_the_prefix_is_what_it_is_said_to_be() -> None:
    assert PREFIX.size == 12 and struct.unpack(">IQ", raw(b"ab", b"c")[:12]) == (2, 1)
