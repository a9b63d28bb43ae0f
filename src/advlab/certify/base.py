"""The interface of every certificate: an upper bound of the worst margin, or a refusal in words."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from ..core.autocast import outside_autocast
from ..core.config import Config
from ..core.errors import AdvlabError
from ..threats import Threat
from ._graph.graph import Graph
from ._graph.input_sets import InputSets
from ._graph.reader import read
from ._graph.tracing import UnsupportedNetwork

Model = Callable[[Tensor], Tensor]


class Certificate(Config):
    """A bound that no attack can pass: the margin is below it everywhere in the threat set.

    The threat set must state its support function (`Threat.support`), because a certificate trusts
    it without looking. A certificate writes `bound`, and `unsupported` if it is not for every
    network that can be read and every such set.

    Example:
        >>> from advlab.certify import Crown
        >>> from advlab.threats import Ball
        >>> bound = Crown().worst_margin(model, x, y, Ball("linf", 8 / 255, box=(0, 1)))
        >>> robust = bound < 0
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    """Whether its bound is the worst margin itself, so that others have nothing to add."""

    needs_deadline: ClassVar[bool] = False
    """Whether it takes all the time it is given, so that `certify` runs it by itself only under a
    deadline, or where it is asked for by name."""

    def refuses(self, model: Model, ball: Threat, x: Tensor | None = None) -> str | None:
        """Why there is no bound here, or None.

        Args:
            model: The network, which is only looked into if x is given.
            ball: The threat set.
            x: Examples, of which the shape matters.
        """
        if not ball.states_support:
            return f"{type(ball).__name__} does not state its support function"
        if x is None:
            return None
        try:
            return self.unsupported(read(model, x), ball)
        except UnsupportedNetwork as reason:
            return f"the network has {reason}"

    def worst_margin(
        self,
        model: Model,
        x: Float[Tensor, "batch *shape"],
        y: Shaped[Tensor, " batch"],
        ball: Threat,
    ) -> Float[Tensor, " batch"]:
        """At least the largest margin (`losses.margin`) over the threat set of each example.

        Args:
            model: A network of the operations in `_graph/operations.py`, however it is written:
                affine layers, activations, pooling, normalisation, attention. It is taken in eval
                mode and left as it was found.
            x: Examples.
            y: Their labels: classes, or -1 and +1 for a network with one output.
            ball: The threat set.

        Returns:
            One bound per example. Below zero the example is certified robust. Bounds have a slack
            for rounding, see `_graph.margin_bounds.upper_bound`.
        """
        ball.check_center(x)
        if not ball.states_support:
            raise AdvlabError("a threat set with a support function", type(ball).__name__)
        try:
            graph = read(model, x)
            reason = self.unsupported(graph, ball)
        except UnsupportedNetwork as problem:
            reason = f"the network has {problem}"
        if reason is not None:
            raise AdvlabError(f"a network and a threat set that {self.name} can bound", reason)
        with torch.no_grad(), outside_autocast(model):
            return self.bound(graph, InputSets(x.detach(), ball), y)

    def for_sign(self) -> "Certificate":
        """The same certificate where only the sign of the bound will be looked at."""
        return self

    def until(self, deadline: float) -> "Certificate":
        """The same certificate, for one that can stop when `time.monotonic` reaches a deadline and
        give the bound it has by then."""
        return self

    def unsupported(self, graph: Graph, ball: Threat) -> str | None:
        """Why this network and set cannot be bounded, in one line, or None if they can."""
        return None

    @abstractmethod
    def bound(self, graph: Graph, sets: InputSets, y: Tensor) -> Tensor:
        """The bounds of all examples."""
