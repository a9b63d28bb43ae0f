"""Reads a network into a graph by watching the tensor operations that it runs.

So it does not matter how the network is written: modules, functions, TorchScript and exported
programs all run the same operations. What is read is then run beside the network on other inputs,
and refused if the two differ.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ...losses import evaluating
from .graph import Graph
from .operations import OPERATIONS
from .tracing import ReadGuard, Trace, UnsupportedNetwork

TRACED, CHECKED = 3, 5
"""Rows that are watched, and rows of the check: different, so that mixed-up axes show."""


def read(model: Callable[[Tensor], Tensor], x: Tensor) -> Graph:
    """The graph of a network in eval mode, for inputs shaped as x. The network stays as it was."""
    with torch.no_grad(), evaluating(model):
        rows = x.detach()[torch.arange(TRACED, device=x.device) % len(x)].clone()
        trace = Trace(rows, OPERATIONS)
        out = _run(model, rows, _watched(trace))
        _no_hidden_reads(model)
        place = trace.place(out)
        if trace.fatal or place is None or not isinstance(out, Tensor):
            raise UnsupportedNetwork(
                trace.problem or "outputs that are not computed from the inputs"
            )
        graph = Graph(trace.nodes[: place + 1])
        _check(graph, model, x.detach())
    return graph


@contextmanager
def _watched(trace: Trace) -> Iterator[None]:
    """The trace and its guard, with attention by plain operations instead of one that hides all."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), ReadGuard(trace), trace:
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _no_hidden_reads(model: Callable[[Tensor], Tensor]) -> None:
    """TorchScript's tolist runs outside of Python, where nothing can watch it."""
    if isinstance(model, torch.jit.ScriptModule) and "prim::tolist" in str(model.inlined_graph):
        raise UnsupportedNetwork("tolist(), which makes the computation depend on values")


def _run(model: Callable[[Tensor], Tensor], rows: Tensor, watch: AbstractContextManager) -> Tensor:
    try:
        with watch:
            return model(rows)
    except (RuntimeError, AssertionError, ValueError) as error:
        # Exported programs of one batch size, stacks of replicates.
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise UnsupportedNetwork(f"trouble with a batch of {len(rows)}: {first}") from None


def _check(graph: Graph, model: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """Run graph and network side by side on inputs that were not watched."""
    share = torch.linspace(0, 1, CHECKED, dtype=x.dtype, device=x.device)
    share = share.reshape(-1, *[1] * (x.ndim - 1))
    rows = torch.arange(CHECKED, device=x.device) % len(x)
    points = share * x[rows.flip(0)] + (1 - share) * x[rows].flip(1)
    truth = _run(model, points, nullcontext())
    try:
        # One at a time: a network that mixes examples will differ.
        ours = torch.cat([graph.values(point[None])[-1] for point in points])
    except RuntimeError as error:
        raise UnsupportedNetwork(
            f"operations that mix examples ({error})".splitlines()[0]
        ) from None
    if truth.shape != ours.shape:
        raise UnsupportedNetwork("operations that mix examples")
    close = 1e4 * torch.finfo(x.dtype).eps * (1 + truth.abs().max())
    if not bool(((truth - ours).abs() <= close).all()):
        raise UnsupportedNetwork("outputs that its tensor operations do not explain")
