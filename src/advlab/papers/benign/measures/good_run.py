"""The events of a good run (benign overfitting paper, Lemmas B.3, B.4, B.19), measured.

The theorems hold on a good run: inputs are long and almost orthogonal, the signal shows in each of
them, few labels are flipped, and the start is as wide as its law says. Everything here is made of
lengths and inner products, so data and weights may come in the coordinates of any orthonormal basis
of a space that holds them and mu; only the event about the coordinates of the start may not.
"""

import math
from dataclasses import dataclass
from typing import Literal

import polars as pl
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ....core.errors import AdvlabError
from ....threats import Ball
from ..data.mixture import Clusters
from ..theory import C1

Side = Literal["at least", "at most"]
C0 = math.sqrt(8)
"""Lemma B.3 leaves C0 open. A Gaussian matrix (m/2, d) has norm sqrt(m/2) + sqrt(d) + t at most but
with probability exp(-t^2/2), twice stacked sqrt 2 times that; t = sqrt(d) gives this."""


@dataclass(frozen=True)
class Event:
    """An inequality between an extreme that was measured and its bound, one for each replicate."""

    label: str
    """C1 to C7 (Lemma B.4), or start (Lemmas B.3, B.19), or G (Proposition B.18)."""
    quantity: str
    side: Side
    measured: Float[Tensor, "*stack"]
    bound: Float[Tensor, "*stack"]

    @property
    def holds(self) -> Bool[Tensor, "*stack"]:
        below = self.side == "at most"
        return self.measured <= self.bound if below else self.measured >= self.bound


@dataclass(frozen=True)
class GoodRun:
    """All events that could be measured, and why others could not."""

    events: tuple[Event, ...]
    skipped: dict[str, str]

    @property
    def holds(self) -> Bool[Tensor, "*stack"]:
        """Whether all measured events hold, in each replicate."""
        return torch.stack([event.holds for event in self.events]).all(dim=0)

    def of(self, label: str) -> Bool[Tensor, "*stack"]:
        """Whether all events of one label hold."""
        found = [event.holds for event in self.events if event.label == label]
        if not found:
            labels = sorted({event.label for event in self.events})
            raise AdvlabError(f"an event among {', '.join(labels)}", label)
        return torch.stack(found).all(dim=0)

    def table(self) -> pl.DataFrame:
        """Rows (replicate, event, quantity, side, measured, bound, holds), null where skipped."""
        rows = [
            (replicate, event.label, event.quantity, event.side, *numbers)
            for event in self.events
            for replicate, numbers in enumerate(_numbers(event))
        ]
        empty = (None,) * 4
        rows += [(None, name, f"skipped: {why}", *empty) for name, why in self.skipped.items()]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")


SCHEMA = {"replicate": pl.Int64, "event": pl.String, "quantity": pl.String, "side": pl.String,
          "measured": pl.Float64, "bound": pl.Float64, "holds": pl.Boolean}  # fmt: skip


def good_run(
    data: Clusters,
    weight: Float[Tensor, "*stack m k"],
    *,
    d: int,
    kappa: float,
    delta: float,
    alpha: float,
    beta: float,
    omega: float,
    attacked: Float[Tensor, "*stack n k"] | None = None,
    variance: Float[Tensor, " d"] | float | None = None,
) -> GoodRun:
    """The events for one sample and start, or for a stack of them.

    The C of (C7) is the largest that Assumption (5) allows, n/log(m/delta).

    Args:
        data: the sample, or R of them.
        weight: the first layer at the start.
        d: the dimension of the inputs, which have fewer coordinates after a reduction.
        kappa, delta, alpha, beta, omega: as in `theory.check_assumptions`.
        attacked: points of the balls for (C4); the inputs themselves without them.
        variance: that of the coordinates of xi, for the set G.
    """
    _check(data, weight, d, kappa, delta, alpha, attacked)
    n, m = data.x.shape[-2], weight.shape[-2]
    slack = math.sqrt(2 * math.log(m / delta) / n)
    points = ("x_i", data.x) if attacked is None else ("x~_i", attacked)
    spread = math.sqrt(d * math.log(n / delta))
    events = [
        *_start(weight, d, omega),
        *_lengths(data, d, kappa, alpha),
        *_products(data, d, C1(kappa), alpha, spread),
        *_spectra(data.noise, *points, d, C1(kappa)),
        *_signal(data),
        _event("C7", "|N|/n", "at most", data.noisy.to(data.x.dtype).mean(-1), beta + slack),
    ]
    high, skipped = _high_variance(weight, d, kappa, variance)
    return GoodRun((*events, *high), skipped)


