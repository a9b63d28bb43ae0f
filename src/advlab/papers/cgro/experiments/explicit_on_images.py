"""f_S on real images: Theorem 5.2's network built around a trained one (a small extra).

The paper builds f_S (equation (C)) for any clean classifier and shows none on data. Here z is a
two-layer network trained on MNIST's zeros and ones without attacks, and f_S = clip(z) + 2 min(1,
sum of the indicators of ones) - 2 min(1, that of zeros), with indicators of linf balls of radius
0.2 around 40 training images. A zero and a one differ by at least 0.98 in some pixel (1500 of each
were looked at), so 0.7 is a safe lower bound of the separation; each run checks it on its images.

What the theorem promises is seen on images too: clean answers are those of z, the balls around
training images cannot be attacked, those around other images as well as before. f_S clips z, which
hides its gradient: balls are searched by PGD on f_S and by transfer from z. Both are lower bounds
of the robust error; that of training images is zero by the theorem, and a search can only fail to
contradict it.
"""

import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from .... import lab
from ....attacks import PGD, Transfer
from ....core.randomness import generator
from ....data import zeros_and_ones
from ....losses import ModelLoss, margin
from ....report import Assumption, Claims, Verdict, ours, sample, theorem
from ....report.charts import AnyChart, panels, points
from ....threats import Ball
from ....training import fit
from ..theory import cgro_network

ABOUT = lab.About(
    paper="cgro",
    item="Theorem 5.2, on images",
    title="f_S around a network trained on MNIST 0 against 1",
    seconds={"smoke": 3, "laptop": 10},
    data=("mnist",),
    claims={
        "a": theorem("No attack changes the label of a training image within its ball: the robust "
                     "training error of f_S is 0", "separated"),
        "b": theorem("f_S answers like the trained network on clean images", "separated"),
        "c": ours("Transfer from the trained network breaks f_S on more than 90 % of the test "
                  "images"),
        "d": ours("PGD on f_S breaks at least 10 % fewer of them than transfer: the clipping hides "
                  "the gradient"),
    },
)  # fmt: skip
NAME = "cgro/explicit network on images"
BROKEN, HIDDEN, NONE = 0.9, 0.1, 1e-9


class Case(lab.Case):
    source: zeros_and_ones.Source
    n: PositiveInt = 40
    tested: PositiveInt = 100
    width: PositiveInt = 32
    steps: PositiveInt = 200
    attack_steps: PositiveInt = 20
    delta: PositiveFloat = 0.2
    separation: PositiveFloat = 0.7


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    usual, source, some = {
        "smoke": (2, "stand-in", {"n": 4, "tested": 5, "width": 4, "steps": 20, "attack_steps": 3,
                                  "delta": 0.05, "separation": 0.15}),
        "laptop": (8, "mnist", {}),
    }[scale]  # fmt: skip
    return [Case(source=source, **some, **block) for block in lab.blocks(seeds or usual, 1)]


def compute(case: Case) -> pl.DataFrame:
    """One row per network (z and f_S) with its four errors."""
    train, test = _images(case, "train", case.n), _images(case, "test", case.tested)
    z = _trained(case, train)
    f = cgro_network(
        train[0].numpy(), train[1].numpy(), z, case.delta, case.separation, norm="linf",
        assembly="free",
    )  # fmt: skip
    apart = min(_apart(train, other) for other in (train, test))
    rows = [
        {"seed": case.seed, "network": name, "apart": apart, "separation": case.separation,
         "parameters": sum(one.numel() for one in net.parameters()),
         **_errors(case, net, z, train, test)}
        for name, net in (("trained", z), ("f_S", f))
    ]  # fmt: skip
    return pl.DataFrame(rows)


def _images(case: Case, split: str, n: int) -> tuple[Tensor, Tensor]:
    rng = generator(NAME, split, case.seed)
    drawn = zeros_and_ones.draw(case.source, split, n, rng)  # type: ignore[arg-type]
    return drawn.x.double(), 2.0 * drawn.y.double() - 1


