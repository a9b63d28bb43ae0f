r"""Low complexity is not robust: linear rules and the tangent kernel, next to what they could be.

- Section 3, linear rules on the finite presets: the direction M w* is right on every clean input,
  and its robust accuracy is exact. Adversarial training of a linear rule is judged at the best
  point of its path (it drifts to 0), chosen on the test points, which can only flatter it.
- Theorem 5.6, tangent models $p(x) = \sum_i \langle v_i, x \rangle G_i(x)$ with 256 random
  features, 250 Adam steps, gates of b = 1 and sigma = 0.5. A lower bound on robust error cannot be
  seen by training: this is a recipe or two, judged by PGD. The most robust of the gates that were
  tried has a claim of its own ("best"; the paper's README lists the trials).
- Definition 5.5 as printed (a minus between the indicators) is even: right on one of x, -x.
- Closed forms: the smoothed ReLU of section 4 against 2 million draws, input gradients (Fact A.1)
  against differences, the Taylor series of Claim G.6 against scipy.
- Lemma G.4: ||T_4||_F / (max ||v_i||/sqrt(d)) over d at m = d, for Gaussian v and for the worst v:
  its ratio is the exact minimum over all v, at d up to 48, as it is an eigenvalue of a matrix with
  d^4 entries. The lemma has no constant, so only the trend is told.

At these sizes no theorem speaks (k is above sqrt(d)); the table says so for every radius.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveInt
from scipy.special import ndtr

from .... import lab
from ....core.randomness import generator
from ....report import Assumption, Claim, Claims, Verdict, empirical, identity, theorem
from ....report.rules import Samples
from ....report.samples import slopes
from .. import theory
from ..measures import claimed_norm, least_ratio, symmetric_tensor_norm
from ..models import SymmetricReLU, TangentReLU
from ..models.symmetric_relu import smooth_relu
from ._parts.conditions import NTK, REDUCED, assumptions_of, kernel_window
from ._parts.linear_and_ntk_figure import figure as figure
from ._parts.linear_and_ntk_runs import (
    FEATURES,
    LINEAR_STEPS,
    RECIPES,
    STEPS,
    attacked,
    closed_accuracy,
    linear_rows,
    resized,
    tangent,
    theory_statement,
)
from ._parts.presets import SparseProblem

Name = Literal["random", "wide_margin"]
NAMES: tuple[Name, ...] = ("random", "wide_margin")
STREAM = "purification/ntk decisive"
"""Not the streams of the trials."""
POWER = 3
"""r of Lemma G.4, which asks for r >= 3C where m = d^C."""


def _claims(preset: Name) -> dict[str, Claim]:
    return {
        f"16/{preset}/clean": identity("The linear oracle is right on every clean input"),
        f"16/{preset}/oracle": empirical("but its exact robust accuracy is below 0.1"),
        f"16/{preset}/trained": empirical("as is that of every point of adversarial training"),
        f"17/{preset}/clean": empirical("Adversarially trained, the tangent kernel keeps a clean "
                                        "accuracy above 0.95"),
        f"17/{preset}/robust": theorem("but has a PGD accuracy below 0.5", NTK),
        f"17/{preset}/best": theorem("also with the gates that were most robust in trials", NTK),
        f"17/{preset}/plain": empirical("Clean-trained, its PGD accuracy is below 0.1"),
        f"18/{preset}/closed": identity("As printed it is even: on a set closed under x -> -x its "
                                        "accuracy is exactly 1/2"),
        f"18/{preset}/random": identity("and on a random set 1/2 to 0.03"),
    }  # fmt: skip


ABOUT = lab.About(
    paper="purification",
    item="Section 3, Theorem 5.6 and appendix G",
    title="Linear rules and the tangent kernel are not robust",
    seconds={"smoke": 10, "laptop": 70, "paper": 1000},
    looks=1,
    reduced=dict.fromkeys(("laptop", "paper"), REDUCED),
    claims={
        **_claims("random"),
        **_claims("wide_margin"),
        "21/relu": identity("The smoothed ReLU is its Monte Carlo mean to 1e-3"),
        "21/gradients": identity("Input gradients are finite differences to 1e-6"),
        "21/taylor": identity("The corrected Taylor series give scipy's functions to 1e-10"),
        "G4": theorem("The tensors of Lemma G.4 are not short: their ratio does not vanish"),
    },
)
SCHEMA = {"seed": pl.Int64, "model": pl.String, "quantity": pl.String,
          "x": pl.Float64, "value": pl.Float64}  # fmt: skip
Row = tuple[int, str, str, float, float]
"""Seed, model, quantity, x and value."""


class Case(lab.Case):
    """One part of the experiment, on one preset, for a block of seeds; `walk` is PGD's steps."""

    part: Literal["linear", "tangent", "closed forms", "tensors"]
    preset: Name = "random"
    d: PositiveInt = 256
    pool: PositiveInt = 30_000
    tests: PositiveInt = 2000
    features: PositiveInt = FEATURES
    steps: PositiveInt = STEPS
    linear_steps: PositiveInt = LINEAR_STEPS
    walk: PositiveInt = 40
    draws: PositiveInt = 2_000_000
    dims: tuple[PositiveInt, ...] = (32, 64, 128, 256, 512)
    exact_dims: tuple[PositiveInt, ...] = (8, 12, 16, 24, 32, 48)

    @property
    def cost(self) -> float:
        return {"linear": 10.0, "tangent": 120.0, "closed forms": 2.0, "tensors": 20.0}[self.part]


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {
        "smoke": (3, {"d": 36, "pool": 300, "tests": 100, "features": 20, "steps": 15,
                      "linear_steps": 20, "walk": 5, "draws": 100_000, "dims": (8, 16, 32),
                      "exact_dims": (4, 8)}),
        "laptop": (5, {}),
        "paper": (10, {"dims": (32, 64, 128, 256, 512, 1024)}),
    }[scale]  # fmt: skip
    parts: tuple[Literal["tangent", "linear"], ...] = ("tangent", "linear")
    return [
        case
        for block in lab.blocks(seeds or usual, 5)
        for case in (
            *(Case(part=part, preset=name, **some, **block) for part in parts for name in NAMES),
            Case(part="tensors", **some, **block),
            Case(part="closed forms", **some, **block),
        )
    ]


