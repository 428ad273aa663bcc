"""Values as bytes and back, without pickle: what passes between the marker and a student's process.

Numbers, strings, tuples, lists, dicts and arrays pass as they are. Anything else that a student returns becomes an `Odd`:
its type's name and a short text. The bytes are JSON, then the arrays' own bytes. Reading them runs no code, whatever they
hold. This file is also sent into the sandbox as it is, so it imports nothing but NumPy.
"""

import inspect
import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

KINDS = "biufcSU"  # of arrays that pass as they are
MOST_NODES, DEEPEST, LONGEST = 200_000, 30, 250_000  # items, nesting, characters of a string
MOST_KEYS = 1_000  # of a dict with keys that are no strings: of chosen numbers a table may take minutes
PLAIN = (type(None), bool, float)


@dataclass(frozen=True)
class Odd:
    """What cannot pass: an object of a student's, by its type's name and a short text."""

    type_name: str
    text: str
    kind: str = "object"  # or: routine, class, generator, coroutine


@dataclass(frozen=True)
class Formula:
    """A function given by its source: an expression in which `np` is NumPy."""

    source: str

    def __call__(self, x: Any) -> Any:
        """Apply it."""
        return eval(self.source, {"np": np})(x)

    def __repr__(self) -> str:
        return self.source


class Unreadable(ValueError):
    """Bytes that are no message, or a value that is too large for one."""


def pack(value: Any) -> bytes:
    """The value as bytes."""
    buffers: list[bytes] = []
    head = json.dumps(_tree(value, buffers, [0], 0)).encode()
    return struct.pack("<I", len(head)) + head + b"".join(buffers)


def _tree(value: Any, buffers: list[bytes], count: list[int], depth: int) -> Any:
    count[0] += 1
    if count[0] > MOST_NODES or depth > DEEPEST:
        raise Unreadable("too many items, or nested too deeply, to be handed over")
    kind = type(value)
    if kind in PLAIN or (kind is int and abs(value) < 2**1000) or (kind is str and len(value) <= LONGEST):
        return value
    if value is ...:
        return ["..."]
    if kind is bytes:
        buffers.append(value)
        return ["b", len(value)]
    if kind in (tuple, list):
        return ["t" if kind is tuple else "l", *(_tree(part, buffers, count, depth + 1) for part in value)]
    if kind is dict:
        pairs = [[_tree(part, buffers, count, depth + 1) for part in pair] for pair in value.items()]
        return ["d", *pairs]
    if kind is np.ndarray and value.dtype.kind in KINDS and value.dtype.names is None:
        buffers.append(value.tobytes())
        return ["a", value.dtype.str, *value.shape]
    if kind is np.ndarray and value.dtype.kind == "O":
        return ["O", *value.shape]
    if isinstance(value, np.generic) and kind.__module__ == "numpy" and value.dtype.kind in KINDS:
        buffers.append(np.asarray(value).tobytes())
        return ["s", value.dtype.str]
    if isinstance(value, type) and value.__module__ == "numpy" and issubclass(value, np.generic):
        return ["y", value.__name__]
    if kind is Odd:
        return ["o", value.type_name, value.text, value.kind]
    if kind.__name__ == "Formula" and type(getattr(value, "source", None)) is str:
        return ["f", value.source]
    return ["o", kind.__name__[:100], _text(value), _kind(value)]


def _text(value: Any) -> str:
    try:
        if inspect.isroutine(value) or isinstance(value, type):
            return str(value.__name__)[:100]
        return str(repr(value))[:500]
    except BaseException:
        return "?"


def _kind(value: Any) -> str:
    tests = {"routine": inspect.isroutine, "class": inspect.isclass, "generator": inspect.isgenerator}
    tests["coroutine"] = inspect.iscoroutine
    return next((kind for kind, test in tests.items() if test(value)), "object")


def unpack(data: bytes, formulas: bool = False) -> Any:
    """The value that the bytes hold, or Unreadable. Formulas, which can be called, are read only where the marker sends."""
    try:
        (length,) = struct.unpack_from("<I", data)
        reader = _Reader(memoryview(data)[4 + length :], formulas)
        value = reader.value(json.loads(bytes(data[4 : 4 + length])), 0)
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable(f"a message that cannot be read: {type(error).__name__}") from None
    if reader.place != len(reader.data):
        raise Unreadable("a message with bytes left over")
    return value


class _Reader:
    def __init__(self, data: memoryview, formulas: bool):
        self.data, self.formulas, self.place, self.count = data, formulas, 0, 0

    def value(self, tree: Any, depth: int) -> Any:
        self.count += 1
        if self.count > MOST_NODES or depth > DEEPEST:
            raise Unreadable("a message with too many items, or nested too deeply")
        if type(tree) is not list:
            if type(tree) is dict or (type(tree) is str and len(tree) > LONGEST):
                raise Unreadable("a message that holds a JSON object, or too long a string")
            return tree
        tag, *rest = tree
        if tag in ("t", "l"):
            return (tuple if tag == "t" else list)(self.value(part, depth + 1) for part in rest)
        if tag == "b":
            return self._array("|u1", tuple(rest)).tobytes()
        if tag == "d":
            if len(rest) > MOST_KEYS and not all(type(key) is str for key, _ in rest):
                raise Unreadable("a dict with too many keys that are no strings")
            return {self.value(key, depth + 1): self.value(part, depth + 1) for key, part in rest}
        if tag == "a":
            return self._array(rest[0], tuple(rest[1:]))
        if tag == "s":
            return self._array(rest[0], ())[()]
        if tag == "O":
            if not all(type(n) is int and n >= 0 for n in rest) or np.prod(rest, dtype=float) > MOST_NODES:
                raise Unreadable("an array of objects that is too large")
            return np.full(rest, None, dtype=object)
        if tag == "y" and issubclass(getattr(np, rest[0]), np.generic):
            return getattr(np, rest[0])
        if tag == "o" and len(rest) == 3 and all(type(part) is str for part in rest):
            return Odd(*(self.value(part, depth + 1) for part in rest))
        if tag == "f" and type(rest[0]) is str:
            return Formula(rest[0]) if self.formulas else Odd("Formula", rest[0][:500])
        if tag == "...":
            return ...
        raise Unreadable("a message with an unknown part")

    def _array(self, dtype_text: str, shape: tuple) -> np.ndarray:
        dtype = np.dtype(dtype_text)
        if (
            dtype.kind not in KINDS
            or not dtype.itemsize
            or not all(type(n) is int and n >= 0 for n in shape)
            or len(shape) > 32
        ):
            raise Unreadable("an array of an unknown kind")
        size = dtype.itemsize
        for n in shape:
            size *= n
        if size > len(self.data) - self.place:
            raise Unreadable("an array that is larger than its message")
        count = 1
        for n in shape:
            count *= n
        array = np.frombuffer(self.data, dtype, count, self.place) if size else np.empty(count, dtype)
        self.place += size
        return array.reshape(shape).copy()
