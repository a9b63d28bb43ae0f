"""One adversarial training on images, measured at some epochs: what Figures 1, 2 and 3 read.

A run is named by data set, n and seed, and the three figures have cases in common: each is one
shared run (`lab.shared`), so nothing is trained twice.

At each snapshot, for training images, held-out images (of the training split, not trained on; only
they choose an epoch) and test images: clean and robust accuracy and loss under PGD-10 (robust
accuracy is an upper bound); for training and test images also `sharp` and `rise` (the paper's mean
of max ||grad_x L||_1 and of the rise of the loss within a radius) at half of the training radius
and at the radius, at three snapshots also beyond it. Both are lower bounds: the steepest gradient
and the largest loss along the iterates of PGD-10.

At laptop scale the network is `StridedCNN` (CIFAR-10) or LeNet5 (MNIST), trained by Adam on a
triangle of rates against PGD, with a radius that grows over the first fifth of the epochs. The
first 1000 test images were looked at when these settings were chosen: decisions are about others.
"""

from typing import Any, Literal

import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....attacks import PGD
from .....core.errors import AdvlabError
from .....core.randomness import generator
from .....data import Arrays, cifar10, mnist
from .....data.directory import Split
from .....data.recorded import cached
from .....data.stand_in_images import stand_in_images
from .....measure.sharpness_curve import sharpness_over_radii
from .....models import LeNet5, Normalised, PreActResNet, ResNet9
from .....report import Verdict
from .....threats import Ball
from .....training import Hook, Recipe, Run, fit, recipe
from .....training.errors_of import ErrorsOf
from .....training.trainer import Arranged
from ...models import StridedCNN

NAME = "cgro/images"
RUNS = "image_runs"
"""The folder of the shared runs, beside those of the figures."""
Data = Literal["cifar10", "mnist", "stand-in"]
Part = Literal["train", "held-out", "test"]
TITLES: dict[str, str] = {
    "cifar10": "CIFAR-10",
    "mnist": "MNIST",
    "stand-in": "generated stand-in images, which decide nothing",
}
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
TRIALS = 1000
"""Test images that settings were chosen on."""
INSIDE, BEYOND = (0.5, 1.0), (1.5, 2.0, 3.0)
"""Where sharpness is measured, as shares of the training radius."""
WEAK = PGD(steps=10, step_size=0.25)
BOUND = (
    "robust accuracy is what one PGD-10 leaves, an upper bound; sharpness what it finds, a lower"
)


