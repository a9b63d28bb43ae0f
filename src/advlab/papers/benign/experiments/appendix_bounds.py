"""Appendix B in numbers: both sides of its lemmas, and the constants that their orders hide.

The proofs of Theorem 3.1 go through inequalities with explicit constants (C1 = 10, C_r, C2) or with
constants of which they only say that there are some (c7, c8, c9). Each is measured at every step of
runs inside Assumption 1 (n = m = 76, alpha = 0.1 ||mu||, C = 10, by the law of the reduced
problem), as the share of its bound that is used, at most 1 where it holds; runs at smaller C show
the trend. Where the constant is open, it is the one that the run implies. c0 is the active share of
Lemma B.21 that the run has. The proof of Lemma B.30 gives c7 = c0 gamma/(6 C_r) and that of Lemma
B.33 c9 = 3 gamma c7/8 (`theory.c7`, `theory.normalised_margin_floor`); they take C so large that
B2 and B3 of Lemma B.30 are a quarter of B1 each. For smooth networks, of which Corollary B.31 does
not speak, c0 is 1 and C_r that of Lemma B.9.

Two paces: `assumed` has the step size of line (4), for five steps; `fast` has 2 n/d, for forty.

Footnote 1: at t = 0 the network is 0 and all points of a ball fare alike. Algorithm 1 takes the
data themselves, so that alpha may be as large as ||mu||; with a perturbation at t = 0 "we will need
alpha <= c ||mu|| for some c in [0, 1)". The runs of `footnote` take the worst there, x_i less
alpha y_i mu/||mu||, which leaves (1 - 2 beta) ||mu||^2 - alpha ||mu|| of the signal.
"""

import numpy as np
import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical, identity, ours, theorem
from ....report.charts import AnyChart, curves, panels, stacked
from ....report.samples import groups
from ..theory import smallest_inside
from ._parts import conditions
from ._parts.appendix_runs import AppendixCase as Case
from ._parts.appendix_runs import appendix_run
from ._parts.conditions import DELTA, NAME
from ._parts.lemmas_runs import SHAPES

