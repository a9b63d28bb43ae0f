r"""Definition 5.1 for deep and convolutional networks: wide networks have the limit's kernel.

The paper's argument: near its start a wide network is its linearisation, so that training, against
any attack, is descent in the space of its tangent kernel
$K(x, x') = \langle \nabla f(x), \nabla f(x') \rangle$. The paper has K for two layers (Definition
5.1). Here it is measured on drawn networks (`advlab.measure.tangent_kernel`) and held next to
recursions for infinitely wide ones: the deep network of section 4, in which the hidden layers
train, with H = 1, 2 and 4, and plain convolutional networks of three layers, flat or with global
average pooling, in which all weights train.

Panels: $\|K_m - K\|_F / \|K\|_F$ at six inputs, by width (channels, if convolutional); the change
of K_m at the training points over 20 steps of descent against PGD, over the size of K_m; dashed are
lines of slope -1/2 through the first point. Last, the mean share of each layer in the trace of K_m
at the largest width, over that of the limit; dashed: 1.

Inputs are the same in all draws: six points on the sphere of R^3, at least 0.6 apart, labels in
turn, caps of radius 0.15, and six images of 3 x 6 x 6 numbers, smoothed normal noise. Descent has
the rate 1/(m H) and the loss sqrt(1 + (f - y)^2) - 1, without projection. float64.
"""

from typing import Literal

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor
from torch.nn import functional as F

from .... import lab
from ....attacks import PGD
from ....core.checks import Array
from ....core.randomness import generator, normal
from ....losses import pseudo_huber
from ....measure.tangent_kernel import tangent_kernels
from ....report import Assumption, Claims, Verdict, identity, ours
from ....report.charts import AnyChart, curves, panels, points
from ....report.samples import groups, slopes
from ....threats import Cap
from .. import theory
from ..data import Sphere
from ..models import ConvReLU, DeepReLU
from ..reductions import LowRankDeep, descend
from ..theory.convolutional_kernel import convolutional_kernel
from ..theory.deep_kernel import deep_kernel

ABOUT = lab.About(
    paper="convergence",
    item="Definition 5.1, deep and convolutional",
    title="Tangent kernels of wide deep and convolutional networks, and how training moves them",
    seconds={"smoke": 3, "laptop": 90},
    claims={
        "rate": ours(
            "The distance of a network's tangent kernel from the limit falls like m^(-1/2), the "
            "exponent within 0.12: deep networks with H = 1, 2 and 4, and convolutional ones, flat "
            "and pooled"
        ),
        "layers": ours(
            "At the largest width the share of each layer is the recursion's, within 10 % on "
            "average"
        ),
        "cosines": ours(
            "and each cosine K(x, x')/sqrt(K(x, x) K(x', x')) too, within 0.03 on average"
        ),
        "move": ours(
            "Training against PGD changes the kernel of deep networks by an amount that falls "
            "faster than m^(-0.4); the drift of Lemma A.5 would allow m^(-1/6)",
            "caps",
        ),
        "product": identity(
            "The kernel by automatic differentiation is that of the outer products in which "
            "gradients of a layer are known"
        ),
    },
)
NAME = "convergence/tangent_kernels decisive"
DELTA = 0.15
DATA = Sphere(n=6, d=3, separation=4 * DELTA)
ASCENT = PGD(steps=3, step_size=0.5, random_start=False, jump=False)
STEPS = 20
SHAPE = (3, 6, 6)
DEPTHS, CONVOLUTIONS = (1, 2, 4), 3
DENSE, CHANNELS = (64, 128, 256, 512), (32, 64, 128, 256)

Kind = Literal["dense", "flat", "pooled"]


