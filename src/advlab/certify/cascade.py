"""All certificates in turn, cheapest first, each for the examples not yet certified."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from ..core.errors import AdvlabError
from ..threats import Threat
from .base import Certificate, Model
from .randomized_smoothing import Smoothed
from .registry import CERTIFICATES
from .smoothing import Smoothing

Progress = Callable[[str, int, int], None]
"""Certificate, examples it has done, examples it was given."""


@dataclass(frozen=True)
class Certified:
    """Upper bounds of worst margins: an example whose bound is below zero is certified robust."""

    bound: Float[Tensor, " batch"]
    """Infinite where no certificate was asked or applied."""
    by: list[str]
    """The certificate that gave each bound, "" where there is none."""
    refused: dict[str, str]
    """Certificates that do not apply here, and why."""

    @property
    def robust(self) -> Bool[Tensor, " batch"]:
        return self.bound < 0


def certify(
    model: Model,
    x: Float[Tensor, "batch *shape"],
    y: Shaped[Tensor, " batch"],
    ball: Threat,
    certificates: Iterable[str | Certificate] | None = None,
    *,
    alive: Bool[Tensor, " batch"] | None = None,
    batch: int = 64,
    progress: Progress | None = None,
) -> Certified:
    """The best bound of each example, by certificates that go on only with what is not certified.

    Args:
        model: The network.
        x: Examples.
        y: Their labels.
        ball: The threat set.
        certificates: Names of CERTIFICATES or certificates, in the order in which they are tried;
            by default all of CERTIFICATES that are for such a model: `smoothing` for a smoothed
            classifier, all others for a network. A bound that is exact ends the search.
        alive: Leaves out examples known to be broken, for which no certificate exists.
        batch: Examples at once.
        progress: Is told the certificate, the examples it has done, and those it was given.

    Returns:
        The bounds, who gave them, and which certificates do not apply here.

    Example:
        >>> certified = certify(model, x, y, Ball("linf", 0.1), ["ibp", "crown"])
        >>> certified.robust.float().mean()
    """
    bound = torch.full((len(x),), torch.inf, dtype=x.dtype)
    by, refused = [""] * len(x), {}
    undecided = torch.ones(len(x), dtype=torch.bool) if alive is None else alive.clone()
    for certificate in _resolved(certificates, model):
        rows = (undecided & (bound >= 0)).nonzero()[:, 0]
        if len(rows) == 0:
            break
        reason = certificate.refuses(model, ball, x[rows[:1]])
        if reason is not None:
            refused[certificate.name] = reason
            continue
        for first in range(0, len(rows), batch):
            some = rows[first : first + batch]
            found = certificate.worst_margin(model, x[some], y[some], ball)
            for row in some[found < bound[some]].tolist():
                by[row] = certificate.name
            bound[some] = torch.minimum(bound[some], found)
            if progress is not None:
                progress(certificate.name, min(first + batch, len(rows)), len(rows))
        if certificate.exact:
            break
    return Certified(bound, by, refused)


def _resolved(certificates: Iterable[str | Certificate] | None, model: Model) -> list[Certificate]:
    if certificates is None:
        votes = isinstance(model, Smoothed)
        certificates = [name for name in CERTIFICATES if (name == Smoothing.name) == votes]
    chosen = list(certificates)
    unknown = [c for c in chosen if isinstance(c, str) and c not in CERTIFICATES]
    if unknown:
        raise AdvlabError(f"certificates among {', '.join(CERTIFICATES)}", ", ".join(unknown))
    return [CERTIFICATES[c]().for_sign() if isinstance(c, str) else c for c in chosen]
