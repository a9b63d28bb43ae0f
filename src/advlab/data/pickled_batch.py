"""The pickles of CIFAR's Python version, read as data: no pickle is ever executed.

A pickle is a program for a stack machine that can call anything. Those of CIFAR hold a dict of
words, lists and one array, for which a few opcodes are enough. These are interpreted here; the
three names of numpy that an array needs are compared as text and never imported, and every other
opcode or name is refused.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from ..core.errors import AdvlabError

ARRAY = {"numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct"}
KNOWN = ARRAY | {"numpy ndarray", "numpy dtype"}


class Refused(ValueError):
    """The pickle holds something else than plain data, or ends too early."""


@dataclass
class _Call:
    """A call as it was written down; nothing is called."""

    name: str
    arguments: tuple
    state: Any = None


class _Mark:
    """Where the arguments of the next opcode begin."""


def read_pickled(path: Path) -> dict[str, Any]:
    """The dict of a pickle: words, whole numbers, lists of them, and arrays of bytes.

    Args:
        path: a file such as data_batch_1 of CIFAR-10's Python version.
    """
    try:
        found = _plain(_Machine(memoryview(path.read_bytes())).run())
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise Refused(f"a {type(found).__name__} in place of a dict")
        return found
    except (Refused, struct.error, IndexError, KeyError, TypeError, UnicodeDecodeError) as error:
        said = " ".join(f"{error}".split()) or type(error).__name__
        raise AdvlabError(
            f"{path} as a pickle of plain data, which is read without running it",
            f"{said:.120}",
            "the binary version holds the same: `advlab data fetch`",
        ) from None


class _Machine:
    """The stack machine of pickles, for opcodes that only build plain data."""

    def __init__(self, body: memoryview):
        self.body, self.at = body, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        while True:
            code = bytes(self.take(1))
            if code == b".":
                return self.pop()
            if code not in _OPCODES:
                raise Refused(f"the opcode {code!r} at byte {self.at - 1}")
            _OPCODES[code](self)

    def take(self, n: int) -> memoryview:
        if n < 0 or self.at + n > len(self.body):
            raise Refused("a truncated file")
        self.at += n
        return self.body[self.at - n : self.at]

    def number(self, form: str) -> int:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        rest = bytes(self.body[self.at : self.at + 200])
        end = rest.find(b"\n")
        if end < 0:
            raise Refused("a name without an end")
        self.at += end + 1
        return rest[:end].decode("ascii")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack:
            raise Refused("an empty stack")
        return self.stack.pop()

    def marked(self) -> list[Any]:
        """All that was put on the stack since the last mark."""
        for place in range(len(self.stack) - 1, -1, -1):
            if isinstance(self.stack[place], _Mark):
                some = self.stack[place + 1 :]
                del self.stack[place:]
                return some
        raise Refused("no mark")

    def name(self, module: Any, inside: Any) -> None:
        name = f"{_word(module)} {_word(inside)}"
        if name not in KNOWN:
            raise Refused(f"the name {name}")
        self.push(_Call("name", (name,)))

    def last(self, kind: type) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise Refused(f"no {kind.__name__} to add to")
        return self.stack[-1]

    def reduce(self) -> None:
        arguments, called = self.pop(), self.pop()
        if not isinstance(called, _Call) or called.name != "name":
            raise Refused("a call of something that is no name")
        self.push(_Call(called.arguments[0], tuple(arguments)))

    def build(self) -> None:
        state = self.pop()
        self.last(_Call).state = state

    def update(self, some: list[Any]) -> None:
        pairs = zip(some[::2], some[1::2], strict=True)
        self.last(dict).update({_word(key): value for key, value in pairs})

    def tuple(self, n: int) -> None:
        items = [self.pop() for _ in range(n)][::-1]
        self.push(tuple(items))


Step = Callable[[_Machine], Any]


def _raw(form: str) -> Step:
    return lambda m: m.push(m.take(m.number(form)))


def _text(form: str) -> Step:
    return lambda m: m.push(bytes(m.take(m.number(form))).decode("utf-8"))


def _put(form: str) -> Step:
    return lambda m: m.memo.__setitem__(m.number(form), m.stack[-1])


def _pair(m: _Machine) -> None:
    value, key = m.pop(), m.pop()
    m.update([key, value])


def _two_names(m: _Machine) -> None:
    inside, module = m.pop(), m.pop()
    m.name(module, inside)


def _append(m: _Machine) -> None:
    value = m.pop()
    m.last(list).append(value)


def _extend(m: _Machine) -> None:
    some = m.marked()
    m.last(list).extend(some)


_OPCODES: dict[bytes, Step] = {
    b"\x80": lambda m: m.take(1),  # the version of pickle
    b"\x95": lambda m: m.take(8),  # a frame
    b"(": lambda m: m.push(_Mark()),
    b"}": lambda m: m.push({}),
    b"]": lambda m: m.push([]),
    b")": lambda m: m.push(()),
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"K": lambda m: m.push(m.number("<B")),
    b"M": lambda m: m.push(m.number("<H")),
    b"J": lambda m: m.push(m.number("<i")),
    b"\x8a": lambda m: m.push(int.from_bytes(m.take(m.number("<B")), "little", signed=True)),
    b"U": _raw("<B"),  # Python 2's words, and its arrays' bytes
    b"T": _raw("<i"),
    b"C": _raw("<B"),
    b"B": _raw("<I"),
    b"\x8e": _raw("<Q"),
    b"\x8c": _text("<B"),
    b"X": _text("<I"),
    b"q": _put("<B"),
    b"r": _put("<I"),
    b"\x94": lambda m: m.memo.__setitem__(len(m.memo), m.stack[-1]),
    b"h": lambda m: m.push(m.memo[m.number("<B")]),
    b"j": lambda m: m.push(m.memo[m.number("<I")]),
    b"t": lambda m: m.push(tuple(m.marked())),
    b"\x85": lambda m: m.tuple(1),
    b"\x86": lambda m: m.tuple(2),
    b"\x87": lambda m: m.tuple(3),
    b"a": _append,
    b"e": _extend,
    b"s": _pair,
    b"u": lambda m: m.update(m.marked()),
    b"c": lambda m: m.name(m.line(), m.line()),
    b"\x93": _two_names,
    b"R": lambda m: m.reduce(),
    b"b": lambda m: m.build(),
}


def _word(value: Any) -> str:
    if isinstance(value, memoryview):
        return bytes(value).decode("latin-1")
    if not isinstance(value, str):
        raise Refused(f"a {type(value).__name__} in place of a word")
    return value


def _plain(value: Any) -> Any:
    """The same without the forms of pickle; the nesting of CIFAR's files is two deep."""
    if isinstance(value, dict):
        return {key: _items(one) for key, one in value.items()}
    return _items(value)


def _items(value: Any) -> Any:
    if isinstance(value, _Call):
        return _array(value)
    if isinstance(value, list):
        return [_word(one) if isinstance(one, memoryview) else one for one in value]
    return _word(value) if isinstance(value, memoryview) else value


def _array(call: _Call) -> UInt8[np.ndarray, "..."]:
    """An array of bytes from what was to be called: shape, type, order, content."""
    if call.name not in ARRAY or not isinstance(call.state, tuple) or len(call.state) != 5:
        raise Refused("an object that is no array")
    _, shape, dtype, columns_first, content = call.state
    whole = isinstance(dtype, _Call) and dtype.name == "numpy dtype" and bool(dtype.arguments)
    if not whole or _word(dtype.arguments[0]) not in ("u1", "|u1"):
        raise Refused("an array of other numbers than bytes")
    sizes = isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)
    if not sizes or not isinstance(content, memoryview) or len(content) != math.prod(shape):
        raise Refused("an array whose content does not fit its shape")
    return np.frombuffer(content, np.uint8).reshape(shape, order="F" if columns_first else "C")
