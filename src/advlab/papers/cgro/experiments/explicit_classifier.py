"""The explicit CGRO classifier f_S of Theorem 5.2, weight by weight.

The theorem: for separated classes a ReLU network with poly(D) + O~(N D) parameters has no clean
test error and no robust training error, and a robust test error of Omega(1). Points
(x, 1/2 + 0.02 y), x on a grid of spacing 0.25, y a fair coin; delta = 0.1, separation 0.25. The
clean classifier is x_D - 1/2: right everywhere, and wrong after a step of 0.02. f_S adds soft
indicators of the balls around the training points, either by the paper's products or without any
multiplication, in l2 (squared distances to each point, or squares that all points share) and linf.

Robust errors are LOWER bounds: uniform samples of each ball, the ends of all axes, PGD on f_S, and
transfer from the clean classifier. f_S clips that one to [-1, 1]; where it is steep, gradients of
f_S are zero nearly everywhere and PGD alone would call f_S robust (15f: the same classifier, a
hundred times steeper). That f_S has no robust training error is also proved, so there none was to
be found. Square networks
(Lemma D.2) have depth 6 and products (Lemma D.3) depth 4, so that sizes can be compared; the depth
that squares need is found by trying, and held against the formula, and the error of squared
distances against its room. The paper's counts are orders; here is every weight and bias.

The first pictures show f along the last axis through a training point and a fresh one, D = 8,
N = 30: in the ball of a training point y f stays at 1 or more, and a fresh point changes its side
after 0.02. Dashed in the last: the bound 4 B^2 2^(-2k-2).
"""

from itertools import product

import numpy as np
import polars as pl

from .... import lab
from ....core.errors import AdvlabError
from ....report import Claims, Verdict, identity, ours, theorem
from ....report.samples import groups
from ....theory import relu_calculus as calculus
from .. import theory
from ._parts.explicit_classifier_figure import figure as figure
from ._parts.explicit_classifier_runs import (
    DELTA,
    DEPTH,
    SEPARATION,
    Row,
    classifiers,
    steep_classifiers,
)
from ._parts.explicit_classifier_runs import Case as Case

ABOUT = lab.About(
    paper="cgro",
    item="Theorem 5.2 and Lemmas D.2, D.3",
    title="The explicit CGRO classifier: its errors and its size",
    seconds={"smoke": 5, "laptop": 15, "paper": 1000},
    looks=2,
    claims={
        "14a": identity("A square network of depth k errs by 2^(-2k-2)"),
        "14b": identity("and only upwards"),
        "14c": identity("with 20k - 7 parameters"),
        "14d": identity("A product network on [-B, B]^2 errs by at most 4 B^2 2^(-2k-2)"),
        "14e": identity("and is zero on both axes"),
        "15a": theorem("f_S has no clean test error"),
        "15b": theorem("f_S has no robust training error"),
        "15c": theorem("The robust test error of f_S is that of the clean classifier, within 2 %"),
        "15d": identity("Square networks must be as deep as predicted"),
        "15e": identity("At that depth the error of squared distances fits its room, one less does "
                        "not"),
        "15f": ours("Around a steep clean classifier PGD on f_S is masked: it finds at least 20 "
                    "points fewer of the test inputs than transfer from that classifier"),
        "16a": identity("The number of parameters is affine in N"),
        "16b": identity("A point takes 20 k, 1 or 6 parameters per dimension: own squares, shared, "
                        "linf"),
        "16c": identity("Both assemblies agree in sign on the support and on all training balls"),
    },
)  # fmt: skip
BOUND = 1.5
"""B of the products whose error is measured."""
PER_DIMENSION = {"l2 products, own squares": 20 * DEPTH, "l2 free, own squares": 20 * DEPTH,
               "l2 products": 1, "l2 free": 1, "linf products": 6, "linf free": 6}  # fmt: skip
SCHEMA = {"seed": pl.Int64, "quantity": pl.String, "network": pl.String, "n": pl.Int64,
          "d": pl.Int64, "x": pl.Float64, "value": pl.Float64}  # fmt: skip
