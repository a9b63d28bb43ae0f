"""Explicit ReLU networks in numpy, with their parameters counted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..linear.inputs import Array, stack


@dataclass(frozen=True)
class Layer:
    """z -> weight z + bias. A sparse weight has the connections that it stores, and no others."""

    weight: Array | sparse.csr_array
    bias: Array

    @property
    def parameters(self) -> int:
        weight = self.weight
        wired = weight.nnz if isinstance(weight, sparse.csr_array) else weight.size
        return int(wired) + len(self.bias)

    def __call__(self, rows: Array) -> Array:
        return np.asarray((self.weight @ rows.T).T) + self.bias


@dataclass(frozen=True)
class Network:
    """Layers with a ReLU between each two, and one output."""

    layers: tuple[Layer, ...]

    @property
    def inputs(self) -> int:
        return self.layers[0].weight.shape[1]  # type: ignore[index]

    @property
    def depth(self) -> int:
        """The number of layers with weights."""
        return len(self.layers)

    @property
    def parameters(self) -> int:
        """Connections and biases."""
        return sum(layer.parameters for layer in self.layers)

    def __call__(self, x: Any) -> Array:
        """One number for each vector along the last axis of x."""
        rows = stack("x", x, self.inputs)
        z = rows.reshape(-1, self.inputs)
        for layer in self.layers[:-1]:
            z = np.maximum(layer(z), 0.0)
        return self.layers[-1](z)[:, 0].reshape(rows.shape[:-1])


def copies(block: Array, count: int, wired: Array | None = None) -> sparse.csr_array:
    """`count` copies of a block along the diagonal.

    The entries of `wired` (by default all) are connections, also where their value is zero.
    """
    rows, columns = np.nonzero(np.ones_like(block) if wired is None else wired)
    shift = np.arange(count)[:, None]
    places = (shift * block.shape[0] + rows).ravel(), (shift * block.shape[1] + columns).ravel()
    shape = (count * block.shape[0], count * block.shape[1])
    return sparse.csr_array((np.tile(block[rows, columns], count), places), shape=shape)
