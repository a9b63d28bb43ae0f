"""How close an adversarially trained network comes to the explicit classifier f_S of Theorem 5.2.

Section 5 builds f_S (equation (C)): a clean classifier, overruled in the ball around each training
point. The paper conjectures that adversarial training converges to "the similarities of f_S", which
"can be decomposed into two components, which correspond to clean generalization and robust
overfitting" (section 1), by "approximating local robust indicators on training data" (summary of
section 6). Here both are made on the same data that meet Assumption 5.1, and compared: at training
points, at unseen points where f_S is its clean classifier, and how local the memory is. That a
network has learnt what it was trained on is true of clean training too, so that the claims about
distance and locality are differences to the clean network and to the start.

Points (x, h phi(x)) in a cube around 0, x in the packing of Theorem 5.3's proof and phi(x) a fair
coin; N of them are for training, the others are unseen. Two settings: corners of a cube (D = 8,
delta = 0.3, h = 0.28, N = 64 of 128) and three points per axis (D = 5, delta = 0.245, h = 0.22,
N = 40 of 81). The clean classifier of f_S is x_D/h, its squares have depth 8. Networks have two
layers and 128 ReLUs, trained by Adam (rate 0.01, 1500 steps, logistic loss):

- adversarial: on the N points, against PGD with 5 steps in l2 balls of radius delta;
- clean: on the N points without attack (control);
- robust: against the same PGD on all points, the unseen ones included (control);
- start: the adversarial ones before training (control).

Errors under attack are LOWER bounds: PGD with 30 steps and 3 restarts, the step of length delta
against x_D, and the point of the slice x_D = 0 in the ball. For a coin phi every classifier errs
there on half of the points whose coins it has not seen, so that no robust error of theirs is below
1/2 on average, of untrained networks either. Robust overfitting is what is more: that balls of
unseen points are broken, and those of training points are not.

Outputs are divided by their median size at training points and clipped to [-1, 1]; the distance of
two functions is half the mean absolute difference, at most 1. Memory is looked at in the slice,
where the clean classifier says nothing: along random rays into the cube from below each training
point, how far |f| stays above half of its value there (up to the spacing of the packing, where f_S
has forgotten in nearly all directions), and how large |f| is at the unseen points of the packing
over that at training points: 0 for f_S, about 1 for a function without memory.
"""

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from .... import lab
from ....core.randomness import generators, normal
from ....losses import ModelLoss, margin
from ....report import Assumption, Claims, Verdict, empirical, identity, ours, theorem
from ....report.charts import AnyChart, curves, panels
from ....report.samples import groups
from ....theory import relu_calculus
from ....threats import Ball
from .. import theory
from ._parts.dodged import dodged_points
from ._parts.packing_runs import (
    JUDGED_BY,
    Points,
    Rngs,
    against,
    broken,
    lifted_packings,
    trained,
    values,
    wrong,
)

ABOUT = lab.About(
    paper="cgro",
    item="Theorem 5.2 and equation (C), against training",
    title="How close a trained network is to f_S",
    seconds={"smoke": 4, "laptop": 90, "paper": 900},
    looks=3,
    claims={
        "clean": empirical("Adversarial training ends at a CGRO classifier: its clean error on "
                           "unseen points is below 10 %", "separated", "neural"),
        "train": empirical("fewer than 1 % of its training balls are broken by the attacks tried",
                           "separated", "neural"),
        "gap": empirical("of the unseen ones the share that is broken is larger, by more than 1/2",
                         "separated", "neural"),
        "test": theorem("At least half of the unseen balls are broken, on average, as by a step to "
                        "the slice of any function that has not seen their coins: f_S, and the "
                        "networks at the start and after clean and adversarial training"),
        "size": ours("The width is enough for more: trained on all points the network loses fewer "
                     "than 5 % of the same unseen balls to these attacks"),
        "inside": empirical("As the conjecture has it, at training points that are attacked by the "
                            "step against x_D it has the sign of f_S in at least 99 % of cases",
                            "separated", "neural"),
        "inside/c": ours("and the clean network in at least 10 % fewer"),
        "outside": empirical("and at unseen points so attacked, where f_S is its clean classifier, "
                             "in more than 3/4", "separated", "neural"),
        "distance": empirical("In the balls of unseen points, where f_S is its clean classifier, "
                              "adversarial training ends nearer to f_S than clean training",
                              "separated", "neural"),
        "local": empirical("Its memory is of training points: |f| in the slice at unseen points "
                            "over that at seen ones is at least 0.1 less than for the clean "
                            "network and at the start", "separated", "neural"),
        "radius/S": identity("That of f_S reaches to r with r^2 + h^2 = (delta^2 + (sep - delta)^2)"
                             "/2 in the median ray, within 3 %"),
    },
)  # fmt: skip
NAME = "cgro/distance to explicit, the conjecture"
DEPTH, PRODUCT_DEPTH = 8, 4
ARMS = ("adversarial", "clean", "robust", "start")
SHOWN_AS = ("f_S", "start", "clean", "adversarial", "robust")
BLIND = SHOWN_AS[:-1]
"""What has not seen the coins of the unseen points."""
RAYS = np.linspace(0.0, 1.0, 101)
"""Lengths along a ray, over the spacing."""
SHOWN = 5
"""Of these lengths, each fifth is kept for the figure."""