class Case(lab.Case):
    """`width` is m, or the channels of convolutional networks; `depth` is H."""

    kind: Kind
    width: PositiveInt
    depth: PositiveInt

    @property
    def cost(self) -> float:
        each = self.width**2 if self.kind == "dense" else 30 * self.width**2
        return 1e-6 * self.replicates * self.depth * each


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    dense, channels, usual = ((16, 64), (4, 16), 2) if smoke else (DENSE, CHANNELS, 120)
    depths = DEPTHS[:2] if smoke else DEPTHS
    cases = [
        *(Case(kind="dense", width=m, depth=H) for H in depths for m in dense),
        *(
            Case(kind=kind, width=m, depth=CONVOLUTIONS)
            for kind in ("flat", "pooled")
            for m in channels
        ),
    ]
    return [
        case.model_copy(update=block) for case in cases for block in lab.blocks(seeds or usual, 30)
    ]


def compute(case: Case) -> pl.DataFrame:
    rows = _dense if case.kind == "dense" else _convolutional
    return pl.DataFrame([row for seed in case.seeds for row in rows(case, seed)])


def _dense(case: Case, seed: int) -> list[dict]:
    """Kernels of a drawn network, and how far 20 steps against PGD move them."""
    x, y = DATA.sample(generator(NAME, "points"))
    rng = generator(NAME, "dense", case.width, case.depth, seed)
    net = DeepReLU.draw(DATA.d, case.width, case.depth, rng)
    by_name = tangent_kernels(net, x, batch=None)
    found = torch.stack([by_name[f"hidden.{h}"] for h in range(case.depth)])[..., 0, 0]
    limit = deep_kernel(np.clip((x @ x.T).numpy(), -1, 1), case.depth)

    runs = LowRankDeep([net], (np.inf,))
    start = _grams(runs, x)
    descend(
        runs, x[None], y[None], loss=pseudo_huber, attack=ASCENT, threat=Cap(radius=DELTA),
        rate=1 / (case.width * case.depth), steps=STEPS, rng=[rng],
    )  # fmt: skip
    whole = start.sum(0)
    change = (_grams(runs, x).sum(0) - whole).norm() / whole.norm()
    off = (found - start).abs().max() / whole.abs().max()
    extra = {"move": float(change), "product": float(off)}
    return _rows(seed, found.numpy() / case.width, limit, extra)


def _grams(runs: LowRankDeep, x: Float[Tensor, "n d"]) -> Float[Tensor, "H n n"]:
    with torch.no_grad():
        return runs.tangent_grams(runs.tangents(x)[1])[:, 0]


def _convolutional(case: Case, seed: int) -> list[dict]:
    x, pooled = images(), case.kind == "pooled"
    rng = generator(NAME, case.kind, case.width, case.depth, seed)
    net = ConvReLU.draw(SHAPE, case.width, case.depth, rng, pooling=pooled)
    by_name = tangent_kernels(net, x, batch=None)
    names = [*(f"filters.{h}" for h in range(case.depth)), "top"]
    found = torch.stack([by_name[name] for name in names])[..., 0, 0].numpy()
    limit = convolutional_kernel(x.numpy(), depth=case.depth, pooling=pooled)
    return _rows(seed, found, limit, {})


def images() -> Float[Tensor, "n channels height width"]:
    """Normal noise, smoothed by 3 x 3 means that wrap around."""
    drawn = normal(torch.empty(6, *SHAPE, dtype=torch.float64), generator(NAME, "images"))
    return 3 * F.avg_pool2d(F.pad(drawn, (1,) * 4, mode="circular"), 3, stride=1)


def _rows(seed: int, found: Array, limit: Array, extra: dict[str, float]) -> list[dict]:
    """`distance` once; `layer` and `cosine` with the layer or the pair that they are of."""
    whole, whole_limit = found.sum(0), limit.sum(0)
    away = np.linalg.norm(whole - whole_limit) / np.linalg.norm(whole_limit)
    values = [("distance", "", float(away)), *((name, "", value) for name, value in extra.items())]
    for h, (one, expected) in enumerate(zip(found, limit, strict=True)):
        values.append(("layer", str(h + 1), float(np.trace(one) / np.trace(expected))))
    apart = _cosines(whole) - _cosines(whole_limit)
    for i, j in zip(*np.triu_indices(len(apart), 1), strict=True):
        values.append(("cosine", f"{i + 1}, {j + 1}", float(apart[i, j])))
    return [
        {"seed": seed, "quantity": name, "of": of, "value": value} for name, of, value in values
    ]


