"""Rotate a problem into the subspace that its training can reach.

Gradients of a model that sees x through weights w'x lie in the span of the inputs, and l2 attacks
in the span of the weights. So nothing ever leaves span{x_i, w(0)}: in an orthonormal basis Q of it,
data Q'x and weights Q'w give the same run in as many coordinates as there are vectors.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..core.errors import AdvlabError


@dataclass(frozen=True)
class Subspace:
    """An orthonormal basis for each replicate, and the way in and out."""

    basis: Float[Tensor, "R d k"]

    @classmethod
    def of(cls, x: Float[Tensor, "R n d"], *vectors: Tensor) -> "Subspace":
        """The span of each replicate's inputs and of further vectors (initial weights, theta0), one
        each (R, d) or one for all (d,).

        Where the vectors are more than the dimension, the whole space: nothing is gained or lost.
        """
        rows = [x, *((v if v.ndim == 2 else v.expand(len(x), -1))[:, None] for v in vectors)]
        if any(block.shape[-1] != x.shape[-1] for block in rows):
            raise AdvlabError(f"vectors of dimension {x.shape[-1]}", [b.shape[-1] for b in rows])
        spanning = torch.cat(rows, dim=1).transpose(1, 2)
        return cls(torch.linalg.qr(spanning).Q)

    def into(self, v: Float[Tensor, "R *n d"]) -> Float[Tensor, "R *n k"]:
        """Coordinates in the basis: inner products and lengths of vectors of the span are kept."""
        return torch.einsum("r...d,rdk->r...k", v, self.basis)

    def lift(self, v: Float[Tensor, "R *n k"]) -> Float[Tensor, "R *n d"]:
        """Back to the whole space."""
        return torch.einsum("r...k,rdk->r...d", v, self.basis)