EVERY = "in every good run, at every step"
ABOUT = lab.About(
    paper="benign",
    item="Appendix B, footnote 1",
    title="The inequalities of Appendix B and their constants",
    seconds={"smoke": 6, "laptop": 40, "paper": 1000},
    looks=4,
    claims={
        "B7": theorem(
            f"||grad L_rob||_F/(sqrt(C1 d) + alpha) <= G_rob <= min(L_rob, 1), {EVERY}", NAME
        ),
        "B8": theorem(
            "gradients of f at points of different balls have the products, and at points of one "
            f"ball the products and lengths, that Lemma B.8 says, {EVERY}", NAME
        ),
        "B15": theorem(
            "<-grad L_rob, V> is at least gamma/4 ||mu|| G_rob, times c0 without smoothness, "
            f"{EVERY}", NAME
        ),
        "B12": theorem(
            "||grad L_rob||_F <= C2 sqrt(d/n) G_rob (eq. 5), and ||W||_F grows by at most C2 eta "
            f"sqrt(d/n) sum G_rob, {EVERY}", NAME
        ),
        "loss": theorem(
            f"L_rob is below the bounds of Lemmas B.15, B.29 and Corollary B.16, {EVERY}", NAME
        ),
        "averaged": theorem(f"L_rob(W^T) <= (2/T) sum G_rob(W^t), {EVERY}", NAME),
        "norm": theorem(
            f"||W||_F^2 grows at most as in eq. 16 and Corollary B.16, {EVERY}", NAME
        ),
        "B13": theorem(
            "smooth: a step falls short of the linear part of Lemma B.13 by its curvature part at "
            f"most, on fresh points, with rho at least gamma^2, {EVERY}", NAME
        ),
        "secants": identity(
            "the secant coefficients of Proposition B.24 give the step of f on fresh points, to "
            "1e-10"
        ),
        "B24": theorem(
            "they lie in [0, 1], and lambda_i(x~_i) is at least gamma^2 |A^i(t) and A^i(t+1)|/m, "
            f"{EVERY} t >= 1", NAME
        ),
        "kept": ours(
            "and |A^i(t) and A^i(t+1)|/m, which may be 0 for all that the proposition says, is "
            f"above a quarter for every example {EVERY} t >= 1", NAME
        ),
        "B31": theorem(
            "a_s y <w_s, x> is at least c7 eta ||mu||^2 sum G_rob/(4 sqrt m), with c7 = c0 gamma/"
            "(6 C_r), for every neuron on every one of 100 fresh points (Corollary B.31 allows a "
            f"share of 4 (d/n)^(-11)), {EVERY} t >= 1", NAME
        ),
        "B32": theorem(
            f"|<w_s, x>| on fresh points is within Lemma B.32, with the c8 of its proof, {EVERY}",
            NAME,
        ),
        "B33": theorem(
            "the normalised margin is at least gamma^2/(32 C2), without smoothness c9/(16 C2) with "
            f"c9 = 3 gamma c7/8 and that c7, times ||mu||^2 sqrt(n/d), {EVERY} t >= 1", NAME
        ),
        "C2": ours("the runs of the fast pace imply a C2 of eq. 5 between 0.5 and 1", NAME),
        "c7": ours("and a c7 between 0.5 and 2", NAME),
        "c8": ours("and a c8 below 0.02", NAME),
        "margin": ours(
            "and a normalised margin between 0.3 and 0.5 of ||mu||^2 sqrt(n/d)", NAME
        ),
        "footnote": empirical(
            "with perturbed data at t = 0 and alpha = ||mu||/2 every run has robust training error "
            "0 at every t >= 1 and a clean test error of beta, up to 0.01, from t = 1 on", NAME
        ),
        "footnote_c": empirical(
            "with alpha = ||mu|| it has not: in every run the clean test error at t = 1 is above "
            "1/2, and without that perturbation it is beta, up to 0.01", NAME
        ),
        "c": ours(
            "the margin at t = 1 is 0 at alpha = (1 - 2 beta) ||mu||, up to 0.05 ||mu||: this is "
            "the footnote's c for the first step", NAME
        ),
        "restored": ours(
            "and yet with alpha = ||mu|| every run ends with a clean test error of beta, up to "
            "0.01: later steps restore what the first one lost", NAME
        ),
    },
)  # fmt: skip
CLAIMS = Claims(ABOUT.claims)
GRID = (0.3, 1.0, 3.0, 10.0)
RATIOS = (0.25, 0.5, 0.75, 1.0)
NAMES = {"smoothed_leaky_relu": "SLReLU", "leaky_relu": "leaky ReLU", "relu": "ReLU"}
ROUNDING = 1e-9


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual = {"smoke": 2, "laptop": 20, "paper": 100}[scale]
    steps, grid, ratios = 40, GRID, RATIOS
    if scale == "smoke":
        steps, grid, ratios = 3, GRID[3:], RATIOS[3:]
    lemmas = [
        *((C, {"pace": "fast", "steps": steps}) for C in grid),
        (10.0, {"pace": "assumed", "steps": 5}),
    ]
    settings = [
        *(
            _case(C, 0.1, 0.1, {**one, "activation": shape})
            for shape in SHAPES
            for C, one in lemmas
        ),
        *(
            _case(10.0, ratio, 1.0, {"kind": "footnote", "first": first, "activation": shape,
                                     "pace": "fast", "steps": steps})
            for shape in ("smoothed_leaky_relu", "relu")
            for ratio in ratios
            for first in ("clean", "against mu")
        ),
    ]  # fmt: skip
    return [Case(**one, **block) for one in settings for block in lab.blocks(seeds or usual, 20)]


def _case(C: float, ratio: float, within: float, one: dict) -> dict:
    """alpha = ratio ||mu||, in the smallest setting that allows `within` ||mu||."""
    sizes = {"n": 76, "width": 76, "tests": 200, **one}
    mu_norm, d = smallest_inside(C, 76, 76, within, DELTA)
    return {"C": C, "mu_norm": mu_norm, "d": d, "alpha": ratio * mu_norm, "delta": DELTA, **sizes}


def compute(case: Case) -> pl.DataFrame:
    return appendix_run(case)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """What the deciding runs reach."""
    found = conditions.settings(_inside(table))
    return [*conditions.reached(found), conditions.good_draws(found, flips="count")]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    inside = _inside(table).filter("good")
    lemmas, footnote = (inside.filter(pl.col("kind") == one) for one in ("lemmas", "footnote"))
    found = [_used(_every(label, lemmas, *one), lemmas) for label, one in _BOUNDS.items()]
    wrong = groups(lemmas, "secant error", "activation", "pace")
    found.append(CLAIMS.below("secants", wrong, 1e-10, what="error of the step by secants"))
    fast = lemmas.filter(pl.col("pace") == "fast")
    found += [
        CLAIMS.within("C2", groups(fast, "C2", "activation"), 0.5, 1, what="C2 of eq. 5"),
        CLAIMS.within("c7", groups(fast, "c7", "activation"), 0.5, 2, what="c7 of B.31"),
        CLAIMS.below("c8", groups(fast, "c8", "activation"), 0.02, what="c8 of B.32"),
        CLAIMS.within(
            "margin", groups(fast, "margin", "activation"), 0.3, 0.5,
            what="margin over ||mu||^2 sqrt(n/d)",
        ),
        *_footnote(footnote),
    ]  # fmt: skip
    order = list(ABOUT.claims)
    return sorted(found, key=lambda verdict: order.index(verdict.id))


