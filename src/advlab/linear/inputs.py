"""What the closed forms of linear models accept besides numbers: balls without a box."""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..core.checks import scalar
from ..core.errors import AdvlabError

C0 = float(np.sqrt(2 / np.pi))
"""E|Z| for a standard normal Z: the c0 of the formulas."""


@runtime_checkable
class HasBall(Protocol):
    """Anything with a norm and a radius, such as `advlab.threats.Ball`."""

    @property
    def norm(self) -> Any: ...
    @property
    def radius(self) -> Any: ...


def norm_name(name: Any) -> str:
    """The name of a norm, if it is one that the closed forms know."""
    if name not in ("l1", "l2", "linf"):
        raise AdvlabError("the norm must be l1, l2 or linf", repr(name))
    return name


def ball_of(ball: HasBall) -> tuple[str, float]:
    """Norm and radius of a ball that has no box: the closed forms know of no box."""
    if getattr(ball, "box", None) is not None:
        raise AdvlabError("closed-form risks need a ball without a box", ball)
    return norm_name(ball.norm), scalar("radius", ball.radius)