class Case(lab.Case):
    d: PositiveInt
    delta: PositiveFloat
    height: PositiveFloat
    n: PositiveInt
    width: PositiveInt = 128
    steps: PositiveInt = 1500
    lr: PositiveFloat = 0.01

    @property
    def ball(self) -> Ball:
        return Ball(norm="l2", radius=self.delta)

    @property
    def spacing(self) -> float:
        """Of the packing; points of different labels are farther apart than this."""
        return 1 / (theory.packing_size(2, self.delta) - 1)

    @property
    def cost(self) -> float:
        return self.replicates * self.steps * theory.packing_size(self.d, self.delta) / 2e5


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    corners, thirds = {"d": 8, "delta": 0.3, "height": 0.28}, {"d": 5, "delta": 0.245,
                                                               "height": 0.22}  # fmt: skip
    usual, settings = {
        "smoke": (3, [corners | {"d": 4, "n": 4, "width": 8, "steps": 20},
                      thirds | {"d": 3, "n": 5, "width": 8, "steps": 20}]),
        "laptop": (24, [corners | {"n": 64}, thirds | {"n": 40}]),
        "paper": (50, [corners | {"n": 64}, thirds | {"n": 40}]),
    }[scale]  # fmt: skip
    return [Case(**one, **block) for block in lab.blocks(seeds or usual, 6) for one in settings]


def compute(case: Case) -> pl.DataFrame:
    """Per network and seed a row for each length of rays; what is no curve is in all of them."""
    whole = lifted_packings(case.d, case.delta, case.height, _rngs(case, "data"))
    train, fresh = whole.some(0, case.n), whole.some(case.n)
    explicit = [_explicit(case, x, y) for x, y in zip(train.x, train.y, strict=True)]
    probe = _Probe(case, train, fresh, _Several(explicit))
    tables = [probe.rows("f_S", _Several(explicit), explicit[0].parameters_counted)]
    for arm in ARMS:
        data = whole if arm == "robust" else train
        ball = case.ball if arm in ("adversarial", "robust") else None
        # The start is that of adversarial training: a step of no length.
        steps, lr = (1, 1e-12) if arm == "start" else (case.steps, case.lr)
        drawn = _rngs(case, "adversarial" if arm == "start" else arm)
        net = trained(data, ball, case.width, steps, lr, drawn)
        tables.append(probe.rows(arm, net, case.width * (case.d + 2) + 1))
    apart = min(_apart(x, y) for x, y in zip(whole.x, whole.y, strict=True))
    return pl.concat(tables).with_columns(apart=apart / (2 * case.delta))


def _rngs(case: Case, *name: object) -> Rngs:
    return generators(NAME, *name, case.d, seeds=case.seeds)


def _explicit(case: Case, x: Tensor, y: Tensor):
    clean = relu_calculus.affine(np.eye(case.d)[-1:] / case.height, 0.0)
    return theory.cgro_network(
        x.numpy(), y.numpy(), clean, case.delta, case.spacing, DEPTH, product_depth=PRODUCT_DEPTH,
        box=(-0.5, 0.5),
    )  # fmt: skip


def _apart(x: Tensor, y: Tensor) -> float:
    far = torch.cdist(x, x)
    return float(far.masked_fill(y[:, None] == y, torch.inf).min())


class _Several(nn.Module):
    """Networks of different shapes as a stack: rows come in equal blocks, one per network."""

    def __init__(self, networks: list):
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: Tensor) -> Tensor:
        blocks = x.chunk(len(self.networks))
        return torch.cat([f(block) for f, block in zip(self.networks, blocks, strict=True)])


