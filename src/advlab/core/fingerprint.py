"""The identity of what computes a result: of a model, a function, a data set, and of code.

`digest` names an object as it is in memory, `code_fingerprint` the source code that a function can
reach. Both give the same name in another process. Neither imports torch.
"""

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .reachable import definitions


def code_fingerprint(*sources: object) -> str:
    """A name for the source code that functions or classes can reach.

    The code is read, not run: starting from each source, the definitions that its text names are
    followed through the modules of advlab and the user's own modules (`core.reachable` says how).
    Comments, docstrings and the layout do not count, nor does code that is not reached, such as the
    figure and the verdicts of an experiment when the source is its `compute`. Installed packages do
    not count: their versions are recorded beside the fingerprint.

    Args:
        sources: functions, classes, methods, partial functions or modules; or "module:name", which
            is read without importing the module.

    Returns:
        16 hexadecimal digits, the same for the same code in every process.

    Example:
        from advlab.core.fingerprint import code_fingerprint
        from advlab.papers.benign.experiments import fig1
        code_fingerprint(fig1.compute, fig1.Case)
    """
    found = definitions(*sources)
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:16]


def digest(source: object) -> str:
    """A name for an object: the same for the same weights and code, another for others.

    A network is known by the classes of its modules and its state, a function by its name, code and
    what it closes over, another object by its class and fields. What a function reads from its
    module is not seen. Objects may refer to themselves, or to an object that holds them.

    Args:
        source: a network, a tensor, a function, or any object.

    Returns:
        16 hexadecimal digits, the same in every process.
    """
    return _Walk().digest(source)[:16]


class _Walk:
    """A walk over an object and all that it holds; every object is hashed once."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[object, str]] = {}  # the object is kept: ids are used again
        self.path: list[int] = []

    def digest(self, source: object) -> str:
        if id(source) in self.path:
            above = len(self.path) - self.path.index(id(source))
            return hashlib.sha256(f"the object {above} above".encode()).hexdigest()
        if id(source) not in self.found:
            self.path.append(id(source))
            found = hashlib.sha256(_name(source).encode())
            for part in self.parts(source):
                found.update(part if not isinstance(part, str) else part.encode())
            self.path.pop()
            self.found[id(source)] = source, found.hexdigest()
        return self.found[id(source)][1]

    def parts(self, source: Any) -> Iterator[Any]:
        torch = sys.modules.get("torch")  # where it is not loaded there are no tensors
        if torch and isinstance(source, torch.Tensor):
            yield f"{source.dtype} {tuple(source.shape)}"
            yield source.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        elif torch and isinstance(source, torch.nn.Module):
            # Not state_dict, which never ends where a module holds the one that holds it.
            for name, module in source.named_modules():
                yield f"{name} {type(module).__qualname__}"
                yield from self.named({**module._parameters, **module._buffers})
        elif isinstance(source, FunctionType):
            yield self.digest(source.__code__)
            yield self.digest(source.__defaults__ or ())
            yield from (self.digest(cell.cell_contents) for cell in source.__closure__ or ())
        elif isinstance(source, CodeType):
            yield source.co_code
            yield repr(source.co_names)
            yield from map(self.digest, source.co_consts)
        elif isinstance(source, MethodType):
            yield from map(self.digest, (source.__func__, source.__self__))
        elif isinstance(source, partial):
            yield from map(self.digest, (source.func, source.args, source.keywords))
        elif isinstance(source, ModuleType | type):
            yield f"{getattr(source, '__module__', '')} {source.__name__}"
        elif isinstance(source, np.ndarray) and source.dtype != object:
            yield f"{source.dtype} {source.shape}"
            yield source.tobytes()
        elif isinstance(source, dict):
            yield from (self.digest(one) for pair in source.items() for one in pair)
        elif isinstance(source, list | tuple):
            yield from map(self.digest, source)
        elif isinstance(source, set | frozenset):
            yield from sorted(map(self.digest, source))
        elif fields := getattr(source, "__dict__", None):
            yield from self.named(fields)
        else:
            yield re.sub(r" at 0x[0-9a-f]+", "", repr(source))

    def named(self, values: Mapping[str, object]) -> Iterator[str]:
        for name, value in sorted(values.items()):
            yield name
            yield self.digest(value)


def _name(source: object) -> str:
    return source.__qualname__ if isinstance(source, FunctionType) else type(source).__qualname__
