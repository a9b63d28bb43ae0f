"""A list of explicit layers as a network: what a construction writes down, run and attacked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy import sparse
from torch import Tensor, nn

from ....core.errors import AdvlabError


class ReluProgram(nn.Module):
    """Affine maps with a ReLU between each two, and one output.

    Args:
        layers: (weight, bias) of each map, the weight a dense array or a sparse one; a sparse
            weight has the connections that it stores, and no others. Each connection and each bias
            is one trainable parameter.
        inner: a network whose output is appended to the input of the first layer.
        dtype: of the parameters.
    """

    def __init__(
        self,
        layers: Sequence[tuple[Any, Any]],
        inner: Any = None,
        dtype: torch.dtype = torch.float64,
    ):
        super().__init__()
        if not layers:
            raise AdvlabError("at least one layer", "none")
        if inner is not None and not isinstance(inner, nn.Module):
            raise AdvlabError("a torch module, or an explicit network", type(inner).__name__)
        self.inner = inner
        self.layers = nn.ModuleList(_Affine(weight, bias, dtype) for weight, bias in layers)

    @property
    def parameters_counted(self) -> int:
        """Connections and biases of all layers, and the parameters of `inner`."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, x: Float[Tensor, "batch d"]) -> Float[Tensor, " batch"]:
        state = x if self.inner is None else self._with_inner(x)
        # Columns are examples: a sparse matrix multiplies from the left.
        state = self.layers[0](state.T)
        for layer in self.layers[1:]:
            state = layer(state.relu())
        return state[0]

    def _with_inner(self, x: Tensor) -> Tensor:
        score = self.inner(x)  # type: ignore[misc]
        if score.numel() != len(x):
            raise AdvlabError("an inner network with one output per example", tuple(score.shape))
        return torch.cat([x, score.reshape(-1, 1).to(x.dtype)], dim=1)


class _Affine(nn.Module):
    """columns -> weight columns + bias, the weight kept as its connections if it is sparse."""

    places: Tensor | None

    def __init__(self, weight: Any, bias: Any, dtype: torch.dtype):
        super().__init__()
        self.shape = tuple(weight.shape)
        places = None
        values = weight
        if sparse.issparse(weight):
            ordered = sparse.csr_array(weight).sorted_indices().tocoo()
            places = torch.from_numpy(np.stack(ordered.coords).astype(np.int64))
            values = ordered.data
        self.register_buffer("places", places)
        self.values = nn.Parameter(torch.as_tensor(np.asarray(values)).to(dtype).clone())
        self.bias = nn.Parameter(torch.as_tensor(np.asarray(bias)).to(dtype).clone())

    def forward(self, columns: Tensor) -> Tensor:
        if self.places is None:
            return self.values @ columns + self.bias[:, None]
        weight = torch.sparse_coo_tensor(
            self.places, self.values, self.shape, is_coalesced=True, check_invariants=False
        )
        return torch.sparse.mm(weight, columns) + self.bias[:, None]
