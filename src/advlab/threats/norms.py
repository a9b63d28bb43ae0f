"""The norms that threat sets are measured in: their names, orders and duals. Without torch."""

import math
from typing import Literal

from ..core.errors import AdvlabError

Norm = Literal["l1", "l2", "linf"]
ORDER: dict[str, float] = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


def order_of(norm: str) -> float:
    """The p of a norm that a user names: 1, 2 or infinity; other names are refused."""
    if norm not in ORDER:
        raise AdvlabError("the norm must be l1, l2 or linf", repr(norm))
    return ORDER[norm]


def any_order(norm: str | float) -> float:
    """The p of l1, l2 or linf, or of any number p >= 1, for sets that need no more than p."""
    if isinstance(norm, str):
        return order_of(norm)
    if isinstance(norm, bool) or not isinstance(norm, int | float) or not norm >= 1:
        raise AdvlabError("the norm must be l1, l2, linf or a number p >= 1", repr(norm))
    return float(norm)


def dual_order(order: float) -> float:
    """The q with 1/p + 1/q = 1, so that max of <w, z> over ||z||_p <= 1 is ||w||_q."""
    if order == 1:
        return math.inf
    return 1.0 if math.isinf(order) else order / (order - 1)


def enclosing_exponent(order: float, within: float) -> float:
    """The least e with ||z||_order <= d^e ||z||_within for every z in R^d.

    An l2 ball of radius r, say, lies in the l1 ball of radius d^(1/2) r.
    """
    return max(0.0, 1 / order - 1 / within)