DIMENSIONS, SIZES = (4, 8, 16), (10, 30, 100)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, dims, sizes, some = {
        "smoke": (3, (3, 4), (3, 5, 7), {"draws": 5, "fresh": 10, "steps": 2}),
        "laptop": (3, DIMENSIONS, SIZES, {}),
        "paper": (12, DIMENSIONS, SIZES, {"draws": 100, "steps": 20}),
    }[scale]
    some = {"part": "classifier", "replicates": seeds or usual, **some}
    drawn = dims[1], sizes[1]
    return [
        *(
            Case(d=d, n=n, profile=(d, n) == drawn, **some)
            for d, n in product(dims[::-1], sizes[::-1])
        ),
        *(
            Case(**(some | {"part": "steep", "replicates": 3 * (seeds or usual)}), d=d, n=drawn[1])
            for d in dims
        ),
        Case(part="blocks"),
        *(Case(part="depths", d=d) for d in dims),
    ]


def compute(case: Case) -> pl.DataFrame:
    parts = {"blocks": _blocks, "depths": _depths, "classifier": _classifiers, "steep": _steep}
    return pl.DataFrame(parts[case.part](case), schema=SCHEMA, orient="row")


def _blocks(case: Case) -> list[Row]:
    """Squares and products on fine grids; x is the depth."""
    rows = []
    for k in range(1, 11):
        q = calculus.square_network(k)
        t = np.linspace(0, 1, 2 ** (k + 3) + 1)
        excess = q(t[:, None]) - t**2
        # The worst pairs are in the middle of cells of both factors.
        cells = np.unique(np.linspace(-(2 ** (k - 1)), 2 ** (k - 1) - 1, 64).round())
        s = np.r_[np.linspace(-BOUND, BOUND, 65), 2 * BOUND * (cells + 0.5) / 2**k]
        pairs = np.stack(np.meshgrid(s, s), axis=-1)
        mul = theory.product_network(k, BOUND)
        axes = np.stack([np.r_[s, 0 * s], np.r_[0 * s, s]], axis=-1)
        values = {
            "square error": excess.max(),
            "square undershoot": excess.min(),
            "square parameters": float(q.parameters),
            "product error": np.abs(mul(pairs) - pairs.prod(axis=-1)).max(),
            "product on axes": np.abs(mul(axes)).max(),
        }
        rows += [(0, name, "", 0, 0, float(k), float(value)) for name, value in values.items()]
    return rows


def _depths(case: Case) -> list[Row]:
    """The first depth that is not refused; the error of squared distances there, and one below."""
    corner = np.zeros((1, case.d))
    clean, width = calculus.affine(np.ones((1, case.d))), 1 + 2 * DELTA
    least = next(k for k in range(1, 20) if _accepted(corner, clean, k))
    rows = [(0, "least depth", "", 0, case.d, 0.0, float(least))]
    for name, k in (("error at least depth", least), ("error one below", least - 1)):
        # In the middle of a cell every square errs by all it can.
        middle = -DELTA + width * (0.5 + 2 ** (k - 1)) / 2**k * np.ones(case.d)
        network = calculus.squared_distances(corner, k, -DELTA, width)
        error = float(network(middle)) - float(middle @ middle)
        room = SEPARATION * (SEPARATION - 2 * DELTA)
        rows.append((0, name, "", 0, case.d, float(k), error / room))
    return rows


def _accepted(points: np.ndarray, clean: calculus.Network, depth: int) -> bool:
    try:
        theory.cgro_plan(points, [1.0], clean, DELTA, SEPARATION, depth)
    except AdvlabError:
        return False
    return True


def predicted_depth(d: int) -> int:
    """The least k above log2(D (1 + 2 delta)^2 / (4 sep (sep - 2 delta)))/2."""
    room = SEPARATION * (SEPARATION - 2 * DELTA)
    return int(np.floor(np.log2(d * (1 + 2 * DELTA) ** 2 / (4 * room)) / 2)) + 1


def _classifiers(case: Case) -> list[Row]:
    return [row for seed in case.seeds for row in classifiers(case, seed)]


def _steep(case: Case) -> list[Row]:
    return [row for seed in case.seeds for row in steep_classifiers(case, seed)]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    return [
        *_block_verdicts(claims, table),
        claims.below("15a", _total(table, "clean test"), 1e-9, what="sum of clean test errors"),
        claims.below("15b", _total(table, "robust train"), 1e-9,
            what="sum of robust training errors"),
        claims.within("15c", _gaps(table), -0.02, 0.02,
            what="robust test error less that of the clean classifier"),
        *_depth_verdicts(claims, table),
        claims.above("15f", _masked(table), 0.2,
            what="robust test error by transfer less that by PGD on f_S"),
        claims.below("16a", _bends(table), 1e-9,
            what="change of the slope in N, parameters per point"),
        claims.within("16b", _per_dimension(table), 0.999, 1.001,
            what="parameters per point and dimension / (20k, 1 or 6)"),
        claims.below("16c", _total(table, "disagreements"), 1, what="number of points that differ"),
    ]  # fmt: skip


