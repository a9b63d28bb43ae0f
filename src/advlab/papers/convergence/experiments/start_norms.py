r"""Lemmas A.1 to A.3: norms of weights, features and gradients of deep ReLU networks at the start.

For A and W_h with entries N(0, 2/m), a with N(0, 1), and a fixed input of length 1:

    $\text{A.1:}\quad \|A\|_2 = O(1),\; \|W_h\|_2 = O(1),\; \|a\| = O(\sqrt{m})$
    $\text{A.2:}\quad \|W_h x_{h-1}\|,\, \|x_h\| \in [2/3, 4/3],\quad h = 0, \ldots, H$
    $\text{A.3:}\quad \|a^\top D_H W_H \cdots D_h W_h\| = O(\sqrt{m H}),\quad h = 1, \ldots, H$

A.2 is not so. A has the variance 2/m and there is no ReLU on x_0 = A x, so that ||x_0||^2 is near
2; W_h doubles a squared length and ReLU halves it: ||x_h|| is near sqrt(2), ||W_h x_{h-1}|| near 2.
With the variance 1/m in A all are sqrt(2) times shorter, and ||x_h|| is in the interval, while
||W_h x_{h-1}||, near sqrt(2), is above it. Nothing in the proofs needs more than norms of order 1.

Left to right: the norms of A.2 layer by layer in the widest and deepest networks, dashed sqrt(2)
and 2, with the ends of the lemma's interval; the same with the variance 1/m; the operator norms of
A.1, dashed the Gaussian matrices' sqrt(2)(1 + sqrt(d/m)), 2 sqrt(2), and 1 for ||a||/sqrt(m);
the largest norm of A.3 over h, over sqrt(m), dashed sqrt(H).

Inputs of R^5. The paper has no experiments; constants of the O are not given. float32.
"""

import math

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import PositiveInt
from scipy.sparse.linalg import svds
from torch import Tensor

from .... import lab
from ....core.randomness import generator
from ....report import Assumption, Claims, Verdict, ours, theorem
from ....report.charts import AnyChart, curves, panels
from ....report.samples import groups, slopes
from ..data import Sphere
from ..models import DeepReLU

ABOUT = lab.About(
    paper="convergence",
    item="Lemmas A.1 to A.3",
    title="Norms at the start: features are longer than Lemma A.2 says",
    seconds={"smoke": 2, "laptop": 12},
    claims={
        "A1": theorem(
            "No norm of A, W_h and a is beyond the bound sqrt(rows) + sqrt(columns) + 6 of "
            "Gaussian matrices, in their units: O(1), O(1) and O(sqrt(m))"
        ),
        "A1c": ours(
            "At m = 2048 they are sqrt(2)(1 + sqrt(d/m)), 2 sqrt(2) and sqrt(m), within 5 % on "
            "average"
        ),
        "A2": theorem(
            "As printed: at m = 2048 all norms of x_h and W_h x_{h-1} are in [2/3, 4/3], for H = "
            "1, 2, 4 and 8, in every draw"
        ),
        "A2c": ours(
            "Corrected: at m = 2048 ||x_h|| is sqrt(2) and ||W_h x_{h-1}|| is 2, within 5 % on "
            "average over layers and draws, for each H"
        ),
        "A2s": theorem(
            "and in these units all of them are in [2/3, 4/3], in every draw: the lemma but for "
            "its scale"
        ),
        "A2v": ours(
            "With the variance 1/m in A all ||x_h|| are in [2/3, 4/3] in every draw, at m = 2048"
        ),
        "A2w": ours(
            "while ||W_h x_{h-1}|| is sqrt(2) on average over layers, within 0.08, which is above "
            "them, for each H"
        ),
        "A3m": theorem(
            "The largest norm of A.3 over h grows with m at most like sqrt(m), up to 0.05 in the "
            "exponent, for each H"
        ),
        "A3H": theorem("and with H, from 1 to 8, at most like sqrt(H), at each m"),
        "A3c": ours("At m = 2048 it hardly grows with H: the exponent is within 0.1 of 0"),
    },
)
NAME = "convergence/start_norms, new draws"
D = 5
WIDTHS, DEPTHS, DRAWS = (128, 512, 2048), (1, 2, 4, 8), 30
INTERVAL = 2 / 3, 4 / 3
BEYOND = 6.0
"""What Gaussian norms have beyond sqrt(rows) + sqrt(columns) with a probability of 2 exp(-18)."""
SIZES = {"state": math.sqrt(2), "pre": 2.0}
"""||x_h|| and ||W_h x_{h-1}|| at the stated start."""


