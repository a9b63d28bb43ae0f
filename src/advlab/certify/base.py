"""The interface of every certificate: an upper bound of the worst margin, or a refusal in words."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from ..core.config import Config
from ..core.errors import AdvlabError
from ..threats import Ball, Threat
from ._graph.graph import Graph
from ._graph.reader import read
from ._graph.region import Region
from ._graph.tracing import Unreadable

Model = Callable[[Tensor], Tensor]


class Certificate(Config):
    """A bound that no attack can pass: the margin is below it everywhere in the threat set.

    A certificate writes `bound`, and `objection` if it is not for every network that can be read.
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    """Whether its bound is the worst margin itself, so that others have nothing to add."""

    def refuses(self, model: Model, ball: Threat, x: Tensor | None = None) -> str | None:
        """Why there is no bound here, or None. The network is only looked into if x is given."""
        if not isinstance(ball, Ball):
            return f"{type(ball).__name__} is not a ball"
        if x is None:
            return None
        try:
            return self.objection(read(model, x), ball)
        except Unreadable as reason:
            return f"the network has {reason}"

    def worst_margin(
        self,
        model: Model,
        x: Float[Tensor, "batch *shape"],
        y: Shaped[Tensor, " batch"],
        ball: Threat,
    ) -> Float[Tensor, " batch"]:
        """At least the largest margin (`losses.margin`) over ball and box around each example.

        Below zero the example is certified robust. The network is taken in eval mode and left as it
        was found. Bounds have a slack for rounding, see `bounds.highest`.
        """
        ball.check_center(x)
        if not isinstance(ball, Ball):
            raise AdvlabError("a Ball to certify over", type(ball).__name__)
        try:
            graph = read(model, x)
            reason = self.objection(graph, ball)
        except Unreadable as problem:
            reason = f"the network has {problem}"
        if reason is not None:
            raise AdvlabError(f"a network that {self.name} can bound", reason)
        with torch.no_grad():
            return self.bound(graph, Region(x.detach(), ball), y)

    def for_sign(self) -> "Certificate":
        """The same certificate where only the sign of the bound will be looked at."""
        return self

    def objection(self, graph: Graph, ball: Ball) -> str | None:
        """Why this network and ball cannot be bounded, if they cannot."""
        return None

    @abstractmethod
    def bound(self, graph: Graph, region: Region, y: Tensor) -> Tensor:
        """The bounds of all examples."""
