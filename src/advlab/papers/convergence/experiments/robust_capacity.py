"""Theorem 6.1: fitting n points robustly takes capacity of order n d, plain fitting of order n.

- Theorem 6.1: n disjoint balls of radius delta realise every labelling of floor(n/2) d points
  c_i + eps e_j, so a class that fits such balls robustly has VC dimension at least floor(n/2) d.
  Tried on all labellings where there are at most 2^12, on random ones beyond. The construction
  works up to eps = delta/gamma_k with an explicit gamma_k (the paper has none, and prints a max
  for a min). For d = 2 and k = 1 it works for every eps; where a cluster is split unequally, balls
  in other places would still do for a somewhat larger eps.
- Explicit networks: n points take d + 2n parameters, their balls O(n d) in linf and in l2. What the
  small network does on the balls is computed exactly, as it is a function of one direction.
- Trained networks: the least width of a two-layer ReLU network (all weights trained, Adam 0.02, at
  most 3000 steps, best of five starts) that reaches 100 % on n = 12 points, and on l2 balls around
  them whose radius is 0.8 times half the least distance. Points are farthest-point samples of a
  cube, scaled to one least distance, half of each label; both trainings see the same data sets.

Robust training sees PGD with 5 steps, for speed. Whether it has reached 100 % is decided every 100
steps by PGD with 20 steps and 3 restarts, whose robust accuracy is an UPPER bound of the truth: the
least robust widths are lower bounds of those for this training. No training proves that a narrower
network cannot fit: widths are what training finds, not what exists. A data set that no width fits
robustly counts with the largest width.

Grey in the picture of counts: floor(n/2) d, the VC dimension that fitting balls forces.
Discs in the plane: what Theorem 6.1 does for d = 2 and two clusters; balls without a use, far away,
are not drawn.
"""

from itertools import product
from typing import Literal

import numpy as np
import polars as pl
from pydantic import PositiveInt

from .... import lab, theory
from ....core.errors import AdvlabError
from ....core.randomness import generator
from ....report import Claims, Verdict, identity, ours, sample, theorem
from ..theory import capacity
from ._parts.least_widths import RADIUS, Training, minimal_widths, separated
from ._parts.robust_capacity_figure import figure as figure

ABOUT = lab.About(
    paper="convergence",
    item="Section 6 and Theorem 6.1",
    title="Robust fitting takes more capacity: shattering, counts and trained widths",
    seconds={"smoke": 6, "laptop": 112, "paper": 900},
    looks=2,
    claims={
        "15a": theorem("Two balls per cluster realise every labelling of its points"),
        "15b": theorem("and their centres are more than 2 delta apart"),
        "16a": theorem("The construction works for eps just below delta/gamma_k"),
        "16b": theorem("and fails, its interval empty, just above"),
        "17a": ours(
            "On average robust training needs at least the width of plain training, in every d"
        ),
        "17b": ours("and more than it in most of the three dimensions"),
        "18a": identity("The network of d + 2n parameters fits all n points"),
        "18b": ours("but on average fewer than 90 % of their balls"),
    },
)
NAME = "convergence/a5"
DIMENSIONS = (3, 5, 10)
LARGE = ((20, 50), (10, 200))
"""(n, d) with more labellings than can be tried."""
SPLITS = (3, 4, 5, 6, 8, 10, 16, 30, 50, 100, 200)
"""Dimensions in which gamma_k is tried."""
FITTED = ((12, 3), (12, 5), (12, 10), (20, 10))
COUNTED = (4, 8, 16, 32, 64, 128)
"""n = d of the networks whose parameters are counted."""
EDGE = 1e-3
SCHEMA = {"seed": pl.Int64, "quantity": pl.String, "n": pl.Int64, "d": pl.Int64,
          "value": pl.Float64}  # fmt: skip