class Case(lab.Case):
    """`width` and `depth` are m and H."""

    width: PositiveInt
    depth: PositiveInt

    @property
    def cost(self) -> float:
        return 1e-6 * self.replicates * self.depth * self.width**2


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    widths, depths, usual = {
        "smoke": ((16, 64), (1, 2), 2),
        "laptop": (WIDTHS, DEPTHS, DRAWS),
    }[scale]
    return [
        Case(width=m, depth=H, **block)
        for m in widths
        for H in depths
        for block in lab.blocks(seeds or usual, 20)
    ]


def compute(case: Case) -> pl.DataFrame:
    return pl.DataFrame([row for seed in case.seeds for row in _rows(case, seed)])


def _rows(case: Case, seed: int) -> list[dict]:
    """A row per network and quantity: one of the weights, and one per layer of the others.

    `backward` is ||a' D_H W_H ... D_h W_h||, `A`, `W` and `a` are norms, of W_h the largest.
    """
    rng = generator(NAME, case.width, case.depth, seed)
    net = DeepReLU.draw(D, case.width, case.depth, rng, dtype=torch.float32)
    x = Sphere(n=1, d=D).sample(rng).x[0].float()
    weights = [weight.detach() for weight in net.hidden]
    x_0 = net.bottom @ x
    pre, state = forward_norms(weights, x_0)
    quantities = {
        "state": state,
        "pre": pre,
        # Variance 1/m in A: x_0 is sqrt(2) times shorter.
        "state, 1/m": forward_norms(weights, x_0 / math.sqrt(2))[1],
        "pre, 1/m": forward_norms(weights, x_0 / math.sqrt(2))[0],
        "backward": backward_norms(weights, x_0, net.top),
        "A": [spectral(net.bottom)],
        "W": [max(spectral(weight) for weight in weights)],
        "a": [float(net.top.norm())],
    }
    first = {"state": 0, "state, 1/m": 0}
    return [
        {"seed": seed, "quantity": name, "layer": first.get(name, 1) + h, "value": value}
        for name, values in quantities.items()
        for h, value in enumerate(values)
    ]


def forward_norms(
    weights: list[Float[Tensor, "m m"]], x_0: Float[Tensor, " m"]
) -> tuple[list[float], list[float]]:
    """||W_h x_{h-1}|| for h = 1, ..., H and ||x_h|| for h = 0, ..., H."""
    pre, state, at = [], [float(x_0.norm())], x_0
    for weight in weights:
        z = weight @ at
        at = z.relu()
        pre.append(float(z.norm()))
        state.append(float(at.norm()))
    return pre, state


def backward_norms(
    weights: list[Float[Tensor, "m m"]], x_0: Float[Tensor, " m"], top: Float[Tensor, " m"]
) -> list[float]:
    """||a' D_H W_H ... D_h W_h|| for h = 1, ..., H."""
    masks, at = [], x_0
    for weight in weights:
        z = weight @ at
        masks.append(z >= 0)
        at = z.relu()
    found, row = [], top
    for weight, mask in zip(reversed(weights), reversed(masks), strict=True):
        row = (row * mask) @ weight
        found.append(float(row.norm()))
    return found[::-1]


