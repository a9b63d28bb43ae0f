"""Which examples each step sees: rows of arrays, or the batches that a loader gives."""

import hashlib
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from ..core import inputs
from ..core.errors import AdvlabError
from ..core.identity import Fingerprint
from ..core.inputs import Given, TensorLike
from ..core.randomness import Rng
from ..data.loaders import FORMS, batches, pair
from ..models import Stack
from ..threats.base import check_finite
from .global_randomness import global_randomness, set_global_randomness


class Batches(ABC):
    """Inputs and labels for one step after the other, epoch after epoch."""

    per_epoch: int | None
    """How many batches one pass over the data has, where that is known."""

    @abstractmethod
    def next(self, rng: Rng) -> tuple[Tensor, Tensor]:
        """The batch of the next step.

        Args:
            rng: where the order comes from, if the order is ours to choose.
        """

    @abstractmethod
    def first(self) -> tuple[Tensor, Tensor]:
        """Some examples, for a look at shapes and types; no step is taken."""

    @abstractmethod
    def one_pass(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """All examples once; the steps see the same batches as if nobody had looked.

        Args:
            size: rows at a time, where that is ours to choose.
        """

    @property
    @abstractmethod
    def examples(self) -> int:
        """How many examples one pass over the data has, about."""

    @abstractmethod
    def identify(self, found: Fingerprint) -> None:
        """Add what is known of the data before they are read."""

    def to(self, device: torch.device) -> None:  # noqa: B027
        """Move the data once, where every step sees all of them."""

    @abstractmethod
    def state_dict(self) -> dict: ...

    @abstractmethod
    def load_state_dict(self, state: dict) -> None: ...


class ArrayBatches(Batches):
    """All rows at every step, or shuffled mini-batches, a new order each epoch.

    The rows of a stack are R equal blocks; each replicate shuffles its own.
    """

    def __init__(self, x: Tensor, y: Tensor, size: int | None, replicates: int = 1):
        if size is not None and size < 1:
            raise AdvlabError("batch must be at least 1, or None for all rows", size)
        self.x, self.y = x, y
        self.rows = len(y) // replicates
        self.size = size if size is not None and size < self.rows else None
        self.per_epoch = math.ceil(self.rows / self.size) if self.size else 1
        self._first = self.rows * torch.arange(replicates)[:, None]
        self._order = torch.empty(replicates, 0, dtype=torch.long)
        self._position = 0

    def next(self, rng: Rng) -> tuple[Tensor, Tensor]:
        if self.size is None:
            return self.x, self.y
        if self._position >= self._order.shape[1]:
            self._order, self._position = self._shuffled(rng), 0
        take = self._order[:, self._position : self._position + self.size].flatten()
        self._position += self.size
        # Whole rows are copied, which indexing does number by number.
        x, y = (part.index_select(0, take.to(part.device)) for part in (self.x, self.y))
        return x, y

    def first(self) -> tuple[Tensor, Tensor]:
        return self.x, self.y

    def one_pass(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        yield from zip(self.x.split(size), self.y.split(size), strict=True)

    @property
    def examples(self) -> int:
        return self.rows

    def identify(self, found: Fingerprint) -> None:
        found.add("data: x", self.x)
        found.add("data: y", self.y)

    def to(self, device: torch.device) -> None:
        if self.size is None:
            self.x, self.y = self.x.to(device), self.y.to(device)

    def state_dict(self) -> dict:
        return {"order": self._order, "position": self._position}

    def load_state_dict(self, state: dict) -> None:
        if state.get("order") is not None and state["order"].shape[1] in (0, self.rows):
            self._order, self._position = state["order"], state["position"]

    def _shuffled(self, rng: Rng) -> Tensor:
        one_each = [rng] * len(self._first) if isinstance(rng, torch.Generator) else rng
        orders = [
            torch.randperm(self.rows, generator=one, device=one.device).cpu() for one in one_each
        ]
        return torch.stack(orders) + self._first


class LoaderBatches(Batches):
    """The batches of a `DataLoader`, or of any other iterable that can be read again and again.

    While a batch is read, the global generators have numbers of their own, which no draw of the
    network moves. So a run that goes on from a checkpoint can read the batches of its epoch again
    and go on behind them. If they are not the same batches, it is refused: the data are others, or
    are drawn in a way that cannot be repeated.
    """

    def __init__(self, loader: Any, model: nn.Module):
        if iter(loader) is loader:
            raise AdvlabError(
                "data that can be read again in every epoch",
                f"{type(loader).__name__}, which is read once",
                "give a DataLoader, a Dataset or arrays",
            )
        self.loader, self._dtype = loader, inputs.dtype_of(model)
        self.per_epoch = len(loader) if hasattr(loader, "__len__") else None
        self._stream: Iterator[Any] = iter(())
        self._randomness: dict = {}
        self._start: dict = {}
        self._position, self._seen = 0, ""
        self._look: tuple[Tensor, Tensor] | None = None

    def next(self, rng: Rng) -> tuple[Tensor, Tensor]:
        if not self._randomness:
            self._randomness = _seeded(rng)
        batch = self._read()
        if batch is None:
            self._begin(self._state())
            batch = self._read()
        if batch is None:
            raise AdvlabError("a loader with at least one batch", "none")
        return batch

    def first(self) -> tuple[Tensor, Tensor]:
        if self._look is None:
            with self._reading():
                before = self._state()
                batch = next(iter(self.loader), None)
            self._restore(before)
            if batch is None:
                raise AdvlabError("a loader with at least one batch", "none")
            self._look = self._tensors(batch)
        return self._look

    def one_pass(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        before = self._state()
        with self._reading():
            stream = iter(self.loader)
        while True:
            with self._reading():
                batch = next(stream, None)
            if batch is None:
                break
            yield self._tensors(batch)
        self._restore(before)

    @property
    def examples(self) -> int:
        counted = getattr(self.loader, "dataset", None)
        if hasattr(counted, "__len__") and not getattr(self.loader, "drop_last", False):
            return len(counted)  # type: ignore[arg-type]
        return (self.per_epoch or 0) * len(self.first()[1])

    def identify(self, found: Fingerprint) -> None:
        x, y = self.first()
        found.add("data: loader", f"{type(self.loader).__module__}.{type(self.loader).__name__}")
        shape = [self.per_epoch, list(x.shape[1:]), str(x.dtype), str(y.dtype)]
        found.add("data: batches and their shape", shape)

    def state_dict(self) -> dict:
        return {"start": self._start, "position": self._position, "seen": self._seen}

    def load_state_dict(self, state: dict) -> None:
        if not state.get("start"):
            return
        self._begin(state["start"])
        for _ in range(state["position"]):
            self._read()
        if (self._position, self._seen) != (state["position"], state["seen"]):
            raise AdvlabError(
                "a loader that gives the batches of the run which the checkpoint is of",
                "other batches",
                "use the same data; draw at random from torch's, numpy's or the loader's generator",
            )

    def _read(self) -> tuple[Tensor, Tensor] | None:
        """The next batch of the epoch, if there is one."""
        with self._reading():
            batch = next(self._stream, None)
        if batch is None:
            return None
        x, y = self._tensors(batch)
        self._position, self._seen = self._position + 1, _digest(self._seen, x, y)
        return x, y

    def _begin(self, start: dict) -> None:
        self._restore(start)
        self._start, self._position, self._seen = start, 0, ""
        with self._reading():
            self._stream = iter(self.loader)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """The loader's global numbers inside, everybody else's back afterwards."""
        others = global_randomness()
        if self._randomness:
            set_global_randomness(self._randomness)
        try:
            yield
            self._randomness = self._randomness and global_randomness()
        finally:
            set_global_randomness(others)

    def _state(self) -> dict:
        own = [rng.get_state() for rng in self._generators()]
        return {"global": self._randomness, "own": own}

    def _restore(self, state: dict) -> None:
        self._randomness = state["global"]
        for rng, kept in zip(self._generators(), state["own"], strict=True):
            rng.set_state(kept)

    def _generators(self) -> list[torch.Generator]:
        """The loader's own generator and its sampler's."""
        if not isinstance(self.loader, DataLoader):
            return []
        held = (self.loader.generator, getattr(self.loader.sampler, "generator", None))
        return list({id(rng): rng for rng in held if isinstance(rng, torch.Generator)}.values())

    def _tensors(self, batch: Any) -> tuple[Tensor, Tensor]:
        x, y = pair(batch)
        x, y = inputs.inputs(x), inputs.labels(y)
        x = x.to(self._dtype) if self._dtype is not None else x
        _check_rows(x, y)
        return x, y


def _seeded(rng: Rng) -> dict:
    """A start for the global generators, from a number of the run's."""
    one = rng if isinstance(rng, torch.Generator) else rng[0]
    seed = int(torch.randint(2**31, (), generator=one, device=one.device))
    others = global_randomness()
    try:
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        return global_randomness()
    finally:
        set_global_randomness(others)


def checked_batches(
    model: nn.Module, x: Given[Any], y: Given[TensorLike | None], size: int | None
) -> Batches:
    """The batches of whatever a caller gives as data.

    Args:
        model: the network, or a stack of R networks.
        x: inputs (n, ...), for a stack (R, n, ...); or what brings both, as `data.batches` has it.
        y: labels (n,), for a stack (R, n); targets in rows, one per class, are soft labels.
        size: rows per step and replicate; None takes all. Not for what comes in batches already.
    """
    if y is not None or isinstance(model, Stack):
        replicates = model.replicates if isinstance(model, Stack) else 1
        return ArrayBatches(*checked_rows(model, x, y), size, replicates)
    read = batches(x)
    if read.whole is not None:
        return ArrayBatches(*checked_rows(model, *read.whole), size)
    if is_dataset(x):
        # A data set of single examples: torch's loader puts batches together, in a shuffled order.
        loader = DataLoader(x, batch_size=size or len(x), shuffle=True, collate_fn=_collated)
        return LoaderBatches(loader, model)
    if size is not None:
        raise AdvlabError("batch left out, where the data come in batches", f"batch={size}")
    if not hasattr(x, "__iter__"):
        raise AdvlabError(FORMS, f"{x!r:.60}")
    return LoaderBatches(x, model)


def is_dataset(x: object) -> bool:
    """Whether data are single examples by number: a `Dataset`, torch's or another library's."""
    numbered = hasattr(x, "__getitem__") and hasattr(x, "__len__")
    return numbered and not isinstance(x, DataLoader | list | tuple | str)


def checked_rows(
    model: nn.Module, x: Given[TensorLike], y: Given[TensorLike | None]
) -> tuple[Tensor, Tensor]:
    """Check the data, and lay a stack's (R, n, ...) out as R blocks of rows."""
    if y is None:
        raise AdvlabError("real numbers in y, for the inputs x", "none", "or data that bring both")
    x, y = inputs.inputs(x, model), inputs.labels(y)
    if x.ndim == 0 or y.ndim == 0:
        raise AdvlabError("x of shape (n, ...) and y of shape (n,)", "a single number")
    kept = next(model.parameters()).dtype
    if isinstance(model, Stack):
        _check_values(x, y)
        wanted = f"x of shape (R, n, ...) and y of shape (R, n) with R = {model.replicates}"
        if x.ndim < 2 or x.shape[:2] != y.shape or len(x) != model.replicates:
            raise AdvlabError(wanted, f"x {tuple(x.shape)} and y {tuple(y.shape)}")
        x, y = x.flatten(0, 1), y.flatten()
    else:
        _check_rows(x, y)
    if x.dtype != kept:
        raise AdvlabError(f"inputs of the model's own type, {kept}", x.dtype, f"use x.to({kept})")
    return x, y


def _check_rows(x: Tensor, y: Tensor) -> None:
    _check_values(x, y)
    soft = y.ndim == 2 and y.is_floating_point() and len(x) == len(y)
    if len(x) == 0 or not (x.shape[:1] == y.shape or soft):
        raise AdvlabError(
            "x of shape (n, ...) and y of shape (n,), n at least 1",
            f"x {tuple(x.shape)} and y {tuple(y.shape)}",
        )


def _check_values(x: Tensor, y: Tensor) -> None:
    check_finite(x, "inputs")
    if y.is_floating_point():
        check_finite(y, "targets")


def _collated(items: list[Any]) -> tuple[Tensor, Tensor]:
    """Single examples, pairs or dicts of any kind, as one batch."""
    rows = [pair(item) for item in items]
    return torch.cat([inputs.inputs(x) for x, _ in rows]), inputs.labels([y[0] for _, y in rows])


def _digest(before: str, x: Tensor, y: Tensor) -> str:
    found = hashlib.sha256(before.encode())
    for part in (x, y):
        found.update(part.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