class Case(lab.Case):
    part: Literal["labellings", "gamma", "interpolators", "counts", "widths"]
    d: PositiveInt = 1
    """The dimension of the trained networks."""
    n: PositiveInt = 12
    widths: tuple[PositiveInt, ...] = (1, 2, 3, 4, 6, 8, 12, 16, 24)
    steps: PositiveInt = 3000
    starts: PositiveInt = 5
    most: PositiveInt = 12
    """Points whose labellings are all tried."""
    draws: PositiveInt = 200
    """Random labellings of more points."""

    @property
    def cost(self) -> float:
        share = {"widths": 100.0, "labellings": 20.0}.get(self.part, 3.0)
        return share * self.steps * self.starts * self.replicates / (3000 * 5 * 12)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {
        "smoke": (3, {"n": 4, "widths": (1, 8), "steps": 20, "starts": 2, "most": 6, "draws": 3}),
        "laptop": (12, {}),
        "paper": (36, {}),
    }[scale]
    sets = lab.blocks(seeds or usual, 12)
    return [
        *(Case(part="widths", d=d, **some, **block) for block in sets for d in DIMENSIONS[::-1]),
        Case(part="labellings", **some),
        Case(part="gamma", **some),
        *(Case(part="interpolators", **some, **block) for block in sets),
        Case(part="counts", replicates=min(3, seeds or usual), **some),
    ]


def compute(case: Case) -> pl.DataFrame:
    rows = {
        "labellings": _labellings,
        "gamma": _gamma,
        "interpolators": _interpolators,
        "counts": _counts,
        "widths": _widths,
    }[case.part](case)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


Row = tuple[int, str, int, int, float]


