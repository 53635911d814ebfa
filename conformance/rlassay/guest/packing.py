"""Values as JSON and the bytes of the arrays in them, and back.

What comes out is made of exact builtin types, numpy arrays and the classes named here, in time and memory that the size
of what came bounds: no bytes are read twice, keys of tables are plain, and objects that are arguments of calls, whose
making may cost any amount, are made by guests alone.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from .errors import SubjectRaised
from .objects import GradientDescent, LanguageModel, RewardFunction, Tokenizer
from .observation import Observation
from .values import Tensor

ALIGNMENT = 8
LITTLE = sys.byteorder == "little"

MOST_PAYLOAD = 64 * 2**20
"""Most bytes of all arrays in a value."""

MOST_DEPTH = 50
"""Deepest nesting of a value."""

MOST_AXES = 64
"""Most axes of an array."""

DTYPES = {
    np.dtype(name): name
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
"""Dtypes of arrays that are sent, and their names in a message."""

NAMED_DTYPES = {name: dtype for dtype, name in DTYPES.items()}

MOST_NAME = 200
"""So many characters of a name are sent."""

WIDEST = 2**63
"""Integers from here on, in size, are sent as a word about them."""


class WireError(Exception):
    """A message that cannot be sent, or that came and is none."""


class Opaque:
    """Stands for a value that is not sent: the name of its type is all that is known of it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind}>"


class Packer:
    """Makes JSON of a value, and keeps the bytes of the arrays in it. An object that occurs twice is sent once.

    What a value is, its type says, and never the value: it may lie.
    """

    def __init__(self, convert: Callable[[Any], Any] | None) -> None:
        self.convert = convert
        self.pieces: list[bytes] = []
        self.size = 0
        self.places: dict[int, int] = {}

    def pack(self, value: Any, depth: int = 0) -> Any:
        kind = type(value)
        if kind is str or kind is bool or value is None:
            return value
        if depth > MOST_DEPTH:
            raise WireError(f"is nested more than {MOST_DEPTH} deep")
        if kind is np.ndarray:
            return self._array(value)
        if issubclass(kind, str):
            return str.__str__(value)
        if issubclass(kind, int):
            exact = int.__index__(value)
            return exact if -WIDEST <= exact < WIDEST else _opaque("an integer of more than 64 bits")
        if issubclass(kind, float):
            number = float.__float__(value)
            return number if math.isfinite(number) else {"number": repr(number)}
        if kind in OBJECTS:
            return self._object(value, depth)
        if issubclass(kind, np.ndarray | np.generic):
            return self._array(np.asarray(value))
        return self._composed(value, kind, depth + 1)

    def _composed(self, value: Any, kind: type, depth: int) -> Any:
        if issubclass(kind, list):
            return {"list": [self.pack(entry, depth) for entry in list.__iter__(value)]}
        if issubclass(kind, tuple):
            return {"tuple": [self.pack(entry, depth) for entry in tuple.__iter__(value)]}
        if issubclass(kind, dict):
            return {"dict": [[self._key(key), self.pack(entry, depth)] for key, entry in dict.items(value)]}
        if kind in FIELDS:
            name, fields = FIELDS[kind]
            return {name: {field: self.pack(getattr(value, field), depth) for field in fields}}
        converted = self.convert(value) if self.convert is not None else None
        return self.pack(converted, depth) if converted is not None else _opaque(kind.__name__)

    def _key(self, key: Any) -> Any:
        """Keys are plain: tables with others could be made to take any time to build."""
        kind = type(key)
        return self.pack(key) if key is None or issubclass(kind, str | int | float) else _opaque(kind.__name__)

    def _array(self, array: np.ndarray) -> Any:
        name = DTYPES.get(array.dtype) or DTYPES.get(array.dtype.newbyteorder("="))
        if name is None:
            return _opaque(f"{array.dtype.name[:100]} array")
        padding = -array.nbytes % ALIGNMENT
        self.size += array.nbytes + padding
        if self.size > MOST_PAYLOAD:
            raise WireError(f"takes more than the {MOST_PAYLOAD} bytes that may be sent")
        little = array if LITTLE and array.dtype.isnative else array.astype(array.dtype.newbyteorder("<"))
        self.pieces += [little.tobytes(), bytes(padding)]
        return {"array": [name, array.shape]}

    def _object(self, value: Any, depth: int) -> Any:
        if id(value) in self.places:
            return {"again": self.places[id(value)]}
        name, fields = OBJECTS[type(value)]
        packed = {name: [self.pack(field, depth + 1) for field in fields(value)]}
        self.places[id(value)] = len(self.places)
        return packed


def _opaque(kind: str) -> dict[str, str]:
    return {"opaque": kind[:MOST_NAME]}


