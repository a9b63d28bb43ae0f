"""Lemma A.5: how far masks, features and gradients go in a ball of weights, and around an input.

The lemma, for all W in B(R), all x' within delta of x and each hidden layer h, up to constants:

    units that change sign          m (R/sqrt(m) + delta)^(2/3) H                  (10)
    ||x_h'(W) - x_h(W0)||           (R/sqrt(m) + delta) H^(5/2) sqrt(log m)        (11)
    ||grad_h f(W, x') - grad_h f(W0, x)||_F   (R/sqrt(m) + delta)^(1/3) H^2 sqrt(m log m)

The proof bounds the move of the gradient b_h in the pre-activations by the third order too (12),
and ||x_h(W, x')|| and ||grad_h f(W, x')||_F/sqrt(m H) by constants (13).

Four measurements. At fixed x and with one hidden layer the suprema over B(R) are known exactly, in
law and up to a million units; dashed is their limit law, (3/pi)^(1/3) (m R)^(2/3) units and
(2/sqrt(pi)) (3 pi)^(1/6) (m R)^(1/3) for the gradient: the constants that the orders hide. With
more layers a search finds moves of B(R), which are lower bounds, below bounds by operator norms
(dashed); and again with x' on the rim of a cap of radius R/sqrt(m), as in the proof of Lemma A.6,
where W and x' move together. Last, W0 stays and x moves on the rim of its cap: then the gradients'
distance in a wide network is that of the deep tangent kernel: sqrt(2 (1 - K_h(c))) of their length,
with c = 1 - delta^2/2 (dashed).

Inputs are uniform on the sphere of R^5. The paper has no experiments, and the lemma's constants
are not given.
"""

import math
from typing import Literal

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor

from .... import lab
from ....core.randomness import generator, normal
from ....report import Assumption, Claims, Verdict, identity, ours, theorem
from ....report.charts import AnyChart, curves, panels
from ....report.samples import groups, slopes
from ..data import Sphere
from ..measures.drift import (
    DriftTogether,
    drift_bounds,
    gradient_distances,
    limit_drift,
    sampled_drift,
    searched_drift,
    states,
)
from ..models import DeepReLU
from ..theory.deep_kernel import deep_kernel

ABOUT = lab.About(
    paper="convergence",
    item="Lemma A.5",
    title="Masks, features and gradients near the start: the largest drift in a ball of weights",
    seconds={"smoke": 3, "laptop": 80},
    looks=1,
    claims={
        "10a": ours(
            "With one hidden layer the most units that a move in B(R) turns grow from m = 2^14 to "
            "2^20 like m^(2/3), as in (10), the exponent within 0.03"
        ),
        "10b": ours("and like R^(2/3), within 0.03"),
        "A5a": ours("The gradient's largest move grows there like m^(1/3), within 0.02"),
        "A5b": ours("and like R^(1/3), within 0.02"),
        "law": ours(
            "At m = 2^20 both are the limit law's, constants included, within 3 % on average"
        ),
        "search": identity("With one hidden layer the search finds the exact number of units"),
        "bounds": theorem("No move that the search finds is beyond the bounds by operator norms"),
        "11": ours(
            "Over the moves that a search finds, the features' move falls from m = 64 to 1024 like "
            "m^(-1/2), within 0.1, for H = 1, 2 and 4: without the sqrt(log m) of (11)"
        ),
        "Ha": ours("The units found grow with the depth, at most like H"),
        "Hb": ours("so does the features' move, at most like H^(5/2),"),
        "Hc": ours("and the gradient's, at most like H^2"),
        "10t": ours(
            "Where x' moves too, by R/sqrt(m), the units found grow from m = 64 to 1024 like "
            "m^(2/3), within 0.1, for H = 1, 2 and 4"
        ),
        "11t": ours("the features' move falls like m^(-1/2), within 0.1,"),
        "A5t": ours("and the gradient's grows, at most like m^(1/3) sqrt(log m)"),
        "12": ours(
            "as does, over the same moves, that of the gradient in the pre-activations, the "
            "quantity of (12) without its last matrix"
        ),
        "13": ours(
            "At m = 1024 the largest ||x_h|| over these moves and layers is at most 1.25 times "
            "sqrt(2), its length at the start, as (13) has it"
        ),
        "size": ours(
            "The largest gradient of a layer grows over these moves like sqrt(m), as the lemma "
            "has it: its exponent is between 0.3 and 0.55"
        ),
        "Da": ours(
            "When the input moves by delta, the largest number of units that turn on the rim of "
            "the cap falls with delta at least like delta^(2/3), and the gradient's largest move "
            "at least like delta^(1/3), on average over inputs"
        ),
        "Db": ours(
            "On average over the rim the units are of the order delta^1, within 0.08: the lemma "
            "is not tight in delta"
        ),
        "Dc": ours("and the gradient's move of the order delta^(1/2), within 0.08"),
        "K": ours(
            "The gradients of each layer move as the deep tangent kernel says, within 5 % on "
            "average, at m = 2048 for H = 1, 2 and 4"
        ),
    },
)
NAME = "convergence/gradient_drift, W and x together"
D = 5
RADII = (0.5, 1.0, 2.0, 4.0)
DELTAS = (0.02, 0.04, 0.08, 0.16)
EXACT = tuple(2**k for k in range(8, 21, 2))
SEARCHED, DEPTHS, INPUTS = (64, 256, 1024), (1, 2, 4), 2048
CENTRES, RIM = 6, 8
"""Inputs of a network, and points of the rim of its cap that each moves to."""
WIDE, LONGER = 2**14, 1.25
"""Widths from here on are wide; what features may be longer by than sqrt(2)."""


