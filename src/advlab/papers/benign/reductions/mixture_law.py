"""Draw a mixture problem in the coordinates that its training can reach, without its d-vectors.

Gaussian noise looks the same in every orthonormal basis. In one that starts with mu and the rows of
W(0), then goes on with the inputs, test points have independent N(0, 1) entries, and so have the
inputs up to where their own directions begin; from there on they are the triangle of Bartlett's
decomposition. The same holds for Gaussian weights. So k = 1 + m + n columns are drawn, not d, and
every quantity made of inner products has exactly the law that it has in d dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import ConfigDict, NonNegativeFloat, PositiveInt
from torch import Tensor

from ....core.config import Config
from ....core.errors import AdvlabError
from ....core.randomness import normal, uniform
from ....models import Stack, TwoLayer
from ....models.activations import Activation
from ....reductions import bartlett
from ..data import NoisyMixture
from ..data.mixture import Clusters, Scaled


@dataclass(frozen=True)
class MixtureProblem:
    """Training set, test set and network in k coordinates, mu along the first; or R of each."""

    train: Clusters
    test: Clusters
    model: TwoLayer | Stack


class Start(Config):
    """How the networks start: the arguments of `TwoLayer.draw`, but dimension and type."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    width: PositiveInt
    activation: str | Activation
    init: Literal["symmetric", "torch"] = "symmetric"
    omega: NonNegativeFloat | None = None
    train_top: bool = False
    bias: bool = False

    def draw(self, d: int, rng: torch.Generator) -> TwoLayer:
        """A network with inputs of dimension d."""
        return TwoLayer.draw(
            d, self.width, self.activation, rng, self.init, self.omega, self.train_top, self.bias
        )


def draw(
    data: NoisyMixture, start: Start, rng: torch.Generator, tested: int = 2000
) -> MixtureProblem:
    """One problem: data.n examples, a network and `tested` fresh examples, float64.

    Weights of a "symmetric" start are Gaussian, and no d-vector is made at all. Those of a "torch"
    start are uniform, and their law is not known so well: they are drawn in d dimensions.

    Args:
        data: the mixture, with Gaussian clusters.
        start: the network's start.
        rng: where all draws come from.
        tested: the number of fresh examples.
    """
    if not isinstance(data.law, Scaled):
        raise AdvlabError("Gaussian clusters", data.cluster, "draw them in d dimensions")
    net = _network(data.d, start, rng)
    k = net.weight.shape[1]
    train = _clusters(data, torch.cat([_normal(data.n, k, rng), _own(data, k, rng)], 1), rng)
    test = _clusters(data, _normal(tested, train.x.shape[1], rng), rng)
    return MixtureProblem(train, test, _widened(net, train.x.shape[1]))


def draw_stack(
    data: NoisyMixture, start: Start, generators: Sequence[torch.Generator], tested: int = 2000
) -> MixtureProblem:
    """R problems with their networks as a stack; replicate r depends on generator r only."""
    drawn = [draw(data, start, rng, tested) for rng in generators]
    train, test = (
        Clusters(*map(torch.stack, zip(*parts, strict=True)))
        for parts in ([one.train for one in drawn], [one.test for one in drawn])
    )
    return MixtureProblem(train, test, Stack([one.model for one in drawn]))


def _network(d: int, start: Start, rng: torch.Generator) -> TwoLayer:
    """A network whose rows are seen in a basis of e_1 and themselves."""
    if start.init == "torch":
        net = start.draw(d, rng)
        return _with_weight(net, _seen(net.weight.detach()))
    net = start.draw(1, rng)
    half = start.width // 2
    rest = (start.omega or 0.0) * bartlett(half, d - 1, rng)
    return _with_weight(net, torch.cat([net.weight.detach(), rest.repeat(2, 1)], 1))


def _seen(rows: Float[Tensor, "m d"]) -> Float[Tensor, "m k"]:
    """Coordinates of the rows in an orthonormal basis of e_1 and them: inner products are kept."""
    m, d = rows.shape
    first, rest = rows[:, :1], rows[:, 1:]
    if d - 1 <= 2 * m:
        triangle = torch.linalg.qr(rest.T, mode="r").R.T
    else:
        # Far from square the Gram matrix is well conditioned, and this is several times faster.
        triangle = torch.linalg.cholesky(rest @ rest.T)
    return torch.cat([first, triangle], 1)


def _own(data: NoisyMixture, k: int, rng: torch.Generator) -> Float[Tensor, "n own"]:
    """The inputs' parts in the d - k directions that no row has."""
    return bartlett(data.n, data.d - k, rng)


def _clusters(data: NoisyMixture, normals: Float[Tensor, "n k"], rng: torch.Generator) -> Clusters:
    noise = normals * data.law.variance**0.5
    return data.around(noise, uniform(noise[:, 0], rng), rng)


def _normal(rows: int, columns: int, rng: torch.Generator) -> Float[Tensor, "{rows} {columns}"]:
    return normal(torch.empty(rows, columns, dtype=torch.float64), rng)


def _widened(net: TwoLayer, k: int) -> TwoLayer:
    return _with_weight(net, F.pad(net.weight.detach(), (0, k - net.weight.shape[1])))


def _with_weight(net: TwoLayer, weight: Float[Tensor, "m k"]) -> TwoLayer:
    kept = {name: value for name, value in net.state_dict().items() if name != "weight"}
    return TwoLayer(
        weight,
        kept["top"],
        net.activation,
        kept.get("bias"),
        kept.get("top_bias"),
        init=net.init,
        train_top=net.top.requires_grad,
    )