def _start(weight: Tensor, d: int, omega: float) -> list[Event]:
    """Lemma B.3: ||w_s||^2 in [1/2, 3/2] omega^2 d, and ||W||_2 <= C0 omega (sqrt m + sqrt d)."""
    squares, m = weight.square().sum(-1), weight.shape[-2]
    widest = C0 * omega * (math.sqrt(m) + math.sqrt(d))
    return [
        *_between("start", "|w_s|^2", squares, omega**2 * d / 2, 1.5 * omega**2 * d),
        _event("start", "|W|_2", "at most", torch.linalg.matrix_norm(weight, 2), widest),
    ]


def _lengths(data: Clusters, d: int, kappa: float, alpha: float) -> list[Event]:
    """(C1), the extremes over balls by closed forms.

    The least <x~, x~'> over a ball around x is (|x| - alpha)^2 while alpha <= |x|/2, then
    |x|^2/2 - alpha^2.
    """
    one, length = C1(kappa), data.x.norm(dim=-1)
    short, long = math.sqrt(d / one), math.sqrt(one * d)
    near, far = (length - alpha).clamp(min=0).square(), (length + alpha).square()
    product = torch.where(alpha <= length / 2, near, length.square() / 2 - alpha**2)
    floor, ceiling = max(short - alpha, 0.0) ** 2, (long + alpha) ** 2
    noise = data.noise.square().sum(-1)
    ball = torch.full_like(length[..., 0], alpha)
    return [
        *_between("C1", "|xi_i|^2", noise, kappa * d / 2, (3 + kappa / 2) * d),
        *_between("C1", "|x_i|^2", length.square(), d / one, one * d),
        _event("C1", "smallest |x~_i|^2", "at least", near.amin(-1), floor),
        _event("C1", "largest |x~_i|^2", "at most", far.amax(-1), ceiling),
        _event("C1", "smallest <x~_i, x~_i'>", "at least", product.amin(-1), floor),
        # So that both ends above are within a factor 4 of those without an attack.
        _event("C1", "alpha", "at most", ball, short / 2),
    ]


def _products(data: Clusters, d: int, one: float, alpha: float, spread: float) -> list[Event]:
    """(C2). The last event is by the triangle inequality, within alpha^2 of the truth."""
    noise, inputs = (_apart(points) for points in (data.noise, data.x))
    length, long = data.x.norm(dim=-1), math.sqrt(one * d)
    half = inputs + alpha * length[..., :, None]
    both = half + alpha * length[..., None, :] + alpha**2
    bound = one * (_mu(data).square().sum(-1) + spread)
    return [
        _event("C2", "largest |<xi_i, xi_j>|", "at most", _largest(noise), one * spread),
        _event("C2", "largest |<x_i, x_j>|", "at most", _largest(inputs), bound),
        _event("C2", "largest |<x_i, x~_j>|", "at most", _largest(half), bound + alpha * long),
        _event(
            "C2",
            "largest |<x~_i, x~_j>|",
            "at most",
            _largest(both),
            bound + 2 * alpha * long + alpha**2,
        ),
    ]


def _spectra(noise: Tensor, name: str, points: Tensor, d: int, one: float) -> list[Event]:
    """(C3), (C4): eigenvalues of Gram matrices."""
    top = torch.linalg.eigvalsh(noise @ noise.mT)[..., -1]
    eigenvalues = torch.linalg.eigvalsh(points @ points.mT)
    return [
        _event("C3", "largest eigenvalue of the Gram of xi_i", "at most", top, 4 * d),
        *_between(
            "C4", f"eigenvalue of the Gram of {name}", eigenvalues, d / (8 * one), 8 * one * d
        ),
    ]


def _signal(data: Clusters) -> list[Event]:
    """(C5), (C6); over balls they follow, as <mu, y_i x~_i> moves by ||mu|| alpha at most.

    0 is measured where no label, or every label, was flipped.
    """
    mu = _mu(data)
    square = mu.square().sum(-1)
    signal = data.y * torch.einsum("...nk,...k->...n", data.x, mu)
    clean = (signal - square[..., None]).abs() * data.clean
    noisy = (signal + square[..., None]).abs() * data.noisy
    at_clean, at_noisy = "largest |<mu, y_i x_i> - |mu|^2|", "largest |<mu, y_i x_i> + |mu|^2|"
    return [
        _event("C5", f"{at_clean} on C", "at most", clean.amax(-1), square / 2),
        _event("C6", f"{at_noisy} on N", "at most", noisy.amax(-1), square / 2),
    ]