class Case(lab.Case):
    """`width` and `depth` are m and H."""

    kind: Literal["exact", "search", "inputs"]
    width: PositiveInt
    depth: PositiveInt = 1

    @property
    def cost(self) -> float:
        if self.kind == "exact":
            return 1e-6 * self.width * self.replicates
        return 1e-6 * self.replicates * self.depth * self.width**2


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    exact, searched = ((2**8, 2**14, 2**16), (16, 32)) if smoke else (EXACT, SEARCHED)
    depths, usual = (DEPTHS[:2], 2) if smoke else (DEPTHS, 20)
    cases = [
        *(Case(kind="exact", width=m) for m in exact),
        *(Case(kind="search", width=m, depth=H) for m in searched for H in depths),
        *(Case(kind="inputs", width=64 if smoke else INPUTS, depth=H) for H in depths),
    ]
    return [
        case.model_copy(update=block) for case in cases for block in lab.blocks(seeds or usual, 10)
    ]


def compute(case: Case) -> pl.DataFrame:
    rows = {"exact": _exact, "search": _search, "inputs": _inputs}[case.kind]
    return pl.DataFrame([row for seed in case.seeds for row in rows(case, seed)])


def _exact(case: Case, seed: int) -> list[dict]:
    rng = np.random.default_rng(generator(NAME, "exact", case.width, seed).initial_seed())
    found = sampled_drift(case.width, RADII, rng)
    return [
        {"seed": seed, "R": R, **drift._asdict()} for R, drift in zip(RADII, found, strict=True)
    ]


def _search(case: Case, seed: int) -> list[dict]:
    """At x' = x, and with x' within R/sqrt(m) of x, which the proof of Lemma A.6 takes."""
    net, x, rng = _drawn(case, seed)
    rows = []
    for delta in (0.0, 1 / math.sqrt(case.width)):
        bounds = drift_bounds(net, x, 1.0, delta)._asdict()
        found = searched_drift(net, x, 1.0, rng, delta)._asdict()
        limits = {f"{name} bound": value for name, value in bounds.items()}
        rows.append({"seed": seed, "R": 1.0, "delta": delta or None, "together": delta > 0})
        rows[-1] |= found | limits
    return rows


