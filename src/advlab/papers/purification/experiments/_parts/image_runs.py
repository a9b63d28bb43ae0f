"""Trainings on images that Figures 1 to 13 and Table 1 share: each phase is trained once.

A network's history is the phases that it went through, such as ("clean", "linf(8/255)"): clean
training, then adversarial training against that attacker. What a figure needs are histories:

- () is the random start, ("clean",) the clean network;
- ("clean", attacker) is the adversarially trained network of the paper;
- ("clean", "clean") is the control: clean training goes on for as many epochs;
- (attacker,) is adversarial training from the random start;
- ("clean", attacker, "clean") goes back to clean training;
- (attacker, "clean above l", "attacker above l") are the three stages of section 8.2: layers before
  l stand still, and those from l on were drawn anew after the first stage.

Each phase is one stored run (`lab.shared`) that starts from the stored run of the phases before it.
It holds the weights at its end, the first layer's filters and the share of active ReLUs after each
epoch, accuracies on held-out images, and perturbations of the first of these.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import polars as pl
import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....core.randomness import Rng, generator
from .....data.augment import AUGMENTATIONS
from .....losses import ModelLoss, cross_entropy, outputs_of, resolve
from .....measure.activation_sparsity import activation_sparsity
from .....models import AlexNet, Normalised, PreActResNet, WideResNet
from .....models.seeded import seeded
from .....training import Clean, Cosine, Drops, FrozenLayers, Probe, Schedule, fit
from .....training.layers import freeze, rerandomise, split_at
from ...data.images import ImageParts, Source, image_parts
from ...models import LargeFilterCNN
from . import attackers
from .attackers import AttackerName

NAME = "purification/images"
"""Streams of these runs; trials that chose settings used others, on other images."""
RUNS = "image_runs"
"""The folder of the shared runs, beside those of the figures."""
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""Where networks are trained: the paper's own sizes want a GPU."""
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
ABOVE = " above "
CLEAN = "clean"
SHOWN = 100
"""Held-out images whose perturbations are kept."""
BATCH = 250
WATCHED = 256
"""Held-out images on which activity is counted."""

NetworkName = Literal["large filters", "AlexNet", "ResNet-34", "WRN-28-10"]
FIRST: dict[NetworkName, str] = {
    "large filters": "model.layers.conv1",
    "AlexNet": "model.layers.1",
    "ResNet-34": "model.layers.0",
    "WRN-28-10": "model.layers.0",
}
"""The first convolution of each network."""


class ImageSettings(lab.Case):
    """How networks are trained; what a figure measures comes on top of it.

    Args:
        source: CIFAR-10, or the stand-in of smoke scale, which decides nothing.
        network: "ResNet-34" is the paper's name for depth 32 of He's family.
        filters: of "large filters", as `kernel`, `stride`, `width` and `start_scale`.
        images: how many are trained on; None for all.
        tested: how many held-out images decide.
        clean_epochs: of a clean phase from a random start.
        adversarial_epochs: of every other phase.
        lr: of a clean phase from a random start.
        later_lr: of every other phase.
        drop: whether rates fall by ten after 4/5 of a phase, as in the paper, or as a cosine.
        attacker: of adversarial training.
        attack_steps: PGD steps in training, in linf.
        ramp_epochs: over which the radius grows.
    """

    source: Source = "cifar10"
    network: NetworkName = "large filters"
    filters: PositiveInt = 32
    kernel: PositiveInt = 7
    stride: PositiveInt = 2
    width: PositiveInt = 24
    start_scale: PositiveFloat = 0.1
    images: PositiveInt | None = 5000
    tested: PositiveInt = 1000
    clean_epochs: PositiveInt = 12
    adversarial_epochs: PositiveInt = 8
    lr: PositiveFloat = 0.1
    later_lr: PositiveFloat = 0.05
    drop: bool = False
    weight_decay: PositiveFloat = 5e-4
    batch: PositiveInt = 128
    attacker: AttackerName = "linf(8/255)"
    attack_steps: PositiveInt = 2
    ramp_epochs: NonNegativeInt = 3

    def of_runs(self) -> dict[str, Any]:
        """The settings that trainings have; those of a figure alone are left out."""
        return {name: getattr(self, name) for name in ImageSettings.model_fields}

    @property
    def first_layer(self) -> str:
        return FIRST[self.network]


