"""Tangent kernels: closed forms, and which antipodal labels each activation can fit.

Section 5.2 asks for a kernel whose functions can fit any compatible labels. On the unit sphere only
a universal kernel does. K(c) = sum_k h_k^2 c^(k+1): the kernels of most activations hold functions
of one parity, and finitely many polynomials of the other. Appendix C.2 says that quadratic ReLU
holds even functions; it holds odd ones and quadratic forms. So pairs x, -x of equal labels
are out of its reach, and pairs of opposite labels out of that of ReLU. Lifting x to (x, 1)/sqrt(2),
or the activation sin + cos, puts it right.

Ten antipodal pairs in R^3, more than the six quadratic forms can fit; kernel ridge regression with
a ridge of 1e-9 fits what the kernel holds. Residuals are the largest |g(x_i) - y_i|.
"""

import math
from typing import Literal

import numpy as np
import polars as pl

from .... import lab
from ....core.randomness import generator
from ....report import Claims, Verdict, charts, identity, theorem
from ....report.samples import groups
from .. import theory
from ..data import Antipodes

ABOUT = lab.About(
    paper="convergence",
    item="Section 5.2 and appendix C.2",
    title="Tangent kernels, their parity, and the lifting that cures it",
    seconds={"smoke": 3, "laptop": 15, "paper": 100},
    looks=2,
    claims={
        "10a": identity("Closed forms of smooth kernels are those of the quadrature"),
        "10b": identity(
            "Closed forms for ReLU and quadratic ReLU are the means of samples, within 0.005"
        ),
        "10c": identity("Gram matrices are positive semi-definite"),
        "11a": theorem(
            "Quadratic ReLU holds odd functions and quadratic forms: its Gram "
            "matrix has an even part of rank d(d+1)/2 and an odd part of full rank"
        ),
        "11b": theorem("ReLU holds even functions and linear ones: an odd part of rank d"),
        "a": theorem("Quadratic ReLU and erf cannot fit equal labels at ten antipodal pairs"),
        "b": theorem("ReLU cannot fit opposite labels at ten antipodal pairs"),
        "c": theorem("and the other labels they fit, as does sin + cos all of them"),
        "d": theorem("Lifted, every activation fits both"),
        "e": theorem("Hermite coefficients foretell which activation fits which labels"),
    },
)
NAME = "convergence/kernel_parity, four times the samples"
SMOOTH = ("erf", "gaussian_relu", "gelu", "sin", "sin_cos")
KINKED = ("relu", "quadratic_relu")
SHOWN = {"relu": "ReLU", "gelu": "GELU", "quadratic_relu": "quadratic ReLU", "erf": "erf",
         "sin": "sin", "sin_cos": "sin + cos"}  # fmt: skip
COSINES = (-0.9, -0.4, 0.3, 0.8)
SAMPLED = 0.005
"""Formulas without the factor c, or off by a factor of two, miss some mean by ten times this."""
RIDGE, FITS = 1e-9, 0.1
"""A fit leaves no label with a larger residual than this."""

Part = Literal["kernels", "antipodes"]


class Case(lab.Case):
    part: Part
    samples: int = 800_000
    pairs: int = 10
    points: int = 60

    @property
    def cost(self) -> float:
        return self.replicates * (5.0 if self.part == "kernels" else 1.0)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, samples = {"smoke": (3, 20_000), "laptop": (30, 800_000), "paper": (100, 800_000)}[scale]
    return [
        Case(part=part, samples=samples, **block)
        for part in ("kernels", "antipodes")
        for block in lab.blocks(seeds or usual, 10)
    ]


def compute(case: Case) -> pl.DataFrame:
    measure = {"kernels": _kernels, "antipodes": _antipodes}[case.part]
    rows = [{"seed": seed, **row} for seed in case.seeds for row in measure(case, seed)]
    return pl.DataFrame(rows, schema=SCHEMA)


SCHEMA = {"seed": pl.Int64, "activation": pl.String, "quantity": pl.String, "labels": pl.String,
          "inputs": pl.String, "at": pl.Float64, "value": pl.Float64}  # fmt: skip


