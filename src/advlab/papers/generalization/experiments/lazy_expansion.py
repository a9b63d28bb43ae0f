"""The terms Delta_1, Delta_2 and Delta_3 of Theorem 3's proof, along runs and over h, n and d.

The proof compares a lazy network with the linear network at the same weights: their attacks differ
by Delta_1, the outputs under attack by Delta_2, the slopes by Delta_3,j. It bounds each (S stands
for d log n, |a|_inf = O(1)),

    |Delta_3,j| = O(phi'' |theta_j| (|x| + eps)),
    |Delta_1|   = O(|x| sum_j |a_j| |theta_j|^2/|sum_j a_j theta_j|)  where f - y keeps its sign,
    |Delta_2|  <= phi'(0) |Delta_1| |theta0| + o,
    |sum_j a_j (g_j^OP1 - g_j^OP2)|/sqrt h = O(S |a|_inf |theta0|^2/sqrt h),

and concludes that the run OP2 (network, from zero) follows OP1 (linear network, from zero). Where
Taylor's theorem gives the constant of an O, it is used: max |phi''| for Delta_3, and
2 eps max |phi''|/phi'(0) for Delta_1.

Gelu has phi''(0) > 0, the paper's sigmoid has phi''(0) = 0. a is 1/2 and 1, or these with both
signs. Then the networks are known for every width (`reductions.repeated_neurons`), up to 2^22
here; Theorem 3's own schedule (`network_schedules`) has two iterations at n = 1000, so runs here
have 150 at xi = 0.1. The start OP3 is in Figure 6.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import polars as pl
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, charts, ours, theorem
from ....report.samples import groups, slopes
from .. import theory
from ..data import LinearModel
from ..measures.expansion_terms import expansion_terms, straight
from ..reductions import RepeatedNeurons
from ._parts import assumptions as conditions
from ._parts.lazy_nets import PHI, SQUARE, TOPS, from_zero

LAZY = ("low dimension", "lazy", "second layer", "step size")
ABOUT = lab.About(
    paper="generalization",
    item="Theorem 3",
    title="Delta_1 to Delta_3: how a lazy network leaves its linear part",
    seconds={"smoke": 2, "laptop": 95, "paper": 320},
    looks=4,
    claims={
        "3": theorem(
            "|Delta_3,j| <= max |phi''| |theta_j| (|x| + eps) for every input, neuron and step",
            *LAZY,
        ),
        "1a": theorem(
            "with xi = 0, |Delta_1| is within its order, with Taylor's constant, for every input "
            "at which f - y keeps its sign", *LAZY,
        ),
        "1b": theorem(
            "for these inputs |Delta_1| over its order is bounded in xi: at gelu and a > 0 the "
            "largest does not double as xi falls from 0.4 to 0.1 to 0.025", *LAZY,
        ),
        "1c": ours(
            "|Delta_1| <= (eps/xi) (2 |f - y| |grad f - beta| + 2 |f - f_OP1| |beta|) for every "
            "input, with Taylor's bounds in place of the differences: the second one is what 1b "
            "misses"
        ),
        "2a": theorem(
            "what |Delta_2| has beyond phi'(0) |Delta_1| |theta0| is o of it: at h = 2^22 the mean "
            "of |Delta_2| is at most 1.1 times that of the bound", *LAZY,
        ),
        "2b": ours(
            "what is left is Taylor's second term: |Delta_2| <= |Delta_1| |beta| + max |phi''| "
            "sum_j |a_j| ((x + A)'theta_j)^2/(2 sqrt h) for every input and step"
        ),
        "h": theorem(
            "from h = 2^16 on the mean of |Delta_1|, the largest |Delta_2|, |sum a_j^2 Delta_3,j|, "
            "the difference of gradients and D_12 fall at least like h^(-1/2), within 0.06", *LAZY,
        ),
        "rate": ours("and no faster for gelu and a > 0: the powers are -1/2, within 0.06"),
        "fast": ours(
            "where phi''(0) = 0, or the signs of a balance, the powers are -1, within 0.06"
        ),
        "order": theorem(
            "the difference of gradients over its order S |a|_inf |theta0|^2/sqrt h does not grow "
            "with h, n or d: the power of each is below 0.05, for gelu and a > 0", *LAZY,
        ),
        "rest": theorem(
            "the remainder of the three terms is of lower order: from h = 2^16 on, over the "
            "largest term, it falls like h^(-0.4) or faster", *LAZY,
        ),
        "signs": theorem(
            "the share of inputs at which f - y changes its sign is below a tenth of its order "
            "S sqrt h |theta0|^2 |a|_inf/(|a|^2 v), on average over runs and widths from 2^16 on",
            *LAZY,
        ),
    },
)  # fmt: skip
NAME = "generalization/lazy_expansion decisive 3"
"""Not the streams of the trials that chose widths and tolerances."""
EPS, XI, WIDE, WIDEST = 0.3, 0.1, 2**16, 2**22
ROUNDING = 1e-12
"""Of f, of order 1 and with weights up to sqrt(h)."""
XIS = (0.4, 0.1, 0.025)
STEPS, NOTED = 150, (1, 2, 5, 10, 20, 50, 100, 150)
Top = Literal["positive", "signed"]
Phi = Literal["gelu", "sigmoid"]
NETWORKS: tuple[tuple[Phi, Top], ...] = (
    ("gelu", "positive"), ("gelu", "signed"), ("sigmoid", "positive"), ("sigmoid", "signed"),
)  # fmt: skip
SIZES, MANY, DIMENSIONS = (1000, 4000, 16_000), 32_000, (2, 4, 8)
"""n at d = 2; and n at each d, so many that log n sqrt(d^2/n) is below 1/2 at d = 8 too."""
RATES = ("attack", "output", "slope", "gradient", "D_12")


class Case(lab.Case):
    """`part` is the size that a group of cases varies."""

    part: Literal["width", "n", "d"]
    phi: Phi = "gelu"
    top: Top = "positive"
    width: PositiveInt = WIDEST
    n: PositiveInt = 1000
    d: PositiveInt = 2
    xi: PositiveFloat = XI

    @property
    def cost(self) -> float:
        return self.replicates * self.n * self.d * 1e-5

    @property
    def law(self) -> LinearModel:
        return LinearModel(n=self.n, d=self.d, theta0="unit")


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    widths = (2**16, 2**19, 2**22) if smoke else tuple(2**k for k in range(8, 23, 2))
    sizes, dims = (SIZES[:2], DIMENSIONS[:2]) if smoke else (SIZES, DIMENSIONS)
    cases = [
        *(Case(part="width", phi=phi, top=top, width=h) for phi, top in NETWORKS for h in widths),
        *(Case(part="n", n=n) for n in sizes),
        *(Case(part="d", n=sizes[-1] if smoke else MANY, d=d) for d in dims),
    ]
    count = seeds or {"smoke": 2, "laptop": 30, "paper": 100}[scale]
    return [
        case.model_copy(update=block)
        for case in cases
        for block in lab.blocks(count, 30 if case.n <= 4000 else 3)
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate and noted step."""
    law, phi = case.law, PHI[case.phi]
    x, y = law.sample_stack(generators(NAME, case.n, case.d, seeds=case.seeds))
    op2 = from_zero(x, TOPS[case.top], case.width, phi)
    op1 = replace(op2, activation=straight(phi.slope))
    lr = 0.5 * _stable(law, case.xi) / (phi.slope**2 * SQUARE)
    tables = []
    for step in range(1, STEPS + 1):
        op1, op2 = (net.step(x, y, EPS, case.xi, lr) for net in (op1, op2))
        if step in NOTED:
            apart = (op1.linear_part - op2.linear_part).norm(dim=1) / phi.slope
            row = {"D_12": apart, **_measured(op2, x, y, case)}
            columns = {name: values.numpy() for name, values in row.items()}
            tables.append(
                pl.DataFrame({"seed": list(case.seeds), **columns}).with_columns(step=step)
            )
    return pl.concat(tables)