def _cosines(kernel: Array) -> Array:
    lengths = np.sqrt(np.diag(kernel))
    return kernel / np.outer(lengths, lengths)


def figure(table: pl.DataFrame) -> AnyChart:
    rows = _named(table)
    charts = []
    for kind, words in (("dense", "width m"), ("convolutional", "channels m")):
        part = rows.filter(quantity="distance").filter(
            (pl.col("kind") == "dense") == (kind == "dense")
        )
        charts.append(
            curves(part, "width", "value", "network", theory=_half(part), x_title=words,
                   y_title="||K_m - K|| / ||K||", log_x=True, log_y=True,
                   title=f"{kind}: distance from the limit")
        )  # fmt: skip
    moved = rows.filter(quantity="move")
    charts.append(
        curves(moved, "width", "value", "network", theory=_half(moved), x_title="width m",
               y_title="||K_m(T) - K_m(0)|| / ||K_m(0)||", log_x=True, log_y=True,
               title="change by training against PGD")
    )  # fmt: skip
    layers = _widest(rows).filter(quantity="layer").sort(
        pl.col("of").cast(pl.Int64), maintain_order=True
    )  # fmt: skip
    charts.append(
        points(layers, "of", "value", "network", theory=pl.DataFrame({"value": [1.0]}),
               x_title="layer (the last of convolutional ones is the top)",
               y_title="trace, over the limit's", title="share of each layer, largest width",
               band="standard error")
    )  # fmt: skip
    return panels(charts, columns=2)


def _named(table: pl.DataFrame) -> pl.DataFrame:
    names = {"dense": "dense", "flat": "convolutional", "pooled": "convolutional, pooled"}
    return table.with_columns(
        network=pl.format("{}, H = {}", pl.col("kind").replace_strict(names), pl.col("depth"))
    ).sort("kind", "depth", "width", "seed")


def _half(rows: pl.DataFrame) -> pl.DataFrame:
    """A line of slope -1/2 through the mean at the least width of each network."""
    narrow = pl.col("width") == pl.col("width").min()
    start = rows.filter(narrow).group_by("network", maintain_order=True).agg(
        start=pl.col("value").mean(), first=pl.col("width").first()
    )  # fmt: skip
    return start.join(rows.select("width").unique().sort("width"), how="cross").with_columns(
        value=pl.col("start") * (pl.col("first") / pl.col("width")).sqrt()
    )


def _widest(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("width") == pl.col("width").max().over("kind"))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, rows = Claims(ABOUT.claims), _named(table)
    widest = _widest(rows)
    in_m = "slope of its logarithm in log m"
    off = rows.filter(quantity="product")["value"].to_numpy().max()
    return [
        # -1/3 and -2/3 are outside; so is a limit that is 10 % wrong, to which nothing falls.
        claims.equal("rate", _slopes(rows, "distance"), -0.5, 0.12, what=in_m),
        claims.equal("layers",
            groups(widest.filter(quantity="layer"), "value", "network", "of"), 1, 0.1,
            what="trace of the layer's kernel over the limit's"),
        claims.equal("cosines",
            groups(widest.filter(quantity="cosine"), "value", "network", "of"), 0, 0.03,
            what="cosine less the limit's"),
        claims.below("move", _slopes(rows, "move"), -0.4, what=in_m),
        claims.below("product", off, 1e-12,
            what="largest difference of entries, over the largest entry"),
    ]  # fmt: skip


def _slopes(rows: pl.DataFrame, quantity: str) -> dict[str, list[float]]:
    parts = rows.filter(quantity=quantity).partition_by(
        "network", as_dict=True, maintain_order=True
    )
    return {str(network): slopes(part, "width", "value") for (network,), part in parts.items()}


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Section 3.3 of the paper, for the caps in which networks are trained."""
    return [theory.compatible_caps(4 * DELTA, DELTA)]
