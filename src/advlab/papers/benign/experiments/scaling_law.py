"""The paper's message as a scaling law: error in n, d, ||mu|| and alpha (Theorem 3.1, Section 3.4).

Theorem 3.1 bounds the clean test error by beta + 2 exp(-c (S/C)^2) and the robust one by
beta + 2 exp(-c (S/C - alpha)^2), where S = sqrt(n/d) ||mu||^2 and lam = 1. So n, d and ||mu||
should matter through S alone, and alpha by what it takes from S/C. If p is the error on clean
labels (the clean test error is beta + (1 - 2 beta) p), then m = -Phi^(-1)(p) is the margin of a
linear rule of that error, and the law is m = S/C, m = S/C - alpha under attack. Errors collapse
where margins do.

From a base at S = 2 (n = 80, d = 3.2e6, ||mu|| = 20, alpha = 1/2), each of n, d and ||mu|| moves S
from 1 to 4; alpha goes to 4 where each of them reaches S = 4. At alpha = 2 each of them moves S
across the threshold alpha = S/C. A grid of S, reached by d, and alpha shows whether margins
collapse on S - alpha. At ||mu|| = 60 the ratio n ||mu||^2/d goes from 0.01 to 10.

Where fresh points can show an error, S is 4 at most. Conditions (A1) and (B2) want an S of 20 and
more at C = 10. So errors are measured by importance sampling (`measures.rare_errors`), also inside
Assumption 1, where they are about 1e-250. Robust errors are those that PGD-20 finds: lower bounds.

The discussion of Theorem 3.2 says that upper and lower bound satisfy UBD - beta =
(LBD - beta)^O(n ||mu||^2/d). The exponent of the networks themselves, with their excess
(1 - 2 beta) p in place of UBD - beta, is E = log((1 - 2 beta) p)/log(LBD - beta). The bounds
roughly match, it goes on, when n ||mu||^2/d = Omega(1); line (1) of Assumption 1 keeps that ratio
at 1/C and below, so that ratios of 1 and more are outside of it.
"""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical, ours, theorem
from ....report.samples import groups
from ..theory import clean_upper_bound, fit_C, robust_upper_bound, smallest_inside
from ._parts import conditions
from ._parts.conditions import ASKED, DELTA, NAME
from ._parts.scaling_figure import ROUTES
from ._parts.scaling_figure import figure as figure
from ._parts.scaling_runs import ScalingCase as Case
from ._parts.scaling_runs import scaling_run, strengths
from ._parts.scaling_thresholds import ACROSS, MOVED, along, drifts, thresholds

