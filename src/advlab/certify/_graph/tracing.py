"""Watches the tensor operations that a network runs."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ...core.errors import AdvlabError
from .graph import Input, Node
from .layouts import BATCH, Layout


class UnsupportedNetwork(AdvlabError):
    """The network has an operation that no certificate here knows."""


Found = tuple[int, Layout]
"""A node of the graph, and where the examples are in the tensor that holds its value."""


class Trace(TorchDispatchMode):
    """The graph of all that is computed from x while the mode is on.

    A value that cannot be tracked is marked, not refused at once: it may not matter. What a
    network reads out of its tensors (a branch, a shape that depends on values) matters at once: the
    graph would hold only for inputs that take the same path.
    """

    def __init__(self, x: Tensor, operations: "Mapping[str, Reader]"):
        super().__init__()
        self.operations = operations
        self.nodes: list[Node] = [Input((), tuple(x.shape[1:]))]
        self.like = x
        self.problem: str | None = None
        self.fatal = False
        self._found: dict[int, Found | None] = {}
        self._alive: list[Tensor] = []
        self._storages: set[int] = set()
        self._track(x, (0, BATCH))

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled here, and the default would import the whole compiler.
        return False

    def found(self, value: object) -> Found | None:
        """Where a tensor is in the graph and how it is laid out; None for constants."""
        return self._found.get(id(value)) if isinstance(value, Tensor) else None

    def place(self, value: object) -> int | None:
        """Where a tensor is in the graph; None for constants."""
        found = self.found(value)
        return None if found is None else found[0]

    def tracked(self, value: object) -> bool:
        """Whether it is computed from x, or shares its memory with something that is."""
        return isinstance(value, Tensor) and (
            id(value) in self._found or _memory(value) in self._storages
        )

    def add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def shape(self, place: int) -> tuple[int, ...]:
        return self.nodes[place].shape

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunction():
            return self._watch(func, args, kwargs or {})

    def _watch(self, func: Any, args: tuple, kwargs: dict) -> Any:
        name = func.overloadpacket.__name__
        given = [*flat(args), *flat(kwargs.values())]
        depends = any(self.tracked(value) for value in given)
        broken = any(self.tracked(value) and self.found(value) is None for value in given)
        if depends and func._schema.is_mutable and self._aliased(args[0]):
            self.mark_unsupported(f"{name} in place on a tensor that others share", fatal=True)
        if depends and self._shape_by_values(func, args):
            self.mark_unsupported(f"{name}, whose shape depends on values", fatal=True)
        out = func(*args, **kwargs)
        if depends and name not in SHAPED_LIKE:
            found = None if broken else self._read(name, func, args, kwargs, out)
            self._record(out, found, name)
        return out

    def _shape_by_values(self, func: Any, args: tuple) -> bool:
        if torch.Tag.dynamic_output_shape not in func.tags:
            return False
        if func.overloadpacket.__name__ != "index":
            return True
        masks = (torch.bool, torch.uint8)
        return any(self.tracked(i) and i.dtype in masks for i in flat(args[1]))

    def _read(self, name: str, func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
        operation = self.operations.get(name.rstrip("_") if func._schema.is_mutable else name)
        if operation is None:
            self.mark_unsupported(f"the operation {name}")
            return None
        try:
            return operation(self, func, args, kwargs, out)
        except UnsupportedNetwork as reason:
            self.mark_unsupported(str(reason))
            return None

    def _record(self, out: Any, found: Any, name: str) -> None:
        """Results of an operation get their places; further results of it cannot be tracked."""
        results = list(out) if isinstance(out, tuple | list) else [out]
        places = found if isinstance(found, list) else [found]
        places = places + [None] * (len(results) - len(places))
        for result, place in zip(results, places, strict=True):
            if not isinstance(result, Tensor):
                self.mark_unsupported(
                    f"{name}, which makes the computation depend on values", fatal=True
                )
                continue
            where: Found | None = (place, BATCH) if isinstance(place, int) else place
            if where is not None and not self._fits(result, where[0], where[1]):
                self.mark_unsupported(f"{name}, which mixes examples or broadcasts")
                where = None
            self._track(result, where)

    def _fits(self, result: Tensor, place: int, layout: Layout) -> bool:
        n = len(self.like)
        if layout.axis >= result.ndim or result.shape[layout.axis] != n * layout.pre * layout.post:
            return False
        return layout.by_example(result, n).shape == (n, *self.shape(place))

    def _track(self, tensor: Tensor, found: Found | None) -> None:
        # Kept alive: the id of a dead tensor may come again, and so may its memory.
        self._alive.append(tensor)
        self._found[id(tensor)] = found
        self._storages.add(_memory(tensor))
        self._storages.discard(0)

    def _aliased(self, target: Tensor) -> bool:
        if id(target) not in self._found:
            return True
        home = _memory(target)
        return any(other is not target and _memory(other) == home for other in self._alive)

    def mark_unsupported(self, reason: str, fatal: bool = False) -> None:
        if self.problem is None or (fatal and not self.fatal):
            self.problem = reason
        self.fatal = self.fatal or fatal


KINDS = ("zeros", "ones", "full", "empty")
SHAPED_LIKE = frozenset(f"{kind}_like" for kind in KINDS) | {f"new_{kind}" for kind in KINDS}
"""Operations that ask a tensor for its shape and type alone."""
READS = {"numpy", "tolist", "storage", "untyped_storage"}
READS |= {f"__{name}__" for name in ("array", "dlpack", "reduce_ex", "deepcopy")}
"""Methods that hand out the numbers of a tensor without any tensor operation."""

RECURRENT = frozenset(["lstm", "gru", "lstm_cell", "gru_cell"])


class ReadGuard(TorchFunctionMode):
    """Refuses a network that reads numbers which depend on x where no operation shows it, and
    recurrent layers, by name rather than by the first of their many operations.

    `item()`, `bool()`, `int()` and `float()` are operations, which the trace sees by itself.
    """

    def __init__(self, trace: Trace):
        super().__init__()
        self.trace = trace

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name, trace = getattr(func, "__name__", ""), self.trace
        if name in READS and any(trace.tracked(value) for value in args):
            trace.mark_unsupported(
                f"{name}(), which makes the computation depend on values", fatal=True
            )
        if name in RECURRENT and any(trace.tracked(value) for value in flat(args)):
            trace.mark_unsupported(
                f"a recurrent layer ({name}), whose gates multiply bounds by bounds at every step: "
                "what would come out proves nothing",
                fatal=True,
            )
        return func(*args, **(kwargs or {}))


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else 0


def flat(values: Any) -> list:
    found = []
    for value in values:
        found.extend(flat(value) if isinstance(value, tuple | list) else [value])
    return found


Reader = Callable[[Trace, Any, tuple, dict, Any], Any]
"""The trace, the operation, its arguments and its result; gives the place of the new node, with the
layout of the result unless examples come first (`Found`), or a list of these."""