def spectral(matrix: Float[Tensor, "a b"]) -> float:
    """The operator norm."""
    if min(matrix.shape) <= 64:
        return float(torch.linalg.matrix_norm(matrix.double(), 2))
    start = np.ones(min(matrix.shape))  # not drawn, so that runs repeat
    (largest,) = np.asarray(svds(matrix.numpy(), k=1, v0=start, return_singular_vectors=False))
    return float(largest)


def figure(table: pl.DataFrame) -> AnyChart:
    wide = table.filter(pl.col("width") == pl.col("width").max())
    deep = wide.filter(pl.col("depth") == pl.col("depth").max())
    top = math.ceil(2.2 * max(deep.filter(quantity="pre")["value"])) / 2
    charts = [
        curves(
            _named(deep, {f"state{end}": "||x_h||", f"pre{end}": "||W_h x_{h-1}||"}), "layer",
            "value", "vector", theory=_levels(scale), title=title, x_title="layer h",
            y_title="norm", y_domain=(0.0, top),
        )
        for end, scale, title in (
            ("", 1.0, f"features, H = {deep['depth'][0]}, m = {deep['width'][0]}"),
            (", 1/m", math.sqrt(1 / 2), "the same with variance 1/m in A"),
        )
    ]  # fmt: skip
    names = {"A": "||A||", "W": "largest ||W_h||", "a": "||a|| / sqrt(m)"}
    operators = _scaled(table, names)
    limits = operators.select("width", "weights", value="limit").unique().sort("weights", "width")
    charts.append(
        curves(operators, "width", "value", "weights", theory=limits, log_x=True,
               title="weights; dashed: their limits", x_title="width m", y_title="norm")
    )  # fmt: skip
    back = _backward(table).with_columns(m=pl.format("m = {}", "width"))
    H = np.linspace(1, max(table["depth"]), 50)
    order = pl.DataFrame({"depth": H, "ratio": np.sqrt(H)}).with_columns(m=pl.lit("sqrt(H)"))
    charts.append(
        curves(back.sort("width"), "depth", "ratio", "m", theory=order, x_title="H",
               title="largest norm of A.3; dashed: sqrt(H)",
               y_title="||a' D_H W_H ... D_h W_h|| / sqrt(m)")
    )  # fmt: skip
    return panels(charts, columns=2)