NEAR = 0.1
"""How near margins over S must be. A wrong power of n, d or ||mu|| is off by 0.2 at least."""
ABOUT = lab.About(
    paper="benign",
    item="Theorem 3.1, Section 3.4",
    title="The scaling law of benign overfitting: n, d, ||mu|| and alpha",
    seconds={"smoke": 5, "laptop": 210, "paper": 1100},
    looks=2,
    reduced={"laptop": "width 20, 60 steps; the paper trains until the loss is below any epsilon"},
    claims={
        "n": empirical("the clean margin grows like n^(1/2), up to 0.1 in the exponent"),
        "d": empirical("it falls like d^(-1/2), up to 0.1"),
        "mu": empirical("and it grows like ||mu||^2, up to 0.25"),
        "collapse": empirical(
            "at equal S = sqrt(n/d) ||mu||^2, reached by n, by d or by ||mu||, clean margins over "
            "S agree up to 0.1"
        ),
        "robust_collapse": empirical(
            "and at equal S and alpha, with alpha from 1/2 to 4, so do robust margins"
        ),
        "difference": ours(
            "at equal S - alpha robust margins agree, up to 0.1 per unit of S, as S goes from 2 "
            "to 4: the law with a C of 1"
        ),
        "scaled_difference": empirical(
            "and at equal S/C - alpha, with the C of the network's own clean margins (Theorem 3.1 "
            "(2) and (3) have one C)"
        ),
        "alpha": empirical(
            "at S = 4, reached by n, by d or by ||mu||, the robust margin falls with alpha at "
            "slope -1, up to 0.15"
        ),
        "large_alpha": empirical(
            "training with alpha = ||mu|| leaves the clean margin over S as it is with "
            "alpha = 0.5, up to 0.1 (Section 3.4)"
        ),
        "threshold": ours(
            "half of the clean labels fall at alpha = (1 - 2 beta) S, up to 0.15 S, whether alpha "
            "crosses that at S = 4 or n, d or ||mu|| do at alpha = 2: the threshold alpha = S/C of "
            "Theorem 3.1 (3)"
        ),
        "crossing": empirical(
            "and n, d and ||mu|| cross it at the alpha/S at which alpha does, up to 0.1"
        ),
        "constant": ours(
            "with c = 1/2 the smallest C that covers clean and robust errors of a seed, in all "
            "runs with n ||mu||^2/d <= 0.1, is between 1 and 2"
        ),
        "inside": theorem(
            "inside Assumption 1 the bounds of Theorem 3.1 (2) and (3) hold with c = 1/2 and the C "
            "of the assumption, in every run",
            NAME,
        ),
        "law": ours(
            "inside Assumption 1, at S above 40 and errors near 1e-250, the clean margin over S is "
            "that of S = 2, up to 0.1",
            NAME,
        ),
        "exponent": empirical(
            "the networks' excess robust error (1 - 2 beta) p and the lower bound satisfy "
            "(1 - 2 beta) p = (LBD - beta)^E with E proportional to n ||mu||^2/d up to 0.3: a "
            "slope within 0.2 of 1"
        ),
        "match": empirical(
            "from n ||mu||^2/d = 1 on the two roughly match (Section 3.4): E is at least 1/4, a "
            "threshold of ours"
        ),
        "lower": theorem("no network's error on clean labels is below the tight form of LBD"),
    },
)  # fmt: skip
CLAIMS = Claims(ABOUT.claims)
BASE = {"n": 80, "d": 3_200_000, "mu_norm": 20.0, "alpha": 0.5}
FACTORS = (0.5, 0.5**0.5, 2**0.5, 2.0)
"""S over that of the base."""
NEARER = (0.625**0.5, 1.25**0.5, 1.75**0.5, 2.5**0.5)
"""And at alpha = 2, around the threshold; a tenth of each n is a whole number of flips."""
RADII = (1.0, 2.0, 3.0, 3.5, 4.0)
GRID = {"S": (2.0, 2.5, 3.0, 4.0), "alpha": (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)}
RATIOS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LONG = 60.0
"""||mu|| where the ratio is swept."""
SMOOTH, KINKED = "smoothed_leaky_relu", "relu"
ROUNDING = 0.01


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual = {"smoke": 2, "laptop": 20, "paper": 100}[scale]
    both = [*_sweeps(FACTORS), *_grid(**GRID)]
    settings = [
        *({"activation": shape, **one} for shape in (KINKED, SMOOTH) for one in both),
        *({"activation": SMOOTH, **one} for one in _ratios(RATIOS)),
        {"activation": SMOOTH, **_inside()},
    ]
    quick = {}
    if scale == "smoke":
        some = [one for one in _sweeps(FACTORS[3:]) if one["n"] < 100 and one["alpha"] != 2]
        some += _grid((2.0, 4.0), (0.5, 1.0))
        few = [*some, *_ratios(RATIOS[3:5]), {**_inside(), "width": 20}]
        settings = [{"activation": SMOOTH, **one} for one in few]
        quick = {"steps": 2, "draws": 100}
    # Importance sampling keeps few points of a network with kinks.
    more = {KINKED: {"draws": 3000}, SMOOTH: {}}
    return [
        Case(**{**one, **more[one["activation"]], **quick}, **block)
        for one in settings
        for block in lab.blocks(seeds or usual, 20)
    ]


def _sweeps(factors: Sequence[float]) -> list[dict]:
    """The base, and S moved by n, d and ||mu||: at alpha = 1/2 and 2, and to 4 at each alpha."""
    n, d, mu = BASE["n"], BASE["d"], BASE["mu_norm"]
    places = [
        *((f, BASE["alpha"]) for f in factors),
        *((f, ACROSS) for f in NEARER),
        *((2.0, alpha) for alpha in RADII),
    ]
    moved = [
        {"route": route, "alpha": alpha, **one}
        for f, alpha in places
        for route, one in (
            ("n", {"n": round(n * f**2)}),
            ("d", {"d": round(d / f**2)}),
            ("mu", {"mu_norm": mu * f**0.5}),
        )
    ]
    return [{**BASE, **one} for one in [{"route": "base"}, *moved, {"route": "alpha", "alpha": mu}]]


def _grid(S: Sequence[float], alpha: Sequence[float]) -> list[dict]:
    """Each S, reached by d, with each alpha."""
    fixed = BASE["n"] * BASE["mu_norm"] ** 4
    return [
        {**BASE, "route": "grid", "d": round(fixed / one**2), "alpha": radius}
        for one in S
        for radius in alpha
    ]


def _ratios(ratios: Sequence[float]) -> list[dict]:
    fixed = {"route": "ratio", "n": 80, "mu_norm": LONG, "alpha": 0.5}
    return [{**fixed, "d": round(80 * LONG**2 / ratio)} for ratio in ratios]


