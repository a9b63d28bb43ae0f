"""The inputs that a certificate must answer for: the threat sets of a batch of examples."""

import torch
from torch import Tensor

from ...threats import Threat


class InputSets:
    """The threat sets around a batch of examples, and the intervals that hold them."""

    def __init__(self, center: Tensor, threat: Threat):
        self.center, self.threat = center, threat
        self.low, self.high = threat.interval(center)

    def __len__(self) -> int:
        return len(self.center)

    def upper_bound(self, a: Tensor, rows: Tensor, exact: bool) -> tuple[Tensor, Tensor]:
        """max of <a, x> over the sets of these rows, and at least |<a, x>| anywhere in them.

        Unless it has to be exact, a cheaper bound serves where the set has one.
        """
        center = self.center[rows]
        support = self.threat.support if exact else self.threat.support_bound
        value = support(a, center)
        if self.threat.within_radius:
            return value, self.magnitude(a, rows)
        return value, torch.maximum(value.abs(), self.threat.support_bound(-a, center).abs())

    def magnitude(self, a: Tensor, rows: Tensor) -> Tensor:
        """At least the sum of |a_i x_i| anywhere in the sets of these rows, within their radius.

        sum |a_i| |c_i| and, by the dual norm, what a move adds; frozen features count with the
        center alone.
        """
        at_center = (a * self.center[rows]).abs().flatten(1).sum(1)
        return at_center + self.threat.radius * self.threat.dual_norm(a)
