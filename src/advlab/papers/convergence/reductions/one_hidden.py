"""Long projected trainings of networks with one hidden layer.

Its move is a sum of outer products b (A x)', so that M = sum b x' (m, d) stands for all of them and
a step costs the same however many there were. Norms are those of M A', by A'A.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ....core.errors import AdvlabError
from ..models import DeepReLU
from .low_rank_deep import LowRankDeep


class OneHidden(LowRankDeep):
    """`LowRankDeep` for H = 1, for as many steps as one likes.

    Args:
        starts, radii: as for `LowRankDeep`.
    """

    def __init__(self, starts: Sequence[DeepReLU], radii: Sequence[float]):
        super().__init__(starts, radii)
        if len(self.layers) != 1:
            raise AdvlabError("networks with one hidden layer", f"{len(self.layers)} of them")

    def move(
        self, sizes: Sequence[Float[Tensor, "B n"]], tangents: list[tuple[Tensor, Tensor]]
    ) -> None:
        super().move(sizes, tangents)
        layer = self.layers[0]
        layer.left = (layer.left * layer.weights[:, None].to(layer.left)) @ layer.right.mT
        d = layer.left.shape[2]
        layer.right = torch.eye(d).to(layer.left).expand(self.replicates, d, d)
        layer.weights = layer.weights.new_ones(self.replicates, d)
        layer.products = layer.inner(layer.left, layer.right, layer.left, layer.right)
