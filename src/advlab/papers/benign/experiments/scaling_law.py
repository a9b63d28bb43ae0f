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
collapse on S - alpha.

These runs are outside Assumption 1, since fresh points would show errors there. Importance sampling
(`measures.rare_errors`) needs none of them. So the law is held inside Assumption 1 too, with C = 10
in every line but that of the step size: from a base at S = 71 (n = 160, d = 2e9, ||mu|| = 500,
alpha = 25) each of n, d and ||mu|| moves S to 50 and 100, and alpha goes from 4 to 50 at S = 100.
Networks there are of SLReLU: of one with kinks importance sampling keeps too few points. Robust
errors are those that PGD-20 finds, lower bounds; the bounds of Theorem 3.1 are held against the
error that the Lipschitz constant ||W||_2 cannot exclude, an upper bound.

The discussion of Theorem 3.2 says that upper and lower bound satisfy UBD - beta =
(LBD - beta)^O(n ||mu||^2/d). The exponent of the networks themselves, with their excess
(1 - 2 beta) p in place of UBD - beta, is E = log((1 - 2 beta) p)/log(LBD - beta). It is measured
inside Assumption 1 at ratios n ||mu||^2/d of 0.005 to 0.05 with alpha = 1/2, S/4 and S/2. UBD has
the exponent log(2 exp(-(S/C - alpha)^2/2))/log(LBD - beta), if c = 1/2 and C is the S/m of the
network's clean margin.