def _named(rows: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    rows = rows.filter(pl.col("quantity").is_in(list(names)))
    return rows.with_columns(vector=pl.col("quantity").replace_strict(names))


def _levels(scale: float) -> pl.DataFrame:
    """The sizes that are measured, and the ends of the lemma's interval."""
    lines = {"||x_h||": scale * SIZES["state"], "||W_h x_{h-1}||": scale * SIZES["pre"]}
    rows = [*lines.items(), *(("ends of Lemma A.2", end) for end in INTERVAL)]
    return pl.DataFrame(rows, schema=["vector", "value"], orient="row")


def _scaled(table: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Norms of the weights, a's over sqrt(m), with what they tend to."""
    m = pl.col("width").cast(pl.Float64)
    rows = table.filter(pl.col("quantity").is_in(list(names)))
    top = pl.col("quantity") == "a"
    return rows.with_columns(
        weights=pl.col("quantity").replace_strict(names),
        value=pl.when(top).then(pl.col("value") / m.sqrt()).otherwise("value"),
        limit=pl.when(top).then(1.0).when(pl.col("quantity") == "A")
        .then(math.sqrt(2) * (1 + (D / m).sqrt())).otherwise(2 * math.sqrt(2)),
        bound=pl.when(top).then(1 + (BEYOND + 1) / m.sqrt()).when(pl.col("quantity") == "A")
        .then(math.sqrt(2) * (1 + (math.sqrt(D) + BEYOND) / m.sqrt()))
        .otherwise(math.sqrt(2) * (2 + BEYOND / m.sqrt())),
    )  # fmt: skip


def _backward(table: pl.DataFrame) -> pl.DataFrame:
    """The largest over h of each network, over sqrt(m)."""
    rows = table.filter(quantity="backward")
    most = rows.group_by("width", "depth", "seed", maintain_order=True).agg(pl.col("value").max())
    return most.with_columns(ratio=pl.col("value") / pl.col("width").cast(pl.Float64).sqrt())


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, col = Claims(ABOUT.claims), pl.col
    wide = table.filter(col("width") == col("width").max())
    weights = _scaled(table, {"A": "A", "W": "W_h", "a": "a"})
    widest = weights.filter(col("width") == col("width").max())
    size = col("quantity").replace_strict(SIZES, default=None, return_dtype=pl.Float64)
    features = wide.filter(col("quantity").is_in(list(SIZES)))
    units = features.with_columns(value=col("value") / size)
    plain = wide.filter(quantity="state, 1/m")
    back = _backward(table)
    within = "all norms in [2/3, 4/3]"
    return [
        claims.below("A1", _most(weights["value"] / weights["bound"]), 1,
            what="largest norm over its bound"),
        claims.equal("A1c", groups(widest.with_columns(ratio=col("value") / col("limit")),
            "ratio", "weights", "depth"), 1, 0.05, what="norm over its limit"),
        claims.every("A2", _inside(features), what=within),
        # Without the missing ReLU on x_0 both would be sqrt(2) times shorter.
        claims.equal("A2c", _layers(units), 1, 0.05,
            what="||x_h||/sqrt(2) and ||W_h x_{h-1}||/2, over layers,"),
        claims.every("A2s", _inside(units), what=f"{within} in units of sqrt(2) and 2"),
        claims.every("A2v", _inside(plain), what=f"{within} of x_h"),
        claims.equal("A2w", _layers(wide.filter(quantity="pre, 1/m")), math.sqrt(2), 0.08,
            what="||W_h x_{h-1}||, over layers,"),
        claims.below("A3m", _slopes(back, "width", "depth"), 0.55,
            what="slope of its logarithm in log m"),
        claims.below("A3H", _slopes(back, "depth", "width"), 1 / 2,
            what="slope of its logarithm in log H"),
        claims.equal("A3c", slopes(back.filter(width=max(back["width"])).sort("seed", "depth"),
            "depth", "value"), 0, 0.1, what="slope of its logarithm in log H"),
    ]  # fmt: skip


def _most(values: pl.Series) -> float:
    # polars passes over NaN in max().
    return float(np.asarray(values).max())


def _inside(rows: pl.DataFrame) -> pl.Series:
    """Of each draw, over its networks and layers."""
    low, high = INTERVAL
    inside = pl.col("value").is_between(low, high).all()
    return rows.group_by("seed").agg(inside=inside).sort("seed")["inside"]


def _layers(rows: pl.DataFrame) -> dict:
    means = rows.group_by("quantity", "depth", "seed", maintain_order=True).agg(
        pl.col("value").mean()
    )
    return groups(means, "value", "quantity", "depth")


def _slopes(rows: pl.DataFrame, x: str, by: str) -> dict[str, list[float]]:
    parts = rows.sort(by, "seed", x).partition_by(by, as_dict=True, maintain_order=True)
    return {f"{by} {level}": slopes(part, x, "value") for (level,), part in parts.items()}


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Lemma A.1 asks for m >= d; A.2 and A.3 hold with a probability that rises with m/H."""
    m, H = min(table["width"]), max(table["depth"])
    return [
        Assumption(name="width", condition=f"m >= d = {D}", reached=float(m), holds=m >= D),
        Assumption(
            name="width over depth",
            condition="m/H large: probabilities are 1 - O(H) exp(-Omega(m/H)), up to constants "
            "that are not given; the least of all runs",
            reached=m / H,
        ),
    ]