def _row(
    activation: str, quantity: str, value: float, at: float | None = None, *,
    labels: str | None = None, inputs: str | None = None,
) -> dict:  # fmt: skip
    return {
        "activation": activation, "quantity": quantity, "labels": labels, "inputs": inputs,
        "at": at, "value": float(value),
    }  # fmt: skip


def _kernels(case: Case, seed: int) -> list[dict]:
    rng = np.random.default_rng(generator(NAME, "kernels", seed).initial_seed())
    cosines = np.r_[rng.uniform(-1, 1, 6), -1.0, 1.0]
    rows = [
        _row(
            name,
            "gap",
            np.abs(theory.kernel(name, cosines) - theory.kernel_by_quadrature(name, cosines)).max(),
        )
        for name in SMOOTH
    ]
    u, z = rng.standard_normal((2, case.samples))
    for name in KINKED:
        slope = theory.get_activation(name).dphi
        for c in COSINES:
            sampled = c * slope(u) * slope(c * u + np.sqrt(1 - c**2) * z)
            rows.append(_row(name, "sampled", sampled.mean(), c))
            rows.append(_row(name, "error", sampled.std() / np.sqrt(case.samples), c))
    return rows + _matrices(case, rng)


def _matrices(case: Case, rng: np.random.Generator) -> list[dict]:
    """Least eigenvalues on points and some antipodes, and the ranks of both parities."""
    rows = []
    for d in (3, 4, 5):
        x = rng.standard_normal((case.points, d))
        x /= np.linalg.norm(x, axis=1)[:, None]
        both = np.concatenate([x, -x[:10]])
        for name in (*SMOOTH, *KINKED):
            values = np.linalg.eigvalsh(theory.gram(name, both))
            rows.append(_row(name, "eigenvalue", values[0] / values[-1], d))
        for name in KINKED:
            ranks = theory.parity_ranks(name, x)
            rows.append(_row(name, "even rank", ranks.even, d))
            rows.append(_row(name, "odd rank", ranks.odd, d))
    return rows


def _antipodes(case: Case, seed: int) -> list[dict]:
    rows = []
    for labels in ("equal", "opposite"):
        law = Antipodes(n=2 * case.pairs, d=3, labels=labels)
        x, y = (part.numpy() for part in law.sample(generator(NAME, labels, seed)))
        for inputs, points in (("raw", x), ("lifted", theory.lifted(x))):
            for name in (*SMOOTH, *KINKED):
                g = _ridge(theory.gram(name, points), y)
                found = {"residual": np.abs(g - y).max(), "accuracy": (g * y > 0).mean()}
                for quantity, value in found.items():
                    rows.append(_row(name, quantity, value, labels=labels, inputs=inputs))
    return rows


