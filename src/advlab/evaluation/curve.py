"""The robust error over radii, between two bounds, from one distance and one radius per example."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ..attacks import FAB, Attack
from ..attacks._engine.cascade import Cascade
from ..certify import CERTIFICATES, certify
from ..core import inputs
from ..core.devices import device_of
from ..core.display import html_table
from ..core.errors import AdvlabError
from ..core.inputs import Given, TensorLike
from ..core.intervals import clopper_pearson
from ..core.randomness import generator
from ..losses import ModelLoss, margin
from ..threats import Ball
from .batch import Certificates, check_certificates
from .memory import batch_size, batch_slices
from .output import Output
from .progress import EvaluationProgress
from .suited import suited
from .suites import Plan, plan
from .validate import validate

Norm = Literal["l1", "l2", "linf"]
SHOWN, TRIED, FINEST = 12, 24, 64.0
"""Radii of a curve that names none; radii that certificates try; the largest over the smallest."""
NEAREST = FAB(steps=40)
QUICK = tuple(name for name in CERTIFICATES if name not in ("exact", "beta_crown"))
"""All certificates but those that search, which would spend their time at every radius."""


@dataclass(frozen=True)
class CurvePoint:
    """The robust error at one radius: at least `at_least`, at most `at_most`."""

    eps: float
    at_least: float
    at_most: float
    interval: tuple[float, float]
    """From the lower end of 95 % for `at_least` to the upper end of 95 % for `at_most`: exact
    (Clopper and Pearson), for the population that the examples were drawn from."""


@dataclass(frozen=True)
class RobustnessCurve:
    """How far each example is from a wrong answer: farther than `robust_to`, at most `broken_at`.

    The robust error at a radius eps is the share of examples with a wrong answer within eps. Where
    `broken_at` <= eps one was found, so the share of these is a LOWER bound; where `robust_to` >=
    eps it is proved that there is none, so the share of all others is an upper bound.
    """

    norm: Norm
    box: tuple[float, float] | None
    radii: tuple[float, ...]
    broken_at: Float[Tensor, " n"] = field(repr=False)
    """The distance of the nearest wrong answer found: 0 where the example itself is wrong, infinite
    where none was found."""
    robust_to: Float[Tensor, " n"] = field(repr=False)
    """The largest radius that was proved safe; 0 where none was."""
    attack: str = ""
    refused: dict[str, str] = field(default_factory=dict)
    """Certificates that do not know this model or threat set, and why."""
    seconds: float = 0.0

    @property
    def n(self) -> int:
        """Examples."""
        return len(self.broken_at)

    def at(self, eps: float) -> CurvePoint:
        """The bracket at one radius, also at radii that the curve was not made for.

        Args:
            eps: the radius, at least 0.
        """
        broken = int((self.broken_at <= eps).sum())
        open_to_doubt = int(((self.robust_to < eps) | (self.broken_at <= eps)).sum())
        low, high = clopper_pearson(broken, self.n)[0], clopper_pearson(open_to_doubt, self.n)[1]
        return CurvePoint(eps, broken / self.n, open_to_doubt / self.n, (low, high))

    @property
    def points(self) -> list[CurvePoint]:
        """The bracket at eps = 0, where it is the clean error, and at all radii."""
        return [self.at(eps) for eps in (0.0, *self.radii)]

    def table(self) -> list[dict[str, float]]:
        """One row per radius, in plain numbers: eps, at_least, at_most, low, high."""
        return [
            {
                "eps": one.eps,
                "at_least": one.at_least,
                "at_most": one.at_most,
                "low": one.interval[0],
                "high": one.interval[1],
            }
            for one in self.points
        ]

    def numbers(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and words, for JSON; infinite distances are None."""
        far = [value if value < float("inf") else None for value in self.broken_at.tolist()]
        return {
            "n": self.n,
            "norm": self.norm,
            "box": self.box,
            "attack": self.attack,
            "curve": self.table(),
            "broken_at": far,
            "robust_to": self.robust_to.tolist(),
            "refused": self.refused,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        head = f"{self.n} examples, {self.norm}, box {self.box}; robust error by {self.attack}"
        lines = [
            f"  eps {one.eps:<10.4g} at least {one.at_least:.4f}, at most {one.at_most:.4f}  "
            f"(95 %: {one.interval[0]:.4f} to {one.interval[1]:.4f})"
            for one in self.points
        ]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows = {
            f"eps {one.eps:.4g}": f"{one.at_least:.4f} to {one.at_most:.4f}" for one in self.points
        }
        return html_table(f"Robust error, {self.norm}, {self.n} examples", rows)


def curve(
    model: Given[Callable[[Tensor], Tensor]],
    x: Given[TensorLike],
    y: Given[TensorLike],
    norm: Norm = "linf",
    *,
    radii: Given[Sequence[float] | None] = None,
    box: Given[tuple[float, float] | None] = None,
    attack: Given[Attack | str] = "fast",
    certificates: Given[Certificates] = None,
    rng: Given[torch.Generator | int] = 0,
    batch: Given[int | None] = None,
    progress: bool = False,
    output: Given[Output | str] = "auto",
) -> RobustnessCurve:
    """The robust error of a classifier over all radii: a bracket at each of them.

    From below: FAB looks for the nearest wrong answer of each example, and the attack is then sent,
    from the smallest radius to the largest, to what still stands. From above: each example's
    largest radius that a certificate can prove is found by bisection. Balls are nested, so what is
    broken stays broken and what is proved holds for all smaller radii.

    Args:
        model: maps inputs (n, ...) to scores (n, classes), or to one number per example.
        x: the inputs in natural units, shape (n, ...).
        y: the labels, shape (n,).
        norm: "l1", "l2" or "linf".
        radii: where the curve is wanted; where FAB found wrong answers if left out.
        box: the limits of inputs, (low, high), if there are any.
        attack: an attack, or the name of a suite or an attack.
        certificates: names or certificates in the order in which they are tried; all but those
            that search if left out, none if empty.
        rng: a generator, or a number as its seed.
        batch: rows per batch; as many as fit in memory if left out.
        progress: whether to show on stderr how far it is.
        output: what the outputs mean, as in `evaluate`.

    Returns:
        A `RobustnessCurve`: `points` (or `table()`), `at(eps)`, and per example `broken_at` and
        `robust_to`.

    Example:
        import advlab
        found = advlab.curve(model, x, y, "linf", box=(0, 1), radii=[2 / 255, 4 / 255, 8 / 255])
        found.at(8 / 255).at_least, found.at(8 / 255).at_most
    """
    chosen, begun = plan(attack), time.perf_counter()
    check_certificates(certificates)
    size = None if batch is None else inputs.count("batch", batch)
    seed = inputs.seed(rng)
    ball = Ball(norm, 0.0, box)
    task = validate(model, x, y, ball, output)
    if not task.reading.classifies or task.examples.streamed:
        raise AdvlabError("a classifier and examples in memory", task.said or "a stream of them")
    model, x, y = task.model, task.examples.x, task.examples.y
    chosen, _ = suited(chosen, task, ball, seed)
    if chosen.randomness is not None:
        came = f"a random one: {chosen.randomness}"
        raise AdvlabError("a model whose answers are not random", came, "use advlab.evaluate")
    place = device_of(model, x)
    x, y = x.to(place), y.to(place)
    wanted = None if radii is None else _checked(radii)
    slices = list(batch_slices(len(x), size or batch_size(model, x)))
    with EvaluationProgress(3 * len(x), progress) as shown:
        found = []
        for rows in slices:
            found.append(_nearest(model, x[rows], y[rows], ball, seed, rows.start))
            shown.rows_done(len(found[-1]))
            shown.model_pass("nearest wrong answers")
        nearest = torch.cat(found)
        wanted = wanted or _radii(nearest, x)
        broken_at, robust_to, refused = nearest.clone(), torch.zeros_like(nearest), {}
        for rows in slices:
            part = broken_at[rows]
            rng_of = ("curve", seed, rows.start)
            _attack_each(model, x[rows], y[rows], ball, wanted, chosen, part, rng_of)
            shown.rows_done(len(part))
            shown.model_pass("attacks")
        names = QUICK if certificates is None else certificates
        for rows in slices:
            proved, why = _prove_each(model, x[rows], y[rows], ball, wanted, names, broken_at[rows])
            robust_to[rows], refused = proved, {**refused, **why}
            shown.rows_done(len(proved))
            shown.model_pass("certificates")
    seconds = time.perf_counter() - begun
    return RobustnessCurve(
        norm, box, tuple(wanted), broken_at, robust_to, f"FAB and {chosen.name}", refused, seconds
    )


def _nearest(
    model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, ball: Ball, seed: int, first: int
) -> Tensor:
    """The distance of the nearest wrong answer that FAB finds."""
    loss = ModelLoss(model, y, margin)
    found = NEAREST.minimum(loss, x, ball.norm, ball.box, rng=generator("nearest", seed, first))
    return found.distance.double()


def _attack_each(
    model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, ball: Ball, radii: Sequence[float],
    chosen: Plan, broken_at: Tensor, names: tuple[str | int, ...],
) -> None:  # fmt: skip
    """Send the attack to what stands at each radius, and note in `broken_at` what it found."""
    for radius in radii:
        rows = (broken_at > radius).nonzero()[:, 0]
        if len(rows) == 0:
            return
        threat, own = ball.with_radius(radius), generator(*names, radius)
        loss = ModelLoss(model, y[rows], margin)
        cascade = Cascade(loss, x[rows], threat, own, chosen.draws)
        for name, member in chosen.members.items():
            cascade.run_member(name, member)
        broken = cascade.broken
        far = threat.norm_of(cascade.points - x[rows]).double().clamp(max=radius)
        broken_at[rows[broken]] = far[broken]


def _prove_each(
    model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, ball: Ball, radii: Sequence[float],
    certificates: Certificates, broken_at: Tensor,
) -> tuple[Tensor, dict[str, str]]:  # fmt: skip
    """Each example's largest proved radius, by bisection over a list of radii."""
    tried = _tried(radii)
    steps = torch.tensor([0.0, *tried], dtype=torch.float64)
    low = torch.zeros(len(x), dtype=torch.long)
    # No certificate can prove a radius at which the example is broken.
    high = (steps[None] < broken_at.cpu()[:, None]).sum(1).clamp(min=1) - 1
    refused: dict[str, str] = {}
    while bool((low < high).any()):
        middle = (low + high + 1) // 2
        for place in middle[low < high].unique().tolist():
            rows = ((middle == place) & (low < high)).nonzero()[:, 0]
            threat = ball.with_radius(float(steps[place]))
            found = certify(model, x[rows], y[rows], threat, certificates)
            refused = found.refused
            if not found.bound.isfinite().any():  # nothing knows this model
                return torch.zeros_like(broken_at), refused
            robust = found.robust.cpu()
            low[rows[robust]], high[rows[~robust]] = place, place - 1
    return steps[low].to(broken_at), refused


def _tried(radii: Sequence[float]) -> list[float]:
    """The radii that are shown, and others between, evenly spaced in their logarithm."""
    largest = max(radii)
    between = [largest * FINEST ** (-i / TRIED) for i in range(TRIED + 1)]
    return sorted({one for one in (*radii, *between) if one > 0})


def _radii(nearest: Tensor, x: Tensor) -> list[float]:
    """Where the curve has something to show: spread over the distances that were found."""
    far = nearest[nearest.isfinite() & (nearest > 0)]
    if len(far) == 0:
        raise AdvlabError(
            "radii for the curve, where no wrong answer was found that could tell them", "none",
            "for example radii=[0.01, 0.03, 0.1]",
        )  # fmt: skip
    shares = torch.linspace(0.02, 0.98, SHOWN, dtype=torch.float64)
    return sorted(set(torch.quantile(far.cpu().double(), shares).tolist()))


def _checked(radii: Given[Sequence[float]]) -> list[float]:
    values = inputs.tensor("radii", radii).double().flatten()
    if len(values) == 0 or not bool(((values > 0) & values.isfinite()).all()):
        raise AdvlabError("radii above 0, at least one", f"{radii!r:.60}")
    return sorted(set(values.tolist()))