def _inputs(case: Case, seed: int) -> list[dict]:
    """One row per delta and layer: means over rims, and the largest of a rim, over all inputs.

    Gradients are in units of their own length, so that `kernel` is sqrt(2 (1 - K_h(c))).
    """
    net, _, rng = _drawn(case, seed)
    x = Sphere(n=CENTRES, d=D).sample(rng).x
    around = _tangents(x, rng)
    here = states(net, x.repeat_interleave(RIM, 0) @ net.bottom.T)
    zips = zip(here.backs, here.inputs, strict=True)
    lengths = torch.stack([back.norm(dim=1) * state.norm(dim=1) for back, state in zips])
    rows = []
    for delta in DELTAS:
        angle = 2 * math.asin(delta / 2)
        moved = math.cos(angle) * x[:, None] + math.sin(angle) * around
        there = states(net, moved.flatten(0, 1) @ net.bottom.T)
        signs = zip(here.pre, there.pre, strict=True)
        units = torch.stack([((p > 0) != (q > 0)).sum(1) for p, q in signs]).double()
        moves = gradient_distances(here, there) / lengths
        expected = np.sqrt(2 * (1 - deep_kernel(math.cos(angle), case.depth)))
        rims = [values.unflatten(1, (CENTRES, RIM)) for values in (units, moves)]
        columns = {
            "flips": units.mean(1), "largest flips": rims[0].amax(2).mean(1),
            "gradient": moves.square().mean(1).sqrt(), "largest gradient": rims[1].amax(2).mean(1),
            "kernel": torch.from_numpy(expected),
        }  # fmt: skip
        rows += [
            {"seed": seed, "delta": delta, "layer": h + 1,
             **{name: float(values[h]) for name, values in columns.items()}}
            for h in range(case.depth)
        ]  # fmt: skip
    return rows


def _drawn(case: Case, seed: int) -> tuple[DeepReLU, Float[Tensor, " d"], torch.Generator]:
    rng = generator(NAME, case.kind, case.width, case.depth, seed)
    return DeepReLU.draw(D, case.width, case.depth, rng), Sphere(n=1, d=D).sample(rng).x[0], rng


def _tangents(x: Float[Tensor, "n d"], rng: torch.Generator) -> Float[Tensor, "n rim d"]:
    """Unit vectors at right angles to each x."""
    drawn = normal(torch.empty(len(x), RIM, x.shape[1], dtype=x.dtype), rng)
    drawn = drawn - (drawn * x[:, None]).sum(2, keepdim=True) * x[:, None]
    return drawn / drawn.norm(dim=2, keepdim=True)