def compute(case: Case) -> pl.DataFrame:
    run = {"linear": _linear, "tangent": _tangent, "tensors": _tensors, "closed forms": _forms}
    rows = run[case.part](case)
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    said = theory_statement(resized(case.preset, case.d, case.pool))
    return table.with_columns(theory=pl.lit(said))


def _problem(case: Case) -> SparseProblem:
    preset = resized(case.preset, case.d, case.pool)
    return SparseProblem.draw(preset, case.seeds, f"{STREAM} {case.preset}", case.tests)


def _linear(case: Case) -> list[Row]:
    found, path = linear_rows(_problem(case), case.linear_steps)
    rows: list[Row] = []
    for name, values in found.items():
        model, quantity = name.split(" ")
        rows += _rows(case, f"linear, {model}", quantity, 0.0, values)
    for step, values in path.items():
        for quantity, some in values.items():
            rows += _rows(case, "linear path", quantity, float(step), some)
    return rows


def _tangent(case: Case) -> list[Row]:
    problem, rows = _problem(case), []
    for name, one in RECIPES.items():
        models = tangent(problem, one, case.features, case.steps)
        for attack, values in attacked(problem, models, case.walk).items():
            rows += _rows(case, name, attack, 0.0, values)
        if one.sign < 0:
            rows += _rows(case, name, "closed", 0.0, closed_accuracy(problem, models))
    return rows


def _rows(case: Case, model: str, quantity: str, x: float, values: torch.Tensor) -> list[Row]:
    return [
        (seed, model, quantity, x, value)
        for seed, value in zip(case.seeds, values.tolist(), strict=True)
    ]


def _tensors(case: Case) -> list[Row]:
    """||T_{r+1}||_F over max ||v_i||/sqrt(d), m = d."""
    rows: list[Row] = []
    for seed in case.seeds:
        for d in sorted({*case.dims, *case.exact_dims}):
            rng = generator(STREAM, "tensors", d, seed)
            w, v = (torch.randn(d, d, generator=rng, dtype=torch.float64) for _ in range(2))
            found = {}
            if d in case.dims:
                found["Gaussian v"] = symmetric_tensor_norm(v, w, POWER) / claimed_norm(v)
            if d in case.exact_dims:
                found["worst v"], _ = least_ratio(w, POWER)
            rows += [
                (seed, name, "tensor ratio", float(d), float(one)) for name, one in found.items()
            ]
    return rows


def _forms(case: Case) -> list[Row]:
    """Closed forms next to what they are closed forms of: the largest differences."""
    rows: list[Row] = []
    for seed in case.seeds:
        rng = generator(STREAM, "closed forms", seed)
        rows.append((seed, "SymmetricReLU", "Monte Carlo", 0.0, _sampled(case.draws, rng)))
        for name, gap in _differences(rng).items():
            rows.append((seed, name, "differences", 0.0, gap))
    x = np.linspace(-3, 3, 61)
    for terms in range(1, 41):
        gap = np.abs(theory.step_series(x, 1.0, terms) - ndtr(x)).max()
        density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
        other = np.abs(theory.density_series(x, 1.0, terms) - density).max()
        rows.append((case.seed, "step", "taylor", float(terms), float(gap)))
        rows.append((case.seed, "density", "taylor", float(terms), float(other)))
    return rows


def _sampled(draws: int, rng: torch.Generator) -> float:
    """|mean ReLU(v + rho) - S(v)| at sigma = 0.1, the largest over v in [-0.3, 0.3]."""
    v = torch.linspace(-0.3, 0.3, 7, dtype=torch.float64)
    rho = 0.1 * torch.randn(draws, generator=rng, dtype=torch.float64)
    means = torch.stack([(one + rho).relu().mean() for one in v])
    return float((means - smooth_relu(v, 0.1)).abs().max())


