"""The one-layer convolutional network (M) of the CGRO paper (section 3.2)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....core.errors import AdvlabError


class PatchCNN(nn.Module):
    """f(X) = sum_r sum_j <w_r, X[j]>^q over filters r and patches j, q odd; all w_r train.

    Args:
        weight: the filters w_r as rows, (m, d).
        q: the power of the activation, 3 in the paper.
    """

    def __init__(self, weight: Float[Tensor, "m d"], q: int = 3):
        super().__init__()
        if q < 1 or q % 2 == 0:
            raise AdvlabError("q must be odd and positive, or f cannot tell -X from X", q)
        self.weight = nn.Parameter(weight.detach().clone())
        self.q = q

    @classmethod
    def draw(
        cls,
        d: int,
        filters: int,
        sigma0: float,
        rng: torch.Generator,
        q: int = 3,
        dtype: torch.dtype = torch.float64,
    ) -> "PatchCNN":
        """w_r ~ N(0, sigma0^2 I), as in Parameterization 3.1.

        Args:
            d: the dimension of a patch.
            filters: m.
            sigma0: the spread of the weights.
            rng: where they are drawn from.
            q: the power of the activation.
            dtype: of the weights.
        """
        if d < 1 or filters < 1 or not sigma0 > 0:
            raise AdvlabError(
                "d and filters of at least 1 and a positive sigma0",
                f"d {d}, filters {filters}, sigma0 {sigma0}",
            )
        return cls(sigma0 * torch.randn(filters, d, generator=rng, dtype=dtype), q)

    def forward(self, x: Float[Tensor, "batch P d"]) -> Float[Tensor, " batch"]:
        return ((x @ self.weight.T) ** self.q).sum((1, 2))