def figure(table: pl.DataFrame) -> AnyChart:
    exact, search = table.filter(kind="exact").sort("R"), table.filter(kind="search")
    together = search.filter(pl.col("together")).rename({"depth": "H"}).sort("H", "width")
    wide = {"x_title": "width m", "log_x": True, "log_y": True}
    widths = exact["width"].unique().sort().to_list()
    law = pl.DataFrame([
        {"width": m, "R": R, **limit_drift(m, R)._asdict()}
        for R in sorted(set(exact["R"])) for m in widths
    ])  # fmt: skip
    charts = [
        curves(exact, "width", name, "R", theory=law, y_title=words,
               title=f"{what}, worst in B(R), H = 1; dashed: limit law", **wide)
        for name, what, words in (("flips", "turned units", "units that turn"),
                                  ("gradient", "gradient", "||grad f(W) - grad f(W0)||"))
    ]  # fmt: skip
    search = search.filter(~pl.col("together")).rename({"depth": "H"}).sort("H", "width")
    titles = {"flips": ("turned units", "units that turn, in a layer"),
              "features": ("features", "||x_h(W) - x_h(W0)||"),
              "gradient": ("gradient", "||grad_h f(W) - grad_h f(W0)||")}  # fmt: skip
    others = {"backs": ("gradient in p_h", "||b_h(W, x') - b_h(W0, x)||"),
              "length": ("features' length", "||x_h(W, x')||"),
              "size": ("gradient's length", "||grad_h f(W, x')||")}  # fmt: skip
    found = [(name, words, search, "in B(1)") for name, words in titles.items()]
    found += [(name, words, together, "W and x moved") for name, words in others.items()]
    for name, (what, words), rows, where in found:
        bound = rows.group_by("H", "width", maintain_order=True).agg(
            pl.col(f"{name} bound").mean().alias(name)
        )
        charts.append(
            curves(rows, "width", name, "H", theory=bound, y_title=words,
                   title=f"{what}, found {where}; dashed: bound by norms", **wide)
        )  # fmt: skip
    first = table.filter(kind="inputs", layer=1).rename({"depth": "H"}).sort("H", "delta")
    kernel = first.group_by("H", "delta", maintain_order=True).agg(
        gradient=pl.col("kernel").first()
    )
    charts.append(
        curves(first, "delta", "gradient", "H", theory=kernel, log_x=True, log_y=True,
               title="input moved; dashed: deep kernel", x_title="delta",
               y_title="||grad_1 f(x') - grad_1 f(x)|| / ||grad_1 f(x)||")
    )  # fmt: skip
    return panels(charts)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, col = Claims(ABOUT.claims), pl.col
    exact = table.filter(kind="exact").filter(col("width") >= WIDE)
    search, inputs = table.filter(kind="search", together=False), table.filter(kind="inputs")
    both = table.filter(kind="search", together=True)
    wide = both.filter(col("width") == col("width").max()).sort("depth", "seed")
    logged = both.with_columns(col("gradient", "backs") / col("width").log().sqrt())
    in_m, in_R, in_H = (f"slope of its logarithm in log {what}" for what in ("m", "R", "H"))
    in_delta = "slope of its logarithm in log delta"
    return [
        # 1/2 and 3/4 are outside.
        claims.equal("10a", _slopes(exact, "width", "flips", "R"), 2 / 3, 0.03, what=in_m),
        claims.equal("10b", _slopes(exact, "R", "flips", "width"), 2 / 3, 0.03, what=in_R),
        # 1/4 and 1/2 are outside.
        claims.equal("A5a", _slopes(exact, "width", "gradient", "R"), 1 / 3, 0.02, what=in_m),
        claims.equal("A5b", _slopes(exact, "R", "gradient", "width"), 1 / 3, 0.02, what=in_R),
        claims.equal("law", _against_law(exact), 1, 0.03, what="measured over the limit law"),
        claims.below("search", _missed(search), 1e-9,
            what="largest |units found / exact number - 1| at H = 1"),
        claims.below("bounds", _beyond(table.filter(kind="search")), 1 + 1e-9,
            what="largest ratio of a drift found to its bound"),
        claims.equal("11", _slopes(search, "width", "features", "depth"), -1 / 2, 0.1, what=in_m),
        claims.within("Ha", _slopes(search, "depth", "flips", "width"), 0, 1, what=in_H),
        claims.within("Hb", _slopes(search, "depth", "features", "width"), 0, 2.5, what=in_H),
        claims.within("Hc", _slopes(search, "depth", "gradient", "width"), 0, 2, what=in_H),
        claims.equal("10t", _slopes(both, "width", "flips", "depth"), 2 / 3, 0.1, what=in_m),
        claims.equal("11t", _slopes(both, "width", "features", "depth"), -1 / 2, 0.1, what=in_m),
        claims.within("A5t", _slopes(logged, "width", "gradient", "depth"), 0, 1 / 3,
            what="slope of log(its move / sqrt(log m)) in log m"),
        claims.within("12", _slopes(logged, "width", "backs", "depth"), 0, 1 / 3,
            what="slope of log(its move / sqrt(log m)) in log m"),
        claims.below("13", groups(wide, "length", "depth"), LONGER * math.sqrt(2),
            what="largest length of features"),
        claims.within("size", _slopes(both, "width", "size", "depth"), 0.3, 0.55, what=in_m),
        claims.above("Da", _excess(inputs), 0,
            what=f"{in_delta}, less the lemma's exponent, of the largest over rim and layers"),
        # 2/3 is outside; so is 1/3, below.
        claims.equal("Db", _slopes(inputs, "delta", "flips", "depth", "layer"), 1, 0.08,
            what=in_delta),
        claims.equal("Dc", _slopes(inputs, "delta", "gradient", "depth", "layer"), 1 / 2, 0.08,
            what=in_delta),
        # A kernel without the products over later layers is 30 % off at H = 2.
        claims.equal("K", _against_kernel(inputs), 1, 0.05,
            what="gradients' distance over the deep kernel's"),
    ]  # fmt: skip