class Unpacker:
    """Makes the value of JSON and the bytes of the arrays; `place` is where those of the next one begin."""

    def __init__(self, payload: bytes, arguments: bool) -> None:
        self.payload = payload
        self.place = 0
        self.makers = MAKERS if arguments else {}
        self.objects: list[Any] = []

    def unpack(self, packed: Any, depth: int = 0) -> Any:
        plain = type(packed)
        if plain is str:
            return packed if packed.isascii() else packed.encode(errors="replace").decode()
        if plain is int and not -WIDEST <= packed < WIDEST:
            raise WireError("sent an integer of more than 64 bits")
        if plain is int or plain is float or plain is bool or packed is None:
            return packed
        if depth > MOST_DEPTH:
            raise WireError("sent what is nested too deeply")
        ((kind, content),) = packed.items()
        if kind == "array":
            return self._array(*_typed(content, list))
        if kind == "list":
            return [self.unpack(entry, depth + 1) for entry in _typed(content, list)]
        if kind == "tuple":
            return tuple([self.unpack(entry, depth + 1) for entry in _typed(content, list)])
        if kind == "dict":
            return {self._key(key): self.unpack(entry, depth + 1) for key, entry in map(_pair, _typed(content, list))}
        if kind == "number":
            return {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[content]
        if kind == "opaque":
            return Opaque(_typed(content, str)[:MOST_NAME])
        if kind in READERS:
            fields, read = READERS[kind]
            if len(content) != len(fields):
                raise WireError(f"sent what is no {kind}")
            return read({name: self.unpack(content[name], depth + 1) for name in fields})
        if kind == "again" and type(content) is int and content >= 0:
            return self.objects[content]
        made = self.makers[kind](*[self.unpack(field, depth + 1) for field in _typed(content, list)])
        self.objects.append(made)
        return made

    def _key(self, packed: Any) -> Any:
        key = self.unpack(packed)
        if isinstance(key, str | int | float | Opaque | None):
            return key
        raise WireError("sent a table with a key that is none")

    def _array(self, name: str, shape: list[int]) -> np.ndarray:
        dtype = NAMED_DTYPES.get(_typed(name, str))
        if dtype is None or type(shape) is not list or len(shape) > MOST_AXES:
            raise WireError("sent what is no array")
        if not all(type(length) is int and 0 <= length < WIDEST for length in shape):
            raise WireError("sent what is no array")
        count, place = math.prod(shape), self.place
        size = count * dtype.itemsize
        self.place += size + -size % ALIGNMENT
        if self.place > len(self.payload):
            raise WireError("sent an array without its numbers")
        little = dtype if LITTLE else dtype.newbyteorder("<")
        array = np.frombuffer(self.payload, dtype=little, count=count, offset=place).reshape(shape)
        return array if LITTLE else array.astype(dtype)


OBJECTS: Mapping[type, tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    Tensor: ("tensor", attrgetter("array", "dtype", "layout")),
    LanguageModel: ("model", attrgetter("embedding", "head")),
    GradientDescent: ("descent", attrgetter("model", "learning_rate")),
    Tokenizer: ("tokenizer", attrgetter("pieces", "padding", "end")),
    RewardFunction: ("rewards", lambda function: (list(function.rewards.items()),)),
}
"""Arguments that are no plain values: their names in a message, and what they are made of."""

MAKERS: Mapping[str, Callable[..., Any]] = {
    "tensor": Tensor,
    "model": LanguageModel,
    "descent": GradientDescent,
    "tokenizer": Tokenizer,
    "rewards": lambda entries: RewardFunction(dict(entries)),
}

FIELDS: Mapping[type, tuple[str, tuple[str, ...]]] = {
    Observation: (
        "observation",
        ("value", "dtype", "connected", "gradients", "side_effects", "parts", "parameters", "backward"),
    ),
    SubjectRaised: ("raised", ("kind", "message", "bases", "traceback", "during")),
}
"""What answers are: their names in a message, and their fields."""


def _observation(fields: dict[str, Any]) -> Observation:
    gradients = _typed(fields["gradients"], dict)
    parameters = _typed(fields["parameters"], dict)
    parts = _typed(fields["parts"], dict)
    good = (
        (fields["dtype"] is None or _is_name(fields["dtype"]))
        and type(fields["connected"]) is bool
        and type(fields["backward"]) is bool
        and type(fields["side_effects"]) is tuple
        and all(_is_name(name) for name in (*fields["side_effects"], *gradients, *parameters))
        and all(entry is None or isinstance(entry, np.ndarray) for entry in gradients.values())
        and all(isinstance(entry, np.ndarray) for entry in parameters.values())
        and all(isinstance(part, Observation) for part in parts.values())
    )
    if not good:
        raise WireError("sent what is no observation")
    return Observation(**fields)


def _is_name(value: Any) -> bool:
    return type(value) is str and len(value) <= MOST_NAME


def _raised(fields: dict[str, Any]) -> SubjectRaised:
    texts = ("kind", "message", "traceback", "during")
    bases = _typed(fields["bases"], tuple)
    if not all(type(text) is str for text in (*bases, *(fields[name] for name in texts))):
        raise WireError("sent what is no exception")
    return SubjectRaised(**fields)


READERS: Mapping[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], Any]]] = {
    "observation": (FIELDS[Observation][1], _observation),
    "raised": (FIELDS[SubjectRaised][1], _raised),
}


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise WireError(f"sent a {type(value).__name__} where a {kind.__name__} should be")
    return value


def _pair(entry: Any) -> Any:
    if type(entry) is not list or len(entry) != 2:
        raise WireError("sent a table with an entry that is none")
    return entry