class _Probe:
    """The points at which networks are compared with f_S, the same for all of them."""

    def __init__(self, case: Case, train: Points, fresh: Points, explicit: nn.Module):
        self.case, self.explicit = case, explicit
        self.sets = {"train": train, "fresh": fresh}
        rngs = _rngs(case, "probe")
        self.at: dict[str, Tensor] = {}
        for name, part in self.sets.items():
            x = part.rows[0]
            self.at[f"balls {name}"] = case.ball.sample(x, rng=rngs).reshape(part.x.shape)
            self.at[f"attacked {name}"] = against(part, case.delta)
        flat = torch.ones(case.d, dtype=torch.float64)
        flat[-1] = 0
        self.slice = {name: part.x * flat for name, part in self.sets.items()}
        ray = normal(train.x.flatten(0, 1), rngs).reshape(train.x.shape) * flat
        # Into the cube: f_S is made for inputs within delta of it.
        ray = torch.where(train.x.abs() > 0.49, -train.x.sign() * ray.abs(), ray)
        self.ray = case.spacing * ray / ray.norm(dim=-1, keepdim=True)

    def rows(self, name: str, net: nn.Module, parameters: int) -> pl.DataFrame:
        """All measurements of a stack; `net` may be f_S itself."""
        size = np.median(np.abs(values(net, self.sets["train"].x)), 1, keepdims=True)
        found: dict[str, np.ndarray] = {"seed": np.array(self.case.seeds)}
        for part, there in self.sets.items():
            rngs = _rngs(self.case, "attack", name, part)
            attacked = JUDGED_BY(ModelLoss(net, there.rows[1], margin), there.rows[0],
                                 self.case.ball, rng=rngs).x  # fmt: skip
            self.at[f"own {part}"] = attacked.reshape(there.x.shape)
            found[f"clean {part}"] = _share(wrong(net, there))
            found[f"robust {part}"] = _share(broken(net, there, self.case.ball, rngs))
        for where, x in self.at.items():
            mine, theirs = values(net, x), values(self.explicit, x)
            found[f"agree {where}"] = (np.sign(mine) == np.sign(theirs)).mean(1)
            gap = np.clip(mine / size, -1, 1) - np.clip(theirs, -1, 1)
            found[f"distance {where}"] = np.abs(gap).mean(1) / 2
        seen, unseen = (np.abs(values(net, self.slice[part])).mean(1) for part in self.sets)
        found["spread"] = unseen / seen
        profile = self.profile(net)
        found["radius"] = half_radius(profile) * self.case.spacing
        whole = pl.DataFrame(found).with_columns(network=pl.lit(name), parameters=parameters)
        kept = slice(None, None, SHOWN)
        curve = pl.DataFrame({
            "seed": np.repeat(list(self.case.seeds), len(RAYS[kept])),
            "length": np.tile(RAYS[kept], self.case.replicates),
            "memory": np.median(profile, 1)[:, kept].ravel(),
        })  # fmt: skip
        return curve.join(whole, on="seed")

    def profile(self, net: nn.Module) -> Float[np.ndarray, "R n r"]:
        """y f along the rays over its value at their starts."""
        start, y = self.slice["train"], self.sets["train"].y.numpy()
        along = np.stack([y * values(net, start + r * self.ray) for r in RAYS], -1)
        return along / along[..., :1]