def _inside() -> dict:
    """alpha is at most S/C, as Theorem 3.1 (3) asks."""
    n = width = 76
    mu_norm, d = smallest_inside(ASKED, n, width, 0.02, DELTA)
    sizes = {"n": n, "d": d, "mu_norm": mu_norm, "width": width}
    return {"route": "inside", "alpha": 0.02 * mu_norm, "steps": 30, **sizes}


def compute(case: Case) -> pl.DataFrame:
    return scaling_run(case)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """What the runs of claims inside and law reach, then the other routes, those alike together."""
    parts = {route: rows for (route,), rows in table.partition_by("route", as_dict=True).items()}
    found = {
        route: conditions.reached(conditions.settings(rows))[0] for route, rows in parts.items()
    }
    _, slow = conditions.reached(conditions.settings(table))
    alike: dict[str, list[str]] = {}
    for route, one in found.items():
        if route != "inside":
            alike.setdefault(f"{one.reached:.4g}", []).append(route)
    others = [
        found[routes[0]].model_copy(
            update={"name": f"{NAME}, other claims: {', '.join(ROUTES[one] for one in routes)}",
                    "condition": "the same"}
        )
        for routes in alike.values()
    ]  # fmt: skip
    if "inside" not in found:
        return [found[next(iter(found))].model_copy(update={"holds": False}), *others, slow]
    words = f"claims inside and law: {found['inside'].condition}"
    return [found["inside"].model_copy(update={"condition": words}), *others, slow]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    runs = strengths(table)
    routes = pl.col("route").is_in(list(MOVED))
    swept = runs.filter(pl.col("alpha") == BASE["alpha"], routes | (pl.col("route") == "base"))
    grid = runs.filter(pl.col("route") == "grid")
    found = [
        *(_power(label, swept, *one) for label, one in _POWERS.items()),
        _agreement("collapse", swept, "clean_margin"),
        _agreement("robust_collapse", runs.filter(routes), "robust_margin"),
        _drift("difference", grid, scaled=False),
        _drift("scaled_difference", grid, scaled=True),
        *_radii(runs, swept),
        *_thresholds(runs),
        _constant(runs.filter(pl.col("ratio") <= 0.1 * (1 + ROUNDING))),
        *_theorem(runs.filter(pl.col("route") == "inside"), swept),
        *_exponents(runs.filter(pl.col("route") == "ratio")),
        _lower(runs),
    ]
    order = list(ABOUT.claims)
    return sorted(found, key=lambda verdict: order.index(verdict.id))


_POWERS = {"n": ("n", 0.5, 0.1), "d": ("d", -0.5, 0.1), "mu": ("mu_norm", 2.0, 0.25)}
"""What is swept, the power of the law, and the tolerance."""


def _power(label: str, swept: pl.DataFrame, name: str, power: float, near: float) -> Verdict:
    rows = swept.filter(pl.col("route").is_in(["base", label]))
    logs = rows.with_columns(x=pl.col(name).cast(pl.Float64).log(), y=pl.col("clean_margin").log())
    values = {
        shape: _lines(part)
        for (shape,), part in logs.partition_by("activation", as_dict=True).items()
    }
    return CLAIMS.equal(label, values, power, near, what=f"exponent of the margin in {name}")


def _lines(rows: pl.DataFrame) -> list[float]:
    """Slopes of y against x, by seed."""
    return [
        float(np.polyfit(one["x"].to_numpy(), one["y"].to_numpy(), 1)[0])
        if one["x"].n_unique() > 1
        else math.nan
        for _, one in sorted(rows.partition_by("seed", as_dict=True).items())
    ]


def _agreement(label: str, runs: pl.DataFrame, value: str) -> Verdict:
    """The difference over S of what n and ||mu|| reach and what d reaches, at each S and alpha."""
    keys = ["activation", "alpha", "level", "seed"]
    by = runs.filter(pl.col("route") == "d").select(*keys, reference=value)
    other = runs.filter(pl.col("route").is_in(["n", "mu"]))
    pairs = other.join(by, on=keys).with_columns(
        gap=(pl.col(value) - pl.col("reference")) / pl.col("S")
    )
    values = groups(pairs, "gap", "activation", "route", "alpha", "level")
    return CLAIMS.equal(label, values, 0, NEAR, what="difference of margins over S")


def _drift(label: str, grid: pl.DataFrame, scaled: bool) -> Verdict:
    kept = "S/C - alpha" if scaled else "S - alpha"
    what = f"change of the robust margin per unit of S at equal {kept}"
    return CLAIMS.equal(label, drifts(grid, scaled), 0, NEAR, what=what)


