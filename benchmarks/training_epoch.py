"""An epoch of PGD-10 training by `advlab.train` against three loops, in CPU seconds on one thread.

- by hand, best: channels last, `autograd.grad` in the inputs alone;
- by hand, usual: channels first, `.backward()`, which also fills the gradients of the weights;
- torchattacks: its PGD, else as usual. It is skipped where it is not installed.

All train the same network on the same images by SGD, attack in eval mode from a random start, keep
the last point, and take a step on it. `train` runs its recipe "pgd" with ten steps. The clock runs
from the first batch of an epoch to its last, so set-up and the errors that are measured after an
epoch are left out for all. Contenders take turns; medians.

    ADVLAB_DATA=/path/to/data python -m benchmarks.training_epoch
"""

import json
import time
from collections.abc import Callable
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from advlab.core.randomness import Rng, generator
from advlab.data import Arrays, cifar10, mnist
from advlab.models import ResNet9, SmallCNN
from advlab.models.normalised import Normalised
from advlab.threats import Ball
from advlab.training import recipe, train

BATCH, BATCHES, STEPS, SHARE, RATE = 128, 5, 10, 0.25, 0.01
TARGETS = {"by hand, best": 1.0, "by hand, usual": 0.6, "torchattacks": 0.6}


class Clock:
    """Is handed each batch; knows the CPU seconds from the first to the last."""

    def __init__(self):
        self.seen: list[float] = []

    def __call__(self, x: Tensor, rng: Rng | None = None) -> Tensor:
        self.seen.append(time.process_time())
        return x

    @property
    def seconds(self) -> float:
        return self.seen[BATCHES - 1] - self.seen[0]


def by_train(model: nn.Module, data: Arrays, radius: float) -> float:
    """An epoch by the library."""
    clock = Clock()
    ball = Ball("linf", radius, box=(0, 1))
    ten = recipe("pgd", attack={"steps": STEPS, "step_size": SHARE}, lr=RATE, schedule="constant")
    train(
        model, data.x, data.y, recipe=ten, ball=ball, epochs=1, batch=BATCH, augment=clock,
        progress=False,
    )  # fmt: skip
    return clock.seconds


def pgd_best(model: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """Ten steps with gradients in the inputs alone."""
    moved = (x + torch.empty_like(x).uniform_(-radius, radius)).clamp(0, 1)
    for _ in range(STEPS):
        moved.requires_grad_()
        (grad,) = torch.autograd.grad(F.cross_entropy(model(moved), y), moved)
        with torch.no_grad():
            moved = moved + SHARE * radius * grad.sign()
            moved = torch.min(torch.max(moved, x - radius), x + radius).clamp(0, 1)
    return moved.detach()


def pgd_usual(model: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """Ten steps as most code has them."""
    delta = torch.empty_like(x).uniform_(-radius, radius)
    delta.data = (x + delta.data).clamp(0, 1) - x
    for _ in range(STEPS):
        delta.requires_grad_()
        delta.grad = None
        F.cross_entropy(model(x + delta), y).backward()
        moved = delta.data + SHARE * radius * delta.grad.sign()
        delta.data = (x + moved.clamp(-radius, radius)).clamp(0, 1) - x
    return (x + delta).detach()


def by_hand(
    model: nn.Module,
    data: Arrays,
    attack: Callable[[nn.Module, Tensor, Tensor], Tensor],
    layout: torch.memory_format,
) -> float:
    """An epoch by a plain loop."""
    clock = Clock()
    model.to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=2e-4)
    for rows in torch.randperm(len(data.x)).split(BATCH):
        x, y = clock(data.x[rows]).to(memory_format=layout), data.y[rows]
        if len(clock.seen) == BATCHES:
            break
        model.eval()
        moved = attack(model, x, y)
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(moved), y).backward()
        optimizer.step()
    return clock.seconds


def contenders(
    make: Callable[[], nn.Module], data: Arrays, radius: float
) -> dict[str, Callable[[], float]]:
    """An epoch by each, from the same start."""
    last, first = torch.channels_last, torch.contiguous_format
    found: dict[str, Callable[[], float]] = {
        "train": lambda: by_train(make(), data, radius),
        "by hand, best": lambda: by_hand(
            make(), data, lambda m, x, y: pgd_best(m, x, y, radius), last
        ),
        "by hand, usual": lambda: by_hand(
            make(), data, lambda m, x, y: pgd_usual(m, x, y, radius), first
        ),
    }
    try:
        import torchattacks  # type: ignore[import-not-found]
    except ImportError:
        print("torchattacks is not installed: its loop is skipped", flush=True)
        return found

    def theirs(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return torchattacks.PGD(model, eps=radius, alpha=SHARE * radius, steps=STEPS)(x, y)

    return {**found, "torchattacks": lambda: by_hand(make(), data, theirs, first)}


def main(repeats: int = 5) -> None:
    torch.set_num_threads(1)
    rows = BATCH * BATCHES
    networks: dict[str, tuple[Callable[[], nn.Module], Arrays, float]] = {
        "SmallCNN, width 16, MNIST": (_small, mnist.load(n=rows), 0.2),
        "ResNet9, width 12, CIFAR-10": (_residual, cifar10.load(n=rows), 8 / 255),
    }
    for name, parts in networks.items():
        calls = contenders(*parts)
        cpu: dict[str, list[float]] = {one: [] for one in calls}
        for _ in range(repeats):
            for one, call in calls.items():
                cpu[one].append(call())
        seconds = {one: median(values) / (BATCHES - 1) for one, values in cpu.items()}
        ratios = {one: seconds["train"] / value for one, value in seconds.items() if one in TARGETS}
        report = {
            "benchmark": f"a step of PGD-{STEPS} training, batch {BATCH}: {name}",
            "CPU seconds": {one: round(value, 3) for one, value in seconds.items()},
            "train against": {one: round(value, 3) for one, value in ratios.items()},
            "targets": {one: TARGETS[one] for one in ratios},
        }
        print(json.dumps(report), flush=True)


def _small() -> nn.Module:
    return Normalised(SmallCNN.draw(generator("epoch"), width=16), [0.13], [0.31])


def _residual() -> nn.Module:
    net = ResNet9.draw(generator("epoch"), width=12)
    return Normalised(net, [0.49, 0.48, 0.45], [0.25, 0.24, 0.26])


if __name__ == "__main__":
    main()