The bounds roughly match, it goes on, when n ||mu||^2/d = Omega(1); line (1) of Assumption 1 keeps
that ratio at 1/C and below. At ratios of 1 to 10 no upper bound is computed here: runs with a tenth
of the labels flipped, with one of 80 and with none, and after one step, ask what the networks make
of them.
"""

import numpy as np
import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical, ours, theorem
from ....report.samples import groups
from ._parts import conditions, scaling_claims, scaling_settings
from ._parts.conditions import NAME
from ._parts.scaling_claims import NEAR, lines
from ._parts.scaling_figure import ROUTES
from ._parts.scaling_figure import figure as figure
from ._parts.scaling_runs import INSIDE, scaling_run, strengths, trusted
from ._parts.scaling_runs import ScalingCase as Case
from ._parts.scaling_settings import BASE
from ._parts.scaling_thresholds import MOVED, along, drifts, thresholds

ABOUT = lab.About(
    paper="benign",
    item="Theorem 3.1, Section 3.4",
    title="The scaling law of benign overfitting: n, d, ||mu|| and alpha",
    seconds={"smoke": 5, "laptop": 650, "paper": 3200},
    looks=3,
    reduced={
        "laptop": "width 20 and 60 steps, inside Assumption 1 90 and 30; the paper trains until "
        "the loss is below any epsilon"
    },
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
            "with c = 1/2 the smallest C that covers clean errors, and robust ones under PGD, of a "
            "seed, in all runs with n ||mu||^2/d <= 0.1 of which ten draws or more carry the "
            "error, is between 1 and 2"
        ),
        "inside": theorem(
            "inside Assumption 1 the clean error and an upper bound of the robust one are below "
            "the bounds of Theorem 3.1 (2) and, where alpha <= S/C, (3), with c = 1/2 and the "
            "C = 10 of the assumption, in every run",
            NAME,
        ),
        "law": ours(
            "inside Assumption 1, at S of 50 to 100 and errors down to e^(-3000), the clean margin "
            "over S is that of S = 2, up to 0.1",
            NAME,
        ),
        "inside_powers": empirical(
            "and the clean margin grows there like n^(1/2), d^(-1/2) and ||mu||^2, up to 0.05 in "
            "the exponent",
            NAME,
        ),
        "inside_collapse": empirical(
            "at equal S, reached by n, by d or by ||mu||, clean margins, and robust ones at "
            "alpha = 25, agree inside Assumption 1 up to a twentieth",
            NAME,
        ),
        "inside_alpha": empirical(
            "and at S = 100 the robust margin falls with alpha, from 4 to 50, at slope -1, up to "
            "0.05",
            NAME,
        ),
        "exponent": empirical(
            "inside Assumption 1, at alpha = 1/2, S/4 and S/2, the networks' excess robust error "
            "under PGD and the lower bound satisfy (1 - 2 beta) p = (LBD - beta)^E with E "
            "proportional to n ||mu||^2/d: a slope within 0.1 of 1",
            NAME,
        ),
        "implied": ours(
            "and E is the exponent of the upper bound itself with c = 1/2 and the C of the "
            "network's own clean margin, up to a tenth",
            NAME,
        ),
        "match": ours(
            "at ratios n ||mu||^2/d of 1 to 10, which line (1) of Assumption 1 excludes, E of "
            "networks trained with a tenth of the labels flipped is at least 1/4"
        ),
        "flips": ours(
            "at a ratio of 10 E falls by more than 0.1 from no flipped label to one of 80, and "
            "again from there to a tenth"
        ),
        "unflipped": ours(
            "without flipped labels E is that of the averaging classifier at ratios of 1 to 10, "
            "up to 0.05"
        ),
        "first_step": ours(
            "with a tenth flipped E is that of the averaging classifier at a ratio of 10 after one "
            "step, up to 0.05"
        ),
        "fitted": ours(
            "after that step none of the flipped labels is fitted, and at the end of training each "
            "of them is, in every run"
        ),
        "lower": theorem("no network's error on clean labels is below the tight form of LBD"),
    },
)  # fmt: skip
CLAIMS = Claims(ABOUT.claims)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual = {"smoke": 2, "laptop": 20, "paper": 100}[scale]
    found = scaling_settings.few() if scale == "smoke" else scaling_settings.settings()
    return [Case(**one, **block) for one in found for block in lab.blocks(seeds or usual, 10)]


def compute(case: Case) -> pl.DataFrame:
    return scaling_run(case)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """What the runs inside reach, then the other routes, those alike together."""
    settled = table.filter(pl.col("route").is_in(INSIDE))
    parts = {
        route: conditions.reached(conditions.settings(rows))[0]
        for (route,), rows in table.partition_by("route", as_dict=True).items()
        if route not in INSIDE
    }
    _, slow = conditions.reached(conditions.settings(table))
    alike: dict[str, list[str]] = {}
    for route, one in parts.items():
        alike.setdefault(f"{one.reached:.4g}", []).append(route)
    others = [
        parts[routes[0]].model_copy(
            update={"name": f"{NAME}, other claims: {', '.join(ROUTES[one] for one in routes)}",
                    "condition": "the same"}
        )
        for routes in alike.values()
    ]  # fmt: skip
    if settled.is_empty():
        return [next(iter(parts.values())).model_copy(update={"holds": False}), *others, slow]
    inside = conditions.reached(conditions.settings(settled))[0]
    words = f"claims about runs inside: {inside.condition}"
    return [inside.model_copy(update={"condition": words}), *others, slow]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    runs = trusted(strengths(table))
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
        *_thresholds(runs, float(swept["beta"].to_numpy().mean())),
        scaling_claims.constant(CLAIMS, runs.filter(pl.col("ratio") < 0.11)),
        *scaling_claims.theorem(CLAIMS, runs, swept.filter(pl.col("route") == "base")),
        *scaling_claims.strong(CLAIMS, runs.filter(pl.col("route") == "ratio")),
        scaling_claims.lower(CLAIMS, runs),
    ]
    order = list(ABOUT.claims)
    return sorted(found, key=lambda verdict: order.index(verdict.id))


_POWERS = {"n": ("n", 0.5, 0.1), "d": ("d", -0.5, 0.1), "mu": ("mu_norm", 2.0, 0.25)}
"""What is swept, the power of the law, and the tolerance."""


def _power(label: str, swept: pl.DataFrame, name: str, power: float, near: float) -> Verdict:
    rows = swept.filter(pl.col("route").is_in(["base", label]))
    logs = rows.with_columns(x=pl.col(name).cast(pl.Float64).log(), y=pl.col("clean_margin").log())
    values = {
        shape: lines(part)
        for (shape,), part in logs.partition_by("activation", as_dict=True).items()
    }
    return CLAIMS.equal(label, values, power, near, what=f"exponent of the margin in {name}")


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
        f"{shape}, S by {route}": lines(
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


def _thresholds(runs: pl.DataFrame, beta: float) -> list[Verdict]:
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
    return [
        CLAIMS.equal("threshold", named, 1 - 2 * beta, 0.15,
                     what="alpha over S at which the robust margin is 0"),
        CLAIMS.equal("crossing", gaps, 0, NEAR, what="difference of such alpha over S"),
    ]  # fmt: skip
