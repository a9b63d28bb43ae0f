"""How many rows fit in memory at once: measured on a few, not guessed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from ..core.devices import device_of
from ..losses import evaluating

SHARE = 0.25
"""Of the free memory: other programs want some, and layers need scratch space of their own."""
COPIES = 16
"""Inputs an attack holds at once: point, gradient, best, momentum and what projections need."""
PARTS, LEAST, MOST = 4, 512, 1024
"""A run is cut in some parts even if all fits, for progress and resuming, but not in small ones:
at 128 rows an ensemble took a fifth more CPU (benchmarks/bracket.py)."""


def batch_size(
    model: Callable[[Tensor], Tensor], x: Tensor, draws: int = 1, *, rows: float | None = None
) -> int:
    """Rows per batch: as many as fit a quarter of the free memory, within the limits above.

    Args:
        model: the model.
        x: the inputs, or some of them.
        draws: calls of a random model whose mean is climbed: all are held for its gradient.
        rows: how many there are in all, if not those of x; infinite if nobody knows.
    """
    rows = len(x) if rows is None else rows
    wanted = int(max(LEAST, -(-min(rows, MOST * PARTS) // PARTS)))
    place = device_of(model, x)
    row = draws * bytes_per_row(model, x[:1].to(place))
    fits = int(SHARE * free_bytes(place) / row)
    return int(max(1, min(wanted, fits, rows)))


def bytes_per_row(model: Callable[[Tensor], Tensor], x: Tensor) -> float:
    """What one more row costs: the activations saved for its gradient and an attack's copies.

    Two sizes are probed, so that weights, which every batch shares, drop out.
    """
    few = x[:1].expand(2, *x.shape[1:])
    one, two = (_saved_bytes(model, few[:rows].clone()) for rows in (1, 2))
    return max(two - one, 0) + COPIES * x[0].numel() * x.element_size()


def free_bytes(device: torch.device) -> int:
    """Memory that can be had without swapping: of the device, the machine, or the container."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    return min(free, _container_bytes())


def batch_slices(rows: int, size: int) -> Iterator[slice]:
    """The rows in batches of this size, in their order; the last one may be smaller."""
    return (slice(first, min(first + size, rows)) for first in range(0, rows, size))


def _container_bytes() -> int:
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        # Pages of files count as used, but are given back when they are wanted.
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max(0, int(limit) - used + int(stat.get("inactive_file", 0)))
    except (OSError, ValueError):
        return 1 << 62


def _saved_bytes(model: Callable[[Tensor], Tensor], x: Tensor) -> int:
    weights = {p.data_ptr() for p in model.parameters()} if isinstance(model, nn.Module) else set()
    seen: dict[int, int] = {}

    def note(saved: Tensor) -> Tensor:
        if saved.data_ptr() not in weights:
            storage = saved.untyped_storage()
            seen[storage.data_ptr()] = storage.nbytes()
        return saved

    with evaluating(model), torch.enable_grad(), saved_tensors_hooks(note, lambda saved: saved):
        # Kept alive until counted: a freed buffer's address would be used again.
        outputs = model(x.requires_grad_())
        size = sum(seen.values()) + outputs.nbytes
    return size
