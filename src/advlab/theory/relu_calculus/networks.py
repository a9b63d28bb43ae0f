"""Explicit ReLU networks in numpy, with their parameters counted, and how they are put together."""

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ...core.checks import Array, stack
from ...core.errors import AdvlabError

Weight = Array | sparse.csr_array


@dataclass(frozen=True)
class Layer:
    """z -> weight z + bias. A sparse weight has the connections that it stores, and no others."""

    weight: Weight
    bias: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs and inputs."""
        rows, columns = self.weight.shape  # type: ignore[misc]
        return int(rows), int(columns)

    @property
    def parameters(self) -> int:
        weight = self.weight
        wired = weight.nnz if isinstance(weight, sparse.csr_array) else weight.size
        return int(wired) + len(self.bias)

    def __call__(self, rows: Array) -> Array:
        return np.asarray((self.weight @ rows.T).T) + self.bias


@dataclass(frozen=True)
class Network:
    """Layers with a ReLU between each two."""

    layers: tuple[Layer, ...]

    @property
    def inputs(self) -> int:
        return self.layers[0].shape[1]

    @property
    def outputs(self) -> int:
        return self.layers[-1].shape[0]

    @property
    def depth(self) -> int:
        """The number of layers with weights."""
        return len(self.layers)

    @property
    def parameters(self) -> int:
        """Connections and biases."""
        return sum(layer.parameters for layer in self.layers)

    def __call__(self, x: Any) -> Array:
        """One number, the first output, for each vector along the last axis of x."""
        return self.values(x)[..., 0]

    def values(self, x: Any) -> Array:
        """All outputs, along a last axis of their own."""
        rows = stack("x", x, self.inputs)
        z = rows.reshape(-1, self.inputs)
        for layer in self.layers[:-1]:
            z = np.maximum(layer(z), 0.0)
        return self.layers[-1](z).reshape(*rows.shape[:-1], self.outputs)


def copies(block: Array, count: int, wired: Array | None = None) -> sparse.csr_array:
    """`count` copies of a block along the diagonal.

    The entries of `wired` (by default all) are connections, also where their value is zero.
    """
    rows, columns = np.nonzero(np.ones_like(block) if wired is None else wired)
    return _along_diagonal(block[rows, columns], rows, columns, block.shape, count)


def chain(*networks: Network) -> Network:
    """One network after the other; the linear maps that meet become one layer."""
    return reduce(_then, networks)


def rectified(*networks: Network) -> Network:
    """One network after the other with a ReLU between them: no layers are merged."""
    for first, second in pairwise(networks):
        _require_match(first.outputs, second.inputs)
    return Network(tuple(layer for network in networks for layer in network.layers))


def beside(*networks: Network) -> Network:
    """All of them on the same input, their outputs in a row; they must be equally deep."""
    if len({(network.inputs, network.depth) for network in networks}) > 1:
        found = [(network.inputs, network.depth) for network in networks]
        raise AdvlabError("networks of equal inputs and depth side by side", found)
    first, *rest = zip(*(network.layers for network in networks), strict=True)
    top = sparse.csr_array(sparse.vstack([_wired(layer.weight) for layer in first]))
    return Network(
        (
            Layer(top, _biases(first)),
            *(Layer(_diagonal([one.weight for one in row]), _biases(row)) for row in rest),
        )
    )


def across(network: Network, count: int) -> Network:
    """`count` copies of a network, each with inputs of its own."""
    return Network(
        tuple(
            Layer(_repeated(layer.weight, count), np.tile(layer.bias, count))
            for layer in network.layers
        )
    )


def lengthened(network: Network, depth: int) -> Network:
    """relu(network) with this many layers: units that hand their value on, one per output."""
    carry = Layer(copies(np.ones((1, 1)), network.outputs), np.zeros(network.outputs))
    return Network((*network.layers, *[carry] * (depth - network.depth)))


def reading(network: Network, columns: Any, inputs: int) -> Network:
    """The same network on some coordinates of a longer input."""
    first, *rest = network.layers
    places = np.asarray(columns, dtype=int)
    coo = _wired(first.weight).tocoo()
    shape = (first.shape[0], inputs)
    weight = sparse.csr_array((coo.data, (coo.coords[0], places[coo.coords[1]])), shape=shape)
    return Network((Layer(weight, first.bias), *rest))


def affine(weight: Weight, bias: Any = 0.0) -> Network:
    """One layer, and no ReLU."""
    rows = weight.shape[0]  # type: ignore[index]
    return Network((Layer(weight, bias + np.zeros(rows)),))


def _then(first: Network, second: Network) -> Network:
    _require_match(first.outputs, second.inputs)
    (*before, inner), (outer, *behind) = first.layers, second.layers
    weight = outer.weight @ inner.weight
    if sparse.issparse(weight):
        weight = sparse.csr_array(weight)
    merged = Layer(weight, np.asarray(outer.weight @ inner.bias) + outer.bias)
    return Network((*before, merged, *behind))


def _require_match(outputs: int, inputs: int) -> None:
    if outputs != inputs:
        raise AdvlabError(f"a network with {outputs} inputs to come next", f"{inputs} inputs")


def _wired(weight: Weight) -> sparse.csr_array:
    """A dense weight as a sparse one in which zeros are connections too."""
    return weight if isinstance(weight, sparse.csr_array) else copies(weight, 1)


def _repeated(weight: Weight, count: int) -> sparse.csr_array:
    coo = _wired(weight).tocoo()
    found: Any = (coo.data, *coo.coords, coo.shape)
    return _along_diagonal(*found, count=count)


def _along_diagonal(
    values: Array, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, ...], count: int
) -> sparse.csr_array:
    shift = np.arange(count)[:, None]
    places = (shift * shape[0] + rows).ravel(), (shift * shape[1] + columns).ravel()
    whole = (count * shape[0], count * shape[1])
    return sparse.csr_array((np.tile(values, count), places), shape=whole)


def _diagonal(weights: list[Weight]) -> sparse.csr_array:
    return sparse.csr_array(sparse.block_diag([_wired(one) for one in weights], format="csr"))


def _biases(layers: tuple[Layer, ...]) -> Array:
    return np.concatenate([layer.bias for layer in layers])