def _block_verdicts(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    square, k = _curve(table, "square error")
    allowed = 4 * BOUND**2 * 2.0 ** (-2 * k - 2)
    sizes = np.abs(_curve(table, "square parameters")[0] - (20 * k - 7)).max()
    return [
        claims.below("14a", np.abs(square - 2.0 ** (-2 * k - 2)).max(), 1e-12,
            what="|largest error - 2^(-2k-2)|, the largest over k"),
        claims.above("14b", _curve(table, "square undershoot")[0].min(), -1e-12,
            what="least q(x) - x^2"),
        claims.below("14c", sizes, 1, what="|parameters - (20k - 7)|, the largest over k"),
        claims.below("14d", (_curve(table, "product error")[0] / allowed).max(), 1 + 1e-9,
            what="product error / bound, the largest over k"),
        claims.below("14e", _curve(table, "product on axes")[0].max(), 1e-12,
            what="|mul| on the axes"),
    ]  # fmt: skip


def _depth_verdicts(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    found = table.filter(quantity="least depth")
    off = sum(abs(value - predicted_depth(d)) for d, value in found.select("d", "value").rows())
    fits = table.filter(quantity="error at least depth")["value"]
    misses = table.filter(quantity="error one below")["value"]
    # One number for both: the error where it must fit, and the room where it must not.
    worst = max([*fits, *(1 / misses)]) if len(misses) else float("nan")
    return [
        claims.below("15d", off if len(found) else float("nan"), 1,
            what="sum of |least depth - predicted|"),
        claims.below("15e", worst, 1,
            what="the larger of error/room at the least depth and room/error one below"),
    ]  # fmt: skip


def _curve(table: pl.DataFrame, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    rows = table.filter(quantity=quantity).sort("x")
    return rows["value"].to_numpy(), rows["x"].to_numpy()


def _total(table: pl.DataFrame, quantity: str) -> float:
    rows = table.filter(quantity=quantity)
    return float(rows["value"].sum()) if len(rows) else float("nan")


def _gaps(table: pl.DataFrame) -> dict:
    keys = ["seed", "network", "n", "d"]
    ours = table.filter(quantity="robust test")
    clean = table.filter(quantity="robust test of the clean classifier")
    both = ours.join(clean, on=keys, suffix=" clean")
    gap = both.with_columns(gap=pl.col("value") - pl.col("value clean"))
    return groups(gap, "gap", "network", "n", "d")


def _masked(table: pl.DataFrame) -> dict:
    """What transfer finds and PGD does not, around the steep classifier."""
    steep = table.filter(pl.col("network").str.ends_with("steep"))
    found, sought = (steep.filter(quantity=f"robust test by {way}") for way in ("transfer", "PGD"))
    both = found.join(sought, on=["seed", "network", "n", "d"], suffix=" PGD")
    gap = both.with_columns(gap=pl.col("value") - pl.col("value PGD"))
    return groups(gap, "gap", "network", "d")


def _slopes(table: pl.DataFrame) -> dict[tuple[str, int], np.ndarray]:
    """For each network and d, parameters per point from each N to the next."""
    sizes = table.filter(quantity="parameters").group_by("network", "d", "n").agg(
        pl.col("value").max()
    )  # fmt: skip
    found = {}
    for (name, d), rows in sizes.sort("n").partition_by("network", "d", as_dict=True).items():
        n, size = rows["n"].to_numpy(), rows["value"].to_numpy()
        found[str(name), int(d)] = np.diff(size) / np.diff(n)
    return found


def _bends(table: pl.DataFrame) -> float:
    slopes = _slopes(table)
    return max((float(np.ptp(one)) for one in slopes.values() if len(one)), default=float("nan"))


def _per_dimension(table: pl.DataFrame) -> dict[str, float]:
    """How the slope grows with D, from the least D to the largest, next to what is claimed."""
    slopes = _slopes(table)
    found = {}
    for name, claimed in PER_DIMENSION.items():
        mine = {d: one[0] for (way, d), one in slopes.items() if way == name and len(one)}
        low, high = min(mine, default=0), max(mine, default=0)
        found[name] = (mine[high] - mine[low]) / (high - low) / claimed if high > low else np.nan
    return found
