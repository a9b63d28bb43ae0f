"""Four questions with known answers, put to every library (a row each):

flat: Gaussian data in R^d and a linear model, so the worst margin is known exactly. How far from
the inputs are the points that come back, which accuracy do they report, how much margin is missed?
confident: the same with an l2 ball and leads of tens, where log-softmax rounds to 0; and with leads
above 87, where in float32 cross entropy itself is 0 and only the margin can be climbed.
classes: the standard ensemble on a linear model with 2 to 5 classes; the exact answer is known.
mode: a network with BatchNorm that was left in train mode. Is it the same network afterwards?

    python -m benchmarks.peers.probes
"""

import copy
import json

import torch
from torch import Tensor, nn

from advlab.attacks import AutoAttack
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, margin
from advlab.models import ResNet9
from advlab.threats import Ball

from .libraries import LIBRARIES, ORDER, WIDE, Task, advlab_on_margin, art_classifier, attempt

UNIT = (0.0, 1.0)


def linear(d: int, classes: int, scale: float, *name: object) -> nn.Module:
    model = nn.Sequential(nn.Flatten(), nn.Linear(d, classes)).requires_grad_(False)
    rng = generator("peers", "linear", *name)
    model[1].weight.copy_(scale * torch.randn(classes, d, generator=rng) / d**0.5)
    model[1].bias.zero_()
    return model


def worst_margins(task: Task) -> Tensor:
    """The exact worst margin, by hand: a linear score gains most at the far end of each coordinate
    (linf), or along its own slope (l2, without a box)."""
    weight, (low, high) = task.model[1].weight, task.ball.box or WIDE
    x, scores = task.x.flatten(1), task.model(task.x)
    slopes = weight - weight[task.y][:, None]
    if task.ball.norm == "l2":
        gain = task.ball.radius * slopes.norm(dim=2)
    else:
        up, down = (room.clamp(max=task.ball.radius)[:, None] for room in (high - x, x - low))
        gain = torch.where(slopes > 0, slopes * up, -slopes * down).sum(2)
    own = task.y[:, None]
    return (scores - scores.gather(1, own) + gain).scatter(1, own, float("-inf")).amax(1)


def flat_task(norm, radius: float, scale: float, n: int = 256, d: int = 40) -> Task:
    x = torch.randn(n, d, generator=generator("peers", "gaussian"))
    model = linear(d, 2, scale)
    return Task(model, x, model(x).argmax(1), Ball(norm=norm, radius=radius))


def flat(task: Task) -> dict[str, object]:
    """Distance in radii, accuracy reported, mean and largest margin missed."""
    exact = worst_margins(task)
    rows: dict[str, object] = {"exact": {"robust accuracy": _share(exact < 0)}}
    for name, library in {"advlab on the margin": advlab_on_margin, **LIBRARIES}.items():
        rows[name] = attempt(lambda library=library: _flat_row(task, library(task), exact))
    return rows


def _flat_row(task: Task, found: Tensor, exact: Tensor) -> dict[str, float]:
    reached = ModelLoss(task.model, task.y, margin)(found)
    away = task.ball.norm_of(found - task.x) / task.ball.radius
    return {
        "distance in radii": round(float(away.max()), 4),
        "robust accuracy": _share(reached < 0),
        "mean margin missed": _short((exact - reached).mean()),
        "largest": _short((exact - reached).max()),
    }


def ensembles(task: Task) -> dict[str, object]:
    """Each library's AutoAttack: robust accuracy, or how it failed."""
    rows: dict[str, object] = {"exact": _share(worst_margins(task) < 0)}
    for name, run in ENSEMBLES.items():
        rows[name] = attempt(lambda run=run: _right(task, run(task)))
    return rows | {"foolbox": "has none", "cleverhans": "has none"}


def _right(task: Task, found: Tensor) -> float:
    return _share(task.model(found).argmax(1) == task.y)