def _labellings(case: Case) -> list[Row]:
    """For each (n, d) the failed labellings, and the least distance of two centres / (2 delta)."""
    all_of = [(2 * m, d) for d in range(1, case.most + 1) for m in range(1, case.most // d + 1)]
    rows = []
    for n, d in [*all_of, *LARGE]:
        points = n // 2 * d
        rng = np.random.default_rng([case.seed, n, d])
        every = product((-1.0, 1.0), repeat=points)
        some = rng.choice([-1.0, 1.0], size=(case.draws, points))
        eps = 0.9 * min(1.0, 2 / np.sqrt(d))
        failed, least = 0, np.inf
        for labels in every if points <= case.most else some:
            balls = capacity.shatter(n, d, 1.0, eps, labels)
            right = balls.holds and np.array_equal(balls.classify(balls.points), labels)
            failed, least = failed + (not right), min(least, balls.least_distance / 2)
        rows.append((case.seed, "failed labellings", n, d, float(failed)))
        rows.append((case.seed, "distance", n, d, least))
    return rows


def _gamma(case: Case) -> list[Row]:
    """For each d, how many splits fail just below delta/gamma_k and work just above; and where the
    construction ends, found by bisection, for k = 1 and k = d/2 (the column n holds k)."""
    rows = []
    for d in SPLITS:
        edges = {k: 1 / capacity.gamma(d, k) for k in range(1, d)}
        below_edge = sum(not _works(d, k, (1 - EDGE) * edge) for k, edge in edges.items())
        above_edge = sum(_interval(d, k, (1 + EDGE) * edge) for k, edge in edges.items())
        rows.append((case.seed, "failed below", 0, d, float(below_edge)))
        rows.append((case.seed, "worked above", 0, d, float(above_edge)))
        rows += [(case.seed, "largest eps", k, d, _end(d, k)) for k in (1, d // 2)]
    return rows


def _works(d: int, k: int, eps: float) -> bool:
    labels = np.where(np.arange(d) < k, 1.0, -1.0)
    try:
        return capacity.shatter(2, d, 1.0, eps, labels).holds
    except AdvlabError:
        return False


def _interval(d: int, k: int, eps: float) -> bool:
    """Whether both balls of a split have a tau, at delta = 1."""
    ends = [capacity.tau_interval(d, one, 1.0, eps) for one in (k, d - k)]
    return all(low < high for low, high in ends)


def _end(d: int, k: int) -> float:
    low, high = 0.0, 4.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _interval(d, k, middle) else (low, middle)
    return low


def _interpolators(case: Case) -> list[Row]:
    """The share of points and of balls that the small network fits, exactly."""
    rows = []
    for seed in case.seeds:
        for n, d in FITTED:
            x, y = (part.numpy() for part in separated(n, d, generator(NAME, "fit", n, d, seed)))
            f = capacity.plain_interpolator(x, y, np.random.default_rng([seed, n, d]))
            low, high = f.extremes(x, RADIUS)
            worst = np.where(y > 0, low, -high)
            rows.append((seed, "clean", n, d, float((y * f(x) > 0).mean())))
            rows.append((seed, "robust", n, d, float((worst > 0).mean())))
    return rows


def _counts(case: Case) -> list[Row]:
    rows = []
    for seed in case.seeds:
        for n in COUNTED:
            x, y = (part.numpy() for part in separated(n, n, generator(NAME, "count", n, seed)))
            apart = theory.separation(x, y, "linf").distance
            networks = {
                "plain": capacity.plain_interpolator(x, y, np.random.default_rng([seed, n])),
                "linf": capacity.robust_linf(x, y, RADIUS * apart / 2),
                "l2": capacity.robust_l2(x, y, RADIUS),
            }
            rows += [
                (seed, f"{name} parameters", n, n, float(f.parameters))
                for name, f in networks.items()
            ]
    return rows


def _widths(case: Case) -> list[Row]:
    data = [separated(case.n, case.d, generator(NAME, "data", case.d, seed)) for seed in case.seeds]
    trainings: tuple[Training, ...] = ("plain", "robust")
    rows = []
    for training in trainings:
        found = minimal_widths(
            data, case.seeds, training, case.widths, steps=case.steps, starts=case.starts, name=NAME
        )
        # A lower bound will do for robust training, but would favour the claim for plain.
        unknown = case.widths[-1] if training == "robust" else float("nan")
        widths = (float(unknown if width is None else width) for width in found)
        rows += [
            (seed, f"{training} width", case.n, case.d, width)
            for seed, width in zip(case.seeds, widths, strict=True)
        ]
    return rows


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    values = {name: _of(table, name)["value"].to_numpy() for name in _EXACT}
    difference = _differences(table)
    most = difference.group_by("seed").agg(share=(pl.col("difference") > 0).mean())
    robust = _of(table, "robust").with_columns(
        size=pl.format("n = {}, d = {}", pl.col("n"), pl.col("d"))
    )
    clean = _of(table, "clean")
    missed = ((1 - clean["value"]) * clean["n"]).round().to_numpy().sum()
    largest = Case.model_fields["widths"].default[-1]
    claims = Claims(ABOUT.claims)
    exact = [
        claims.below("15a", values["failed labellings"].sum(), 1,
            what="the number of labellings that fail"),
        claims.above("15b", values["distance"].min(), 1,
            what="least distance of two centres / (2 delta)"),
        claims.below("16a", values["failed below"].sum(), 1,
            what=f"the number of splits that fail at {1 - EDGE:g} delta/gamma_k"),
        claims.below("16b", values["worked above"].sum(), 1,
            what=f"the number of splits with a tau at {1 + EDGE:g} delta/gamma_k"),
    ]  # fmt: skip
    return [
        *exact,
        claims.within("17a", sample(difference, "difference", by="d"), 0, largest,
            what="least robust width less least plain width"),
        claims.above("17b", sample(most, "share"), 0.5,
            what="share of dimensions in which the robust width is larger"),
        claims.below("18a", missed, 1, what="the number of points that are missed"),
        claims.below("18b", sample(robust, "value", by="size"), 0.9,
            what="share of balls that are fitted"),
    ]  # fmt: skip


_EXACT = ("failed labellings", "distance", "failed below", "worked above")


def _of(table: pl.DataFrame, quantity: str) -> pl.DataFrame:
    return table.filter(quantity=quantity)


def _differences(table: pl.DataFrame) -> pl.DataFrame:
    """Rows (d, seed, difference)."""
    both = _of(table, "robust width").join(
        _of(table, "plain width"), on=["d", "seed"], suffix=" plain"
    )
    return both.select("d", "seed", difference=pl.col("value") - pl.col("value plain")).sort("d")
