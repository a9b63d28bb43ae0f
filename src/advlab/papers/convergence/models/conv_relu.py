"""Plain convolutional ReLU networks whose tangent kernel has a limit.

The convergence paper has dense networks. What its argument asks of one, to be nearly linear in its
weights around the start, holds for wide convolutional networks too.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from ....core.checks import chosen, whole
from ....core.errors import AdvlabError
from ....core.randomness import normal


class ConvReLU(nn.Module):
    """f(x) = <a, x_H>/sqrt(C pixels), x_h = sqrt(2) relu(conv(W_h, x_{h-1})/(q sqrt(C_{h-1}))).

    Stride 1, images padded to their size, no biases. With pooling f is <a, mean of x_H>/sqrt(C).

    Args:
        filters: the W_h (C, C_{h-1}, q, q), q odd; all train.
        top: a, of shape (C, height, width), or (C, 1, 1) with pooling; it trains.
        pooling: whether x_H is averaged over the image.
        padding: what lies outside of an image: "zeros", or "circular", where it goes on at the
            other side.
    """

    def __init__(
        self,
        filters: list[Float[Tensor, "out in_ q q"]],
        top: Float[Tensor, "out height width"],
        pooling: bool = False,
        padding: str = "zeros",
    ):
        super().__init__()
        if not filters or any(one.shape[-1] % 2 == 0 for one in filters):
            raise AdvlabError("at least one layer of filters of odd size", len(filters))
        self.filters = nn.ParameterList(nn.Parameter(w.detach().clone()) for w in filters)
        self.top = nn.Parameter(top.detach().clone())
        self.pooling = pooling
        self.padding = chosen("padding", padding, ("zeros", "circular"))

    @classmethod
    def draw(
        cls,
        shape: tuple[int, int, int],
        width: int,
        depth: int,
        rng: torch.Generator,
        *,
        filter_size: int = 3,
        pooling: bool = False,
        padding: str = "zeros",
        dtype: torch.dtype = torch.float64,
    ) -> "ConvReLU":
        """All weights N(0, 1), independent.

        Args:
            shape: channels, height and width of the images.
            width: C, the channels of every hidden layer.
            depth: H, the number of convolutions.
            rng: where the weights are drawn from.
            filter_size: q.
            pooling: as above. padding: as above.
            dtype: of the weights.
        """
        H, channels = whole("depth", depth), shape[0]
        sizes = [(width, channels if h == 0 else width, filter_size, filter_size) for h in range(H)]
        end = (width, 1, 1) if pooling else (width, *shape[1:])
        *filters, top = (normal(torch.empty(size, dtype=dtype), rng) for size in (*sizes, end))
        return cls(filters, top, pooling, padding)

    def forward(self, x: Float[Tensor, "n channels height width"]) -> Float[Tensor, " n"]:
        for w in self.filters:
            r = w.shape[-1] // 2
            padded = F.pad(x, (r,) * 4, mode="constant" if self.padding == "zeros" else "circular")
            z = F.conv2d(padded, w) / math.sqrt(w[0].numel())
            x = math.sqrt(2) * z.relu()
        x = x.mean((2, 3), keepdim=True) if self.pooling else x
        return (x * self.top).sum((1, 2, 3)) / math.sqrt(self.top.numel())