def _slopes(rows: pl.DataFrame, x: str, y: str, *by: str) -> dict[str, list[float]]:
    """Of each seed, for each setting of the columns `by`."""
    parts = rows.sort(*by, x).partition_by(*by, as_dict=True, maintain_order=True)
    return {
        ", ".join(f"{name} {level:g}" for name, level in zip(by, levels, strict=True)): slopes(
            part, x, y
        )
        for levels, part in parts.items()
    }


def _against_law(exact: pl.DataFrame) -> dict[str, list[float]]:
    widest = exact.filter(pl.col("width") == pl.col("width").max())
    found: dict[str, list[float]] = {}
    for row in widest.sort("R", "seed").iter_rows(named=True):
        law = limit_drift(row["width"], row["R"])
        for name, expected in (("flips", law.flips), ("gradient", law.gradient)):
            found.setdefault(f"{name}, R {row['R']:g}", []).append(row[name] / expected)
    return found


def _missed(search: pl.DataFrame) -> float:
    one = search.filter(depth=1)
    return float((one["flips"] / one["flips bound"] - 1).abs().to_numpy().max())


def _beyond(search: pl.DataFrame) -> float:
    ratios = [search[n] / search[f"{n} bound"] for n in DriftTogether._fields]
    return max(float(ratio.to_numpy().max()) for ratio in ratios)


def _excess(inputs: pl.DataFrame) -> dict[str, list[float]]:
    """Slopes of the largest over layers, less 2/3 or 1/3."""
    worst = inputs.group_by("depth", "delta", "seed").agg(
        pl.col("largest flips").max(), pl.col("largest gradient").max()
    )
    return {
        f"{name}, {key}": [slope - least for slope in values]
        for name, least in (("largest flips", 2 / 3), ("largest gradient", 1 / 3))
        for key, values in _slopes(worst, "delta", name, "depth").items()
    }


def _against_kernel(inputs: pl.DataFrame) -> dict[str, list[float]]:
    """Of each depth and layer, the mean ratio over delta; lengths are those of the network."""
    ratio = inputs.group_by("depth", "layer", "seed").agg(
        ratio=(pl.col("gradient") / pl.col("kernel")).mean()
    )
    parts = ratio.sort("depth", "layer", "seed").partition_by(
        "depth", "layer", as_dict=True, maintain_order=True
    )
    return {f"H {H}, layer {h}": part["ratio"].to_list() for (H, h), part in parts.items()}


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """The lemma's condition, in each kind of measurement for the run that is farthest from it."""
    return [
        _small_ball(table.filter(kind=kind), words)
        for kind, words in {
            "exact": "suprema over B(R)",
            "search": "searches of B(R)",
            "inputs": "inputs that move",
        }.items()
    ]


def _small_ball(rows: pl.DataFrame, words: str) -> Assumption:
    """R/sqrt(m) + delta against the order 1/(H^6 (log m)^3); inputs move at R = 0."""
    empty = pl.lit(None, dtype=pl.Float64)
    rows = rows.with_columns(empty.alias(n) for n in ("R", "delta") if n not in rows.columns)
    m, H = pl.col("width").cast(pl.Float64), pl.col("depth").cast(pl.Float64)
    runs = rows.select("width", "depth", "R", "delta").unique().with_columns(
        ball=pl.col("R").fill_null(0.0) / m.sqrt() + pl.col("delta").fill_null(0.0),
        order=1 / (H**6 * m.log() ** 3),
    )  # fmt: skip
    worst = runs.sort(pl.col("ball") / pl.col("order"), descending=True).row(0, named=True)
    at = ", ".join(
        f"{name} = {worst[key]:g}"
        for key, name in {"depth": "H", "width": "m", "R": "R", "delta": "delta"}.items()
        if worst[key] is not None
    )
    return Assumption(
        name=f"small ball, {words}",
        condition=f"R/sqrt(m) + delta of order 1/(H^6 (log m)^3) = {worst['order']:.2g} or less, "
        f"up to a constant that is not given; farthest at {at}",
        reached=worst["ball"],
    )
