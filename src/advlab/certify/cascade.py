"""All certificates in turn, cheapest first, each for the examples not yet certified."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from ..core.devices import device_of
from ..core.errors import AdvlabError
from ..threats import Threat
from .base import Certificate, Model
from .randomized_smoothing import Smoothed
from .registry import CERTIFICATES
from .smoothing import Smoothing

Progress = Callable[[str, int, int], None]
"""Certificate, examples it has done, examples it was given."""


class Tried(NamedTuple):
    """What one certificate was asked and what came of it."""

    given: int
    """Examples that it bounded."""
    proved: int
    """How many of them it proved robust."""
    seconds: float


@dataclass(frozen=True)
class Certified:
    """Upper bounds of worst margins: an example whose bound is below zero is certified robust."""

    bound: Float[Tensor, " batch"]
    """Infinite where no certificate was asked or applied."""
    by: list[str]
    """The certificate that gave each bound, "" where there is none."""
    refused: dict[str, str]
    """Certificates that do not apply here, and why."""
    tried: dict[str, Tried] = field(default_factory=dict)
    """Certificates that were run, also those that proved nothing."""
    skipped: dict[str, int] = field(default_factory=dict)
    """How many examples a certificate was not tried on because the time was up."""

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
    deadline: float | None = None,
) -> Certified:
    """The best bound of each example, by certificates that go on only with what is not certified.

    Args:
        model: The network.
        x: Examples.
        y: Their labels.
        ball: The threat set.
        certificates: Names of CERTIFICATES or certificates, in the order in which they are tried;
            by default all that are for such a model: `smoothing` for a smoothed classifier, all
            others for a network, the cheapest first, `beta_crown` only under a deadline. A bound
            that is exact ends it.
        alive: Leaves out examples known to be broken, for which no certificate exists.
        batch: Examples at once, at most.
        progress: Is told the certificate, the examples it has done, and those it was given.
        deadline: When to stop, by the clock `time.monotonic`; without it everything is tried. It is
            looked at between batches, which are as small as the time left asks for.

    Returns:
        The bounds, who gave them, which certificates do not apply here, what each of the others
        proved in how many seconds, and what there was no time for.

    Example:
        >>> from advlab.certify import certify
        >>> from advlab.threats import Ball
        >>> certified = certify(model, x, y, Ball("linf", 0.1), ["ibp", "crown"])
        >>> certified.robust.float().mean(), certified.tried
    """
    place, bound = device_of(model, x), x.new_full((len(x),), torch.inf)
    by, refused, tried, skipped = [""] * len(x), {}, {}, {}
    undecided = torch.ones_like(bound, dtype=torch.bool) if alive is None else alive.to(x.device)
    if certificates is None:
        certificates = usual_certificates(model, timed=deadline is not None)
    for certificate in _resolved(certificates):
        rows = (undecided & (bound >= 0)).nonzero()[:, 0]
        if len(rows) == 0:
            break
        name, begun, done = certificate.name, time.monotonic(), 0
        if deadline is not None and begun >= deadline:
            skipped[name] = len(rows)
            continue
        reason = certificate.refuses(model, ball, x[rows[:1]].to(place))
        if reason is not None:
            refused[name] = reason
            continue
        for some in _batches(rows, batch, deadline):
            limited = certificate if deadline is None else certificate.until(deadline)
            moved = x[some].to(place), y[some].to(place)
            found = limited.worst_margin(model, *moved, ball).to(bound.device)
            for row in some[found < bound[some]].tolist():
                by[row] = name
            bound[some] = torch.minimum(bound[some], found)
            done += len(some)
            if progress is not None:
                progress(name, done, len(rows))
        if done < len(rows):
            skipped[name] = len(rows) - done
        if done:
            proved = int((bound[rows[:done]] < 0).sum())
            tried[name] = Tried(done, proved, time.monotonic() - begun)
        if certificate.exact and done == len(rows):
            break
    return Certified(bound, by, refused, tried, skipped)


FIRST = 4
"""Examples of the first batch where time is short: enough to see how long one takes."""


def usual_certificates(model: Model, *, timed: bool) -> list[str]:
    """The names of the certificates that are for such a model, the cheapest first.

    Args:
        model: a network, or a smoothed classifier, which has a certificate of its own.
        timed: whether there is a deadline: a search without one could take for ever.
    """
    votes = isinstance(model, Smoothed)
    return [
        name
        for name, kind in CERTIFICATES.items()
        if (name == Smoothing.name) == votes and (timed or not kind.needs_deadline)
    ]


def _batches(rows: Tensor, batch: int, deadline: float | None) -> Iterator[Tensor]:
    """All rows, or under a deadline as many as there seems to be time for, in batches that take at
    most a third of what is left."""
    if deadline is None:
        yield from rows.split(batch)
        return
    begun, first, size = time.monotonic(), 0, min(batch, FIRST)
    while first < len(rows) and size:
        yield rows[first : first + size]
        first += size
        now = time.monotonic()
        left, pace = deadline - now, (now - begun) / min(first, len(rows))
        size = min(batch, max(int(left / (3 * pace)), int(left > pace))) if left > 0 else 0


def _resolved(certificates: Iterable[str | Certificate]) -> list[Certificate]:
    chosen = list(certificates)
    unknown = [c for c in chosen if isinstance(c, str) and c not in CERTIFICATES]
    if unknown:
        raise AdvlabError(f"certificates among {', '.join(CERTIFICATES)}", ", ".join(unknown))
    return [CERTIFICATES[c]().for_sign() if isinstance(c, str) else c for c in chosen]