class ImageRun(ImageSettings):
    """One phase of training, and all phases before it."""

    history: tuple[str, ...]

    @property
    def from_random(self) -> bool:
        """Whether the layers that train start anew."""
        last = self.history[-1]
        redrawn = ABOVE in last and ABOVE not in self.history[-2]
        return len(self.history) == 1 or redrawn


@dataclass
class Trainings:
    """The trained networks of one case, by history; each is read once.

    Args:
        settings: of the trainings; the seed counts.

    Example:
        trainings = Trainings(case)
        robust = trainings.network("clean", case.attacker)
    """

    settings: ImageSettings
    _read: dict[tuple[str, ...], lab.Stored] = field(default_factory=dict)
    _memory: dict[str, lab.Stored] = field(default_factory=dict)

    def run(self, *history: str) -> lab.Stored:
        """What the last phase of a history left."""
        if history not in self._read:
            run = ImageRun(**self.settings.of_runs(), history=history)
            with lab.remembering(self._memory):
                self._read[history] = lab.shared(run, train_phase, RUNS)
        return self._read[history]

    def network(self, *history: str) -> nn.Module:
        """The network at the end of a history, in eval mode."""
        net = start_network(self.settings)
        if history:
            net.load_state_dict(state_of(self.run(*history)))
        return net.to(DEVICE).eval()

    def filters(self, *history: str) -> Tensor:
        """The first layer's weights, on the CPU."""
        layer = self.network(*history).get_submodule(self.settings.first_layer)
        return layer.weight.detach().cpu()  # type: ignore[union-attr, operator]

    def perturbations(self, *history: str) -> Tensor:
        """Of the first held-out images, against this network."""
        return torch.from_numpy(self.run(*history).arrays["perturbations"])

    def accuracies(self, *history: str, attacker: AttackerName | None = None) -> dict[str, float]:
        """Clean and robust accuracy on held-out images; the robust one is an upper bound.

        Args:
            history: of the network.
            attacker: whom it is judged against, the main one if left out.
        """
        name = attacker or self.settings.attacker
        rows = self.run(*history).table.filter(part="accuracy", attacker=name)
        if rows.is_empty():
            found = judged(
                self.network(*history), parts_of(self.settings), name, self.settings.seed
            )
            rows = pl.DataFrame([found])
        return {"clean": rows["clean"].item(), "robust": rows["robust"].item()}

    @property
    def held_out(self) -> tuple[Tensor, Tensor]:
        """Images and labels that no training has seen."""
        return parts_of(self.settings).held_out


def state_of(run: lab.Stored) -> dict[str, Tensor]:
    """The weights at the end of a run."""
    return {
        name.removeprefix("state/"): torch.from_numpy(value)
        for name, value in run.arrays.items()
        if name.startswith("state/")
    }


def parts_of(settings: ImageSettings) -> ImageParts:
    return image_parts(settings.source, settings.images, settings.tested, settings.seed)