def half_radius(profile: Float[np.ndarray, "R n r"]) -> Float[np.ndarray, " R"]:
    """The median over n of the first length at which a profile passes half of its start.

    Args:
        profile: values at the lengths `RAYS`, over those at the start. One that stays above half
            counts with the largest length.
    """
    below, first = profile < 0.5, (profile < 0.5).argmax(-1)[..., None]
    after, before = (
        np.take_along_axis(profile, place, -1)[..., 0]
        for place in (first, np.maximum(first - 1, 0))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        passed = (before - 0.5) / (before - after)
    at = np.interp(first[..., 0] - 1 + passed, np.arange(len(RAYS)), RAYS)
    first = np.where(below.any(-1), at, RAYS[-1])
    return np.median(first, -1)


def _share(flags: Tensor) -> np.ndarray:
    return flags.double().mean(1).numpy()


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Assumption 5.1, of all points of the packing."""
    apart, explicit = float(table["apart"].min()), table.filter(network="f_S")  # type: ignore[arg-type]
    worst = float(explicit["clean fresh"].max())  # type: ignore[arg-type]
    return [
        Assumption(name="separated", condition="classes more than 2 delta apart, the ratio",
                   reached=apart, holds=apart > 1),
        Assumption(name="neural", condition="a small network without clean error: that of f_S",
                   reached=worst, holds=worst == 0),
    ]  # fmt: skip


def figure(table: pl.DataFrame) -> AnyChart:
    named = {"train": "training", "fresh": "unseen"}
    order = pl.col("network").replace_strict(SHOWN_AS, range(len(SHOWN_AS)))
    table, charts = table.sort("d", order, "seed", maintain_order=True), []
    near = table.filter(~pl.col("network").is_in(["f_S", "start"]))
    highest = near.select(
        pl.max_horizontal("distance balls train", "distance balls fresh").max()
    ).item()
    for (d,), rows in table.partition_by("d", as_dict=True, maintain_order=True).items():
        where, once = f"D = {d}", rows.filter(length=0.0)
        networks = once.filter(pl.col("network") != "f_S")
        errors = {f"robust {k}": f"{v} balls" for k, v in named.items()}
        charts += [
            _dodged(once, errors | {"clean fresh": "unseen, clean"},
                    f"{where}: errors found", "error", "points"),
            _dodged(networks, {f"attacked {k}": v for k, v in named.items()},
                    f"{where}: sign of f_S, attacked", "agreement", "points", "agree "),
            _dodged(networks.filter(pl.col("network") != "start"),
                    {f"balls {k}": v for k, v in named.items()},
                    f"{where}: distance to f_S", "distance", "in balls of", "distance ", highest),
            curves(rows.filter(pl.col("network") != "start"), "length", "memory", "network",
                   title=f"{where}: memory along rays", x_title="length/spacing",
                   y_title="y f over its value at the start"),
        ]  # fmt: skip
    return panels(charts, columns=4)


def _dodged(
    rows: pl.DataFrame,
    names: dict[str, str],
    title: str,
    y: str,
    x: str,
    prefix: str = "",
    highest: float = 1.0,
) -> AnyChart:
    long = rows.select("network", "seed", **{new: prefix + old for old, new in names.items()})
    long = long.unpivot(list(names.values()), index=["network", "seed"], variable_name="set")
    return dodged_points(
        long, "set", "value", "network", title=title, x_title=x, y_title=y, y_domain=(0.0, highest)
    )


def _once(table: pl.DataFrame) -> pl.DataFrame:
    """One row per network and seed."""
    return table.filter(length=0.0).sort("d", "network", "seed")


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, once = Claims(ABOUT.claims), _once(table)
    arms = {name: once.filter(network=name) for name in ("f_S", *ARMS)}
    mine, keys = arms["adversarial"], ["d", "seed"]
    less = pl.col("agree attacked train") - pl.col("agree attacked train of clean")
    farther = pl.col("distance balls fresh") - pl.col("distance balls fresh of clean")
    gap = pl.col("robust fresh") - pl.col("robust train")
    mine = mine.join(arms["clean"], on=keys, suffix=" of clean")
    mine = mine.with_columns(less=less, farther=farther, gap=gap)
    others = once.filter(pl.col("network").is_in(["clean", "start"])).join(
        mine.select(*keys, mine="spread"), on=keys
    )
    others = others.with_columns(wider=pl.col("spread") - pl.col("mine"))
    blind = once.filter(pl.col("network").is_in(BLIND))
    spacing = pl.col("delta").map_elements(
        lambda delta: 1 / (theory.packing_size(2, delta) - 1), return_dtype=pl.Float64
    )
    square = (pl.col("delta") ** 2 + (spacing - pl.col("delta")) ** 2) / 2
    expected = pl.col("radius") / (square - pl.col("height") ** 2).sqrt()
    explicit = arms["f_S"].with_columns(expected=expected)
    return [
        claims.below("clean", groups(mine, "clean fresh", "d"), 0.1, what="error"),
        claims.below("train", groups(mine, "robust train", "d"), 0.01, what="share broken"),
        claims.above("gap", groups(mine, "gap", "d"), 0.5,
            what="share broken of the unseen balls less that of the training balls"),
        claims.above("test", groups(blind, "robust fresh", "network", "d"), 0.5,
            what="share broken of the unseen balls"),
        claims.below("size", groups(arms["robust"], "robust fresh", "d"), 0.05,
            what="share broken, after training on all points"),
        claims.above("inside", groups(mine, "agree attacked train", "d"), 0.99,
            what="share of equal signs"),
        claims.above("inside/c", groups(mine, "less", "d"), 0.1,
            what="share of equal signs less that of the clean network"),
        claims.above("outside", groups(mine, "agree attacked fresh", "d"), 0.75,
            what="share of equal signs"),
        claims.below("distance", groups(mine, "farther", "d"), 0,
            what="distance less that of the clean network"),
        claims.above("local", groups(others, "wider", "network", "d"), 0.1,
            what="mean |f| in the slice at unseen points over that at seen ones, of the clean "
            "network or at the start, less after adversarial training,"),
        claims.equal("radius/S", groups(explicit, "expected", "d"), 1, 0.03,
            what="half-value radius of f_S over the formula"),
    ]  # fmt: skip
