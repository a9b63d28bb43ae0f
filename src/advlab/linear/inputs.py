"""What the closed forms of linear models accept besides numbers: balls without a box."""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..core.checks import scalar
from ..core.errors import AdvlabError
from ..threats.norms import Norm

C0 = float(np.sqrt(2 / np.pi))
"""E|Z| for a standard normal Z: the c0 of the formulas."""


@runtime_checkable
class HasBall(Protocol):
    """A set that states in which norm it is a ball, such as `advlab.threats.Ball`."""

    @property
    def ball_norm(self) -> Norm | None: ...
    @property
    def radius(self) -> Any: ...


def ball_of(ball: HasBall) -> tuple[str, float]:
    """Norm and radius of a set that is a ball and nothing else: closed forms know of no box."""
    norm = ball.ball_norm
    if norm is None:
        raise AdvlabError("closed-form risks need a ball without a box", ball)
    return norm, scalar("radius", ball.radius)