def _radii(runs: pl.DataFrame, swept: pl.DataFrame) -> list[Verdict]:
    slopes = {
        f"{shape}, S by {route}": _lines(
            part.with_columns(x=pl.col("alpha"), y=pl.col("robust_margin"))
        )
        for (shape, route), part in along(runs)
        .partition_by("activation", "route", as_dict=True)
        .items()
    }
    keys = ["activation", "seed"]
    usual = swept.filter(pl.col("route") == "base").select(*keys, usual="clean_margin")
    large = runs.filter(pl.col("route") == "alpha").join(usual, on=keys)
    large = large.with_columns(gap=(pl.col("clean_margin") - pl.col("usual")) / pl.col("S"))
    return [
        CLAIMS.equal("alpha", slopes, -1, 0.15, what="slope of the robust margin in alpha"),
        CLAIMS.equal("large_alpha", groups(large, "gap", "activation"), 0, NEAR,
                     what="change of the clean margin over S"),
    ]  # fmt: skip


def _thresholds(runs: pl.DataFrame) -> list[Verdict]:
    found = thresholds(runs)
    named = {
        f"{name}, {moved} moves": values
        for moved, part in found.items()
        for name, values in part.items()
    }
    gaps = {
        name: np.subtract(values, found["alpha"][name]).tolist()
        for name, values in found["S"].items()
        if len(values) == len(found["alpha"].get(name, []))
    }
    beta = float(runs["beta"].to_numpy().mean())
    return [
        CLAIMS.equal("threshold", named, 1 - 2 * beta, 0.15,
                     what="alpha over S at which the robust margin is 0"),
        CLAIMS.equal("crossing", gaps, 0, NEAR, what="difference of such alpha over S"),
    ]  # fmt: skip


def _constant(runs: pl.DataFrame) -> Verdict:
    values: dict[str, list[float]] = {}
    for (shape, _), one in sorted(runs.partition_by("activation", "seed", as_dict=True).items()):
        sizes = {name: one[name].to_numpy() for name in ("n", "d", "mu_norm", "beta")}
        share = 1 - 2 * sizes["beta"]
        needed = [
            fit_C(sizes["beta"] + share * np.exp(one[error].to_numpy()), alpha=alpha, **sizes)
            for error, alpha in (("log_clean", 0.0), ("log_robust", one["alpha"].to_numpy()))
        ]
        values.setdefault(shape, []).append(max(needed))
    return CLAIMS.within("constant", values, 1, 2, what="smallest C that covers the runs")


def _theorem(inside: pl.DataFrame, swept: pl.DataFrame) -> list[Verdict]:
    if inside.is_empty():
        return [CLAIMS.outside(label, "no run is inside") for label in ("inside", "law")]
    sizes = {name: inside[name].to_numpy() for name in ("n", "d", "mu_norm", "beta")}
    excess = {
        name: (1 - 2 * sizes["beta"]) * np.exp(inside[name].to_numpy())
        for name in ("log_clean", "log_robust")
    }
    clean = clean_upper_bound(**sizes, C=ASKED) - sizes["beta"]
    robust = robust_upper_bound(**sizes, alpha=inside["alpha"].to_numpy(), C=ASKED) - sizes["beta"]
    holds = (excess["log_clean"] <= clean) & (excess["log_robust"] <= robust)
    base = swept.filter(pl.col("route") == "base", pl.col("activation") == SMOOTH)
    usual = base.select("seed", usual=pl.col("clean_margin") / pl.col("S"))
    gaps = inside.join(usual, on="seed").with_columns(
        gap=pl.col("clean_margin") / pl.col("S") - pl.col("usual")
    )
    return [
        CLAIMS.every("inside", holds.tolist(), what="both bounds"),
        CLAIMS.equal("law", groups(gaps, "gap", "route"), 0, NEAR,
                     what="clean margin over S, less that of the base,"),
    ]  # fmt: skip


def _exponents(rows: pl.DataFrame) -> list[Verdict]:
    few = rows.filter(pl.col("ratio") <= 0.3 * (1 + ROUNDING), pl.col("exponent") > 0)
    logs = few.with_columns(x=pl.col("ratio").log(), y=pl.col("exponent").log())
    many = rows.filter(pl.col("ratio") >= 1 - ROUNDING)
    return [
        CLAIMS.equal("exponent", _lines(logs), 1, 0.2, what="slope of log E in log of the ratio"),
        CLAIMS.above("match", groups(many, "exponent", "level"), 0.25, what="exponent E"),
    ]


def _lower(runs: pl.DataFrame) -> Verdict:
    """Without flips the best rule errs with probability Phi(-(||mu|| - alpha))."""
    room = runs["log_robust"].to_numpy() - runs["log_best"].to_numpy()
    least = float(room.min()) if np.isfinite(room).all() else math.nan
    return CLAIMS.above(
        "lower", least, -0.5, what="log of the robust error over its lower bound, the least of all,"
    )