def start_network(settings: ImageSettings) -> nn.Module:
    """The network at its random start, the same for all histories of one seed."""
    rng = generator(NAME, "network", settings.seed)
    makers = {
        "large filters": partial(
            LargeFilterCNN, settings.filters, settings.kernel, settings.stride, settings.width,
            start_scale=settings.start_scale,
        ),
        "AlexNet": AlexNet,
        "ResNet-34": partial(PreActResNet, depth=32),
        "WRN-28-10": partial(WideResNet, depth=28, widen=10),
    }  # fmt: skip
    with seeded(rng):
        net = Normalised(makers[settings.network](), MEAN, STD)
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def train_phase(run: ImageRun) -> lab.Computed:
    """The last phase of a history, from where the earlier phases ended."""
    *before, phase = run.history
    what, _, layer = phase.partition(ABOVE)
    parts, net = parts_of(run), start_network(run)
    if before:
        net.load_state_dict(state_of(Trainings(run).run(*before)))
    hooks = _frozen(run, net, layer) if layer else []
    net = net.to(DEVICE)
    train, per_epoch = parts.train, -(-len(parts.train.y) // run.batch)
    log = fit(
        net,
        *train,
        epochs=run.clean_epochs if what == CLEAN and run.from_random else run.adversarial_epochs,
        lr=_schedule(run, what),
        batch=run.batch,
        objective=(
            Clean()
            if what == CLEAN
            else attackers.objective(what, run.attack_steps, run.ramp_epochs * per_epoch)  # type: ignore[arg-type]
        ),
        optimizer=partial(torch.optim.SGD, momentum=0.9, weight_decay=run.weight_decay),
        transform=_augmented,
        hooks=[*hooks, Probe(_probes(run, parts.held_out.x[:WATCHED]), every=per_epoch)],
        rng=generator(NAME, "training", *run.history, run.seed),
    ).log
    net.eval()
    return lab.Computed(
        pl.concat([_activity(net, log, per_epoch), _accuracies(run, net, parts)], how="diagonal"),
        {
            **{f"state/{name}": one.cpu().numpy() for name, one in net.state_dict().items()},
            "filters": log.probe("filters")[:, 0].numpy(),
            "perturbations": _perturbations(run, net, parts).numpy(),
        },
    )


def _schedule(run: ImageRun, what: str) -> Schedule:
    lr = run.lr if what == CLEAN and run.from_random else run.later_lr
    if run.drop:
        return Drops(lr=lr, factor=0.1, at_shares=(0.8,))
    return Cosine(lr=lr, warmup=0.15)


def _augmented(x: Tensor, rng: Rng) -> Tensor:
    return AUGMENTATIONS["crop_flip"](x, rng=rng)


def _frozen(run: ImageRun, net: nn.Module, layer: str) -> list[FrozenLayers]:
    """Layers before one stand still; from it on they are drawn anew, if they were not before."""
    below, above = split_at(net, layer)
    freeze(net, below)
    if run.from_random:
        rerandomise(net, above, generator(NAME, "anew", *run.history, run.seed))
    return [FrozenLayers(below)]


def _probes(run: ImageRun, x: Tensor) -> dict[str, Any]:
    def active(net: nn.Module) -> Tensor:
        found = activation_sparsity(net, x)
        return torch.tensor([layer.share for layer in found.values()])

    def filters(net: nn.Module) -> Tensor:
        return net.get_submodule(run.first_layer).weight  # type: ignore[return-value]

    return {"filters": filters, "active": active}


def _activity(net: nn.Module, log: Any, per_epoch: int) -> pl.DataFrame:
    """One row per epoch and ReLU: the share of activations that are not zero."""
    names = [name for name, one in net.named_modules() if isinstance(one, nn.ReLU)]
    values, steps = log.probe("active")[:, 0].double(), log.steps["active"]
    return pl.DataFrame([
        {"part": "activity", "epoch": step // per_epoch, "order": k, "layer": name,
         "active": float(row[k])}
        for step, row in zip(steps, values, strict=True)
        for k, name in enumerate(names)
    ])  # fmt: skip


def judges(run: ImageRun) -> list[AttackerName]:
    """Against whom a network is judged: its last attacker; a clean one against the main one."""
    last = run.history[-1].partition(ABOVE)[0]
    return [name for name in attackers.BALLS if name in (last, run.attacker)]


def _accuracies(run: ImageRun, net: nn.Module, parts: ImageParts) -> pl.DataFrame:
    found = [judged(net, parts, name, run.seed) for name in judges(run)]
    return pl.DataFrame([{"part": "accuracy", **one} for one in found])


def judged(
    net: nn.Module, parts: ImageParts, attacker: AttackerName, seed: int
) -> dict[str, float | str]:
    """Clean and robust accuracy on the held-out images; PGD finds an upper bound of the latter."""
    x, y = (one.to(DEVICE) for one in parts.held_out)
    right = scores(net, x).argmax(1) == y
    rng = generator(NAME, "judge", attacker, seed)
    ball, margin = attackers.BALLS[attacker], resolve("margin")
    least = [
        attackers.JUDGE(ModelLoss(net, b, margin), a, ball, rng=rng).loss
        for a, b in zip(x.split(BATCH), y.split(BATCH), strict=True)
    ]
    still = right & (torch.cat(least) < 0)
    return {
        "attacker": attacker,
        "clean": float(right.double().mean()),
        "robust": float(still.double().mean()),
    }


@torch.no_grad()
def scores(net: nn.Module, x: Tensor) -> Tensor:
    """What the network says, a part of the images at a time."""
    return torch.cat([outputs_of(net, some) for some in x.split(BATCH)])


def _perturbations(run: ImageRun, net: nn.Module, parts: ImageParts) -> Tensor:
    x, y = (one[:SHOWN].to(DEVICE) for one in parts.held_out)
    ball, rng = attackers.BALLS[run.attacker], generator(NAME, "shown", run.seed)
    return attackers.SHOWN(ModelLoss(net, y, cross_entropy), x, ball, rng=rng).x.cpu() - x.cpu()
