"""The empirical tangent kernel of any network: inner products of gradients in its weights.

K(x, x')[a, b] = <grad f_a(x), grad f_b(x')>, the sum over all trained weights (convergence paper,
Definition 5.1; Jacot, Gabriel and Hongler, 2018). It is what gradient descent on few steps sees of
a network; for wide networks it has a limit that does not depend on the draw.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core import inputs
from ..core.errors import AdvlabError
from ..losses import evaluating
from ._parts.batches import input_batches

Kernel = Float[Tensor, "n1 n2 outputs outputs"]


def empirical_ntk(model: nn.Module, x1: Any, x2: Any = None, *, batch: int | None = 16) -> Kernel:
    """K(x1_i, x2_j)[a, b] = <grad f_a(x1_i), grad f_b(x2_j)>, in all weights that train.

    Args:
        model: a network with one or several outputs per row, run in eval mode and left as it was.
            Weights with `requires_grad=False` do not count.
        x1: inputs, one row per example.
        x2: other inputs, by default x1.
        batch: rows whose gradients are held at once, of x1 and of x2; None for all.

    Returns:
        The kernel, on the CPU, with two axes of length 1 at the end if there is one output.

    Example:
        from advlab.measure.tangent_kernel import empirical_ntk
        gram = empirical_ntk(model, x)[:, :, 0, 0]
    """
    return torch.stack(list(tangent_kernels(model, x1, x2, batch=batch).values())).sum(0)


def tangent_kernels(
    model: nn.Module, x1: Any, x2: Any = None, *, batch: int | None = 16
) -> dict[str, Kernel]:
    """The share of each weight, by its name: the empirical tangent kernel is their sum.

    Arguments as for `empirical_ntk`.

    Example:
        from advlab.measure.tangent_kernel import tangent_kernels
        tangent_kernels(model, x)["layers.0.weight"]
    """
    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    if not trained:
        raise AdvlabError("a network with weights that train", "none with requires_grad")
    rows: dict[str, list[Tensor]] = {name: [] for name in trained}
    with evaluating(model):
        for left in _jacobians(model, trained, x1, batch):
            whole = x2 is None and batch is None
            other = x1 if x2 is None else x2
            columns = [left] if whole else _jacobians(model, trained, other, batch)
            parts = [
                [
                    torch.einsum("iap,jbp->ijab", a, b).cpu()
                    for a, b in zip(left, right, strict=True)
                ]
                for right in columns
            ]
            for name, blocks in zip(trained, zip(*parts, strict=True), strict=True):
                rows[name].append(torch.cat(blocks, 1))
    return {name: torch.cat(blocks) for name, blocks in rows.items()}


def _jacobians(
    model: nn.Module, trained: dict[str, nn.Parameter], x: Any, batch: int | None
) -> Iterator[list[Float[Tensor, "n outputs weights"]]]:
    """Batch by batch the gradients of every output of every row, one tensor per weight.

    One backward pass per output: unlike a vectorised one it takes every layer that trains.
    """
    weights = list(trained.values())
    for rows in input_batches(model, x, batch):
        with torch.enable_grad():
            f = inputs.scores(model(rows))
            f = f[:, None] if f.ndim == 1 else f.flatten(1)
            passes = [
                torch.autograd.grad(one, weights, retain_graph=True, materialize_grads=True)
                for one in f.flatten()
            ]
        yield [torch.stack(grads).reshape(*f.shape, -1) for grads in zip(*passes, strict=True)]