class Case(lab.Case):
    data: Data
    n: PositiveInt
    epochs: PositiveInt
    every: PositiveInt
    """Epochs from one snapshot to the next."""
    radius: PositiveFloat
    network: Literal["strided", "lenet5", "resnet9", "preact_resnet18"] = "strided"
    width: PositiveInt = 32
    training: Literal["adam", "pgd", "fast"] = "adam"
    """Ours by Adam, Rice et al.'s PGD, or Wong et al.'s fast one."""
    lr: PositiveFloat = 1e-3
    attack_steps: PositiveInt = 3
    batch: PositiveInt = 64
    held: PositiveInt = 300
    tested: PositiveInt = 500
    watched: PositiveInt = 200
    """Training images whose accuracy is measured."""
    probed: PositiveInt = 100
    """Images of each part whose sharpness is measured."""

    @property
    def cost(self) -> float:
        per_epoch = self.n * (1 + self.attack_steps)
        looks = self.epochs / self.every * 11 * (self.held + self.tested + 3 * self.probed)
        return (self.epochs * per_epoch + looks) * (0.5 if self.data == "mnist" else 1.0) / 1e5

    @property
    def ball(self) -> Ball:
        return Ball(norm="linf", radius=self.radius, box=(0.0, 1.0))

    @property
    def snapshots(self) -> list[int]:
        """From when the radius has grown to its end."""
        grown = 0.2 * self.epochs if self.training == "adam" else 0.0
        all_of_them = [*range(self.every, self.epochs, self.every), self.epochs]
        return [epoch for epoch in all_of_them if epoch >= grown]

    @property
    def far(self) -> set[int]:
        """The three snapshots at which sharpness beyond the radius is measured."""
        looks = self.snapshots
        return {looks[0], looks[len(looks) // 2], looks[-1]}


CIFAR = {"data": "cifar10", "radius": 8 / 255, "epochs": 32, "every": 4, "n": 1000}
CIFAR4 = {**CIFAR, "n": 4000, "epochs": 24, "every": 3}
MNIST = {"data": "mnist", "radius": 0.2, "epochs": 40, "every": 5, "n": 1000, "network": "lenet5",
         "lr": 2e-3, "attack_steps": 5}  # fmt: skip
SMOKE = {"data": "stand-in", "radius": 0.1, "epochs": 4, "every": 1, "n": 40, "width": 4,
         "held": 20, "tested": 20, "watched": 20, "probed": 10, "batch": 20}  # fmt: skip
LARGE = {"n": 50000, "held": 1000, "tested": 2000, "watched": 1000, "probed": 500, "batch": 128,
         "width": 64}  # fmt: skip
RICE = {"data": "cifar10", "radius": 8 / 255, "epochs": 200, "every": 5, "training": "pgd",
        "network": "preact_resnet18", "attack_steps": 10, "lr": 0.1, **LARGE,
        "n": 49000}  # fmt: skip
WONG = {"data": "cifar10", "radius": 8 / 255, "epochs": 15, "every": 1, "training": "fast",
        "network": "resnet9", "lr": 0.2, **LARGE, "n": 49000}  # fmt: skip
WONG_MNIST = {**WONG, "data": "mnist", "radius": 0.1, "epochs": 20, "network": "lenet5",
              "n": 59000}  # fmt: skip


def cases(seeds: int | None, usual: int, *settings: dict[str, Any]) -> list[Case]:
    """A case per setting and seed; `usual` seeds if no number is given."""
    return [Case(**some, **block) for some in settings for block in lab.blocks(seeds or usual, 1)]


def compute(case: Case) -> pl.DataFrame:
    """One row per snapshot, part and radius (as a share of the training radius)."""
    return lab.shared(case, train_and_measure, RUNS).table


def train_and_measure(case: Case) -> pl.DataFrame:
    """The rows of a case, trained anew."""
    train, held, test = images(case)
    model = draw(case, train)
    chosen = _recipe(case)
    snapshots = _Snapshots(case, train, held, test)
    arranged = Arranged.of(model, None, channels_last=True)
    (stage,) = chosen.stages(case.ball, -(-case.n // case.batch))
    fit(
        model,
        train.x,
        train.y,
        epochs=case.epochs,
        lr=stage.schedule,
        batch=case.batch,
        objective=stage.objective,
        optimizer=stage.optimizer,
        hooks=[*stage.hooks, snapshots],
        rng=generator(NAME, "training", case.data, case.n, case.seed),
        transform=arranged,
    )
    return pl.DataFrame(snapshots.rows, infer_schema_length=None)


def images(case: Case) -> tuple[Arrays, Arrays, Arrays]:
    """Training, held-out and test images of a case: no image is in two of them."""
    rng = generator(NAME, "images", case.data, case.n, case.seed)
    if case.data == "stand-in":
        train, held, test = (
            stand_in_images(n, rng, contrast=0.15) for n in (case.n, case.held, case.tested)
        )
        return train, held, test
    pool, fresh = pixels(case.data, "train"), pixels(case.data, "test")
    rest = len(fresh.y) - TRIALS
    if len(pool.y) < case.n + case.held or rest < case.tested:
        raise AdvlabError(
            f"{case.n + case.held} training and {TRIALS + case.tested} test images of {case.data}",
            f"{len(pool.y)} and {len(fresh.y)}",
            f"run `advlab data fetch {case.data}`",
        )
    order = torch.randperm(len(pool.y), generator=rng)
    others = TRIALS + torch.randperm(rest, generator=rng)[: case.tested]
    return (
        pool.take(order[: case.n]),
        pool.take(order[case.n : case.n + case.held]),
        fresh.take(others),
    )


@cached
def pixels(data: Data, split: Split) -> Arrays:
    """All images of a split."""
    return cifar10.load(split=split) if data == "cifar10" else mnist.load(split=split)


def draw(case: Case, train: Arrays) -> nn.Module:
    """The network of a case at its start, behind the normalisation of colour images."""
    rng = generator(NAME, "network", case.data, case.n, case.seed)
    channels, side = train.x.shape[1], train.x.shape[-1]
    image: dict[str, Any] = {"channels": channels}
    if case.network == "lenet5":
        return LeNet5.draw(rng, **image, side=side)
    model: nn.Module
    if case.network == "strided":
        model = StridedCNN.draw(rng, width=case.width, side=side, **image)
    elif case.network == "resnet9":
        model = ResNet9.draw(rng, width=case.width, **image)
    else:
        model = PreActResNet.draw(rng, depth=18, **image)
    return Normalised(model, MEAN, STD)


def _recipe(case: Case) -> Recipe:
    length: dict[str, Any] = {"epochs": float(case.epochs), "batch": case.batch, "lr": case.lr}
    if case.training == "fast":
        return recipe("fast", **length)
    if case.training == "pgd":  # as Rice et al. 2020
        walk = PGD(steps=case.attack_steps, step_size=0.25, jump=False, keep="last")
        return recipe("pgd", **length, attack=walk, weight_decay=5e-4)
    walk = PGD(steps=case.attack_steps, step_size=2 / case.attack_steps, jump=False, keep="last")
    return recipe(
        "pgd", **length, attack=walk, optimizer="adam", weight_decay=0.0, schedule="cyclic",
        peak=0.3, radius_warmup=0.2 * case.epochs,
    )  # fmt: skip


class _Snapshots(Hook):
    """Measures the network after some epochs."""

    def __init__(self, case: Case, train: Arrays, held: Arrays, test: Arrays):
        self.case, self.rows = case, []
        self.parts: dict[Part, Arrays] = {
            "train": train.take(torch.arange(min(case.watched, case.n))),
            "held-out": held,
            "test": test,
        }

    def after_step(self, run: Run) -> None:
        epoch, left = divmod(run.step, run.steps_per_epoch)
        if left or epoch not in self.case.snapshots:
            return
        for part, some in self.parts.items():
            self.rows += self._rows(run.model, epoch, part, some)

    def _rows(self, model: nn.Module, epoch: int, part: Part, some: Arrays) -> list[dict]:
        case = self.case
        errors = ErrorsOf(some.x, some.y, case.ball, WEAK)(model)
        row = {
            "seed": case.seed, "step": epoch, "steps": case.epochs, "part": part,
            "share": 1.0, "clean": 1 - errors["clean_error"], "robust": 1 - errors["robust_error"],
            "loss": errors["clean_loss"], "robust_loss": errors["robust_loss"],
        }  # fmt: skip
        if part == "held-out":
            return [row]
        shares = INSIDE + (BEYOND if epoch in case.far else ())
        few = slice(case.probed)
        sharp, rise = _sharpness(model, some.x[few], some.y[few], case, shares)
        about = {key: row[key] for key in ("seed", "step", "steps", "part")}
        found = zip(shares, sharp, rise, strict=True)
        return [
            {**(row if share == 1.0 else {**about, "share": share}), "sharp": one, "rise": other}
            for share, one, other in found
        ]

    def settings(self) -> object:
        return self.case


def _sharpness(
    model: nn.Module, x: Tensor, y: Tensor, case: Case, shares: tuple[float, ...]
) -> tuple[list[float], list[float]]:
    """Means over the images of the steepest gradient and of the rise, at each radius."""
    curve = sharpness_over_radii(
        model, x, y, case.ball, [share * case.radius for share in shares], batch=150,
        attack=WEAK, along=0, draws=0, starts=0, climb=0, bound=False,
        rng=generator(NAME, "sharpness", case.seed),
    )  # fmt: skip
    return curve.low.double().mean(1).tolist(), curve.rise.double().mean(1).tolist()


def with_note(table: pl.DataFrame, found: list[Verdict]) -> list[Verdict]:
    """The verdicts with the data that they are about, and what an attack can show."""
    named = " and ".join(TITLES[one] for one in table["data"].unique(maintain_order=True))
    return [
        one.model_copy(update={"note": "; ".join(filter(None, (one.note, named, BOUND)))})
        for one in found
    ]