def _trained(case: Case, train: tuple[Tensor, Tensor]) -> nn.Module:
    hidden, top = nn.Linear(784, case.width), nn.Linear(case.width, 1)
    rng = generator(NAME, "network", case.seed)
    for layer in (hidden, top):
        bound = layer.in_features**-0.5
        for weight in layer.parameters():
            nn.init.uniform_(weight, -bound, bound, generator=rng)
    net = nn.Sequential(hidden, nn.ReLU(), top, nn.Flatten(0)).double()
    fit(net, *train, steps=case.steps, lr=0.1, loss="logistic", rng=rng)
    return net.eval()


def _apart(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> float:
    """The least linf distance of images of different labels."""
    far = torch.cdist(one[0], other[0], p=float("inf"))
    return float(far.masked_fill(one[1][:, None] == other[1], float("inf")).min())


def _errors(
    case: Case, net: nn.Module, z: nn.Module, train: tuple[Tensor, Tensor], test: tuple
) -> dict[str, float]:
    """Clean errors and those that PGD on the network, or transfer from z, reaches."""
    ball = Ball(norm="linf", radius=case.delta, box=(0.0, 1.0))
    walk = PGD(steps=case.attack_steps, step_size=0.1)
    ways = {"PGD": walk, "transfer": Transfer(source=z, inner=walk)}
    found: dict[str, float] = {}
    for part, (x, y) in (("train", train), ("test", test)):
        loss = ModelLoss(net, y, margin)
        with torch.no_grad():
            signs = loss.outputs(x).reshape(-1).sign()
            unlike = signs != z(x).reshape(-1).sign()
        found |= {
            f"clean {part}": float((signs != y).double().mean()),
            f"unlike {part}": float(unlike.double().mean()),
        }
        fooled = torch.zeros(len(x), dtype=torch.bool)
        for way, attack in ways.items():
            here = attack(loss, x, ball, rng=generator(NAME, way, part, case.seed)).loss >= 0
            fooled |= here
            found[f"{way} {part}"] = float(here.double().mean())
        found[f"robust {part}"] = float(fooled.double().mean())
    return found


def figure(table: pl.DataFrame) -> AnyChart:
    parts = {"train": "training", "test": "test"}
    charts = []
    for kind, title in (("clean", "clean"), ("robust", "PGD or transfer, linf 0.2")):
        columns = [f"{kind} {part}" for part in parts]
        rows = table.unpivot(columns, index=["seed", "network"], variable_name="images")
        named = pl.col("images").str.split(" ").list.last().replace_strict(parts)
        charts.append(
            points(rows.with_columns(named), "images", "value", "network", title=title,
                   x_title="images", y_title="error (found)")
        )  # fmt: skip
    return panels(charts, title=zeros_and_ones.TITLES[table["source"][0]], columns=2)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Whether images of different digits are as far apart as f_S was told."""
    spare = (table["apart"] - table["separation"]).min()
    return [
        Assumption(
            name="separated",
            condition="images of different digits at least 0.7 apart in linf",
            reached=float(table["apart"].min()),  # type: ignore[arg-type]
            holds=bool(spare >= 0),  # type: ignore[operator]
        )
    ]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, f = Claims(ABOUT.claims), table.filter(network="f_S")
    f = f.with_columns(hidden=pl.col("transfer test") - pl.col("PGD test"))
    unlike = {part: sample(f, f"unlike {part}") for part in ("train", "test")}
    return [
        claims.below("a", sample(f, "robust train"), NONE,
            what="share of training images that PGD or transfer breaks"),
        claims.below("b", unlike, NONE,
            what="share of clean images with another answer than the trained network's"),
        claims.above("c", sample(f, "transfer test"), BROKEN,
            what="share of test images that transfer breaks"),
        claims.above("d", sample(f, "hidden"), HIDDEN,
            what="share of test images that transfer breaks, less that of PGD,"),
    ]  # fmt: skip