def _inside(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("C") >= conditions.ASKED * (1 - ROUNDING))


_USED = pl.col("B.8"), pl.col("B.8 low")
_BOUNDS: dict[str, tuple[pl.Expr, str]] = {
    "B7": (pl.max_horizontal("B.7 gradient", "B.7 loss") <= 1 + ROUNDING, "Lemma B.7"),
    "B8": (pl.max_horizontal(*_USED) <= 1, "Lemma B.8"),
    "B15": (pl.col("B.15").is_between(0, 1), "the floor of Lemmas B.15 and B.29"),
    "B12": (pl.max_horizontal("eq. 5", "B.12") <= 1, "eq. 5 and Lemma B.12"),
    "loss": (pl.col("loss") <= 1, "the bounds of the training loss"),
    "averaged": (pl.col("averaged") <= 1, "the averaged bound"),
    "norm": (pl.col("B.16") <= 1, "the bound of the norm"),
    "B13": ((pl.col("B.13") <= 1) & (pl.col("rho") <= 1 + ROUNDING), "Lemma B.13"),
    "B24": (
        (pl.col("B.24") <= ROUNDING)
        & (pl.col("secant low") >= -ROUNDING)
        & (pl.col("secant high") <= 1 + ROUNDING),
        "Proposition B.24",
    ),
    "kept": (pl.col("kept") > 0.25, "|A^i(t) and A^i(t+1)|/m above a quarter"),
    "B31": (pl.col("B.31").is_between(0, 1), "Corollary B.31"),
    "B32": (pl.col("B.32") <= 1, "Lemma B.32"),
    "B33": (pl.col("B.33").is_between(0, 1), "the floor of Lemmas B.14 and B.33"),
}
"""When a run has an inequality, and its name."""


def _every(label: str, rows: pl.DataFrame, holds: pl.Expr, what: str) -> Verdict:
    """Of each seed, whether all its runs have it; not a number has not."""
    flags = rows.group_by("seed").agg(held=holds.fill_null(False).all()).sort("seed")["held"]
    return CLAIMS.every(label, flags, what=what)


_COLUMNS = {"B7": ("B.7 gradient", "B.7 loss"), "B8": ("B.8", "B.8 low"), "B15": ("B.15",),
            "B12": ("eq. 5", "B.12"), "loss": ("loss",), "averaged": ("averaged",),
            "norm": ("B.16",), "B13": ("B.13",), "B31": ("B.31",), "B32": ("B.32",),
            "B33": ("B.33",)}  # fmt: skip
"""The shares of bounds that a claim is about."""


def _used(verdict: Verdict, rows: pl.DataFrame) -> Verdict:
    """A verdict whose note also says how much of its bound a run uses; little means a loose one."""
    if verdict.id == "kept" and len(rows):
        said = f"the least is {rows['kept'].to_numpy().min():.3g}"
    else:
        seen = {one: rows[one].drop_nulls().drop_nans() for one in _COLUMNS.get(verdict.id, ())}
        shares = (f"{name} {max(values):.2g}" for name, values in seen.items() if len(values))
        found = ", ".join(shares)
        said = f"the largest share of the bound that a run uses: {found}" if found else ""
    return verdict.model_copy(update={"note": "; ".join(filter(None, (verdict.note, said)))})


def _footnote(rows: pl.DataFrame) -> list[Verdict]:
    runs = rows.with_columns(ratio=(pl.col("alpha") / pl.col("mu_norm")).round(6))
    at_beta = [
        (pl.col(name) - pl.col("beta")).abs() <= 0.01 for name in ("first error", "clean error")
    ]
    moved = pl.col("first") == "against mu"
    half, whole = (runs.filter(pl.col("ratio") == one) for one in (0.5, 1.0))
    fails = pl.when(moved).then(pl.col("first error") > 0.5).otherwise(at_beta[0])
    fine = at_beta[0] & at_beta[1] & (pl.col("training error") == 0)
    crossings = {
        shape: [
            _crossing(one) for _, one in sorted(part.partition_by("seed", as_dict=True).items())
        ]
        for (shape,), part in runs.filter(moved).partition_by("activation", as_dict=True).items()
    }
    beta = float(runs["beta"].to_numpy().mean()) if len(runs) else 0.1
    return [
        _every("footnote", half.filter(moved), fine, "training error 0 and clean error of beta"),
        _every("footnote_c", whole, fails, "an error above 1/2, and beta without the move"),
        CLAIMS.equal("c", crossings, 1 - 2 * beta, 0.05, what="alpha/||mu|| of a margin of 0"),
        _every("restored", whole.filter(moved), at_beta[1], "a clean error of beta at the end"),
    ]