@torch.no_grad()
def _differences(rng: torch.Generator, step: float = 1e-5) -> dict[str, float]:
    """Input gradients against central differences, of a network and both tangent models."""
    d, m = 12, 30
    x, w, v = (torch.randn(n, d, generator=rng, dtype=torch.float64) / d**0.5
               for n in (20, m, m))  # fmt: skip
    models = {"SymmetricReLU": SymmetricReLU(w, 0.2, 0.3), "NTK": TangentReLU(v, w, 0.2, 0.3),
              "NTK as printed": TangentReLU(v, w, 0.2, 0.3, -1)}  # fmt: skip
    moves = step * torch.eye(d, dtype=torch.float64)
    gaps = {}
    for name, net in models.items():
        slope = torch.stack([(net(x + e) - net(x - e)) / (2 * step) for e in moves], dim=1)
        gaps[name] = float((slope - net.input_gradient(x)).abs().max())
    return gaps


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    rows = table.filter(pl.col("model").str.starts_with("linear"))
    sizes = rows.select("preset", "d", "pool").unique(maintain_order=True).rows()
    presets = {name: resized(name, d, pool) for name, d, pool in sizes}
    return [kernel_window(presets.values()), *assumptions_of(presets)]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    found = [verdict for preset in NAMES for verdict in _preset_verdicts(claims, table, preset)]
    last = table.filter(quantity="taylor", x=40.0)
    return [
        *found,
        claims.below(
            "21/relu",
            _values(table, "SymmetricReLU", "Monte Carlo"),
            1e-3,
            what="largest |S - mean of draws|",
        ),
        claims.below(
            "21/gradients",
            _each(table, "differences"),
            1e-6,
            what="largest |gradient - differences|",
        ),
        claims.below(
            "21/taylor",
            max(last["value"], default=None),
            1e-10,
            what="largest error with 40 terms on [-3, 3]",
        ),
        _tensor_verdict(claims, table),
    ]


def _preset_verdicts(claims: Claims, table: pl.DataFrame, preset: Name) -> list[Verdict]:
    rows = table.filter(preset=preset)
    bounds = {
        f"16/{preset}/oracle": (claims.below, "linear, oracle", "robust", 0.1),
        f"16/{preset}/trained": (claims.below, "linear, trained", "robust", 0.1),
        f"17/{preset}/clean": (claims.above, "NTK, adversarial", "clean", 0.95),
        f"17/{preset}/robust": (claims.below, "NTK, adversarial", "pgd", 0.5),
        f"17/{preset}/best": (claims.below, "NTK, best trial", "pgd", 0.5),
        f"17/{preset}/plain": (claims.below, "NTK, clean", "pgd", 0.1),
    }
    # What is exact is decided by the worst seed: min and max both, where it has two sides.
    closed, even = (_values(rows, "NTK as printed", name) for name in ("closed", "clean"))
    sides = {"least": _exact(closed, min), "largest": _exact(closed, max)}
    oracle = _exact(_values(rows, "linear, oracle", "clean"), min)
    found = [
        claims.equal(f"16/{preset}/clean", oracle, 1, 0, what="least clean accuracy of any seed"),
        *(
            decide(label, _values(rows, model, quantity), bound, what=_WHAT[quantity])
            for label, (decide, model, quantity, bound) in bounds.items()
        ),
        claims.equal(f"18/{preset}/closed", sides, 0.5, 0, what=f"{_WHAT['closed']}, any seed,"),
        claims.equal(f"18/{preset}/random", even, 0.5, 0.03, what=_WHAT["clean"]),
    ]
    return [_noted(verdict, rows["theory"]) for verdict in found]


def _exact(values: pl.Series | None, pick: Callable) -> float | None:
    return None if values is None else float(pick(values))


_WHAT = {"clean": "clean accuracy", "robust": "exact robust accuracy", "pgd": "PGD accuracy",
         "closed": "accuracy on test points and their opposites"}  # fmt: skip


def _tensor_verdict(claims: Claims, table: pl.DataFrame) -> Verdict:
    rows = table.filter(quantity="tensor ratio")
    slope: Samples = {
        str(name): slopes(some, "x", "value")
        for (name,), some in rows.partition_by("model", as_dict=True, maintain_order=True).items()
    }
    return claims.trend("G4", slope, what="slope of log ratio against log d")


def _noted(verdict: Verdict, theory: pl.Series) -> Verdict:
    """With a note on what the theorems say at this size; the table has it in full."""
    words = f"the theorems are {theory[0].split(':')[0]} at this radius" if len(theory) else ""
    notes = [part for part in (verdict.note, words) if part]
    return verdict.model_copy(update={"note": "; ".join(notes)})


def _values(table: pl.DataFrame, model: str, quantity: str) -> pl.Series | None:
    """One value per replicate; None where there is none, which leaves a claim undecided."""
    rows = table.filter(model=model, quantity=quantity).sort("seed")
    return rows["value"] if len(rows) else None


def _each(table: pl.DataFrame, quantity: str) -> Samples:
    models = table.filter(quantity=quantity)["model"].unique(maintain_order=True)
    return {model: _values(table, model, quantity) for model in models}