def _advlab_ensemble(task: Task) -> Tensor:
    loss = ModelLoss(task.model, task.y, margin)
    return AutoAttack()(loss, task.x, task.ball, rng=generator("peers", "ensemble")).x


def _pyautoattack_ensemble(task: Task, targets: int | None = None) -> Tensor:
    from pyautoattack import AutoAttack as Reference

    adversary = Reference(task.model, norm="Linf", eps=task.ball.radius, seed=0)
    if targets is not None:
        adversary.apgd_targeted.n_target_classes = adversary.fab.n_target_classes = targets
    return adversary.run_standard_evaluation(task.x, task.y)[0]


def _pyautoattack_helped(task: Task) -> Tensor:
    """With no more target classes than there are: it warns of them, but takes nine by itself."""
    return _pyautoattack_ensemble(task, int(task.y.max()))


def _torchattacks_ensemble(task: Task) -> Tensor:
    import torchattacks

    classes = int(task.y.max()) + 1
    return torchattacks.AutoAttack(task.model, eps=task.ball.radius, n_classes=classes, seed=0)(
        task.x, task.y
    )


def _art_ensemble(task: Task) -> Tensor:
    from art.attacks.evasion import AutoAttack as OfArt

    radius = task.ball.radius
    attack = OfArt(art_classifier(task), ORDER[task.ball.norm], radius, radius / 4)
    return torch.from_numpy(attack.generate(task.x.numpy(), task.y.numpy()))


ENSEMBLES = {
    "advlab": _advlab_ensemble,
    "pyautoattack": _pyautoattack_ensemble,
    "pyautoattack, targets set by hand": _pyautoattack_helped,
    "torchattacks": _torchattacks_ensemble,
    "ART": _art_ensemble,
}


def few_classes(classes: int, n: int = 32, side: int = 6) -> Task:
    x = torch.rand(n, 1, side, side, generator=generator("peers", "few", classes))
    model = linear(side * side, classes, 6.0, classes)
    return Task(model, x, model(x).argmax(1), Ball(norm="linf", radius=0.05, box=UNIT))


def modes() -> dict[str, object]:
    """Are BatchNorm's statistics and the mode the same after an attack on a net in train mode?"""
    net = ResNet9.draw(generator("peers", "mode"), width=2)
    x = torch.rand(16, 3, 32, 32, generator=generator("peers", "mode", "x"))
    y = torch.arange(16) % 10
    for _ in range(3):
        net.train()(x)
    rows = {}
    for name, library in LIBRARIES.items():
        mine = copy.deepcopy(net).train()
        task = Task(mine, x, y, Ball(norm="linf", radius=8 / 255, box=UNIT), steps=5)
        rows[name] = attempt(lambda library=library, task=task: _mode_row(net, task, library))
    return rows


def _mode_row(before: nn.Module, task: Task, library) -> dict[str, str]:
    library(task)
    kept, now = before.state_dict(), task.model.state_dict()
    same = all(torch.equal(kept[name], now[name]) for name in kept)
    return {
        "statistics": "kept" if same else "overwritten",
        "mode": "kept" if all(m.training for m in task.model.modules()) else "left in eval",
    }


def main() -> None:
    questions = {
        "flat linf": lambda: flat(flat_task("linf", 0.15, 4.0)),
        "flat l2": lambda: flat(flat_task("l2", 1.0, 4.0)),
        "confident l2": lambda: flat(flat_task("l2", 1.0, 20.0)),
        "more confident l2": lambda: flat(flat_task("l2", 1.0, 40.0)),
        **{f"{k} classes": lambda k=k: ensembles(few_classes(k)) for k in (2, 3, 4, 5)},
        "train mode": modes,
    }
    for name, ask in questions.items():
        for library, answer in ask().items():
            print(json.dumps({"probe": name, "library": library, "answer": answer}), flush=True)


def _share(rows: Tensor) -> float:
    return round(100 * float(rows.double().mean()), 1)


def _short(value: Tensor) -> float:
    return float(f"{float(value):.2g}")


if __name__ == "__main__":
    main()