def _crossing(rows: pl.DataFrame) -> float:
    """Where the line through the margins at t = 1 is 0."""
    if rows["ratio"].n_unique() < 2:
        return np.nan
    slope, at_0 = np.polyfit(rows["ratio"].to_numpy(), rows["first margin"].to_numpy(), 1)
    return float(-at_0 / slope) if slope else np.nan


def figure(table: pl.DataFrame) -> AnyChart:
    runs = table.with_columns(network=pl.col("activation").replace_strict(NAMES))
    fast = runs.filter(pl.col("kind") == "lemmas", pl.col("pace") == "fast")
    fast = fast.with_columns(slack=-pl.col("B.24"))
    smooth = fast.filter(pl.col("activation") == "smoothed_leaky_relu")
    used = [
        curves(smooth if name in SMOOTH else fast, "C", name, "network", title=title,
               x_title="C of Assumption 1", y_title="share of the bound", log_x=True, log_y=True)
        for name, title in USED.items()
    ]  # fmt: skip
    others = [
        curves(fast, "C", name, "network", title=title, x_title="C of Assumption 1", y_title=what,
               log_x=True, log_y=name == "secant error")
        for name, (title, what) in OTHERS.items()
    ]  # fmt: skip
    return stacked(panels([*used, *others], columns=3), panels(_first_steps(runs)))


SMOOTH = ("B.13",)
"""Lemmas for smooth activations alone."""
USED = {
    "B.7 gradient": "Lemma B.7: gradient below G_rob",
    "B.7 loss": "Lemma B.7: G_rob below L_rob",
    "B.8": "Lemma B.8: products of gradients",
    "B.15": "Lemmas B.15, B.29: descent along V",
    "eq. 5": "eq. 5: gradient, with its C_2",
    "B.12": "Lemma B.12: growth of W",
    "B.16": "eq. 16, Corollary B.16: growth of ||W||²",
    "B.13": "Lemma B.13: curvature of a step",
    "loss": "Lemmas B.15, B.29: loss",
    "averaged": "L_rob over (2/T) Σ G_rob",
    "B.31": "Corollary B.31: margin of a neuron",
    "B.32": "Lemma B.32: size of a neuron",
    "B.33": "Lemmas B.14, B.33: margin",
}
"""Columns with the share of a bound that is used, and the titles of their panels."""
OTHERS = {
    "secant low": ("Proposition B.24: λ_i of fresh points", "the least, at least 0"),
    "secant high": ("Proposition B.24: λ_i of fresh points", "the largest, at most 1"),
    "slack": ("Proposition B.24: λ_i less its floor", "the least, at least 0"),
    "kept": ("Proposition B.24: |A^i(t) and A^i(t+1)|/m", "the least"),
    "secant error": ("Proposition B.24: the step by secants", "relative error"),
    "C2": ("Implied C_2 of eq. 5", "constant"),
    "C2 of B.12": ("Implied C_2 of Lemma B.12", "constant"),
    "c7": ("Implied c_7 of B.31", "constant"),
    "c8": ("Implied c_8 of B.32", "constant"),
    "margin": ("Implied constant of B.14, B.33", "margin over ||mu||² sqrt(n/d)"),
}
"""Other columns: titles of the panel and of its axis."""


def _first_steps(runs: pl.DataFrame) -> list[AnyChart]:
    rows = runs.filter(pl.col("kind") == "footnote").with_columns(
        ratio=pl.col("alpha") / pl.col("mu_norm"),
        run=pl.col("network") + pl.col("first").replace_strict(
            {"clean": ", data at t = 0", "against mu": ", moved at t = 0"}),
    )  # fmt: skip
    return [
        curves(rows, "ratio", name, "run", title=title, x_title="alpha/||mu||",
               y_title="over ||mu||² sqrt(n/d)")
        for name, title in (
            ("first margin", "Footnote 1: margin at t = 1"),
            ("margin", "Footnote 1: margin at the end"),
        )
    ]  # fmt: skip