def _ridge(gram: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Fitted values; by eigenvectors, which a matrix of low rank does not upset."""
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    return vectors @ (values / (values + RIDGE) * (vectors.T @ y))


def figure(table: pl.DataFrame) -> charts.AnyChart:
    shown = table.filter(pl.col("activation").is_in(list(SHOWN))).with_columns(
        pl.col("activation").replace(SHOWN)
    )
    fits = shown.filter(quantity="residual")
    order = pl.DataFrame({"activation": list(SHOWN.values())})
    fits = order.join(fits, on="activation", maintain_order="left_right")
    c = np.linspace(-1, 1, 101)
    curves = pl.concat(
        pl.DataFrame(
            {"c": c, "activation": label, "K": theory.kernel(name, c) / theory.kernel(name, 1)}
        )
        for name, label in SHOWN.items()
    )
    level, least = pl.DataFrame({"value": [FITS]}), float(fits["value"].log10().to_numpy().min())
    ends = 10.0 ** math.floor(least), 10.0
    panels = [
        charts.points(fits.filter(labels=labels), "activation", "value", "inputs", log_y=True,
                      theory=level, y_title="largest residual", y_domain=ends,
                      band="quartiles", title=f"{labels} labels at x and -x; a fit is below dashed")
        for labels in ("equal", "opposite")
    ]  # fmt: skip
    kernels = charts.curves(
        curves, "c", "K", "activation", title="tangent kernels", x_title="c = <x, y>",
        y_title="K(c) / K(1)", apart=True,
    )  # fmt: skip
    return charts.stacked(charts.panels(panels, columns=2), charts.panels([kernels]))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    gap = table.filter(quantity="gap")["value"].to_numpy()
    least = table.filter(quantity="eigenvalue")["value"].to_numpy()
    fitted = f"largest residual below {FITS}"
    return [
        claims.below("10a", gap.max(), 1e-8, what="largest |closed form - quadrature|"),
        claims.equal("10b", _sampled(table), 0, SAMPLED,
            what="mean of samples less closed form"),
        claims.above("10c", least.min(), -1e-10, what="least / largest eigenvalue"),
        claims.every("11a", _ranks(table, "quadratic_relu"),
            what="even part of rank d(d+1)/2 and odd part of full rank for d = 3, 4, 5"),
        claims.every("11b", _ranks(table, "relu"), what="rank d of the odd part for d = 3, 4, 5"),
        claims.every("a", _held(table, False, [("quadratic_relu", "equal", "raw"),
            ("erf", "equal", "raw")]), what=f"no {fitted}"),
        claims.every("b", _held(table, False, [("relu", "opposite", "raw")]), what=f"no {fitted}"),
        claims.every("c", _held(table, True, [
            ("quadratic_relu", "opposite", "raw"), ("erf", "opposite", "raw"),
            ("relu", "equal", "raw"), ("sin_cos", "equal", "raw"),
            ("sin_cos", "opposite", "raw")]), what=fitted),
        claims.every("d", _held(table, True, [(name, labels, "lifted")
            for name in (*SMOOTH, *KINKED) for labels in ("equal", "opposite")]),
            what=fitted),
        claims.every("e", _foretold(table),
            what=f"{fitted} if and only if the parity is there without end"),
    ]  # fmt: skip


def _sampled(table: pl.DataFrame) -> dict[str, pl.Series]:
    """For each kernel and c, what the means of the seeds are off the closed form."""
    rows = table.filter(quantity="sampled")
    exact = [theory.kernel(name, c) for name, c in rows.select("activation", "at").iter_rows()]
    return groups(rows.with_columns(off=pl.col("value") - pl.Series(exact)), "off", "activation",
                  "at")  # fmt: skip


def _ranks(table: pl.DataFrame, name: str) -> pl.Series:
    """Of each seed, whether the ranks are as claimed in every dimension."""
    rows = table.filter(activation=name)
    even, odd = (
        rows.filter(quantity=f"{parity} rank").select("seed", "at", pl.col("value").alias(parity))
        for parity in ("even", "odd")
    )
    d, points = pl.col("at"), Case(part="kernels").points
    quadratic = (pl.col("even") == d * (d + 1) / 2) & (pl.col("odd") == points)
    claim = quadratic if name == "quadratic_relu" else pl.col("odd") == d
    found = even.join(odd, on=["seed", "at"]).group_by("seed").agg(holds=claim.all())
    return found.sort("seed")["holds"]


def _held(table: pl.DataFrame, fits: bool, settings: list[tuple[str, str, str]]) -> pl.Series:
    """Of each seed, whether all of these (activation, labels, inputs) fit, or all do not."""
    rows = table.filter(quantity="residual").join(
        pl.DataFrame(settings, schema=["activation", "labels", "inputs"], orient="row"),
        on=["activation", "labels", "inputs"],
        how="semi",
    )
    same = ((pl.col("value") < FITS) == fits).all() & (pl.len() == len(settings))
    return rows.group_by("seed").agg(holds=same).sort("seed")["holds"]


def _foretold(table: pl.DataFrame) -> pl.Series:
    expected = []
    for name in (*SMOOTH, *KINKED):
        parity = theory.parity(name)
        for labels, degree in (("equal", parity.even), ("opposite", parity.odd)):
            expected.append({"activation": name, "labels": labels, "holds": degree == np.inf})
    rows = table.filter(quantity="residual", inputs="raw").join(
        pl.DataFrame(expected), on=["activation", "labels"]
    )
    right = ((pl.col("value") < FITS) == pl.col("holds")).all()
    return rows.group_by("seed").agg(right=right).sort("seed")["right"]