def _high_variance(
    weight: Tensor, d: int, kappa: float, variance: Tensor | float | None
) -> tuple[list[Event], dict[str, str]]:
    """Proposition B.18: |G| >= kappa d/(2 - kappa) for G = {i: Var xi^i >= kappa/2}; Lemma B.19:
    the mean of w_{s,i}^2 over G is at least 1/4 of the mean over all i."""
    if variance is None:
        why = "the variances of the coordinates were not given"
        return [], {"|G|": why, "start on G": why}
    given = torch.as_tensor(variance, dtype=weight.dtype, device=weight.device)
    high = given.expand(d) >= kappa / 2
    size = torch.full_like(weight[..., 0, 0], int(high.sum()))
    enough = _event("G", "|G|", "at least", size, kappa * d / (2 - kappa))
    if weight.shape[-1] != d:
        why = f"the weights have {weight.shape[-1]} reduced coordinates, not the {d} of the inputs"
        return [enough], {"start on G": why}
    if not high.any():
        return [enough], {"start on G": "G is empty"}
    squares = weight.square()
    share = (squares[..., high].mean(-1) / squares.mean(-1)).amin(-1)
    name = "smallest mean of w_si^2 over G, over the mean over all i"
    return [enough, _event("start", name, "at least", share, 0.25)], {}


def _mu(data: Clusters) -> Float[Tensor, "*stack k"]:
    """mu = y_c (x - xi), the same for all examples but for rounding."""
    return (data.y_clean[..., None] * (data.x - data.noise)).mean(-2)


def _apart(points: Tensor) -> Tensor:
    """|<p_i, p_j>| in every place."""
    return (points @ points.mT).abs()


def _largest(pairs: Tensor) -> Tensor:
    """Over i != j; 0 if there is one example only."""
    alike = torch.eye(pairs.shape[-1], dtype=torch.bool, device=pairs.device)
    return pairs.masked_fill(alike, 0).flatten(-2).amax(-1)


def _between(label: str, name: str, values: Tensor, low: float, high: float) -> list[Event]:
    return [
        _event(label, f"smallest {name}", "at least", values.amin(-1), low),
        _event(label, f"largest {name}", "at most", values.amax(-1), high),
    ]


def _event(label: str, name: str, side: Side, measured: Tensor, bound: Tensor | float) -> Event:
    limit = torch.as_tensor(bound, dtype=measured.dtype, device=measured.device)
    return Event(label, name, side, measured, limit.expand_as(measured))


def _numbers(event: Event) -> list[tuple[float, float, bool]]:
    columns = (event.measured, event.bound, event.holds)
    return list(zip(*(column.reshape(-1).tolist() for column in columns), strict=True))


def _check(
    data: Clusters,
    weight: Tensor,
    d: int,
    kappa: float,
    delta: float,
    alpha: float,
    attacked: Tensor | None,
) -> None:
    x = data.x
    if x.ndim not in (2, 3) or x.shape[:-2] + x.shape[-1:] != weight.shape[:-2] + weight.shape[-1:]:
        shapes = f"{tuple(x.shape)} and {tuple(weight.shape)}"
        raise AdvlabError("x (n, k) with weights (m, k), or (R, n, k) with (R, m, k)", shapes)
    if not 0 < kappa <= 1:
        raise AdvlabError("kappa must be above 0 and at most 1", kappa)
    if not 0 < delta < 0.5:
        raise AdvlabError("delta must lie between 0 and 1/2", delta)
    if d < 1 or alpha < 0:
        raise AdvlabError("a dimension d of 1 or more and a radius alpha of 0 or more", (d, alpha))
    if attacked is None:
        return
    if attacked.shape != x.shape:
        raise AdvlabError(f"attacked inputs of shape {tuple(x.shape)}", tuple(attacked.shape))
    inside = Ball(norm="l2", radius=alpha).contains(attacked.flatten(0, -2), x.flatten(0, -2))
    if not inside.all():
        farthest = float((attacked - x).norm(dim=-1).max())
        raise AdvlabError(f"attacked inputs within alpha = {alpha} of the inputs", farthest)
