"""Watches the tensor operations that a network runs."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ...core.errors import AdvlabError
from .graph import Input, Node


class UnsupportedNetwork(AdvlabError):
    """The network has an operation that no certificate here knows."""


class Trace(TorchDispatchMode):
    """The graph of all that is computed from x while the mode is on.

    A value that cannot be tracked is marked, not refused at once: it may not matter.
    """

    def __init__(self, x: Tensor, operations: "Mapping[str, Reader]"):
        super().__init__()
        self.operations = operations
        self.nodes: list[Node] = [Input((), tuple(x.shape[1:]))]
        self.like = x
        self.problem: str | None = None
        self.fatal = False
        self._place: dict[int, int | None] = {}
        self._alive: list[Tensor] = []
        self._track(x, 0)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled here, and the default would import the whole compiler.
        return False

    def place(self, value: object) -> int | None:
        """Where a tensor is in the graph; None for constants."""
        return self._place.get(id(value)) if isinstance(value, Tensor) else None

    def tracked(self, value: object) -> bool:
        return isinstance(value, Tensor) and id(value) in self._place

    def add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def shape(self, place: int) -> tuple[int, ...]:
        return self.nodes[place].shape

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        given = [*flat(args), *flat(kwargs.values())]
        depends = any(self.tracked(value) for value in given)
        broken = any(self.tracked(value) and self.place(value) is None for value in given)
        if depends and func._schema.is_mutable and self._aliased(args[0]):
            self._mark_unsupported(f"{name} in place on a tensor that others share", fatal=True)
        out = func(*args, **kwargs)
        if depends:
            places = None if broken else self._read(name, func, args, kwargs, out)
            self._record(out, places, name)
        return out

    def _read(self, name: str, func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
        operation = self.operations.get(name.rstrip("_") if func._schema.is_mutable else name)
        if operation is None:
            self._mark_unsupported(f"the operation {name}")
            return None
        try:
            return operation(self, func, args, kwargs, out)
        except UnsupportedNetwork as reason:
            self._mark_unsupported(str(reason))
            return None

    def _record(self, out: Any, places: Any, name: str) -> None:
        """Results of an operation get their places; further results of it cannot be tracked."""
        results = list(out) if isinstance(out, tuple | list) else [out]
        found = places if isinstance(places, list) else [places]
        found = found + [None] * (len(results) - len(found))
        for result, place in zip(results, found, strict=True):
            if not isinstance(result, Tensor):
                self._mark_unsupported(
                    f"{name}, which makes the computation depend on values", fatal=True
                )
                continue
            if place is not None and result.shape != (len(self.like), *self.shape(place)):
                self._mark_unsupported(f"{name}, which mixes examples or broadcasts")
                place = None
            self._track(result, place)

    def _track(self, tensor: Tensor, place: int | None) -> None:
        # Kept alive: the id of a dead tensor may come again.
        self._alive.append(tensor)
        self._place[id(tensor)] = place

    def _aliased(self, target: Tensor) -> bool:
        if not self.tracked(target):
            return True
        home = target.untyped_storage().data_ptr()
        return any(
            other is not target and other.untyped_storage().data_ptr() == home
            for other in self._alive
        )

    def _mark_unsupported(self, reason: str, fatal: bool = False) -> None:
        if self.problem is None or (fatal and not self.fatal):
            self.problem = reason
        self.fatal = self.fatal or fatal


def flat(values: Any) -> list:
    found = []
    for value in values:
        found.extend(flat(value) if isinstance(value, tuple | list) else [value])
    return found


Reader = Callable[[Trace, Any, tuple, dict, Any], Any]
"""The trace, the operation, its arguments and its result; gives the place of the new node."""
