"""How far a network's own rounding can move its values: a running error analysis.

A sum of k products is computed with k roundings, each at most u = eps / 2 of a partial sum, hence
of |W| |z| + |b|. Run in floating point, a network is the exact one with errors added to its values,
z_k = W z + b + d_k. A linear bound of the margin with coefficients A_k at these values then gains
the sum of <A_k, d_k>: a sum of all single roundings, each times what it is multiplied by later.
Roundings are taken for independent, of mean zero and of standard deviation u / sqrt(3) at most
(N. J. Higham, T. Mary: A new approach to probabilistic rounding error analysis, SIAM J. Sci.
Comput. 41, 2019), so the standard deviation of that sum is at most

    u / sqrt(3) sqrt( sum over k and i of A_ki^2 roundings_k (|W| |z| + |b|)_ki^2 ).

This file gives the factors of A_ki. In trained networks errors have a tenth of it or less, because
partial sums are far below |W| |z|.
"""

import math

import torch
from torch import Tensor

from .graph import Affine, Graph, Interval, Node, Rearrange, Sum
from .nonlinear import MatrixProduct, Maximum, Relu

ERRORS_OF_FUNCTION = 4
"""Roundings in the value of an activation."""


def rounding_errors(graph: Graph, intervals: list[Interval]) -> list[Tensor | None]:
    """sqrt(roundings) (|W| |z| + |b|) for every number; None where nothing is rounded.

    Args:
        graph: The network.
        intervals: What each value is between.
    """
    sizes = [torch.maximum(low.abs(), high.abs()) for low, high in intervals]
    return [None] + [
        _error(node, [sizes[i] for i in node.inputs], sizes[k])
        for k, node in enumerate(graph.nodes[1:], start=1)
    ]


def _error(node: Node, before: list[Tensor], size: Tensor) -> Tensor | None:
    if isinstance(node, Relu | Maximum) or (isinstance(node, Rearrange) and node.terms == 1):
        return None
    if isinstance(node, Affine):
        terms = node.absolute.matrix(before[0])
        terms = terms if node.bias is None else terms + node.bias.abs()
        return math.sqrt(node.fan_in + 1) * terms
    if isinstance(node, Sum):
        terms = sum(abs(w) * part for w, part in zip(node.weights, before, strict=True))
        return math.sqrt(len(before)) * torch.as_tensor(terms)
    if isinstance(node, MatrixProduct):
        return math.sqrt(before[0].shape[-1]) * (before[0] @ before[1])
    largest = before[0].flatten(1).amax(1).reshape(-1, *[1] * (size.ndim - 1))
    return ERRORS_OF_FUNCTION * (size + torch.finfo(size.dtype).eps * largest)