def _measured(net: RepeatedNeurons, x: Tensor, y: Tensor, case: Case) -> dict[str, Tensor]:
    """Of each replicate: means and maxima of the terms, and the largest ratios to their bounds."""
    terms = {xi: expansion_terms(net, x, y, EPS, xi) for xi in {0.0, case.xi, *XIS}}
    here, curve = terms[case.xi], net.activation.lipschitz or 0.0
    constant = 2 * EPS * curve / net.activation.slope
    kept = {
        f"kept {xi:g}": (one.attacks * one.same_sign / (constant * one.attack_order)).amax(1)
        for xi, one in terms.items()
    }
    second = here.second_order * curve / 2
    beta = net.linear_part.norm(dim=1)[:, None]
    return {
        **kept,
        "Taylor 3": (here.slopes / (curve * here.slope_order)).amax((1, 2)),
        "Taylor 1": ((here.attacks - ROUNDING) / (EPS / case.xi * here.attack_bound)).amax(1),
        "Taylor 2": ((here.outputs - ROUNDING) / (here.attacks * beta + second)).amax(1),
        "attack": here.attacks.mean(1),
        "output": here.outputs.amax(1),
        "slope": here.weighted_slopes.amax(1),
        "mean output": here.outputs.mean(1),
        "gradient": here.gradient,
        "largest part": here.parts.amax(0),
        "rest": here.remainder,
        "changed": 1 - here.same_sign.mean(1),
    }


def _stable(law: LinearModel, xi: float) -> float:
    return float(theory.stable_eta(law.theta0_vector(), law.sigma2, EPS, xi))


def _worst(table: pl.DataFrame) -> pl.DataFrame:
    """Of each run, the largest of every quantity over its steps; the orders beside them."""
    keys = ["part", "phi", "top", "width", "n", "d", "seed"]
    measured = [name for name in table.columns if name not in (*keys, "step", "xi", "seeds")]
    largest = [pl.col(name).max() for name in measured if table[name].dtype.is_float()]
    size = pl.col("d") * pl.col("n").cast(float).log()
    root = pl.col("width").cast(float).sqrt()
    return table.group_by(keys, maintain_order=True).agg(largest).with_columns(
        order=size / root, sign_order=size / (root * SQUARE * math.sqrt(2)),
    ).with_columns(
        scaled=pl.col("gradient") / pl.col("order"), share=pl.col("rest") / pl.col("largest part"),
        sign_share=pl.col("changed") / pl.col("sign_order"),
    )  # fmt: skip


def figure(table: pl.DataFrame) -> charts.AnyChart:
    worst = _worst(table)
    named = worst.filter(part="width").with_columns(
        network=pl.concat_str("phi", pl.lit(", a "), "top")
    )
    widths = named["width"].unique().sort().to_list()
    titles = {"attack": "mean |Δ₁|", "output": "largest |Δ₂|", "slope": "weighted |Δ₃|",
              "gradient": "difference of gradients"}  # fmt: skip
    wide = {"x_title": "width h", "log_x": True, "log_y": True, "band": "quartiles"}
    panels = []
    for name, words in titles.items():
        at = named.filter(phi="gelu", top="positive", width=widths[-1])[name].to_numpy().mean()
        line = pl.DataFrame({"width": widths, name: [at * (widths[-1] / h) ** 0.5 for h in widths]})
        panels.append(charts.curves(named, "width", name, "network", theory=line, title=words,
                                    y_title="size; dashed: h^(-1/2)", apart=True,
                                    **wide))  # fmt: skip
    last = table.filter(part="width", phi="gelu", top="positive", width=widths[-1])
    long = last.unpivot([f"kept {xi:g}" for xi in (*XIS, 0.0)], index=["seed", "step"])
    long = long.with_columns(xi=pl.col("variable").str.strip_prefix("kept "))
    panels.append(
        charts.curves(long.filter(pl.col("value") > 0), "step", "value", "xi", log_x=True,
                      log_y=True, band="quartiles", theory=pl.DataFrame({"value": [1.0]}),
                      x_title="iteration",
                      y_title="largest |Δ₁| over its order",
                      title="where f − y keeps its sign; gelu, a > 0")
    )  # fmt: skip
    both = pl.concat(
        [last.select("step", "seed", value="mean output", term=pl.lit("|Δ₂|")),
         last.select("step", "seed", value=pl.col("attack") * PHI["gelu"].slope,
                     term=pl.lit("φ'(0) |Δ₁| |θ0|"))]
    )  # fmt: skip
    panels.append(
        charts.curves(
            both,
            "step",
            "value",
            "term",
            log_x=True,
            log_y=True,
            x_title="iteration",
            y_title="mean over inputs",
            title=f"h = 2^{int(math.log2(widths[-1]))}",
        )
    )
    return charts.panels(panels, columns=2)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """The largest of all runs that are judged."""
    judged = table.filter(pl.col("width") >= WIDE).unique(["width", "n", "d"], maintain_order=True)
    sizes = list(judged.select("n", "d", "width").iter_rows())
    v2 = Case(part="width").law.v2
    return [
        conditions.worst(conditions.low_dimension(n, d) for n, d, _ in sizes),
        conditions.worst(conditions.lazy(n, d, v2, h) for n, d, h in sizes),
        conditions.worst(conditions.second_layer(n, d, v2, h, SQUARE) for n, d, h in sizes),
        conditions.smooth_step([0.5]),
        conditions.gaussian(),
    ]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, col = Claims(ABOUT.claims), pl.col
    worst = _worst(table)
    width = worst.filter(part="width")
    wide = width.filter(col("width") >= WIDE)
    gelu = (col("phi") == "gelu") & (col("top") == "positive")
    widest = width.filter(width=width["width"].max())
    over = widest.with_columns(
        over=col("mean output")
        / col("attack") / pl.col("phi").replace_strict({k: p.slope for k, p in PHI.items()})
    )  # fmt: skip
    signs = wide.group_by("phi", "top", "seed", maintain_order=True).agg(
        pl.col("sign_share").mean()
    )
    within = {"3": "Taylor 3", "1a": "kept 0", "1c": "Taylor 1", "2b": "Taylor 2"}
    what = "the largest ratio to the bound is at most 1"
    bounds = [
        claims.every(label, _flags(wide, col(name) <= 1 + 1e-9), what=what)
        for label, name in within.items()
    ]
    falls = {name: _powers(wide, name) for name in RATES}
    powers = {
        f"{name}, {network}": values
        for name, found in falls.items() for network, values in found.items()
    }  # fmt: skip
    usual = {name: values for name, values in powers.items() if name.endswith("gelu positive")}
    fast = {name: values for name, values in powers.items() if name not in usual}
    sizes = {
        part: slopes(worst.filter(gelu, part=part).filter(col("width") >= WIDE), part, "scaled")
        for part in ("width", "n", "d")
    }
    return [
        *bounds,
        claims.below("1b", _doubling(widest.filter(gelu)), 2,
                     what="the largest ratio of |Delta_1| to its order, over that at xi four "
                     "times as large,"),
        claims.below("2a", groups(over, "over", "phi", "top"), 1.1,
                     what="mean |Delta_2| over the mean of phi'(0) |Delta_1| |theta0|"),
        claims.below("h", powers, -0.44, what="the power of h"),
        claims.equal("rate", usual, -0.5, 0.06, what="the power of h"),
        claims.equal("fast", fast, -1.0, 0.06, what="the power of h"),
        claims.below("order", sizes, 0.05, what="the power of the size"),
        claims.below("rest", _powers(wide, "share"), -0.4, what="the power of h"),
        claims.below("signs", groups(signs, "sign_share", "phi", "top"), 0.1,
                     what="the share of inputs with another sign, over its order,"),
    ]  # fmt: skip


def _flags(rows: pl.DataFrame, holds: pl.Expr) -> list[bool]:
    """One flag per seed: whether it holds in all settings."""
    flags = rows.group_by("seed").agg(holds=holds.all()).sort("seed")
    return flags["holds"].to_list()


def _powers(rows: pl.DataFrame, name: str) -> dict[str, list[float]]:
    """Of each seed, the power of h in a quantity, for each network."""
    parts = rows.partition_by("phi", "top", as_dict=True, maintain_order=True)
    return {f"{phi} {top}": slopes(part, "width", name) for (phi, top), part in parts.items()}


def _doubling(rows: pl.DataFrame) -> dict[str, pl.Series]:
    """The largest |Delta_1| over its order, at each xi over that at the xi before."""
    return {
        f"xi from {one:g} to {two:g}": rows[f"kept {two:g}"] / rows[f"kept {one:g}"]
        for one, two in pairwise(XIS)
    }
